"""What the families over word counts share.

All of them are one formula. With p_w the base measure, b1 its concentration and d the discount, the
probability of a token is

    (n_kw - d [n_kw > 0] + (b1 + d T_k) p_w) / (n_k + b1)

in a cluster of n_k tokens of T_k distinct words. A family's file holds two predictives side by side. That of
the *stream* takes a record token by token, under a base measure that grows with the stream: ``terms``, with
the discount and the document level, for which ``base_measure`` and ``learn`` are implemented. That of a *set*
is exchangeable, in closed form, under a base measure that is fixed: ``set_terms``, with ``whole``, ``gain``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

import numpy as np

from streamdp.kernels.checks import discount_in_range, not_negative, positive
from streamdp.kernels.jit import entry, generic, kernel, shared
from streamdp.kernels.rows import Counters, ints, new_counters, one
from streamdp.likelihoods.base import Likelihood

Words: TypeAlias = tuple[np.ndarray, np.ndarray]
"""A record: word ids and their counts, each at least 1."""

NO_WORDS = np.zeros(0, np.int32)

WORD_SPACE = 1 << 20
"""Distinct words that there may be: what is left to unseen ones is spread over the rest of them."""

ODDS_BEFORE = 1000.0
"""Odds of counts of clusters over counts of tokens before any evidence, where a family has both."""

STIRLING = 16.0  # from here on four terms of Stirling's series give log Gamma to 1e-14


class Learned(NamedTuple):
    """What a stream has taught of the base measure.

    A family that counts clusters may count tokens beside them: a word that is in ``counts`` clusters has had
    ``counts`` + ``repeats`` tokens. Others have no repeats.
    """

    counts: Annotated[np.ndarray, ints("words")]
    repeats: Annotated[np.ndarray, ints("words")]
    # sums of both, the number of words seen, and the evidence for counts of clusters over tokens, in nats
    counters: Annotated[Counters, one("total seen repeats", "evidence")]


def learned_from(counts: np.ndarray, repeats: np.ndarray | None = None, evidence: float = 0.0) -> Learned:
    """What has been learned where every word counts so much, each of shape (V,); None: no repeats."""
    values = np.asarray(counts, np.int64)
    more = np.zeros(len(values), np.int64) if repeats is None else np.asarray(repeats, np.int64)
    return Learned(values, more, totals_of(Learned, values, repeats=int(more.sum()), evidence=evidence))


def totals_of(kind: type, counts: np.ndarray, **more: float) -> Counters:
    """The counters of a tuple of this kind: the sum of counts, how many are not zero, and ``more``."""
    return new_counters(kind, total=int(counts.sum()), seen=int(np.count_nonzero(counts)), **more)


class WordTerms(NamedTuple):
    """What the stream's kernels read of a family with a base measure that all clusters share."""

    concentration: float  # b1
    word_discount: float  # d
    inverse_document_beta: float  # 1 / beta of the document level; 0: there is none
    smoothing: float
    discount: float
    escape: float
    base: np.ndarray  # float64[V] p_w, of no size where it is learned
    short: np.ndarray  # float64[L] b1 of records of one word, of two and so on


class SetTerms(NamedTuple):
    """Tables for a set, all tokens of a word in a cluster sitting at one table."""

    word: np.ndarray  # float64[most of a word + 2] log Gamma(n - d), of 0 as of 1 where d > 0
    tokens: np.ndarray  # float64[tokens + 1] log Gamma(b1 + n)
    types: np.ndarray  # float64[V + 1] sum of log(b1 + d t) for t below
    mass: np.ndarray  # float64[V] log p_w, which the first token of a word has besides
    short: np.ndarray  # float64[L] b1 of a cluster of one distinct word, of two and so on
    word_discount: float


@shared
def is_short(words: int, most: int) -> bool:
    """Whether texts of so many words have a b1 of their own; those of up to ``most`` have."""
    return 0 < words <= most


@generic
def base_measure(
    family: Any, learned: Learned, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray, length: int
) -> tuple[float, float]:
    """Fill ``inverse`` with 1 / p_w; the log of the product of p_w over all tokens, and b1.

    ``length``: how many tokens the record has, or how many distinct words all of a cluster's have.
    """
    raise NotImplementedError


@generic
def learn(
    family: Any,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    fresh: np.ndarray,
    new_probability: float,
) -> None:
    """Count an absorbed record into the base measure.

    ``fresh``: words new to the announced cluster; ``new_probability``: that the record founds a cluster.
    """
    raise NotImplementedError


@generic
def whole(terms: Any, tokens: int, types: int) -> float:
    """The part of log H that depends on a cluster's tokens and distinct words alone, of words that count."""
    raise NotImplementedError


@generic
def gain(terms: Any, word: int, count: int, held: int) -> float:
    """What ``count`` more tokens of a word add to log H where ``held`` are, :func:`whole` apart."""
    raise NotImplementedError


@generic
def is_type(terms: Any, word: int) -> bool:
    """Whether a word counts among the tokens and distinct words of :func:`whole`; all do by default."""
    return True


@generic
def in_order(
    terms: Any, words: np.ndarray, counts: np.ndarray, first: int, last: int, tokens: int, held: np.ndarray
) -> float:
    """What the order of a cluster's records adds to log H by a record: the words first .. last - 1.

    ``tokens`` is how many the records before it have, ``held`` how many of each word. For an ordered family.
    """
    raise NotImplementedError


@entry
def _invert_base(
    family: Any, learned: Learned, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray
) -> None:
    """1 / p_w of each word by itself."""
    for i in range(words.shape[0]):
        base_measure(family, learned, words[i : i + 1], counts[i : i + 1], inverse[i : i + 1], 1)


@kernel
def _stirling(x: float) -> float:
    """log Gamma(x) up to a constant, for large x."""
    r = 1.0 / x
    s = r * r
    return (x - 0.5) * math.log(x) - x + r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s / 1680)))


@kernel
def log_gamma(start: float) -> float:
    """log Gamma, up to a constant where a number is large; see ``log_gamma_beside``."""
    return math.lgamma(start) if start < STIRLING else _stirling(start)


@kernel
def log_gamma_beside(start: float, steps: int) -> float:
    """log Gamma so many steps behind, up to the same constant: less ``log_gamma``, a rising factorial."""
    return math.lgamma(start + steps) if start < STIRLING else _stirling(start + steps)


@entry
def log_gammas(start: float, out: np.ndarray) -> None:
    """log Gamma(start + n) for every n."""
    for n in range(out.shape[0]):
        out[n] = math.lgamma(start + n)


def log_gamma_table(start: float, size: int) -> np.ndarray:
    """log Gamma(start + n) for n below ``size``."""
    values = np.empty(size)
    log_gammas(float(start), values)
    return values


class BagFamily(Likelihood):
    """Bags of counted words, whose statistics no parameter enters."""

    sparse = True
    of_texts = True

    @property
    def bag(self) -> Self:
        """Itself: a record is a bag of words."""
        return self

    @abstractmethod
    def set_terms(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> Any:
        """What the kernels read of a set.

        Parameters
        ----------
        by_word, by_record
            Tokens of every word in all records, and in how many records it is, each of shape (V,).
        base
            p_w by word, where the family needs a base measure; None: its own, or else learned from these.
        """

    @abstractmethod
    def measure(self, learned: Any) -> np.ndarray:
        """The base measure of a set, by word, shape (V,), as a stream that has learned this has it."""

    @property
    def learns_base(self) -> bool:
        """Whether the base measure is learned from the records."""
        return False

    def base_of_records(self, offsets: np.ndarray, words: np.ndarray) -> np.ndarray | None:
        """The base measure that these records teach, where that takes more than totals by word; else None.

        Record i has the words ``words[offsets[i]:offsets[i + 1]]``, in the order that its encoder gave them.
        """
        return None

    def coefficients(self, offsets: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """log of in how many orders the tokens of each record may come, shape (N,), in nats."""
        n = len(offsets) - 1
        rows = np.repeat(np.arange(n), np.diff(offsets))
        tokens = np.bincount(rows, counts, n).astype(np.int64)
        table = np.zeros(int(tokens.max(initial=0)) + 1)
        np.cumsum(np.log(np.arange(1, len(table))), out=table[1:])
        return np.asarray(table[tokens] - np.bincount(rows, table[counts], n))

    def log_marginal(self, records: Sequence[Words], base: Any = None) -> float:
        """log H of records as one cluster, as of a set, in this order; ``base``: None: learned, if at all."""
        words = np.concatenate([NO_WORDS, *(x[0] for x in records)]).astype(np.int32)
        counts = np.concatenate([NO_WORDS, *(x[1] for x in records)]).astype(np.int32)
        by_record, by_word = np.bincount(words), np.bincount(words, counts).astype(np.int64)
        if base is None:
            base = self.base_of_records(np.cumsum([0, *(len(x[0]) for x in records)]), words)
        terms, held = self.set_terms(by_word, by_record, base), np.flatnonzero(by_word)
        typed = [w for w in held if is_type(terms, w)]
        total = whole(terms, int(by_word[typed].sum()), len(typed))
        total += math.fsum(gain(terms, w, by_word[w], 0) for w in held)
        before = np.zeros(len(by_word), np.int64)
        for x in records if self.ordered else ():
            total += in_order(terms, *x, 0, len(x[0]), int(before.sum()), before)
            np.add.at(before, *x)
        return float(total)

    @abstractmethod
    def upper_bounds(
        self, terms: Any, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """No less than log H(x | S) of each record of a set, for any S of the others, shape (N,)."""


class WordFamily(BagFamily):
    """Word counts that are scored token by token."""

    def measure(self, learned: Any, among: np.ndarray | None = None) -> np.ndarray:
        """p_w of every word, or of some, by the kernel of the stream and what that has learned."""
        words = np.arange(len(learned.counts)) if among is None else among
        inverse, counts = np.ones(len(words)), np.ones(len(words), np.int32)
        _invert_base(self.terms(), learned, words.astype(np.int32), counts, inverse)
        return 1.0 / inverse

    def mass_beyond_one(self, terms: Any) -> float:
        """log of by how much the p_w that ``terms`` hold sum to more than one, at least 0."""
        return 0.0

    def upper_bounds(
        self, terms: Any, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """sum_w c_w log(c_w / |x|), the multinomial density at its own frequencies.

        It holds under a Pitman-Yor process with one table per word, too. H(S) is there the mean, over the
        random weights of endlessly many tables and their words, of the sum over choices of a table for each
        word of S of the product of the tables' weights, each to the power of the word's tokens. The tokens of
        x multiply a choice by the weights of its tables and of those chosen for new words, to the power of
        c_w; summed over the new choices that is at most the product of theta_w^c_w, theta_w being the weight
        of all tables of the word. These add up to one, so H(S + x) <= H(S) max prod theta_w^c_w.

        A base measure that sums to more than one multiplies the probability of a token by at most its sum.
        """
        lengths = np.diff(offsets)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        tokens = np.asarray(np.diff(np.append(0.0, np.cumsum(counts))[offsets]))
        own = np.bincount(rows, weights=counts * np.log(counts / tokens[rows]), minlength=len(lengths))
        return np.asarray(own + tokens * self.mass_beyond_one(terms))


@kernel
def count_word(learned: Any, word: int, step: int) -> None:
    """Count a word of an absorbed record."""
    if learned.counts[word] == 0:
        learned.counters.seen += 1
    learned.counts[word] += step
    learned.counters.total += step


SETTINGS = {"base_smoothing": "smoothing", "base_discount": "discount", "base_escape": "escape"}


@dataclass(frozen=True, kw_only=True)
class SharedBase(WordFamily):
    """A base measure learned from the stream, or fixed.

    For the V words seen, p_w = (N_w + smoothing - discount) / (N + smoothing V + escape), N the sum of all
    N_w; the mass that is left is spread evenly over the rest of 2^20 words. What N_w counts depends on the
    family, which may mix two such measures of different counts. Without smoothing each is a Pitman-Yor
    process over words (Teh 2006): its discount lets the mass of the unseen grow with the vocabulary.

    Parameters
    ----------
    smoothing
        Added to the count of every word seen, >= 0.
    discount
        Taken from the count of every word seen, 0 <= discount < 1.
    escape
        Concentration: mass of all words not yet seen, in counts, > 0.
    base
        p_w by word id where it is fixed: positive and summing to one. None: learned.
    """

    smoothing: float = 0.0
    discount: float = 0.35
    escape: float = 1000.0
    base: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        not_negative("smoothing", self.smoothing)
        discount_in_range("discount", self.discount)
        positive("escape", self.escape)
        if self.base is not None:
            object.__setattr__(self, "base", _probabilities(self.base))

    @property
    def learns_base(self) -> bool:
        """Whether it is not fixed."""
        return self.base is None

    def base_terms(self) -> tuple[float, float, float, np.ndarray]:
        """What kernels read of it: three numbers, and p_w where it is fixed; else of no size."""
        fixed = np.array(() if self.base is None else self.base, dtype=np.float64)
        return float(self.smoothing), float(self.discount), float(self.escape), fixed

    @abstractmethod
    def counted(self, by_word: np.ndarray, by_cluster: np.ndarray) -> np.ndarray:
        """N_w from the tokens of every word and from how many clusters it is in, each of shape (V,)."""

    def base_of(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> np.ndarray:
        """p_w of the words of a set, shape (V,): as given, or the family's, or learned from them.

        Learned as by a stream that gave every record a cluster of its own.
        """
        found = self.base if base is None else base
        if found is None:
            return self.of_set(self.counted(by_word, by_record))
        p = np.asarray(found, np.float64)
        if len(p) < len(by_word) or not (p[np.flatnonzero(by_word)] > 0.0).all():
            raise ValueError("the base measure must give every word of the records a probability above 0")
        return p[: len(by_word)]

    def of_set(self, counts: np.ndarray) -> np.ndarray:
        """p_w of the words of a set by N_w, each of shape (V,): as a stream has it that has counted so."""
        return self.measure(learned_from(counts))


def _probabilities(base: Sequence[float]) -> tuple[float, ...]:
    values = tuple(float(p) for p in base)
    if not values or not all(p > 0.0 for p in values) or abs(math.fsum(values) - 1.0) > 1e-6:
        raise ValueError("base must be positive probabilities that sum to one")
    return values


@kernel
def _fixed(base: np.ndarray, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray) -> float:
    total = 0.0
    for i in range(words.shape[0]):
        p = base[words[i]]
        inverse[i] = 1.0 / p
        total += counts[i] * math.log(p)
    return total


@kernel
def weights_of_counts(smoothing: float, escape: float, learned: Learned) -> tuple[float, float, float]:
    """What one adds to the measure by ``counts``, to that by tokens, and the share of the first in p_w."""
    counters = learned.counters
    mass = counters.total + smoothing * counters.seen + escape
    share = 1.0 / (1.0 + math.exp(-counters.evidence) / ODDS_BEFORE)
    return 1.0 / mass, 1.0 / (mass + counters.repeats), share


@kernel
def _learned(
    smoothing: float,
    discount: float,
    escape: float,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    inverse: np.ndarray,
) -> float:
    seen = learned.counters.seen
    by_count, by_token, share = weights_of_counts(smoothing, escape, learned)
    by_token *= 1.0 - share
    each = share * by_count + by_token
    unseen = max(WORD_SPACE - seen, 1) / (each * (escape + discount * seen))
    shift = smoothing - discount
    total, product = 0.0, 1.0
    for i in range(words.shape[0]):
        count = learned.counts[words[i]]
        inverse[i] = unseen
        if count > 0:
            inverse[i] = 1.0 / (each * (count + shift) + by_token * learned.repeats[words[i]])
        if counts[i] == 1:
            product *= inverse[i]
            if product > 1e200:
                total -= math.log(product)
                product = 1.0
        else:
            total -= counts[i] * math.log(inverse[i])
    return total - math.log(product)


@base_measure.of(WordTerms)
def _shared_measure(
    family: WordTerms,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    inverse: np.ndarray,
    length: int,
) -> tuple[float, float]:
    b1 = family.short[length - 1] if is_short(length, family.short.shape[0]) else family.concentration
    if family.base.shape[0] > 0:
        return _fixed(family.base, words, counts, inverse), b1
    smoothing, discount, escape = family.smoothing, family.discount, family.escape
    return _learned(smoothing, discount, escape, learned, words, counts, inverse), b1


@whole.of(SetTerms)
def _whole(terms: SetTerms, tokens: int, types: int) -> float:
    if not is_short(types, terms.short.shape[0]):
        return terms.tokens[0] - terms.tokens[tokens] + terms.types[types]
    b1 = terms.short[types - 1]
    total = math.lgamma(b1) - math.lgamma(b1 + tokens)
    for t in range(types):
        total += math.log(b1 + terms.word_discount * t)
    return total


@gain.of(SetTerms)
def _gain(terms: SetTerms, word: int, count: int, held: int) -> float:
    first = 0.0 if held > 0 else terms.mass[word]
    return first + terms.word[held + count] - terms.word[held]
