"""Which columns (or fields of JSON) hold texts, times and ids, by their names and first values."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from streamdp.decode.dates import CLOCK, COMPACT, DAY_FIRST, MONTH_FIRST, AmbiguousError, day_or_month
from streamdp.decode.fields import is_time, plain_float, with_point

Values = Mapping[str, Sequence[Any]]
"""What the first records hold, by the name of the column; nothing for what is empty."""

TEXTS, TIMES, IDS = (
    re.findall(r"\w+", names)
    for names in (
        """text headline headlinetext title schlagzeile überschrift ueberschrift titel titre título titulo
        titolo betreff subject message msg nachricht meldung tweet body content inhalt description
        beschreibung summary comment kommentar""",
        """time published publishedat pubdate publishdate publicationdate datepublished date datetime
        timestamp createdat created erstelltam erstellt veröffentlichtam veröffentlicht datum zeitstempel
        zeitpunkt zeit posted sent received eingang ts epoch fecha data updated updatedat modified""",
        "id guid uuid docid articleid newsid postid tweetid messageid recordid idstr",
    )
)
"""Names in lower case without blanks and signs, the best first."""

_SPOKEN = re.compile("time|date|stamp|datum|zeit", re.IGNORECASE)
_CLOCKED = re.compile(r"\d:\d|^\d{9,}|\d[ap]m", re.IGNORECASE)
"""What tells a date with a time of day, or a number since 1970, from a date alone."""

_NEARLY = 0.9
"""Share of values that must be what the column is said to hold."""

_PROSE = 3.0
"""Words of a value, on average, from which on a column is one of texts whatever its name."""

_FEW = 100
"""Values by which columns are compared."""


class Timing(NamedTuple):
    """The column of times, that of their dates if it is another, and how they are written."""

    time: str
    date: str | None
    form: str | None

    def __str__(self) -> str:
        how = {DAY_FIRST: " as day/month", MONTH_FIRST: " as month/day", None: ""}.get(self.form)
        date = "" if self.date is None else f"{self.date!r} and "
        return f"{date}{self.time!r}{f' as dates ({self.form})' if how is None else how}"


def text_column(columns: Values) -> tuple[str, list[str]] | None:
    """The column that holds the texts, and others that might; None where none does."""
    texts = {name: values[:_FEW] for name, values in columns.items() if _nearly(_is_text, values)}
    named = sorted((rank, name) for name in texts if (rank := _rank(name, TEXTS)) < math.inf)
    if named:
        return named[0][1], [name for _, name in named[1:]]
    words = {name: sum(len(text.split()) for text in found) / len(found) for name, found in texts.items()}
    prose = [
        name for name, found in texts.items() if words[name] >= _PROSE and 2 * len(set(found)) > len(found)
    ]
    return (max(prose, key=lambda name: words[name]), []) if prose else None


def vector_column(columns: Values, least: int = 1) -> str | None:
    """The column of lists of as many numbers each, ``least`` or more; None where there is not just one."""

    def is_vector(size: int, value: Any) -> bool:
        return isinstance(value, list) and len(value) == size and {*map(type, value)} <= {int, float}

    sizes = {name: len(values[0]) for name, values in columns.items() if isinstance(values[0], list)}
    found = [
        name for name, n in sizes.items() if n >= least and _nearly(partial(is_vector, n), columns[name])
    ]
    return found[0] if len(found) == 1 else None


def time_column(
    columns: Values, name: str | None = None, form: str | None = None, compact: bool = True
) -> Timing | None:
    """The column of times, or how those of the one with a ``name`` are written; None where there is none.

    ``form`` is how times are written if that is known, ``compact`` says whether integers may be dates. Raises
    AmbiguousError where days and months cannot be told apart.
    """
    clocks = [each for each, values in columns.items() if _nearly(_is_clock, values)]
    looked_at = columns if name is None or name in clocks else [name]
    known = {each: _form_of(each, columns[each], form, compact) for each in columns if each in looked_at}
    forms = {each: found for each, found in known.items() if found is not None}
    if not forms:
        return None
    best = min(forms, key=lambda each: _rank(each, TIMES))
    found, values = forms[best] or None, [str(value) for value in columns[best]]
    if form is None and found in (DAY_FIRST, MONTH_FIRST):
        try:
            found = day_or_month(values)
        except AmbiguousError as error:
            why = f"day and month of the times in {best!r} cannot be told apart"
            raise AmbiguousError(f"{why}: {error}") from None
    if clocks and not any(map(_CLOCKED.search, values[:_FEW])):
        return Timing(name if name in clocks else clocks[0], best, None if found == COMPACT[8] else found)
    return None if name in clocks else Timing(best, None, found)


def _form_of(name: str, values: Sequence[Any], given: str | None, compact: bool) -> str | None:
    """How the times of a column may be written, "" where no form is needed; None where it holds none.

    Numbers are times only under a name that says so, and dates unless they are not ``compact``.
    """
    spoken = given is None and (_SPOKEN.search(name) is not None or _rank(name, TIMES) < math.inf)
    form = COMPACT.get(len(str(values[0]))) if spoken and compact else None
    if form and all(
        re.match(r"(19|20)\d+$", str(value)) and is_time(str(value), numbers=False, form=form)
        for value in values
    ):
        return form
    forms = ("", DAY_FIRST, MONTH_FIRST) if given is None else (given,)
    return next(
        (form for form in forms if _nearly(partial(is_time, numbers=spoken, form=form or None), values)), None
    )


def id_column(columns: Values) -> str | None:
    """The column that holds ids, all of them different."""
    named = [name for name in columns if _plain(name) in IDS]
    return next((name for name in named if len(set(map(str, columns[name]))) == len(columns[name])), None)


def category_columns(columns: Values) -> tuple[list[str], list[str]]:
    """Columns of categories and of numbers; none where a column may hold texts.

    Words that repeat are categories. Numbers that only rise are those of the records, and what differs in
    most records is an id.
    """
    words = {name: values for name, values in columns.items() if not any(map(is_number, values))}
    if any(" " in str(value).strip() for values in words.values() for value in values):
        return [], []
    numbers = {
        name: [*map(_as_float, values)] for name, values in columns.items() if all(map(is_number, values))
    }
    rising = {name for name, found in numbers.items() if all(a < b for a, b in pairwise(found))}
    plain = {
        name: [value for value in values if isinstance(value, str | bool)] for name, values in words.items()
    }
    return [name for name, values in plain.items() if 2 * len({*values}) < len(values)], [
        name for name in numbers if name not in rising
    ]


def has_commas(columns: Values) -> bool:
    """Whether numbers of a table whose cells are not between commas have decimal commas."""
    return any(
        _nearly(is_number, values, 1.0) and any("," in value for value in values)
        for values in columns.values()
    )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _rank(name: str, known: Sequence[str]) -> float:
    """How good a name is: one that is known, has a known word, or neither."""
    if _plain(name) in known:
        return known.index(_plain(name))
    words = re.findall(r"[^\W_A-Z]+|[A-Z]+(?![a-z])|[A-Z][^\W_A-Z]*", name)
    return min(
        (len(known) + known.index(word.lower()) for word in words if word.lower() in known), default=math.inf
    )


def _nearly(holds: Callable[[Any], bool], values: Sequence[Any], least: float = _NEARLY) -> bool:
    """Whether something holds of nearly all of the first values."""
    few = values[:_FEW]
    return sum(map(holds, few)) >= least * len(few)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and any(map(str.isalpha, value)) and not is_time(value, numbers=False)


def _is_clock(value: Any) -> bool:
    return isinstance(value, str) and CLOCK.fullmatch(value.strip()) is not None


def is_number(value: Any) -> bool:
    """Whether a cell, or a field of JSON, holds a number."""
    with contextlib.suppress(ValueError):
        _as_float(value)
        return not isinstance(value, bool)
    return False


def _as_float(value: Any) -> float:
    return plain_float(with_point(str(value)))
