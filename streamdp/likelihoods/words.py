"""What the families over word counts share.

All of them are one formula. With p_w the base measure, b1 its concentration and d the discount, the
probability of a token is

    (n_kw - d [n_kw > 0] + (b1 + d T_k) p_w) / (n_k + b1)

in a cluster of n_k tokens of T_k distinct words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from streamdp.likelihoods.base import Likelihood
from streamdp.likelihoods.statistics import WordStatistics

Words: TypeAlias = tuple[np.ndarray, np.ndarray]
"""A record: word ids and their counts, each at least 1."""

BaseMeasure: TypeAlias = Mapping[int, float] | Sequence[float] | np.ndarray
"""p_w by word."""


class WordFamily(Likelihood[WordStatistics, Words]):
    """The algebra of word counts, which no parameter enters."""

    sparse = True

    def empty(self) -> WordStatistics:
        """Statistics of no record."""
        return WordStatistics()

    def add(self, statistics: WordStatistics, x: Words) -> None:
        """Let a record join."""
        counts = statistics.counts
        for w, c in _pairs(x):
            counts[w] = counts.get(w, 0) + c
            statistics.tokens += c
        statistics.records += 1

    def remove(self, statistics: WordStatistics, x: Words) -> None:
        """Take a record out that had joined; ``ValueError`` when it cannot have."""
        held = statistics.counts
        gone: Counter[int] = Counter()
        for w, c in _pairs(x):
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


def _pairs(x: Words) -> list[tuple[int, int]]:
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
        probability p of a token becomes (r + beta p) / (R + beta) when it is the record's R-th, counted
        from 0, and its word has occurred r times before in the record.
    """

    concentration: float
    discount: float = 0.0
    inverse_document_beta: float = 0.0

    def log(self, statistics: WordStatistics, x: Words, base: BaseMeasure) -> float:
        """log H(x | S) in nats under p_w = ``base[w]``; -inf when a word has no mass."""
        b1, d, inverse = self.concentration, self.discount, self.inverse_document_beta
        pairs = _pairs(x)
        grown: dict[int, int] = {}
        tokens, types, position = statistics.tokens, statistics.types, 0
        total = 0.0
        for w, c in sorted(pairs, key=lambda pair: pair[1] > 1):
            p_w = float(base[w])
            for _ in range(c):
                here = grown.get(w, 0)
                n = statistics.counts.get(w, 0) + here
                p = ((n - d if n else 0.0) + (b1 + d * types) * p_w) / (tokens + b1)
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


def log_polya(statistics: WordStatistics, concentration: float, base: BaseMeasure) -> float:
    """log H under a Dirichlet with masses b1 p_w, without the multinomial coefficients, in nats."""
    total = math.lgamma(concentration) - math.lgamma(concentration + statistics.tokens)
    for w, n in statistics.counts.items():
        mass = concentration * float(base[w])
        if mass <= 0.0:
            return -math.inf
        total += math.lgamma(mass + n) - math.lgamma(mass)
    return total


class EvenBase(dict[int, float]):
    """p_w = 1/V for every word."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._p = 1.0 / size

    def __missing__(self, word: int) -> float:
        return self._p
