"""Records of named categories: each field a Dirichlet over its values, with a base that the stream teaches.

A record is a bag of words of three kinds, each of count one, in this order: the word 0, which every record
has; then for each field that it has the word of the field, and that of its value. So n_0 of a cluster is how
many records it has, that of a field's word how many have the field, and that of a value's how many have the
value: all that the model asks for are sums of word counts, which add, leave and merge as those of texts do.

A text comes last: the word 1, counted once for each word of the text, then these, those that occur once
before the others. They are scored as a text by itself is. That asks for one thing more: how many distinct
words the texts of a cluster have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.checks import positive
from streamdp.kernels.jit import kernel, shared
from streamdp.kernels.rows import Counters, ints, one
from streamdp.likelihoods.hierarchical_pitman_yor import (
    HierarchicalPitmanYor,
    PitmanYorWordTerms,
    learn_words,
)
from streamdp.likelihoods.words import BagFamily, SetTerms, gain, is_short, is_type, learn, totals_of, whole

RECORD = 0
"""The word that every record has."""

TEXT = 1
"""The word of the field that is a text, where the family has one."""

FIELD, UNKNOWN = -1, -2
"""In the place of a value's field: the word is that of a field (or of all records); nobody has counted it."""


class CategoricalTerms(NamedTuple):
    """What the stream's kernels read."""

    beta: float
    escape: float
    text: PitmanYorWordTerms  # of the words of texts; without any, its concentration is 0


class CategoricalSetTerms(NamedTuple):
    """What the kernels read of a set."""

    mass: np.ndarray  # float64[V] of a value its prior mass, of a field minus the sum of its values', else 0
    worded: np.ndarray  # bool[V] whether it is a word of a text, whose log p_w then ``mass`` holds
    text: SetTerms


class FieldsLearned(NamedTuple):
    """What a stream has taught of fields and their values."""

    counts: Annotated[
        np.ndarray, ints("words")
    ]  # records that have the field, or value; of a text see ``learn``
    repeats: Annotated[np.ndarray, ints("words")]
    # of words of texts, as of those that stand alone: see Learned
    counters: Annotated[Counters, one("total seen repeats", "evidence")]
    field: Annotated[np.ndarray, ints("words", fill=UNKNOWN)]  # the word of a value's field; FIELD, UNKNOWN
    values: Annotated[np.ndarray, ints("words")]  # of a field how many values it has

    def among_texts(self, ids: np.ndarray) -> np.ndarray:
        """Those of some words that are counted as words of texts."""
        return ids[(self.field[ids] == TEXT) & (self.counters.total > 0)]

    def telling(self, owner: np.ndarray, words: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """How much it says of a cluster that so many of its records have each value.

        It is -inf for a field, and for a value that is no more frequent among the cluster's records that
        have its field than among all.

        Parameters
        ----------
        owner, words, counts
            The clusters' numbers, their words, and how often they hold these, shape (n,); all words of a
            cluster, each once.
        """
        field, more = self.field[words], np.zeros(len(words))
        values, top = np.flatnonzero(field >= 0), len(self.counts)
        cells = owner * top + words
        order = np.argsort(cells)
        own = order[np.searchsorted(cells[order], owner[values] * top + field[values])]
        rate = (self.counts[field[values]] + 1.0) / np.maximum(self.counts[words[values]], 1)
        more[values] = rate * counts[values] / counts[own]
        above = more > 1.0
        return np.where(above, counts * np.log(np.where(above, more, 1.0)), -np.inf)


def values_in(offsets: np.ndarray, words: np.ndarray, *, texts: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where records have values, and where words of their texts, in the order that encoders give."""
    at = np.arange(len(words))
    begin = np.repeat(offsets[:-1], np.diff(offsets))
    text = np.maximum.accumulate(np.where((words == TEXT) & texts, at, -1)) if len(at) else at
    inside = (text >= begin) & (at > text)
    place = at - begin
    return np.flatnonzero((place > 0) & (place % 2 == 0) & ~inside), np.flatnonzero(inside)


def learned_from_records(offsets: np.ndarray, words: np.ndarray, *, texts: bool = False) -> FieldsLearned:
    """What a stream of these records would have learned, in the order of their words as encoders give it.

    Of texts it counts the records that have a word, where a stream counts clusters.
    """
    counts = np.bincount(words, minlength=2 if texts else 1)
    values, inside = values_in(offsets, words, texts=texts)
    field = np.where(counts > 0, FIELD, UNKNOWN)
    field[words[values]] = words[values - 1]
    if texts:
        field[words[inside]] = TEXT
        counts[TEXT] = len(inside)
    sizes = np.bincount(field[field >= 0], minlength=len(counts))
    of_texts = np.where((field == TEXT) & texts, counts, 0)
    return FieldsLearned(counts, 0 * counts, totals_of(FieldsLearned, of_texts), field, sizes)


def forget_values(learned: FieldsLearned, ids: np.ndarray) -> None:
    """Take values, by their words, out of the counts of their fields; all else is done by the caller."""
    values = ids[learned.field[ids] >= 0]
    fields = learned.field[values]
    np.subtract.at(learned.counts, fields, learned.counts[values])
    np.subtract.at(learned.values, fields, learned.counts[values] > 0)
    emptied = np.setdiff1d(fields[learned.counts[fields] == 0], ids)
    learned.field[ids] = UNKNOWN
    learned.field[emptied] = UNKNOWN


@shared
def rising(start: float, steps: int) -> float:
    """log of start (start + 1) ... (start + steps - 1)."""
    if steps == 1:
        return math.log(start)
    return math.lgamma(start + steps) - math.lgamma(start)


@dataclass(frozen=True)
class Categorical(BagFamily):
    """Named fields that each have one of several values, in a cluster independent of each other.

    Parameters
    ----------
    beta
        Prior mass of a cluster for each value that a field has, in records, > 0. A field of V values has
        V beta in all, which follows how common the values are.
    escape
        Prior mass of all values of a field that are not seen yet, in records of the stream, > 0.
    text
        The family of the words of texts, where records have them.

    Examples
    --------
    Word 0 is every record's, 1 stands for a field, 2 and 3 for its values, which are as common as each other.

    >>> import numpy as np
    >>> family, base = Categorical(beta=0.5), [0.0, -2.0, 1.0, 1.0]
    >>> x = np.array([0, 1, 2]), np.array([1, 1, 1])
    >>> round(float(np.exp(family.log_marginal([x, x], base))), 4)
    0.375

    Notes
    -----
    With n_f records of the cluster that have field f, n_fv that have its value v, and m_fv = V_f beta p_fv,

        p(v given k) = (n_fv + m_fv) / (n_f + V_f beta)

    A field that a record lacks is a factor of 1, and is counted nowhere (the latent class model: Lazarsfeld
    and Henry 1968). In a stream p_fv = N_fv / (N_f + escape), where N_f of its records so far have had the
    field, N_fv with this value; V_f counts one value more than was seen, and p of any value not seen yet is
    escape / (N_f + escape). A set is closed: p_fv = N_fv / N_f, and V_f is how many values there are.

    The words of a text have the probability that they have in a stream, or a set, of texts alone. A record's
    probability is the product over its fields and its text: in nats, each counts as what it is, none more
    than another.

    Where a base is asked for it holds, by word, V_f p_fv for a value, -V_f for the word of a field, which is
    at most -1 (of a text, -1), -p_w for a word of a text, which is above -1, and 0 for the word of every
    record.
    """

    beta: float = 0.2
    escape: float = 1.0
    text: HierarchicalPitmanYor | None = None

    settings = {"beta": "beta", "base_escape": "escape"}  # noqa: RUF012
    drawn = ("beta",)
    of_texts = False

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        positive("escape", self.escape)
        if self.text is not None and self.text.base is not None:
            raise ValueError("the base measure of texts among fields must be learned")

    @property
    def learns_base(self) -> bool:
        """It is."""
        return True

    def terms(self) -> CategoricalTerms:
        """What the stream's kernels read."""
        none = PitmanYorWordTerms(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, np.zeros(0), np.zeros(0))
        text = none if self.text is None else self.text.terms()
        return CategoricalTerms(float(self.beta), float(self.escape), text)

    def set_terms(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> CategoricalSetTerms:
        """What the kernels read of a set; ``ValueError`` without a base, which totals do not say."""
        if base is None:
            raise ValueError("the base measure is learned from the records: give it by word")
        found = np.asarray(base, np.float64)
        if len(found) < len(by_word) or not found[np.flatnonzero(by_word[1:]) + 1].all():
            raise ValueError("the base measure must know every field and every value of the records")
        found = found[: len(by_word)]
        worded = (found < 0.0) & (found > -1.0) & (self.text is not None)
        family = self.text or HierarchicalPitmanYor()
        text = family.set_terms(np.where(worded, by_word, 0), by_record, np.where(worded, -found, 1.0))
        mass = np.where(worded, text.mass, self.beta * found)
        if self.text is not None and len(mass) > TEXT:
            mass[TEXT] = -family.base_concentration
        return CategoricalSetTerms(mass, worded, text)

    def measure(self, learned: FieldsLearned) -> np.ndarray:
        """The base measure of a set, by word, shape (V,), as a stream that has learned this has it."""
        sizes = self._sizes(learned, 1.0)
        found = np.where(learned.field == FIELD, -sizes, 0.0)
        values = np.flatnonzero(learned.field >= 0)
        own = learned.field[values]
        found[values] = sizes[own] * learned.counts[values] / (learned.counts[own] + self.escape)
        found[RECORD] = 0.0
        if self.text is not None:
            words = np.flatnonzero(learned.field == TEXT)
            found[words] = -self.text.measure(learned)[words]
        return found

    def base_of_records(self, offsets: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The base measure of a set of these records."""
        learned = learned_from_records(offsets, words, texts=self.text is not None)
        sizes = self._sizes(learned, 0.0)
        found = -np.where(learned.values > 0, sizes, 0.0)
        known = np.flatnonzero(learned.field >= 0)
        own = learned.field[known]
        found[known] = sizes[own] * learned.counts[known] / learned.counts[own]
        if self.text is not None:
            texts = np.flatnonzero(learned.field == TEXT)
            found[texts] = -self.text.of_set(np.where(learned.field == TEXT, learned.counts, 0))[texts]
        return found

    def counted(self, by_word: np.ndarray, by_cluster: np.ndarray) -> np.ndarray:
        """What a stream of texts alone counts of each word: the clusters that it is in."""
        return np.where(np.arange(len(by_cluster)) > TEXT, by_cluster, 0)

    def of_set(self, counts: np.ndarray) -> np.ndarray:
        """The base measure of a set of texts alone that has counted so, by word."""
        assert self.text is not None
        found = -self.text.of_set(counts)
        found[: TEXT + 1] = 0.0, -1.0  # as of every record, and of every text
        return found

    def _sizes(self, learned: FieldsLearned, unseen: float) -> np.ndarray:
        """Of how many values each field counts as having."""
        sizes = learned.values + unseen
        if self.text is not None:
            sizes[TEXT] = 1.0
        return sizes

    def coefficients(self, offsets: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Fields have names, and no order: 0."""
        return np.zeros(len(offsets) - 1)

    def upper_bounds(
        self, terms: CategoricalSetTerms, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """Each value as probable as where all others that have it, and nobody else, are in the cluster.

        A text as if it were certain.
        """
        rows, mass = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), terms.mass[words]
        others = np.bincount(words, counts)[words] - counts
        values, _ = values_in(offsets, words, texts=self.text is not None)
        whole_field = -terms.mass[words[values - 1]]
        alone, best = (
            mass[values] / whole_field,
            (others[values] + mass[values]) / (others[values] + whole_field),
        )
        more = 0.0 if self.text is None else self.text.mass_by_length
        return more + np.bincount(rows[values], np.log(np.maximum(alone, best)), len(offsets) - 1)


@shared
def has_texts(family: CategoricalTerms) -> bool:
    """Whether records may have a text."""
    return family.text.concentration > 0.0


def worded_by(family: CategoricalTerms, field: np.ndarray) -> np.ndarray:
    """Which words are those of texts, by the words of their fields."""
    return np.asarray((field == TEXT) & has_texts(family))


@kernel
def is_text(family: CategoricalTerms, field: int) -> bool:
    """Whether a word is that of the field that is a text."""
    return field == TEXT and has_texts(family)


@kernel
def place_of_text(family: CategoricalTerms, words: np.ndarray) -> int:
    """Where the word of a record's text stands, those of the text behind it; the end where there is none."""
    i = 0
    while i < words.shape[0] and not is_text(family, words[i]):
        i += 1
    return i


@kernel
def field_of(learned: FieldsLearned, words: np.ndarray, i: int, text: int) -> int:
    """The word of the field of the record's i-th word, a value; FIELD where that is no value.

    ``text`` is the place of its text.
    """
    field = learned.field[words[i]]
    if field != UNKNOWN:
        return field
    # never counted: so it stands in a record, where words come in order
    if i > text:
        return TEXT
    return words[i - 1] if i % 2 == 0 and 0 < i < text else FIELD


@kernel
def mass_of_field(family: CategoricalTerms, learned: FieldsLearned, field: int) -> float:
    """Prior mass of all values of a field together, those not seen yet too."""
    return family.beta * (learned.values[field] + 1.0)


@kernel
def mass_of_value(family: CategoricalTerms, learned: FieldsLearned, field: int, value: int) -> float:
    """Prior mass of a value; of any that is not seen yet, that of all of them."""
    known = learned.counts[value]
    common = known if known > 0 else family.escape
    return mass_of_field(family, learned, field) * common / (learned.counts[field] + family.escape)


@learn.of(CategoricalTerms)
def _learn(
    family: CategoricalTerms,
    learned: FieldsLearned,
    words: np.ndarray,
    counts: np.ndarray,
    fresh: np.ndarray,
    new_probability: float,
) -> None:
    text = place_of_text(family, words)
    for i in range(words.shape[0]):
        word, field = words[i], field_of(learned, words, i, text)
        if field != FIELD and learned.counts[word] == 0:
            learned.values[field] += 1
        learned.field[word] = field
        if is_text(family, field):
            learned.counts[field] += 1 if fresh[i] else 0
        elif not is_text(family, word):
            learned.counts[word] += 1
    if text < words.shape[0]:
        first = text + 1
        own, repeated = words[first:], counts[first:]
        learn_words(family.text, learned, own, repeated, fresh[first:], new_probability)


@whole.of(CategoricalSetTerms)
def _whole(terms: CategoricalSetTerms, tokens: int, types: int) -> float:
    if not is_short(types, terms.text.short.shape[0]):
        return terms.text.types[types]
    # the word of texts has the denominators of longer texts
    return whole(terms.text, tokens, types) - gain(terms, TEXT, tokens, 0)


@is_type.of(CategoricalSetTerms)
def _is_type(terms: CategoricalSetTerms, word: int) -> bool:
    return bool(terms.worded[word])


@gain.of(CategoricalSetTerms)
def _gain(terms: CategoricalSetTerms, word: int, count: int, held: int) -> float:
    mass = terms.mass[word]
    if mass == 0.0:
        return 0.0
    if terms.worded[word]:
        return gain(terms.text, word, count, held)
    step = rising(abs(mass) + held, count)
    return step if mass > 0.0 else -step
