"""What goes into the engine and what comes out of it: plain records, no behaviour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

import msgspec

from streamdp.records.arrow import answers_table

if TYPE_CHECKING:
    import numpy as np

Value: TypeAlias = "str | Sequence[float] | np.ndarray | Mapping[str, float] | Mapping[str, Any]"
"""A text, a vector, features that are numbers, or fields of several kinds: what is clustered."""

Kind = Literal["texts", "categories", "vectors", "lines"]
"""What the records of a stream are; features that are numbers are vectors, those that are counts texts."""

Position = dict[str, Any]
"""Where a record stands in its source, as it is printed: ``{"file": ..., "line": n}`` or
``{"topic": ..., "partition": p, "offset": o}``; with ``"record": k`` where several stand there."""


class Raw(msgspec.Struct, frozen=True, gc=False):
    """One event as a source delivers it: bytes, before anything has been decoded.

    ``time`` is the source's own timestamp in seconds since the epoch (a broker's), or None;
    ``arrival`` is the wall clock in seconds when the source read it; ``refused`` is why the source itself
    could not read what is there.
    """

    data: bytes
    position: Position
    arrival: float
    time: float | None = None
    refused: str = ""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One decoded event: a text, a dense vector, or a mapping from names to numbers, or to categories.

    Examples
    --------
    >>> Record("storm over the coast", {"line": 1}, time=1_700_000_000.0).value
    'storm over the coast'
    """

    value: str | list[float] | dict[str, Any]  # numbers, or categories as texts
    position: Position = {}
    time: float | None = None  # or what ``seconds_of`` takes, until the engine has it
    id: str | int | None = None
    arrival: float | None = None
    keep: dict[str, Any] | None = None
    raw: bytes = b""
    part: int | None = None
    """Of a stream in shards: the cluster that the record's shard found for it."""


def is_missing(value: Any) -> bool:
    """Whether it is what Python and pandas have for nothing: None, NaN, NA, NaT."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return not isinstance(value, str) and not hasattr(value, "__len__") and bool(value != value)


def is_time(value: Any) -> bool:
    """Whether it is a moment by its type: a datetime, a Timestamp of pandas, a datetime64."""
    return isinstance(value, date) or getattr(getattr(value, "dtype", None), "kind", "") == "M"


def seconds_of(moment: Any) -> float | None:
    """Seconds since 1970 of a number or of what :func:`is_time`, in UTC where it has no zone.

    None for what is missing. TypeError for anything else.
    """
    if is_missing(moment):
        return None
    if isinstance(moment, date):
        at = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if is_time(moment):
        return float(moment.astype("datetime64[us]").astype(int)) / 1e6
    if isinstance(moment, str | bytes) or not hasattr(moment, "__float__"):
        raise TypeError(f"a time is seconds since 1970, a datetime or a datetime64, not {shown(moment)}")
    return float(moment)


def plain(
    record: Any, position: Position, form: Callable[[Any, Position], Any] | None = None
) -> Record | Reject:
    """A record made in Python, its value a text, a list of floats, or a dict of floats or of texts.

    What is no record becomes one at that position, after ``form``. Arrays, tuples and sequences of numbers
    become lists, numbers of numpy plain ones, times seconds. TypeError, with what was expected, for anything
    else.
    """
    if form is not None and not isinstance(record, (str, list, Record, Reject)):
        record = form(record, position)
    if isinstance(record, Reject):
        return record
    made: Record = record if isinstance(record, Record) else Record(record, position)
    if made.time is not None and (made.time.__class__ is not float or made.time != made.time):
        made = msgspec.structs.replace(made, time=seconds_of(made.time))
    if made.id is not None or made.keep is not None:
        made = msgspec.structs.replace(made, id=_id(made.id), keep=_kept_of(made.keep))
    value = made.value
    if isinstance(value, str):
        whole = _whole(value)
        return made if whole is value else msgspec.structs.replace(made, value=whole)
    try:
        if isinstance(value, Mapping):
            if holds_categories(value) or all(map(is_missing, value.values())):
                fields = {
                    _whole(str(name)): _part(found) for name, found in value.items() if not is_missing(found)
                }
                return msgspec.structs.replace(made, value=fields)
            features = {_whole(str(name)): float(number) for name, number in value.items()}
            return msgspec.structs.replace(made, value=features)
        if not isinstance(value, bytes):
            return msgspec.structs.replace(made, value=list(map(float, value)))
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(
        "the value of a record is a text, a sequence of numbers, or a mapping from names to numbers or to "
        f"categories, not {shown(value)}"
    )


def _whole(text: str) -> str:
    """A text in which U+FFFD stands for each half of a surrogate pair, which no state could hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _id(name: Any) -> str | int | None:
    """An id, 17 for 17.0; one beyond 64 bits becomes a text. TypeError for what is none."""
    if name is None:
        return None
    if isinstance(name, str):
        return _whole(name)
    plain_name = name.item() if hasattr(name, "dtype") and name.ndim == 0 else name
    if isinstance(plain_name, float) and plain_name.is_integer():
        plain_name = int(plain_name)
    if isinstance(plain_name, bool) or not isinstance(plain_name, int):
        raise TypeError(f"the id of a record is a text or a whole number, not {shown(name)}")
    return plain_name if _MOST_BELOW <= plain_name < _MOST else str(plain_name)


_MOST_BELOW, _MOST = -(1 << 63), 1 << 64
"""Whole numbers that a state can hold."""


def _kept_of(keep: Any) -> dict[str, Any] | None:
    """Kept fields whose texts and whole numbers a state can hold. TypeError for what are none."""
    if keep is None:
        return None
    if not isinstance(keep, Mapping):
        raise TypeError(f"the kept fields of a record are a mapping from names to values, not {shown(keep)}")
    found: dict[str, Any] = storable(keep)
    return found


def storable(value: Any) -> Any:
    """A value of JSON, or of numpy, with texts and whole numbers that a state can hold."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, Mapping):
        return {_whole(str(name)): storable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [storable(part) for part in value]
    if hasattr(value, "tolist"):  # an array, or a number of numpy
        return storable(value.tolist())
    if isinstance(value, int) and not _MOST_BELOW <= value < _MOST:
        return str(value)
    return value


def holds_categories(value: Any) -> bool:
    """Whether a value is a mapping to a text or a vector among others: then all of them are fields."""
    if isinstance(value, str | list) or not isinstance(value, Mapping):
        return False
    kinds = set(map(type, value.values()))
    return str in kinds or any(issubclass(kind, str) or _is_sequence(kind) for kind in kinds)


def _is_sequence(kind: type) -> bool:
    """Whether values of a type are vectors, such as lists and arrays."""
    return hasattr(kind, "__len__") and not issubclass(kind, str | bytes | Mapping)


def _part(found: Any) -> str | float | list[float]:
    """A category as it is written, a number that is none, or a vector."""
    if _is_sequence(type(found)):
        return list(map(float, found))
    return float(found) if isinstance(found, float) and not found.is_integer() else _whole(written(found))


class FieldNames(NamedTuple):
    """What the fields of a record hold that has several; all are ``categories`` where none is named.

    ``vectors`` is the one field that holds a vector, or none.
    """

    categories: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Each once; none where all fields of a record are categories."""
        return tuple(dict.fromkeys((*self.categories, *self.texts, *self.numbers, *self.vectors)))


ALL_CATEGORIES = FieldNames()
"""Whatever fields a record has, they are categories."""


def written(category: Any) -> str:
    """How a category is written: a text as it is, 3 as 3, True as true. ValueError for what is none."""
    if isinstance(category, str):
        return category
    if isinstance(category, bool | int):
        return str(category).lower()
    if isinstance(category, float) and category.is_integer():
        return str(int(category))
    if hasattr(category, "dtype"):  # a number, or a truth value, of numpy
        return written(category.item())
    raise ValueError(f"is no category (a text, a whole number, true or false): {shown(category)}")


_PLAIN_IDS = (str, type(None))


def all_plain(
    records: Iterable[Any], first: int = 0, form: Callable[[Any, Position], Any] | None = None
) -> list[Record | Reject]:
    """The records, those made in Python with plain values, what is none numbered from ``first``.

    What was decoded from bytes is plain, and so are texts of ASCII, with seconds or without. ``form`` reads
    mappings that have the form of a file's records.
    """
    return [
        record
        if record.__class__ is Record
        and (
            record.raw
            or (
                record.value.__class__ is str
                and record.value.isascii()
                and record.keep is None
                and record.id.__class__ in _PLAIN_IDS
                and (record.id is None or record.id.isascii())
                and ((at := record.time) is None or (at.__class__ is float and at == at))
            )
        )
        else plain(record, {"record": number}, form)
        for number, record in enumerate(records, first)
    ]


def shown(value: object) -> str:
    """A value as an error names it: its type, and the beginning of it."""
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


SMALL = 3
"""Records of a cluster that may be chance; those of more are counted beside all."""


GAP = "gap"
"""The reason of a reject that stands for records which were gone before they could be read."""


JOINED = "joined"
"""The reason of a line of a log that is no record of its own: it goes on with the line before it."""


class Reject(msgspec.Struct, frozen=True, gc=False):
    """An event that was refused, with the reason and the original bytes.

    Examples
    --------
    >>> from streamdp import Engine
    >>> [(each.position, each.reason) for each in Engine().advance(["coast storm", "..."]).rejects]
    [({'record': 1}, 'empty')]
    """

    position: Position
    reason: str
    detail: str
    data: bytes


class Assignment(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The answer to one record, or (``revision`` > 0) a later change of it.

    Examples
    --------
    >>> from streamdp import Engine
    >>> answers = Engine().advance(["storm over the coast", "coast storm"])
    >>> [(each.seq, each.cluster, each.new, each.revision) for each in answers.assignments]
    [(0, 0, True, 0), (1, 0, False, 0)]
    """

    seq: int
    """Number of the record in processing order, from 0; under ``--frozen`` of those scored in this run."""
    id: str | int | None
    """As the record has it."""
    position: Position
    """``file`` and ``line``, or ``topic``, ``partition`` and ``offset``; of ``otlp`` also ``record``."""
    time: float | None
    """Event time, in seconds since 1970."""
    cluster: int
    """Its label; -1 under ``--frozen`` where a new cluster is likelier than any."""
    probability: float
    """The share of the posterior that the cluster has, given the stream so far."""
    new_probability: float
    """The share of a new cluster when the record came; revisions keep it."""
    lasting_probability: float | msgspec.UnsetType = msgspec.UNSET
    """The chance that the record founds a cluster that lasts; revisions keep it; not from ``fit``."""
    stability: float | msgspec.UnsetType = msgspec.UNSET
    """The chance that the first answer is never revised; not from ``fit`` and ``--frozen``."""
    confidence: float | msgspec.UnsetType = msgspec.UNSET
    """The chance that the record is of the class of its cluster, where classes are known."""
    confidence_labels: int | msgspec.UnsetType = msgspec.UNSET
    """How many labelled records that rests on, of the last 5,000."""
    new: bool
    """Whether the record founds the cluster."""
    link: int | None
    """``seq`` of the likeliest earlier member, under a distance-dependent prior."""
    log_predictive: float
    """Log density of the record given those before it, in nats; low is novel."""
    novelty: float
    """Its negative by token, field or dimension, in nats; high is novel, however long the record."""
    revision: int = 0
    """0 for the first answer; the line comes again, counting up, when it is corrected."""
    keep: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The fields that ``--keep`` and ``--truth-field`` name, as far as the record has them."""
    template: str | msgspec.UnsetType = msgspec.UNSET
    """Of log lines: the template, as it reads now."""
    params: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Of log lines under ``--params``: what fills the holes of the template, in order."""


class Final(msgspec.Struct, frozen=True, gc=False):
    """Every assignment up to ``final_through`` will never change again.

    Examples
    --------
    >>> from streamdp import Engine
    >>> engine = Engine()
    >>> answers = engine.advance(["storm over the coast", "coast storm"])
    >>> engine.finish().lines[-1]
    Final(final_through=1)
    """

    final_through: int


TURNS = ("silent", "surged")
"""Kinds of events about a rate, and neither begin nor end anything."""


TITLED, RENAMED = "titled", "renamed"
"""Kinds of events: a story has a title, or another one than before. They neither begin nor end anything."""


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What happened to a cluster (docs/formats.md).

    Examples
    --------
    >>> from streamdp import Engine
    >>> answers = Engine(with_events=True).advance(["storm over the coast", "late goal wins"])
    >>> [(each.event, each.cluster, each.size) for each in answers.events]
    [('born', 0, 1), ('born', 1, 1)]
    """

    event: str
    """Which kind."""
    seq: int
    """The record that caused it."""
    time: float | None
    """Event time of that record, in seconds since 1970."""
    cluster: int
    """The label that it is about."""
    other: int | None
    """The first label of ``moved``."""
    size: int
    """Records of the cluster."""
    moved: list[tuple[int, int]] | None
    """Labels that its records had before (``split``) or have now, each with how many, the most first."""
    first_time: float | None
    """Event time of the cluster's first record."""
    last_time: float | None
    """Event time of its last record."""
    words: list[tuple[str, int]] | None = None
    """Up to ten telling words, or values as ``field=value``, each with its count; null for vectors."""
    mean: list[float] | None = None
    """Where the cluster lies; null for words."""
    template: str | msgspec.UnsetType = msgspec.UNSET
    """Of log lines: the template of the label, of ``other`` where it is ``merged``."""
    lines: int | msgspec.UnsetType = msgspec.UNSET
    """Of ``silent`` and ``surged``: lines of the template in the window that has just ended."""
    usual: float | msgspec.UnsetType = msgspec.UNSET
    """Of these: lines that were to be expected."""
    title: str | msgspec.UnsetType = msgspec.UNSET
    """Of ``titled`` and ``renamed``."""


class ClusterSummary(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A live cluster of the best hypothesis.

    Examples
    --------
    >>> from streamdp import Engine
    >>> engine = Engine()
    >>> answers = engine.advance(["storm over the coast", "coast storm"])
    >>> [(each.cluster, each.size, dict(each.words)["coast"]) for each in engine.clusters()]
    [(0, 2, 2)]
    """

    cluster: int
    """Its label."""
    size: int
    """Its records."""
    first_time: float | None
    """Event time of the first; null where records have none."""
    last_time: float | None
    """Event time of the latest."""
    first_seq: int
    """Number of the first record."""
    last_seq: int
    """Number of the latest."""
    weight: float
    """What the prior gives a next record for joining it; 0 for a closed one that hypotheses differ on."""
    recent: int = 0
    """How many of the last 1,000 records it has, as far as they are retained."""
    before: int = 0
    """How many of the 1,000 before those."""
    samples: list[str] = []
    """Up to three of its records: the first, the most typical, the latest."""
    words: list[tuple[str, int]] | None = None
    """The most telling words, or values as ``field=value``, and their counts."""
    mean: list[float] | None = None
    """Of vectors."""
    template: str | msgspec.UnsetType = msgspec.UNSET
    """Of log lines."""
    names: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Of features: the name of each number of the mean."""


Line: TypeAlias = "Assignment | Final"

_assignment = msgspec.json.Decoder(Assignment).decode
_final = msgspec.json.Decoder(Final).decode
_encode_lines = msgspec.json.Encoder().encode_lines
_FINALITY = b'{"final_through":'


def _decoded(line: bytes) -> Line:
    return _final(line) if line.startswith(_FINALITY) else _assignment(line)


WHOLE, ID, POSITION, KEPT, TEMPLATE, PARAMS = range(6)
"""What there are spans of in :class:`AnswerRows`: a line with its newline, and what stands in it."""

SPANS = 6

_ids = msgspec.json.Decoder(list[str | int | None]).decode
_texts = msgspec.json.Decoder(list[str | None]).decode


class AnswerRows:
    """Answers, revisions and finality in order.

    Parameters
    ----------
    data
        They are in it as lines of JSON.
    rows
        Their numbers, shape (n,): ``seq``, ``label``, ``was`` (the label announced before, -1 where that is
        the first answer or not known), ``founded``, ``revision``, ``time`` (NaN where there is none),
        ``probability``, ``novelty``, ``stability`` (NaN where it is not told). Finality is a row of revision
        -1, its number in place of ``seq``.
    spans
        Where in ``data`` each part of them begins and ends, as JSON: shape (n, 6, 2), -1 where there is none.

    Examples
    --------
    >>> from streamdp import Engine
    >>> from streamdp.records.answer_rows import answer_rows
    >>> answers = answer_rows(Engine().advance(["storm over the coast"]).lines)
    >>> answers.rows["label"].tolist(), answers.of(POSITION)
    ([0], ['{"record":0}'])
    """

    def __init__(self, data: bytes, rows: np.ndarray, spans: np.ndarray) -> None:
        self.data, self.rows, self.spans = data, rows, spans

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: np.ndarray | slice) -> AnswerRows:
        """Some of them, by their numbers or a truth value for each."""
        return AnswerRows(self.data, self.rows[which], self.spans[which])

    def first(self) -> AnswerRows:
        """Those that are the first answer to a record."""
        return self[self.rows["revision"] == 0]

    def revised(self) -> AnswerRows:
        """Those that revise an earlier one."""
        return self[self.rows["revision"] > 0]

    def written(self, part: int) -> list[bytes]:
        """A part of each as JSON; b"" where there is none."""
        data, (starts, ends) = self.data, self.spans[:, part].T.tolist()
        if not starts or max(starts) < 0:
            return [b""] * len(self)
        return [data[start:end] if start >= 0 else b"" for start, end in zip(starts, ends, strict=True)]

    def of(self, part: int) -> list[str | None]:
        """The same as text; None where there is none."""
        return [str(found, "utf-8") if found else None for found in self.written(part)]

    def lines(self) -> bytes:
        """All of them as lines of JSON."""
        starts, ends = self.spans[:, WHOLE].T
        if len(starts) and (starts[1:] == ends[:-1]).all():
            return self.data[starts[0] : ends[-1]]
        return b"".join(self.written(WHOLE))

    def ids(self) -> list[str | int | None]:
        """The ids of their records."""
        return _ids(self._list(ID))

    def templates(self) -> list[str | None]:
        """The templates of answers to lines of logs."""
        return _texts(self._list(TEMPLATE))

    def times(self) -> list[float | None]:
        """The times of their records."""
        return [time if time == time else None for time in self.rows["time"].tolist()]

    def numbers(self, *names: str) -> list[list[Any]]:
        """Some columns of ``rows`` as lists."""
        return [self.rows[name].tolist() for name in names]

    def _list(self, part: int) -> bytes:
        return b"[" + b",".join([found or b"null" for found in self.written(part)]) + b"]"


class Lines(Sequence[Line]):
    """Assignments and finality in the order of a stream: as objects, or already written.

    What is written is decoded where somebody asks for it, line by line. What is not there yet is added when
    somebody does (``ask``).
    """

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._parts: list[list[Line] | AnswerRows] = []
        self.ask: Callable[[], None] | None = None
        self.rows: tuple[int, AnswerRows] | None = None  # by ``answer_rows``, when there were so many lines
        if lines:
            self.extend(lines)

    @property
    def parts(self) -> list[list[Line] | AnswerRows]:
        """What was added, in order."""
        if self.ask is not None:
            self.ask()
        return self._parts

    def __getstate__(self) -> dict[str, Any]:
        """All lines, as they are once asked for."""
        return {**vars(self), "_parts": self.parts, "ask": None}

    def append(self, line: Line) -> None:
        """Add one as an object."""
        self.extend([line])

    def extend(self, lines: Iterable[Line]) -> None:
        """Add some as objects; of others that are :class:`Lines`, what is written stays so."""
        mine = self.parts
        for part in lines.parts if isinstance(lines, Lines) else [[*lines]]:
            if isinstance(part, list) and mine and isinstance(last := mine[-1], list):
                last += part
            else:
                mine.append([*part] if isinstance(part, list) else part)

    def __add__(self, other: Iterable[Line]) -> Lines:
        found = Lines(self)
        found.extend(other)
        return found

    def add(self, part: AnswerRows | list[Line]) -> None:
        """Add some that are written, or objects: what was asked for, where it was not there."""
        self.ask = None
        self._parts.append(part)

    def apart(self) -> tuple[Lines, Lines]:
        """The assignments, and the finality."""
        answers, finality = Lines(), Lines()
        for part in self.parts:
            if isinstance(part, list):
                answers.extend(line for line in part if isinstance(line, Assignment))
                finality.extend(line for line in part if isinstance(line, Final))
            else:
                answers.add(part[part.rows["revision"] >= 0])
                finality.add(part[part.rows["revision"] < 0])
        return answers, finality

    def encode(self) -> bytes:
        """All of them as lines of JSON."""
        return b"".join(
            _encode_lines(part) if isinstance(part, list) else part.lines() for part in self.parts
        )

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Line]:
        for part in self.parts:
            yield from part if isinstance(part, list) else map(_decoded, part.lines().splitlines())

    def __reversed__(self) -> Iterator[Line]:
        for part in reversed(self.parts):
            found = part if isinstance(part, list) else [*map(_decoded, part.lines().splitlines())]
            yield from reversed(found)

    @overload
    def __getitem__(self, at: int) -> Line: ...
    @overload
    def __getitem__(self, at: slice) -> list[Line]: ...
    def __getitem__(self, at: int | slice) -> Line | list[Line]:
        return list(self)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class Answers(msgspec.Struct, frozen=True, gc=False):
    """What a call of the engine produced, each list in processing order.

    Examples
    --------
    >>> Answers([Final(99)], [], []).final_through
    99
    """

    lines: Lines
    rejects: list[Reject]
    events: list[Event]

    def __post_init__(self) -> None:
        if type(self.lines) is not Lines:  # quicker to ask than what a class with abstract methods is
            msgspec.structs.force_setattr(self, "lines", Lines(self.lines))

    @property
    def assignments(self) -> list[Assignment]:
        """The answers and revisions among the lines."""
        return [line for line in self.lines if isinstance(line, Assignment)]

    @property
    def final_through(self) -> int | None:
        """Assignments up to this one will never change again; None where nothing new is known of that."""
        return next((line.final_through for line in reversed(self.lines) if isinstance(line, Final)), None)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand answers and revisions over as a table of Arrow, a row for each; the columns of a Parquet file.

        ImportError without pyarrow.
        """
        return answers_table(self.assignments).__arrow_c_stream__(requested_schema)
