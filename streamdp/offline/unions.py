"""What a prior says of making one cluster of two whole ones, some of whose records are frozen.

The ratio is p(z) of all records with the two as one, over p(z).

* Exchangeable priors: by sizes, frozen records and closed clusters counted, as for any merger (Jain and Neal
  2004). Exact.
* The uniform process (Wallach et al. 2010, eq. 12): the founder of the younger one joins, and every record
  after it sees one cluster fewer. Exact as far as the stream knows its founders: it goes on naming a cluster
  after its first record where a second look has moved that. When closed clusters were founded is forgotten,
  and beside such there is no ratio.
* The distance-dependent process (Blei and Frazier 2011): the founder of the younger one joins by what the
  older one weighed then, and every later record of either by what both weighed. Of retained records this is
  exact, given what frozen ones weigh to them. Of frozen ones it is as exact as their places: those that the
  stream does not know lie evenly between the first and the last known
  (:func:`~streamdp.offline.frozen.frozen_of`), and a cluster that is still open counts with no less than
  what would have closed it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from streamdp.offline.anchors import Anchors, Past
from streamdp.offline.chain import Chain
from streamdp.offline.kernels.links import weigh_held
from streamdp.offline.kernels.store import FIRST_SLOT
from streamdp.offline.kernels.weights import Weights
from streamdp.priors import DistanceDependent, Uniform


class Ratios(NamedTuple):
    """Of all pairs of a cluster with frozen records and another one, in nats."""

    most: np.ndarray  # float64[A, K] no less than the ratio
    exact: Callable[[int, int], float] | None  # the ratio of a pair; None: it is ``most``


def ratios_of(chain: Chain, anchors: Anchors) -> Ratios:
    """Those of a chain whose labels were set last; ``anchors`` are its own, and tell of unions."""
    prior, past = chain.prior, anchors.past
    if chain.weights is not None:
        sizes = chain.store.size[FIRST_SLOT : FIRST_SLOT + chain.clusters]
        return Ratios(_by_size(chain.weights, sizes, anchors.count), None)
    assert past is not None
    if isinstance(prior, Uniform):
        return Ratios(_by_founding(prior, anchors, past, chain.labels), None)
    assert isinstance(prior, DistanceDependent)
    by_distance = _ByDistance(prior, anchors, past, chain.labels, chain.clusters)
    return Ratios(by_distance.most(), by_distance.exact)


def _by_size(weights: Weights, sizes: np.ndarray, held: int) -> np.ndarray:
    own, other = sizes[:held, np.newaxis], sizes[np.newaxis]
    both = np.minimum(own + other, len(weights.grown) - 1)  # of a cluster and itself
    grown = weights.grown
    return np.asarray(grown[both] - grown[own] - grown[other] - weights.found[len(sizes) - 1])


def _by_founding(prior: Uniform, anchors: Anchors, past: Past, labels: np.ndarray) -> np.ndarray:
    held, free = anchors.count, labels >= anchors.count
    first = np.unique(labels[free], return_index=True)[1]
    founders = np.concatenate([past.places[past.starts[:held]], anchors.positions[free][first]])
    order, n = np.argsort(founders, kind="stable"), int(anchors.positions[-1]) + 1
    ascending = founders[order]
    whole, ratio = prior.log_founded(ascending, n), np.zeros(len(founders))
    for p, k in enumerate(order.tolist()):
        ratio[k] = prior.log_founded(np.delete(ascending, p), n) - whole
    own, other = np.arange(held)[:, np.newaxis], np.arange(len(founders))[np.newaxis]
    return np.asarray(ratio[np.where(founders[own] > founders[other], own, other)])


class _ByDistance:
    """Sums over members of the log weight by which each joined, of clusters and of pairs of them.

    No pair exceeds what there would be if every member, the first of the older one aside, had joined by the
    weight of all clusters: most pairs are far from worth it, and need not be looked at one by one.
    """

    def __init__(
        self, prior: DistanceDependent, anchors: Anchors, past: Past, labels: np.ndarray, clusters: int
    ) -> None:
        self.prior, self.anchors, self.past = prior, anchors, past
        order = np.argsort(labels, kind="stable")
        edges = np.searchsorted(labels[order], np.arange(clusters + 1))
        self.members = [order[a:b] for a, b in itertools.pairwise(edges.tolist())]
        self.labels = labels
        held = anchors.count
        self.before = [self._before([k]) for k in range(held)]
        self.after = [self._after([k]) for k in range(clusters)]

    def _before(self, clusters: Sequence[int]) -> float:
        """Of the frozen records of clusters that are one."""
        places = np.sort(np.concatenate([self.past.of_cluster(k) for k in clusters]))
        weights = np.maximum(self.prior.decay.earlier(places), self.past.least)
        weights[0] = self.prior.concentration
        return _log_sum(weights)

    def _after(self, clusters: Sequence[int]) -> float:
        """Of the records that move."""
        here = self.anchors.positions[np.sort(np.concatenate([self.members[k] for k in clusters]))]
        weights, held = self.prior.decay.earlier(here), [k for k in clusters if k < self.anchors.count]
        for k in held:
            weights += self.anchors.weight_of(self.prior, k, here)
        if not held:
            weights[0] = self.prior.concentration
        return _log_sum(weights)

    def exact(self, a: int, b: int) -> float:
        """The ratio of a cluster with frozen records and another one; not finite where it cannot be told."""
        ratio = self._after([a, b]) - self.after[a] - self.after[b]
        if b < self.anchors.count:
            ratio += self._before([a, b]) - self.before[a] - self.before[b]
        return ratio

    def most(self) -> np.ndarray:
        """No less than the ratios, shape (A, K)."""
        prior, past, held, labels = self.prior, self.past, self.anchors.count, self.labels
        first = past.places[past.starts[:held]]
        ordered = np.sort(past.places)
        came = np.maximum(prior.decay.earlier(ordered), past.least)
        came = came[np.searchsorted(ordered, past.places, "right") - 1]
        own, all_ = np.zeros(len(labels)), np.zeros(len(labels))
        here = self.anchors.positions
        weigh_held(self.anchors.held, prior.decay.terms(), here, labels, own, all_)
        all_ += prior.decay.earlier(here)
        gains, founds = np.zeros(len(self.members)), np.zeros(len(self.members))
        alpha = math.log(prior.concentration)
        for k, members in enumerate(self.members):
            gains[k] = _log_sum(all_[members]) - self.after[k]
            if k < held:
                weights = came[past.starts[k] : past.starts[k + 1]]
                gains[k] += _log_sum(weights[1:]) + alpha - self.before[k]
                founds[k] = _log_sum(weights[:1]) - alpha
        younger = np.where(first[:, np.newaxis] > first[np.newaxis], founds[:held, np.newaxis], founds[:held])
        with np.errstate(invalid="ignore"):
            pairs = gains[:held, np.newaxis] + gains[np.newaxis]
            pairs[:, :held] += younger
        return np.asarray(pairs)


def _log_sum(weights: np.ndarray) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(weights).sum())
