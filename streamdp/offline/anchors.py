"""Frozen records: the statistics of their clusters, given which the other records are clustered.

A stream holds its latest records; older ones are in its clusters as statistics alone. Given where those
are, the records that move are clustered by the conditional log p(z, x | the frozen ones).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamdp.encode.batch import Batch
from streamdp.likelihoods import Likelihood
from streamdp.likelihoods.vectors import merge_entry
from streamdp.offline.kernels.links import Held, weigh_held
from streamdp.priors import DistanceDependent, by_distance, by_order
from streamdp.priors.base import Prior, Weights


class Past(NamedTuple):
    """When frozen records came, one by one, as far as it is known: what moving whole clusters of them takes.

    Those of cluster k lie from ``starts[k]`` to ``starts[k + 1]`` of ``places``, in order and in the unit of
    distance, numbers of records where there is none; under the uniform process the first of each cluster
    suffices. No cluster has ever weighed less than ``least`` since it was founded.
    """

    starts: np.ndarray  # int64[A + 1]
    places: np.ndarray  # float64[M]
    least: float = 0.0

    @classmethod
    def of(cls, places: Sequence[np.ndarray], least: float = 0.0) -> Past:
        """Of the places of each cluster."""
        starts = np.cumsum([0, *map(len, places)])
        return cls(starts, np.concatenate([*places, np.zeros(0)]), least)

    def of_cluster(self, k: int) -> np.ndarray:
        """Where the records of a cluster lie."""
        return self.places[self.starts[k] : self.starts[k + 1]]


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
    held
        Under the distance-dependent prior where frozen records lie, and by how much each counts: all before
        the records that move.
    positions
        Where the records that move lie, shape (N,), non-decreasing.
    closed
        Clusters beside these that no record can join any more, >= 0.
    past
        When the frozen records came; None where that is not known, or does not matter.
    """

    sizes: np.ndarray
    words: Batch
    rows: np.ndarray | None
    held: Held
    positions: np.ndarray
    closed: int = 0
    past: Past | None = None

    @property
    def count(self) -> int:
        """A."""
        return len(self.sizes)

    def knows_unions(self, prior: Prior) -> bool:
        """Whether it is known what a prior says of making one of two of these clusters."""
        return prior.exchangeable or self.past is not None

    def weights(self, prior: Prior, n: int) -> Weights:
        """The tables of an exchangeable prior for ``n`` records beside the frozen ones."""
        tables = prior.tables(n + int(self.sizes.sum()) + self.closed)
        return tables._replace(found=tables.found[self.closed :])

    def weights_of_links(self, prior: DistanceDependent) -> np.ndarray:
        """What the frozen records of each cluster weigh to each record that moves, shape (A, N)."""
        found = np.zeros((self.count, len(self.positions)))
        weigh_held(self.held, prior.decay.terms(), self.positions, found)
        return found

    def log_terms(self, prior: Prior, labels: np.ndarray, *, by_hand: bool = False) -> np.ndarray:
        """What log p(z | where the frozen records are) consists of, in nats, as a chain has it.

        Labels below A are those of clusters here.
        """
        if (linked := by_distance(prior)) is not None:
            weights, held = self.weights_of_links(linked), np.flatnonzero(labels < self.count)
            own, total = np.zeros(len(labels)), weights.sum(axis=0)
            own[held] = weights[labels[held], held]
            return linked.log_terms(labels.tolist(), self.positions, own, total, self.count, by_hand=by_hand)
        # what matters of the frozen: under the uniform process how many clusters, else their sizes
        sizes = self.sizes if by_order(prior) is None else np.ones(self.count, np.int64)
        before: list[Any] = [*np.repeat(np.arange(self.count), sizes), *range(-self.closed, 0)]
        after = prior.log_probability([*before, *labels.tolist()])
        return np.array([after - prior.log_probability(before)])

    def united(self, into: int, gone: int, likelihood: Likelihood) -> Anchors:
        """The same with the records of cluster ``gone`` in another; those after it move up by one."""
        sizes = self.sizes.copy()
        sizes[into] += sizes[gone]
        rows = self.rows
        if rows is not None:
            rows = rows.copy()
            merge_entry(likelihood.vector.terms(), rows[into], rows[gone])
            rows = np.delete(rows, gone, axis=0)
        past = self.past
        if past is not None:
            begins, came = _united(past.starts, into, gone, past.places)
            for k in range(len(begins) - 1):
                came[begins[k] : begins[k + 1]].sort()
            past = Past(begins, came, past.least)
        return replace(
            self,
            sizes=np.delete(sizes, gone),
            words=_added(self.words, into, gone),
            rows=rows,
            held=Held(*_united(self.held.start, into, gone, self.held.place, self.held.share)),
            past=past,
        )


def _united(starts: np.ndarray, into: int, gone: int, *values: np.ndarray) -> list[np.ndarray]:
    """Where clusters start, and what belongs to each, with one of them made part of another."""
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    owner[owner == gone] = into
    owner -= owner > gone
    order = np.argsort(owner, kind="stable")
    begins = np.searchsorted(owner[order], np.arange(len(starts) - 1))
    return [begins, *(each[order] for each in values)]


def _added(words: Batch, into: int, gone: int) -> Batch:
    """Records of words with one of them added to another."""
    if words.size == 0:
        return words
    pair = words.take(np.array([into, gone]))
    distinct, where = np.unique(pair.words, return_inverse=True)
    counts = np.bincount(where.reshape(-1), pair.counts)
    sum_ = Batch.of_words([(distinct, counts)])
    batches = [words.slice(k, k + 1) if k != into else sum_ for k in range(words.size) if k != gone]
    return Batch.concatenate(batches)
