"""Words under one symmetric Dirichlet per cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.beam import model
from streamdp.likelihoods.statistics import WordStatistics
from streamdp.likelihoods.words import EvenBase, TokenPredictive, WordFamily, Words, log_polya
from streamdp.priors.base import positive


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

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        if self.vocabulary_size is not None:
            _size("vocabulary_size", self.vocabulary_size)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Write the parameters where the kernels read them; b1 is left to be multiplied by V."""
        ints[model.FAMILY] = model.FLAT
        ints[model.BASE] = model.TOKENS
        ints[model.VOCABULARY] = self.vocabulary_size or 0
        floats[model.BASE_CONCENTRATION] = self.beta
        floats[model.WORD_DISCOUNT] = 0.0
        floats[model.INVERSE_DOCUMENT_BETA] = 0.0
        return {}

    def log_marginal(self, statistics: WordStatistics, base: Any = None) -> float:
        """log H of the records of a cluster, in nats; ``base`` is V when the vocabulary grows."""
        size = self._vocabulary(base)
        return log_polya(statistics, self.beta * size, EvenBase(size))

    def log_predictive(self, statistics: WordStatistics, x: Words, base: Any = None) -> float:
        """log H(x | S), in nats; ``base`` is V when the vocabulary grows."""
        size = self._vocabulary(base)
        return TokenPredictive(self.beta * size).log(statistics, x, EvenBase(size))

    def _vocabulary(self, base: Any) -> int:
        return self.vocabulary_size or _size("base, the size of the growing vocabulary,", base)


def _size(name: str, value: Any) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, not {value!r}")
    return int(value)
