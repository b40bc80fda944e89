"""What the families over word counts share.

All of them are one formula. With p_w the base measure, b1 its concentration and d the discount, the
probability of a token is

    (n_kw - d [n_kw > 0] + (b1 + d T_k) p_w) / (n_k + b1)

in a cluster of n_k tokens of T_k distinct words. A family's file holds two predictives side by side. That of
the *stream* takes a record token by token, under a base measure that grows with the stream: ``terms``, for
which ``shape_of``, ``base_measure`` and ``learn`` are implemented. That of a *set* is exchangeable, in closed
form, under a base measure that is fixed: ``set_terms``, with ``whole`` and ``gain``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from streamdp.kernels.jit import entry, generic, kernel, shared
from streamdp.kernels.rows import Counters, ints, new_counters, one
from streamdp.likelihoods.base import Likelihood

Words: TypeAlias = tuple[np.ndarray, np.ndarray]
"""A record: word ids and their counts, each at least 1."""

BaseMeasure: TypeAlias = Mapping[int, float] | Sequence[float] | np.ndarray
"""p_w by word."""

WORD_SPACE = 1 << 20
"""Distinct words that there may be: what is left to unseen ones is spread over the rest of them."""


class Learned(NamedTuple):
    """What a stream has taught of the base measure."""

    counts: Annotated[np.ndarray, ints("words")]  # T_w or N_w
    counters: Annotated[Counters, one("total seen")]  # their sum, and the number of words with any


def learned_from(counts: np.ndarray) -> Learned:
    """What has been learned where every word counts so much, shape (V,)."""
    values = np.asarray(counts, np.int64)
    return Learned(values, totals_of(values))


def totals_of(counts: np.ndarray) -> Counters:
    """The sum of counts, and how many are not zero."""
    return new_counters(Learned, total=int(counts.sum()), seen=int(np.count_nonzero(counts)))


@generic
def shape_of(family: Any) -> tuple[float, float]:
    """The discount d of words within a cluster, and 1 / beta of the document level."""
    raise NotImplementedError


@generic
def base_measure(
    family: Any, learned: Learned, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray
) -> tuple[float, float]:
    """Fill ``inverse`` with 1 / p_w; the log of the product of p_w over all tokens, and b1."""
    raise NotImplementedError


@generic
def learn(family: Any, learned: Learned, words: np.ndarray, counts: np.ndarray, fresh: np.ndarray) -> None:
    """Count an absorbed record into the base measure; ``fresh``: words new to the announced cluster."""


@generic
def whole(terms: Any, tokens: int, types: int) -> float:
    """The part of log H that depends on a cluster's tokens and distinct words alone."""
    raise NotImplementedError


@generic
def gain(terms: Any, word: int, count: int, held: int) -> float:
    """What ``count`` more tokens of a word add to log H where ``held`` are, the whole apart."""
    raise NotImplementedError


@entry
def _invert_base(
    family: Any, learned: Learned, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray
) -> None:
    """1 / p_w of each word by itself."""
    for i in range(words.shape[0]):
        base_measure(family, learned, words[i : i + 1], counts[i : i + 1], inverse[i : i + 1])


@shared
def token(n: float, tokens: float, types: float, p: float, b1: float, d: float) -> float:
    """Probability of a token whose word has come n times in a cluster (Teh 2006, one table a word)."""
    return ((n - d if n > 0 else 0.0) + (b1 + d * types) * p) / (tokens + b1)


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


@dataclass(slots=True)
class WordStatistics:
    """Word counts; ``counts`` never holds a word whose count is 0.

    Parameters
    ----------
    counts
        Tokens of every word (n_kw).
    tokens
        Their sum (n_k).
    records
        How many records have been counted.
    """

    counts: dict[int, int] = field(default_factory=dict)
    tokens: int = 0
    records: int = 0

    @property
    def types(self) -> int:
        """How many distinct words there are (T_k)."""
        return len(self.counts)


class BagFamily(Likelihood[WordStatistics, Words]):
    """Bags of counted words, whose statistics no parameter enters."""

    sparse = True
    of_texts = True

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

    @abstractmethod
    def upper_bounds(
        self, terms: Any, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """No less than log H(x | S) of each record of a set, for any S of the others, shape (N,)."""

    def empty(self) -> WordStatistics:
        """Statistics of no record."""
        return WordStatistics()

    def add(self, statistics: WordStatistics, x: Words) -> None:
        """Let a record join."""
        counts = statistics.counts
        for w, c in pairs_of(x):
            counts[w] = counts.get(w, 0) + c
            statistics.tokens += c
        statistics.records += 1

    def remove(self, statistics: WordStatistics, x: Words) -> None:
        """Take a record out that had joined; ``ValueError`` where it cannot have."""
        held = statistics.counts
        gone: Counter[int] = Counter()
        for w, c in pairs_of(x):
            gone[w] += c
        left = statistics.tokens - gone.total()
        if statistics.records < 1 or (statistics.records == 1 and left != 0):
            raise ValueError("cannot remove a record that is not in the cluster")
        for w, c in gone.items():
            if held.get(w, 0) < c:
                raise ValueError(f"cannot remove {c} of word {w}: the cluster has {held.get(w, 0)}")
        for w, c in gone.items():
            if held[w] == c:
                del held[w]
            else:
                held[w] -= c
        statistics.tokens = left
        statistics.records -= 1

    def merge(self, statistics: WordStatistics, other: WordStatistics) -> None:
        """Let all records of another cluster join."""
        counts = statistics.counts
        for w, c in list(other.counts.items()):
            counts[w] = counts.get(w, 0) + c
        statistics.tokens += other.tokens
        statistics.records += other.records


def pairs_of(x: Words) -> list[tuple[int, int]]:
    """The words of a record, each with its count; ``ValueError`` where it is none."""
    words, counts = np.asarray(x[0]), np.asarray(x[1])
    if words.ndim != 1 or words.shape != counts.shape:
        raise ValueError(f"a record is two arrays of one length, not {words.shape} and {counts.shape}")
    if counts.size and counts.min() < 1:
        raise ValueError("the counts of a record's words must be at least 1")
    return [(int(w), int(c)) for w, c in zip(words, counts, strict=True)]


@dataclass(frozen=True, slots=True)
class TokenPredictive:
    """log H(x | S) token by token: a repeated word's count, n_k and T_k grow as it is scored.

    Tokens are taken in a fixed order, words of count one first, as given, then the others, the repeats
    of a word together: with a discount or a document level the product depends on it slightly.

    Parameters
    ----------
    concentration
        b1, > 0.
    discount
        d, in [0, 1).
    inverse_document_beta
        1/beta of the document level (Wallach et al. 2010, eqs. 13-17), >= 0; 0 for no such level. The
        probability p of a token becomes (r + beta p) / (R + beta) where it is the record's R-th, counted
        from 0, and its word has occurred r times before in the record.
    """

    concentration: float
    discount: float = 0.0
    inverse_document_beta: float = 0.0

    def log(self, statistics: WordStatistics, x: Words, base: BaseMeasure) -> float:
        """log H(x | S) in nats under p_w = ``base[w]``; -inf where a word has no mass."""
        inverse = self.inverse_document_beta
        pairs = pairs_of(x)
        grown: dict[int, int] = {}
        tokens, types, position = statistics.tokens, statistics.types, 0
        total = 0.0
        for w, c in sorted(pairs, key=lambda pair: pair[1] > 1):
            for _ in range(c):
                here = grown.get(w, 0)
                n = statistics.counts.get(w, 0) + here
                p = token(n, tokens, types, float(base[w]), self.concentration, self.discount)
                if inverse:
                    p = (here * inverse + p) / (position * inverse + 1.0)
                if p <= 0.0:
                    return -math.inf
                total += math.log(p)
                types += n == 0
                grown[w] = here + 1
                tokens += 1
                position += 1
        return total


class WordFamily(BagFamily):
    """Word counts that are scored token by token."""

    @abstractmethod
    def token_predictive(self, base: Any) -> tuple[TokenPredictive, BaseMeasure]:
        """How a token is predicted, and p_w."""

    def measure(self, learned: Learned) -> np.ndarray:
        """p_w of every word, shape (V,), by the kernel of the stream and what that has learned."""
        size = len(learned.counts)
        inverse = np.ones(size)
        _invert_base(self.terms(), learned, np.arange(size, dtype=np.int32), np.ones(size, np.int32), inverse)
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

    def log_marginal(self, statistics: WordStatistics, base: Any = None) -> float:
        """log H of the records of a cluster under p_w = ``base[w]``, as of a set; in nats."""
        measure = self.token_predictive(base)[1]
        words, held = list(statistics.counts), list(statistics.counts.values())
        p = np.array([float(measure[w]) for w in words])
        if not (p > 0.0).all():
            return -math.inf
        counts = np.array(held, np.int64)
        terms = self.set_terms(counts, np.ones(len(counts), np.int64), p)
        total: float = whole(terms, statistics.tokens, statistics.types)
        return total + math.fsum(gain(terms, i, n, 0) for i, n in enumerate(held))

    def log_predictive(self, statistics: WordStatistics, x: Words, base: Any = None) -> float:
        """log H(x | S) under p_w = ``base[w]``, as of the stream: token by token; in nats."""
        tokens, measure = self.token_predictive(base)
        return tokens.log(statistics, x, measure)


@kernel
def count_word(learned: Any, word: int, step: int) -> None:
    """Count a word of an absorbed record."""
    if learned.counts[word] == 0:
        learned.counters.seen += 1
    learned.counts[word] += step
    learned.counters.total += step
