"""Records of several fields to bags of words: one that all have, two for a category, then those of a text."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from streamdp.decode.fields import plain_float
from streamdp.encode.bags import leave_out
from streamdp.encode.batch import Batch
from streamdp.encode.beside import VectorBeside
from streamdp.encode.order import refuse
from streamdp.encode.stop_words import mark
from streamdp.encode.text import Tokenizer, TooManyTokens
from streamdp.encode.vocabulary import LONGEST, BagEncoder, Vocabulary, short
from streamdp.kernels.jit import Bound
from streamdp.kernels.sound import require
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.categorical import RECORD, TEXT
from streamdp.records import ALL_CATEGORIES, FieldNames, Record, Reject, written
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.registry import CATEGORICAL
from streamdp.settings.schema import AUTO

LEVELS = 4
"""Questions that a number is asked: 2^LEVELS intervals at most."""

INSIDE = "?"
"""End of an interval's name where it means the question in which half of the interval a number is."""


class Intervals:
    """The nested intervals of one numeric field: numbers as categories.

    Every number is asked the same few questions: is it below the median of the first records; then, is it
    below the median of that half; and so on. A question is a field of two values, which a record has that got
    so far. With a Dirichlet for each of them a cluster has a Pólya tree of the field's numbers (Lavine 1992),
    split where the stream has as many records on one side as on the other.

    Parameters
    ----------
    field
        The word of the field; its intervals are ``field=low..high``, low included, high not.
    cuts
        Where intervals end and begin, by level and from left to right within a level (a heap), shape
        (2^LEVELS - 1,); None where an interval is not divided.

    ``ends`` are these in order.
    """

    def __init__(self, field: str, cuts: Sequence[float | None]) -> None:
        self.field, self.cuts = field, tuple(cuts)
        self.ends: list[float] = []
        self._answers: list[list[tuple[str, str]]] = []
        self._walk(0, (None, None), field, [])

    @classmethod
    def of(cls, field: str, values: Iterable[float]) -> Intervals:
        """Those that divide some numbers, finite ones, at their quantiles; none where all are the same."""
        found: list[float | None] = [None] * (2**LEVELS - 1)
        _divide(np.sort(np.fromiter(values, float)), 0, found)
        return cls(field, found)

    def answers(self, number: float) -> list[tuple[str, str]]:
        """The words of the questions that a number is asked and of its answers, the coarsest first."""
        return self._answers[bisect_right(self.ends, number)]

    def _walk(
        self,
        node: int,
        bounds: tuple[float | None, float | None],
        question: str,
        before: list[tuple[str, str]],
    ) -> None:
        cut = self.cuts[node] if node < len(self.cuts) else None
        if cut is None:
            self._answers.append(before)
            return
        below, above = (bounds[0], cut), (cut, bounds[1])
        for child, (low, high) in ((2 * node + 1, below), (2 * node + 2, above)):
            if low == cut:
                self.ends.append(cut)
            value = f"{self.field}={_written(low)}..{_written(high)}"
            self._walk(child, (low, high), value + INSIDE, [*before, (question, value)])


def sound_cuts(cuts: Sequence[Any]) -> bool:
    """Whether cuts, of wherever they come from, are those of intervals."""
    if len(cuts) != 2**LEVELS - 1 or not all(cut is None or type(cut) is float for cut in cuts):
        return False
    ends = Intervals("", cuts).ends
    return all(map(math.isfinite, ends)) and all(a < b for a, b in itertools.pairwise(ends))


def _divide(values: np.ndarray, node: int, found: list[float | None]) -> None:
    if node >= len(found) or len(values) < 2:
        return
    steps = np.flatnonzero(values[1:] > values[:-1]) + 1
    if len(steps) == 0:
        return
    middle = int(steps[np.argmin(np.abs(steps - len(values) / 2))])
    found[node] = _roundest(float(values[middle - 1]), float(values[middle]))
    _divide(values[:middle], 2 * node + 1, found)
    _divide(values[middle:], 2 * node + 2, found)


def _roundest(low: float, high: float) -> float:
    """The number above ``low`` and up to ``high`` that is written shortest, near their middle."""
    middle = low / 2.0 + high / 2.0
    for digits in range(17):
        found = float(f"{middle:.{digits}e}")
        if low < found <= high:
            return found
    return high


def _written(bound: float | None) -> str:
    return "" if bound is None else repr(bound).removesuffix(".0")


_Part = TypeVar("_Part", str, float)

_LONGEST_FIELD = LONGEST // 4  # bytes, of which each may be escaped
_FIELDS_HELD = 1 << 16

EVERY = ""
"""The word of every record; a field is its name, and a value ``field=value``."""


class CategoryEncoder(BagEncoder):
    """Mappings from names of fields to what they hold, and maybe a vector. Values may come at any time.

    Parameters
    ----------
    vocabulary
        Of fields, their values, and words of texts.
    names
        Which fields count, and what they hold.
    tokenizer
        Cuts texts into words.
    stop_words
        As for :class:`~streamdp.encode.word_encoder.WordEncoder`.
    cuts
        By numeric field, see :class:`Intervals`. None: where there are numbers, or a vector, records wait
        until :meth:`learn` divides the numbers of those that have come.
    """

    kind = "categories"

    def __init__(
        self,
        vocabulary: Vocabulary,
        names: FieldNames = ALL_CATEGORIES,
        tokenizer: Tokenizer | None = None,
        cuts: Mapping[str, Sequence[float | None]] | None = None,
        stop_words: str = "none",
        *,
        frozen: bool = False,
    ) -> None:
        super().__init__(vocabulary, stop_words, frozen=frozen)
        self.names, self.tokenizer = names, tokenizer or Tokenizer()
        self._leave_out = Bound(leave_out)
        if not vocabulary.words:
            vocabulary.add(EVERY)
            if names.texts:
                vocabulary.add(_escaped(names.texts[0]))
        vocabulary.fixed = 2 if names.texts else 1
        self._fields: dict[str, str] = {}
        self._waiting: list[tuple[dict[str, Any], dict[str, float], list[str]]] = []
        self._intervals: dict[str, Intervals] | None = None if names.numbers or names.vectors else {}
        self.beside = VectorBeside(names.vectors[0]) if names.vectors else None
        if cuts is not None:
            self._intervals = {name: Intervals(_escaped(name), found) for name, found in cuts.items()}

    @property
    def waits(self) -> bool:
        """Whether records wait for numbers to be divided, or for the first vector."""
        return self._intervals is None

    @property
    def knows_all(self) -> bool:
        """Whether no more records need to wait: there are no numbers, and a vector has come."""
        return not self.names.numbers and self.beside is not None and self.beside.dimension is not None

    def learn(self) -> Moments | None:
        """Divide numbers where those that have come so far are dense, and encode these.

        Returns what the family of the vector beside them is made from, None where there is none.
        """
        moments = None if self.beside is None else self.beside.learn()
        if self._intervals is None:
            found: dict[str, list[float]] = {name: [] for name in self.names.numbers}
            for _, numbers, _ in self._waiting:
                for name, number in numbers.items():
                    found[name].append(number)
            self._intervals = {name: Intervals.of(_escaped(name), values) for name, values in found.items()}
            for parts in self._waiting:
                self._encode(*parts)
            self._waiting = []
        return moments

    def add(self, given: Columns) -> list[tuple[int, Reject]]:
        """Append records to the batch; which of them cannot be clustered, and why."""
        found = enumerate(map(self._add, given))
        return [(i, reject) for i, reject in found if reject is not None]

    def _add(self, record: Record) -> Reject | None:
        value = record.value
        if not isinstance(value, dict):
            what = "a text" if isinstance(value, str) else "a vector"
            return refuse(record, "wrong_kind", f"it holds {what} where this stream holds categories")
        try:
            categories, numbers, words = self._parts(value)
        except TooManyTokens as error:
            return refuse(record, error.reason, str(error))
        except _NotFiniteError as error:
            return refuse(record, "not_finite", str(error))
        except ValueError as error:
            return refuse(record, "wrong_type", str(error))
        vector = None if self.beside is None else value.get(self.beside.field)
        if vector is None and not (categories or numbers or words):
            return refuse(record, "empty", "none of the fields has a value")
        if self.beside is not None and (wrong := self.beside.add(record, vector)) is not None:
            return wrong
        if self._intervals is None:
            self._waiting.append((categories, numbers, words))
        elif not self._encode(categories, numbers, words):
            return refuse(record, "empty", "none of the fields has a value")
        return None

    def _parts(self, value: dict[str, Any]) -> tuple[dict[str, str], dict[str, float], list[str]]:
        """The categories, numbers and words of a record. ValueError for what is none of these."""
        categories, numbers, words, names = {}, {}, [], self.names
        for name, found in sorted(value.items()):
            if name in names.texts:
                words += self.tokenizer.tokens(_read(name, found, written))
            elif name in names.numbers:
                numbers[name] = _read(name, found, _number)
            elif name in names.categories or not names.all:
                categories[name] = _read(name, found, written)
        return categories, numbers, words

    def _encode(self, categories: dict[str, str], numbers: dict[str, float], words: list[str]) -> bool:
        """Append a record; False where nothing is left of it."""
        assert self._intervals is not None
        ids = [RECORD]
        for name, category in categories.items():
            field = self._fields.get(name)
            if field is None:
                field = _escaped(name)
                if len(self._fields) < _FIELDS_HELD and len(name) <= _LONGEST_FIELD:
                    self._fields[name] = field
            ids += self._pair(field, f"{field}={category}")
        for name, number in numbers.items():
            for field, interval in self._intervals[name].answers(number):
                ids += self._pair(field, interval)
        counts = [1] * len(ids)
        told = Counter(self._told(words)).items()
        held = [(self.number_of(f"{self.vocabulary.words[TEXT]}={word}"), count) for word, count in told]
        held = sorted((pair for pair in held if pair[0] >= 0), key=lambda pair: pair[1] > 1)
        if held:
            ids += [TEXT, *(word for word, _ in held)]
            counts += [sum(count for _, count in held), *(count for _, count in held)]
        if len(ids) == 1 and not (self.names.numbers or self.names.vectors):
            return False
        self._held.append((np.array([0, len(ids)]), np.array(ids, np.int32), np.array(counts, np.int32)))
        return True

    def _told(self, words: list[str]) -> list[str]:
        """The words of a text without its stop words, where it has others."""
        if not words or not self.stops.asked[0]:
            return words
        marks = np.fromiter((mark(word, self.tokenizer.stem) for word in words), np.int32, len(words))
        found = np.zeros(1, np.int64)
        self._leave_out((self.stops._replace(marks=marks),), np.arange(len(words), dtype=np.int32), found)
        kept = np.flatnonzero(marks & found[0] == 0).tolist()
        return [words[i] for i in kept] if kept else words

    def _pair(self, field: str, value: str) -> list[int]:
        """The words of a field and its value; none where there is no room for both."""
        known, vocabulary, value = self.vocabulary.ids, self.vocabulary, self.spelt(value)
        if self.frozen:
            return [known.get(field, vocabulary.unknown), known.get(value, vocabulary.unknown)]
        if value in known:  # and its field, unless a state was tampered with
            return [known[field], known[value]] if field in known else []
        if len(known) + 2 > vocabulary.limit:
            vocabulary.dropped += 1
            return []
        return [known[field] if field in known else vocabulary.add(field), vocabulary.add(value)]

    def parts(self, batch: Batch, tokens: np.ndarray) -> np.ndarray:
        """The values and words of each record, and the numbers of its vector."""
        parts = np.asarray((tokens - 1) // 2)
        if batch.vectors is not None:
            parts += batch.vectors.shape[1] * ~np.isnan(batch.vectors[:, 0])
        return parts

    def words_in(self, text: str) -> list[str]:
        """The words of fields that are written as JSON."""
        try:
            fields = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return []
        return [f"{name}={value}" for name, value in fields.items()] if isinstance(fields, dict) else []

    def meant(self, settings: Settings) -> Settings:
        """The settings with the likelihood of categories, where they leave it open."""
        return settings if settings.likelihood != AUTO else replace(settings, likelihood=CATEGORICAL)

    def check(self, moments: Moments | None) -> None:
        """Raise UnsoundError unless it is sound, and goes with the moments of vectors."""
        super().check(moments)
        known = self.vocabulary.words
        require(known[:1] == [EVERY], "records without a word of their own")
        require(not self.names.texts or known[TEXT] is not None, "texts without a word of their own")
        require(all(type(name) is str for kind in self.names for name in kind), "a field is no name")
        if self.cuts is not None:
            require(self.cuts.keys() == set(self.names.numbers), "intervals of other fields")
            for found in self.cuts.values():
                require(sound_cuts(found), "intervals that do not follow each other")

    def _unlearning(self) -> Self:
        names, tokenizer = self.names, self.tokenizer
        return type(self)(self.vocabulary, names, tokenizer, self.cuts, self.stop_words, frozen=True)

    @property
    def cuts(self) -> dict[str, tuple[float | None, ...]] | None:
        """Where the numbers of each field are divided; None before that is known."""
        return None if self._intervals is None else {name: i.cuts for name, i in self._intervals.items()}

    def dump(self) -> dict[str, Any]:
        """Everything that must be known to encode the next record, as plain values."""
        return {**super().dump(), "names": tuple(self.names), "cuts": self.cuts}


class _NotFiniteError(ValueError):
    """A number is none that can be compared."""


def _read(name: str, found: Any, how: Callable[[Any], _Part]) -> _Part:
    """What a field holds. ValueError, which names it, for what it cannot."""
    try:
        return how(found)
    except ValueError as error:
        raise type(error)(f"field {name!r} {error}") from None


def _number(found: Any) -> float:
    try:
        number = plain_float(found) if isinstance(found, str) else float(found)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"is no number: {found!r}") from None
    if not math.isfinite(number):
        raise _NotFiniteError("is not a finite number")
    return number


def _escaped(name: str) -> str:
    """The name of a field as a word, short enough to leave room for a value behind it."""
    return short(name, _LONGEST_FIELD).replace("\\", "\\\\").replace("=", "\\=")
