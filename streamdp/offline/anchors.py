"""Records that no longer move: what their clusters still say of those that do.

A stream holds its latest records; older ones are in its clusters as statistics alone. Given where those
are, the records that move are clustered by the conditional log p(z, x | the frozen ones).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.encode.batch import Batch
from streamdp.offline.exchangeable import weights_of
from streamdp.offline.kernels.links import Held, weigh_held
from streamdp.offline.kernels.weights import Weights
from streamdp.priors import DistanceDependent, Uniform
from streamdp.priors.base import Prior


@dataclass(frozen=True, eq=False)
class Anchors:
    """Clusters that hold frozen records. A cluster's number is its label among those of a chain.

    Parameters
    ----------
    sizes
        Frozen records of each cluster, shape (A,), int64, each >= 1.
    words
        The sums of their word counts, as a batch of A records; of none for vectors.
    rows
        Their statistics, as the family lays them out, shape (A, width); None for words.
    starts, places, shares
        Under the distance-dependent prior where frozen records lie, in the unit of distance: those of
        cluster k from ``starts[k]`` to ``starts[k + 1]`` of ``places``, each counted as ``shares``; shapes
        (A + 1,), (M,), (M,). All lie before the records that move.
    positions
        Where the records that move lie, shape (N,), non-decreasing.
    closed
        Clusters beside these that no record can join any more, >= 0.
    """

    sizes: np.ndarray
    words: Batch
    rows: np.ndarray | None
    starts: np.ndarray
    places: np.ndarray
    shares: np.ndarray
    positions: np.ndarray
    closed: int = 0

    @property
    def count(self) -> int:
        """A."""
        return len(self.sizes)

    @property
    def held(self) -> Held:
        """What the kernels of links read."""
        return Held(self.starts, self.places, self.shares)

    def weights(self, prior: Prior, n: int) -> Weights | None:
        """The tables of a prior for ``n`` records beside the frozen ones; None where it has none."""
        if not prior.exchangeable:
            return None
        tables = weights_of(prior, n + int(self.sizes.sum()) + self.closed)
        return tables._replace(found=tables.found[self.closed :])

    def log_terms(self, prior: DistanceDependent, labels: np.ndarray) -> np.ndarray:
        """log of the share that each record's choice had, as :meth:`DistanceDependent.log_terms`."""
        own, total = np.zeros(len(labels)), np.zeros(len(labels))
        weigh_held(self.held, prior.decay.terms(), self.positions, labels, own, total)
        return prior.log_terms(labels.tolist(), self.positions, own, total, self.count)

    def log_prior(self, prior: Prior, labels: Sequence[int] | np.ndarray) -> float:
        """log p(z | where the frozen records are), in nats; labels below A are those of clusters here."""
        values = np.asarray(labels)
        if isinstance(prior, DistanceDependent):
            return float(self.log_terms(prior, values).sum())
        # what matters of the frozen: under the uniform process how many clusters, else their sizes
        sizes = np.ones(self.count, np.int64) if isinstance(prior, Uniform) else self.sizes
        before: list[Any] = [*np.repeat(np.arange(self.count), sizes), *range(-self.closed, 0)]
        return prior.log_probability([*before, *values.tolist()]) - prior.log_probability(before)
