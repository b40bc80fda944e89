"""Words under one symmetric Dirichlet per cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.checks import positive
from streamdp.checks import whole as whole_number
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.words import (
    SEEN,
    TOTAL,
    BaseMeasure,
    Learned,
    TokenPredictive,
    WordFamily,
    base_measure,
    gain,
    learn,
    log_gamma_table,
    shape_of,
    whole,
)


class FlatTerms(NamedTuple):
    """What the stream's kernels read; a vocabulary of 0 grows with the stream."""

    beta: float
    vocabulary: int


class FlatSetTerms(NamedTuple):
    """Tables for a set."""

    word: np.ndarray  # float64[most of a word + 2] log Gamma(beta + n)
    tokens: np.ndarray  # float64[tokens + 1] log Gamma(V beta + n)


@dataclass(frozen=True)
class DirichletMultinomial(WordFamily):
    """Every word has the same prior mass in every cluster; its probabilities are integrated out.

    Parameters
    ----------
    beta
        Prior mass per word, in tokens, > 0.
    vocabulary_size
        V, an integer >= 1. None: it grows, V the distinct words of the stream so far, and
        :meth:`log_marginal` and :meth:`log_predictive` take it as ``base``.

    Notes
    -----
    The multinomial coefficients, which do not depend on the clustering, are left out (Yin and Wang
    2014 cluster short texts with it).
    """

    beta: float = 0.03
    vocabulary_size: int | None = None

    settings = {"beta": "beta", "vocabulary_size": "vocabulary_size"}  # noqa: RUF012
    drawn = ("beta",)

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        if self.vocabulary_size is not None:
            whole_number("vocabulary_size", self.vocabulary_size)

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """A growing vocabulary."""
        return cls(**given)

    def terms(self) -> FlatTerms:
        """What the stream's kernels read."""
        return FlatTerms(float(self.beta), self.vocabulary_size or 0)

    def set_terms(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> FlatSetTerms:
        """What the kernels read of a set; its words are the vocabulary where that grows."""
        found = len(by_word)
        size = self.vocabulary_size or max(found, 1)
        if size < found:
            raise ValueError(f"the vocabulary has {size} words, the records have {found}")
        if base is not None and len(base):
            size = round(1.0 / float(base[0]))
        most, tokens = int(by_word.max(initial=0)), int(by_word.sum())
        return FlatSetTerms(
            log_gamma_table(self.beta, most + 2), log_gamma_table(self.beta * size, tokens + 1)
        )

    def token_predictive(self, base: Any) -> tuple[TokenPredictive, BaseMeasure]:
        """``base`` is V where the vocabulary grows."""
        size = self.vocabulary_size or whole_number("base, the size of the growing vocabulary,", base)
        return TokenPredictive(self.beta * size), _Even(size)


class _Even(dict[int, float]):
    """p_w = 1/V for every word."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._p = 1.0 / size

    def __missing__(self, word: int) -> float:
        return self._p


@shape_of.of(FlatTerms)
def _shape(family: FlatTerms) -> tuple[float, float]:
    return 0.0, 0.0


@base_measure.of(FlatTerms)
def _base_measure(
    family: FlatTerms, learned: Learned, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray
) -> tuple[float, float]:
    size = family.vocabulary
    if size == 0:  # the words seen so far, this record's included
        size = learned.totals[SEEN]
        for i in range(words.shape[0]):
            if learned.counts[words[i]] == 0:
                size += 1
    total = 0
    for i in range(words.shape[0]):
        inverse[i] = size
        total += counts[i]
    return -total * math.log(size), family.beta * size


@learn.of(FlatTerms)
def _learn(
    family: FlatTerms, learned: Learned, words: np.ndarray, counts: np.ndarray, fresh: np.ndarray
) -> None:
    if family.vocabulary > 0:
        return
    for i in range(words.shape[0]):
        if learned.counts[words[i]] == 0:
            learned.totals[SEEN] += 1
        learned.counts[words[i]] += counts[i]
        learned.totals[TOTAL] += counts[i]


@whole.of(FlatSetTerms)
def _whole(terms: FlatSetTerms, tokens: int, types: int) -> float:
    value: float = terms.tokens[0] - terms.tokens[tokens]
    return value


@gain.of(FlatSetTerms)
def _gain(terms: FlatSetTerms, word: int, count: int, held: int) -> float:
    value: float = terms.word[held + count] - terms.word[held]
    return value
