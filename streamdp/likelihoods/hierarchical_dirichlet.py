"""Words under Dirichlets that share a base measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.beam import model
from streamdp.likelihoods.shared_base import SharedBase
from streamdp.likelihoods.statistics import WordStatistics
from streamdp.likelihoods.words import TokenPredictive, Words, log_polya
from streamdp.priors.base import positive


@dataclass(frozen=True)
class HierarchicalDirichlet(SharedBase):
    """A word's prior mass follows how common it is: b1 p_w, with N_w its tokens so far.

    Parameters
    ----------
    base_concentration
        b1, the pull of clusters' words towards the base, in tokens, > 0.
    document_beta
        Concentration of a document level below the clusters, > 0: small when a word tends to be
        repeated within a record. None: no such level.
    smoothing, escape, base
        See :class:`~streamdp.likelihoods.shared_base.SharedBase`.

    Notes
    -----
    Wallach, Jensen, Dicker and Heller 2010, eqs. 13-17, the base measure being learned from tokens and
    the same for all clusterings.
    """

    base_concentration: float = 100.0
    document_beta: float | None = None

    learned_from = model.TOKENS

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("base_concentration", self.base_concentration)
        if self.document_beta is not None:
            positive("document_beta", self.document_beta)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Write the parameters where the kernels read them."""
        floats[model.BASE_CONCENTRATION] = self.base_concentration
        floats[model.WORD_DISCOUNT] = 0.0
        floats[model.INVERSE_DOCUMENT_BETA] = self._inverse_document_beta
        return super().configure(ints, floats)

    def log_marginal(self, statistics: WordStatistics, base: Any = None) -> float:
        """log H of the records of a cluster under p_w = ``base[w]``, in nats.

        ``ValueError`` with a document level, which the counts of a cluster do not determine.
        """
        if self.document_beta is not None:
            raise ValueError("with document_beta there is no log marginal: word counts do not determine it")
        return log_polya(statistics, self.base_concentration, self._base(base))

    def log_predictive(self, statistics: WordStatistics, x: Words, base: Any = None) -> float:
        """log H(x | S) under p_w = ``base[w]``, in nats; token by token."""
        tokens = TokenPredictive(self.base_concentration, inverse_document_beta=self._inverse_document_beta)
        return tokens.log(statistics, x, self._base(base))

    @property
    def _inverse_document_beta(self) -> float:
        return 0.0 if self.document_beta is None else 1.0 / self.document_beta
