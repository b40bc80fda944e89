"""Priors and families record by record, for checks alone.

Weights of a choice by the functions of a prior, and statistics of a cluster that records join and leave by
the kernels of a family.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from streamdp.kernels.held import Held
from streamdp.kernels.jit import entry
from streamdp.likelihoods import (
    BetaBernoulli,
    Categorical,
    DirichletMultinomial,
    GammaPoisson,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
    Likelihood,
    NormalInverseWishart,
    VectorFamily,
    VonMisesFisher,
    WordFamily,
)
from streamdp.likelihoods.categorical import RECORD, TEXT, rising
from streamdp.likelihoods.vectors import (
    TOLERANCE,
    NormalFamily,
    add_entry,
    clear_entry,
    log_marginal_entry,
    merge_entry,
    own,
    predictive,
    remove_entry,
)
from streamdp.likelihoods.words import WORD_SPACE, Words, gain, whole
from streamdp.priors import Prior, by_distance
from streamdp.priors.base import found_weight, join_weight

BaseMeasure: TypeAlias = Mapping[int, float] | Sequence[float] | np.ndarray
"""p_w by word."""

DERIVED = ("downdates", "constant", "power", "weight", "log_precision", "log_determinant", "location")
DERIVED = (*DERIVED, "precision", "log_h", "log_odds", "log_rate", "length", "along", "rest")
"""Parts of rows that follow from the others."""


@entry
def predictive_entry(family: Any, row: np.ndarray, x: np.ndarray) -> float:
    """log H(x | S)."""
    return predictive(family, row, x, own(family, x))


def weights(
    prior: Prior, members: Sequence[Sequence[int]], now: int, times: Sequence[float]
) -> tuple[list[float], float]:
    """Weight of joining each cluster, and of a new one, for record ``now``.

    Parameters
    ----------
    members
        Record numbers of every cluster among the records before ``now``.
    now
        Number of the record to come.
    times
        Event times in seconds of records 0 .. now, non-decreasing.
    """
    if (linked := by_distance(prior)) is not None:
        places = np.arange(now + 1.0) if linked.unit == "records" else np.array(times[: now + 1], float)
        joins = [float(linked.decay(places[now] - places[list(cluster)]).sum()) for cluster in members]
        return joins, linked.concentration
    terms = prior.terms()
    return [join_weight(terms, float(len(c))) for c in members], found_weight(terms, float(len(members)))


class VectorStatistics:
    """The row of one cluster, its parts by name, and how large its numbers have been."""

    def __init__(self, row: np.ndarray, parts: Mapping[str, Any]) -> None:
        self.row, self.count, self.largest = row, 0, 0.0
        self.parts = {name: place for name, place in parts.items() if name not in DERIVED}

    def __getitem__(self, part: str) -> Any:
        """A statistic: a number, or an array of shape (D,)."""
        return self.row[self.parts[part]]


@dataclass(slots=True)
class WordStatistics:
    """Tokens of every word, their sum, and how many records: no word is held whose count is 0."""

    counts: dict[int, int] = field(default_factory=dict)
    tokens: int = 0
    records: int = 0

    @property
    def types(self) -> int:
        """How many distinct words there are (T_k)."""
        return len(self.counts)


def empty(family: Likelihood) -> Any:
    """Statistics of no record."""
    if not isinstance(family, VectorFamily):
        return WordStatistics()
    parts = dict(family.parts)
    if isinstance(family, NormalInverseWishart):
        scatter = parts["scatter"]
        parts["spread"] = slice(scatter.start, scatter.stop, family.dimension + 1)
    return VectorStatistics(family.empty_row(), parts)


def add(family: Likelihood, statistics: Any, x: Any) -> None:
    """Let a record join."""
    if isinstance(family, VectorFamily):
        vector = family._vector(x)
        add_entry(_terms(family), _row(family, statistics), vector)
        statistics.count += 1
        statistics.largest = max(statistics.largest, float(np.abs(vector).max()))
        return
    for w, c in pairs_of(x):
        statistics.counts[w] = statistics.counts.get(w, 0) + c
        statistics.tokens += c
    statistics.records += 1


def remove(family: Likelihood, statistics: Any, x: Any) -> None:
    """Take a record out that had joined; ``ValueError`` where the statistics show that it cannot have."""
    if isinstance(family, VectorFamily):
        _need_memory(family, "remove")
        _remove_vector(family, statistics, family._vector(x))
    else:
        _remove_words(statistics, x)


def _remove_vector(family: VectorFamily, statistics: VectorStatistics, vector: np.ndarray) -> None:
    if statistics.count < 1:
        raise ValueError("cannot remove a vector: the cluster is empty")
    if not _may_leave(family, statistics, vector):
        raise ValueError("cannot remove a vector that is not in the cluster")
    statistics.count -= 1
    if statistics.count:
        remove_entry(_terms(family), _row(family, statistics), vector)
    else:
        clear_entry(_terms(family), statistics.row)
        statistics.largest = 0.0


def _remove_words(statistics: WordStatistics, x: Words) -> None:
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


def merge(family: Likelihood, statistics: Any, other: Any) -> None:
    """Let all records of another cluster join."""
    if isinstance(family, VectorFamily):
        _need_memory(family, "merge")
        merge_entry(_terms(family), _row(family, statistics), _row(family, other))
        statistics.count += other.count
        statistics.largest = max(statistics.largest, other.largest)
        return
    for w, c in list(other.counts.items()):
        statistics.counts[w] = statistics.counts.get(w, 0) + c
    statistics.tokens += other.tokens
    statistics.records += other.records


def log_marginal(family: Likelihood, statistics: Any, base: Any = None) -> float:
    """log H of the records of a cluster, in nats; of words as of a set."""
    if isinstance(family, VectorFamily):
        _need_memory(family, "compute a log marginal")
        return float(log_marginal_entry(_terms(family), _row(family, statistics)))
    if isinstance(family, Categorical):
        return _raised(family, {}, statistics.counts, base)
    tokens, measure = token_predictive(family, base)
    if isinstance(family, DirichletMultinomial) and family.vocabulary_size is None:
        b1 = tokens.concentration
        return math.fsum(
            [math.lgamma(b1) - math.lgamma(b1 + statistics.tokens)]
            + [
                math.lgamma(b1 * measure[w] + n) - math.lgamma(b1 * measure[w])
                for w, n in statistics.counts.items()
            ]
        )
    assert isinstance(family, WordFamily)
    words, held = list(statistics.counts), list(statistics.counts.values())
    p = np.array([float(measure[w]) for w in words])
    if not (p > 0.0).all():
        return -math.inf
    counts = np.array(held, np.int64)
    terms = family.set_terms(counts, np.ones(len(counts), np.int64), p)
    total: float = whole(terms, statistics.tokens, statistics.types)
    return total + math.fsum(gain(terms, i, n, 0) for i, n in enumerate(held))


def log_predictive(
    family: Likelihood, statistics: Any, x: Any, base: Any = None, *, whole_cluster: bool = False
) -> float:
    """log H(x | S), in nats; of words as of the stream: token by token.

    ``whole_cluster``: x is all that a cluster holds, whose b1 its distinct words say.
    """
    if isinstance(family, VectorFamily):
        vector = family._vector(x)
        return float(predictive_entry(_terms(family), _row(family, statistics), vector))
    if isinstance(family, Categorical):
        return _raised(family, statistics.counts, dict(pairs_of(x)), base)
    tokens, measure = token_predictive(family, base)
    if isinstance(family, HierarchicalPitmanYor):
        pairs = pairs_of(x)
        length = len(pairs) if whole_cluster else sum(c for _, c in pairs)
        if 0 < length <= len(family.short_concentrations):
            tokens = replace(tokens, concentration=family.short_concentrations[length - 1])
    return tokens.log(statistics, x, measure)


_laid_out: dict[int, tuple[VectorFamily, Held]] = {}
"""Of the families that were asked for last, which are kept so that none takes the number of another."""


def _terms(family: VectorFamily) -> Held:
    """What kernels read of a family, laid out once and not at every record."""
    found = _laid_out.get(id(family))
    if found is None:
        if len(_laid_out) == 64:
            _laid_out.clear()
        found = _laid_out[id(family)] = family, Held(family.terms())
    return found[1]


def _row(family: VectorFamily, statistics: VectorStatistics) -> np.ndarray:
    if statistics.row.shape != (family.width,):
        raise TypeError(f"the statistics are not those of {type(family).__name__}")
    return statistics.row


def _need_memory(family: VectorFamily, what: str) -> None:
    if (forget := getattr(family, "forget", 1.0)) < 1.0:
        raise ValueError(f"cannot {what} with forget = {forget}: it depends on the records' order")


def _may_leave(family: VectorFamily, statistics: VectorStatistics, vector: np.ndarray) -> bool:
    """Whether the statistics allow for the vector to be one of the cluster's."""
    count = statistics.count - 1
    if isinstance(family, NormalFamily):
        gap = vector - statistics["mean"]
        share = statistics.count / count if count else 0.0
        if isinstance(family, NormalInverseWishart):
            square, scatter = float(gap @ gap), statistics["scatter"].reshape(family.dimension, -1)
            if share * square**2 > gap @ scatter @ gap + TOLERANCE * statistics.largest**2 * square:
                return False
        squares = np.asarray((share or 1.0) * gap * gap)
        spread = statistics["spread"]
        if np.ndim(spread) == 0:
            squares = squares.sum()
        return bool((squares <= spread + TOLERANCE * statistics.largest**2).all())
    left = statistics["total"] - vector
    if isinstance(family, BetaBernoulli):
        return bool(((left >= 0.0) & (left <= count)).all())
    if isinstance(family, VonMisesFisher):
        length = float(np.linalg.norm(left))
        if count == 0:
            return length <= TOLERANCE
        return length <= count + TOLERANCE and (count != 1 or length >= 1.0 - TOLERANCE)
    if isinstance(family, GammaPoisson):
        if (left < 0.0).any() or (count == 0 and left.any()):
            return False
        # the factorials are least where the counts are even, most where one record has them all
        log_factorials = statistics["factorials"] - math.fsum(map(math.lgamma, (vector + 1.0).tolist()))
        most = math.fsum(map(math.lgamma, (left + 1.0).tolist()))
        least = count * math.fsum(map(math.lgamma, (left / count + 1.0).tolist())) if count else 0.0
        slack = TOLERANCE * (1.0 + most)
        return bool(least - slack <= log_factorials <= most + slack)
    return True


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
        inverse, d, b1 = self.inverse_document_beta, self.discount, self.concentration
        pairs = pairs_of(x)
        grown: dict[int, int] = {}
        tokens, types, position = statistics.tokens, statistics.types, 0
        total = 0.0
        for w, c in sorted(pairs, key=lambda pair: pair[1] > 1):
            for _ in range(c):
                here = grown.get(w, 0)
                n = statistics.counts.get(w, 0) + here
                p = ((n - d if n > 0 else 0.0) + (b1 + d * types) * float(base[w])) / (tokens + b1)
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


def token_predictive(family: Any, base: Any) -> tuple[TokenPredictive, BaseMeasure]:
    """How a token is predicted, and p_w; ValueError where the base is missing."""
    if isinstance(family, DirichletMultinomial):
        if family.vocabulary_size is not None:
            size = family.vocabulary_size
            return TokenPredictive(family.beta * size), _Measure((), 0.0, 1.0 / size)
        if not isinstance(base, Collection):
            raise ValueError("the vocabulary grows with the stream: base must be the words seen so far")
        b1 = family.beta * len(base) + family.escape
        unseen = family.escape / b1 / (WORD_SPACE - len(base))
        return TokenPredictive(b1), _Measure(base, family.beta / b1, unseen)
    found = family.base if base is None else base
    if found is None:
        raise ValueError("the base measure is learned from the stream: give p_w by word")
    if isinstance(family, HierarchicalDirichlet):
        document = family.terms().inverse_document_beta
        return TokenPredictive(family.base_concentration, inverse_document_beta=document), found
    return TokenPredictive(family.base_concentration, family.word_discount), found


class _Measure(dict[int, float]):
    """p_w: one probability of some words, another of each of the rest."""

    def __init__(self, words: Any, p: float, rest: float) -> None:
        super().__init__(dict.fromkeys(words, p))
        self._rest = rest

    def __missing__(self, word: int) -> float:
        return self._rest


def _raised(family: Categorical, held: Mapping[int, int], more: Mapping[int, int], base: Any) -> float:
    """What more words add to log H of the words held, of categories."""
    if base is None:
        raise ValueError("the base measure is learned from the records: give it by word")
    found, text, types = [], family.text, 0
    for word, count in more.items():
        mass = family.beta * float(base[word])
        if text is not None and word == TEXT:
            mass = -text.base_concentration
        elif text is not None and -1.0 < base[word] < 0.0:
            n, d = held.get(word, 0), text.word_discount
            if n == 0:
                met = sum(1 for w in held if -1.0 < base[w] < 0.0) + types
                found.append(math.log((text.base_concentration + d * met) * -float(base[word]) / (1.0 - d)))
                types += 1
            found.append(math.fsum(math.log(r - d + (r == 0)) for r in range(n, n + count)))
            continue
        if word != RECORD and mass == 0.0:
            return -math.inf
        if word != RECORD:
            found.append(math.copysign(1.0, mass) * rising(abs(mass) + held.get(word, 0), count))
    return math.fsum(found)
