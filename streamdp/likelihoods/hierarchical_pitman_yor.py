"""Words under Pitman-Yor processes that share a base measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.beam import model
from streamdp.likelihoods.shared_base import SharedBase
from streamdp.likelihoods.statistics import WordStatistics
from streamdp.likelihoods.words import TokenPredictive, Words
from streamdp.priors.base import discount_in_range, positive


@dataclass(frozen=True)
class HierarchicalPitmanYor(SharedBase):
    """Words follow power laws, and N_w is the number of clusters a word has ever been seen in.

    Parameters
    ----------
    base_concentration
        b1, the pull of clusters' words towards the base, in tokens, > 0.
    word_discount
        d, taken from the count of every word that a cluster holds, in [0, 1).
    smoothing, escape, base
        See :class:`~streamdp.likelihoods.shared_base.SharedBase`.

    Notes
    -----
    Teh 2006, section 3, with one table per word and cluster, i.e. interpolated Kneser-Ney. Under that
    rule the product of the tokens' probabilities depends on their order, so :meth:`log_predictive`
    fixes one; see :meth:`log_marginal`.
    """

    base_concentration: float = 30.0
    word_discount: float = 0.6

    learned_from = model.TABLES

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("base_concentration", self.base_concentration)
        discount_in_range("word_discount", self.word_discount)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Write the parameters where the kernels read them."""
        floats[model.BASE_CONCENTRATION] = self.base_concentration
        floats[model.WORD_DISCOUNT] = self.word_discount
        floats[model.INVERSE_DOCUMENT_BETA] = 0.0
        return super().configure(ints, floats)

    def log_marginal(self, statistics: WordStatistics, base: Any = None) -> float:
        """log of prod_{t<T}(b1 + d t) prod_w p_w (1 - d)_{n_w - 1} / (b1)_n under p_w = ``base[w]``.

        In nats; (x)_m is the rising factorial. All tokens of a word sit at one table. It does not
        depend on any order and suits samplers, but it omits the seatings with second tables: a lower
        bound of log H, and not the sum of :meth:`log_predictive`.
        """
        p = self._base(base)
        b1, d = self.base_concentration, self.word_discount
        total = float(np.log(b1 + d * np.arange(statistics.types)).sum())
        total -= math.lgamma(b1 + statistics.tokens) - math.lgamma(b1)
        total -= statistics.types * math.lgamma(1.0 - d)
        for w, n in statistics.counts.items():
            if not p[w] > 0.0:
                return -math.inf
            total += math.log(p[w]) + math.lgamma(n - d)
        return total

    def log_predictive(self, statistics: WordStatistics, x: Words, base: Any = None) -> float:
        """log H(x | S) under p_w = ``base[w]``, in nats; token by token in a fixed order."""
        tokens = TokenPredictive(self.base_concentration, self.word_discount)
        return tokens.log(statistics, x, self._base(base))
