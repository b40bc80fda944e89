"""Merge clusters as units, also those whose older records no longer move.

Samplers leave frozen records where they are, so that two clusters of one topic stay two once records of both
are frozen. Here whole clusters are weighed, frozen records and all.

What the prior says of a union is the ratio of p(z) of all records with the two as one, over p(z).

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
  (:func:`~streamdp.offline.task.frozen_of`), and a cluster that is still open counts with no less than
  what would have closed it.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.kernels.jit import entry, kernel
from streamdp.offline.anchors import Anchors, Past
from streamdp.offline.chain import Chain
from streamdp.offline.kernels.allocation import Allocation
from streamdp.offline.kernels.store import FIRST_SLOT, Store, group_of_slot, score_group
from streamdp.priors import DistanceDependent, Uniform, by_distance, by_order
from streamdp.priors.base import Weights
from streamdp.priors.decays import weigh_earlier


class Company(NamedTuple):
    """When the records of K clusters came: frozen ones of the first A, and N that move."""

    start: np.ndarray  # int64[K + 1] first of a cluster in the next
    place: np.ndarray  # float64[M] of each frozen record, ascending within a cluster
    least: float  # no cluster has weighed less when a frozen record came
    first: np.ndarray  # int64[K + 1] first of a cluster in the next
    member: np.ndarray  # int64[N] records that move, ascending within a cluster
    position: np.ndarray  # float64[N] of each, non-decreasing
    beside: np.ndarray  # float64[A, N] what the frozen records of a cluster weigh then
    here: np.ndarray  # float64[max(M, N)] scratch
    weight: np.ndarray  # float64[max(M, N)] scratch
    both: np.ndarray  # int64[N] scratch


@entry
def weigh_unions(store: Store, allocation: Allocation, slot: int, slots: np.ndarray, out: np.ndarray) -> None:
    """log H(S + T) - log H(S) - log H(T) of a slot S and each slot T of others."""
    group_of_slot(store, slot, allocation.labels)
    score_group(store, slots, slots.shape[0], out)
    for j in range(slots.shape[0]):
        out[j] -= store.log_h[slot]


@kernel
def _log(weight: float) -> float:
    return math.log(weight) if weight > 0.0 else -np.inf


@kernel
def _merge(first: np.ndarray, values: np.ndarray, a: int, b: int, out: np.ndarray) -> int:
    """Write the values of two clusters, or of one where they are the same, in order; how many they are."""
    p, p_end, q, q_end, n = first[a], first[a + 1], first[b], first[b + 1], 0
    if a == b:
        q = q_end
    while p < p_end or q < q_end:
        if q == q_end or (p < p_end and values[p] <= values[q]):
            out[n] = values[p]
            p += 1
        else:
            out[n] = values[q]
            q += 1
        n += 1
    return n


@kernel
def _frozen_choices(company: Company, decay: Any, concentration: float, a: int, b: int) -> float:
    """log of the weights by which the frozen records of two clusters, made one, have joined it."""
    n = _merge(company.start, company.place, a, b, company.here)
    if n == 0:
        return 0.0
    weigh_earlier(decay, company.here, n, company.weight)
    total = math.log(concentration)
    for i in range(1, n):
        total += _log(max(company.weight[i], company.least))
    return total


@kernel
def _choices(company: Company, decay: Any, concentration: float, a: int, b: int) -> float:
    """The same of the records that move."""
    both, held, total = company.both, company.beside.shape[0], 0.0
    n = _merge(company.first, company.member, a, b, both)
    for i in range(n):
        company.here[i] = company.position[both[i]]
    weigh_earlier(decay, company.here, n, company.weight)
    for i in range(n):
        weight = company.weight[i]
        if a < held:
            weight += company.beside[a, both[i]]
        if b < held and b != a:
            weight += company.beside[b, both[i]]
        if i == 0 and a >= held and b >= held:
            weight = concentration
        total += _log(weight)
    return total


@entry
def weigh_company(
    company: Company, decay: Any, concentration: float, a: int, others: np.ndarray, out: np.ndarray
) -> None:
    """log of the weights by which the records of a cluster, made one with each of others, have joined it.

    That of a cluster alone is where the other one is itself.
    """
    for j in range(others.shape[0]):
        out[j] = _frozen_choices(company, decay, concentration, a, others[j])
        out[j] += _choices(company, decay, concentration, a, others[j])


def ratios_by_count(chain: Chain, anchors: Anchors) -> np.ndarray | None:
    """Of each cluster with frozen records and each other one, shape (A, K), in nats: new after every union.

    Of a chain whose labels were set last; ``anchors`` are its own, and know of unions. None under the
    distance-dependent prior, of which :class:`ByDistance` tells.
    """
    prior, past = chain.prior, anchors.past
    if chain.weights is not None:
        sizes = chain.store.size[FIRST_SLOT : FIRST_SLOT + chain.clusters]
        return _by_size(chain.weights, sizes, anchors.count)
    if (ordered := by_order(prior)) is not None:
        assert past is not None
        return _by_founding(ordered, anchors, past, chain.labels)
    return None


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
    before, ratio = prior.log_founded(ascending, n), np.zeros(len(founders))
    for p, k in enumerate(order.tolist()):
        ratio[k] = prior.log_founded(np.delete(ascending, p), n) - before
    own, other = np.arange(held)[:, np.newaxis], np.arange(len(founders))[np.newaxis]
    return np.asarray(ratio[np.where(founders[own] > founders[other], own, other)])


class ByDistance:
    """Of the clusters of a chain under the distance-dependent prior.

    What a record has to choose from is the same however others are clustered: p(z) changes by the weights
    that were chosen, and no union changes what another one gains.
    """

    def __init__(self, prior: DistanceDependent, anchors: Anchors, labels: np.ndarray, clusters: int) -> None:
        past = anchors.past
        assert past is not None
        self._decay, self._concentration = prior.decay.terms(), float(prior.concentration)
        order = np.argsort(labels, kind="stable")
        beside = anchors.weights_of_links(prior)
        room = max(len(past.places), len(labels))
        self._company = Company(
            np.concatenate([past.starts, np.full(clusters - anchors.count, past.starts[-1])]),
            past.places,
            float(past.least),
            np.searchsorted(labels[order], np.arange(clusters + 1)),
            order,
            anchors.positions,
            beside,
            np.zeros(room),
            np.zeros(room),
            np.zeros(len(labels), np.int64),
        )
        self._alone = np.array([self._chosen(k, np.array([k]))[0] for k in range(clusters)])

    def _chosen(self, k: int, others: np.ndarray) -> np.ndarray:
        chosen = np.zeros(len(others))
        weigh_company(self._company, self._decay, self._concentration, k, others, chosen)
        return chosen

    def ratios(self, k: int, first: int) -> np.ndarray:
        """Of cluster k with each from number ``first`` on, in nats; not finite where it is not known."""
        others = np.arange(first, len(self._alone))
        with np.errstate(invalid="ignore"):
            return np.asarray(self._chosen(k, others) - self._alone[k] - self._alone[others])


class Union(NamedTuple):
    """Two clusters made one, by their numbers before any union."""

    into: int
    gone: int
    size: int  # records of the one that is gone, when it went
    nats: float  # by which log p(z, x) of all records rises


def unite(chain: Chain, names: np.ndarray) -> tuple[Chain, list[Union]]:
    """Make one of two clusters, always those that raise the log joint of all records most, until none do.

    One of the two has frozen records; it stays, and of two that have some the one of the older label. What is
    left is bettered by no union of two such clusters. Where it is not known what the prior says there are no
    unions. (600 clusters of 28,000 tweets, and 2,000 that can move: half a second, and .07 for each union.)

    Parameters
    ----------
    chain
        At the clustering to begin with; it stays as it is. Where its family has a base measure, one that was
        given to it, not learned from its records.
    names
        The label of each cluster, by number, shape (K,) or longer.

    Returns
    -------
    A chain at the clustering that is left, beside what frozen clusters are left, and what was done.
    """
    unions: list[Union] = []
    anchors = chain.anchors
    if anchors is None or not anchors.knows_unions(chain.prior):
        return chain, unions
    now = _beside(chain, anchors, chain.labels)
    numbers = np.arange(now.clusters)
    pairs = _Pairs(now)
    while (best := pairs.best(now)) is not None:
        into, gone, nats = best
        if gone < now.held and names[numbers[gone]] < names[numbers[into]]:
            into, gone = gone, into
        size = int(now.store.size[FIRST_SLOT + gone])
        unions.append(Union(int(numbers[into]), int(numbers[gone]), size, nats))
        now = _without(now, into, gone)
        numbers = np.delete(numbers, gone)
        pairs.unite(now, into, gone)
    return now, unions


class _Pairs:
    """Nats by pair of clusters, of which the first has frozen records and the smaller number."""

    def __init__(self, chain: Chain) -> None:
        self.gains = np.full((chain.held, chain.clusters), -np.inf)
        """But for what the prior says that depends on how many clusters there are."""
        lasting = _lasting(chain)
        for k in range(chain.held):
            self.gains[k, k + 1 :] = lasting(k, k + 1)

    def all(self, chain: Chain) -> np.ndarray:
        """What each pair gains, shape (A, K)."""
        assert chain.anchors is not None
        ratios = ratios_by_count(chain, chain.anchors)
        return self.gains if ratios is None else self.gains + ratios

    def best(self, chain: Chain) -> tuple[int, int, float] | None:
        """The pair that gains most, and how much; None where none gains."""
        gains = self.all(chain)
        if not gains.size:
            return None
        gains = np.where((gains > LEAST_GAIN) & (gains < np.inf), gains, 0.0)
        first, second = np.unravel_index(np.argmax(gains), gains.shape)
        gain = float(gains[first, second])
        return (int(first), int(second), gain) if gain > 0.0 else None

    def unite(self, chain: Chain, into: int, gone: int) -> None:
        """Go on with a chain in which one cluster has become part of another."""
        for axis in (0, 1) if gone < len(self.gains) else (1,):
            self.gains = np.delete(self.gains, gone, axis)
        k = into - (gone < into)
        row = _lasting(chain)(k, 0)
        self.gains[k, k + 1 :] = row[k + 1 :]
        self.gains[:k, k] = row[:k]


def _lasting(chain: Chain) -> Callable[[int, int], np.ndarray]:
    """Of each cluster of a chain with each from a number on, what lasts while others are united."""
    linked, anchors, distant = by_distance(chain.prior), chain.anchors, None
    if linked is not None and anchors is not None:
        distant = ByDistance(linked, anchors, chain.labels, chain.clusters)

    def gains(k: int, first: int) -> np.ndarray:
        slots = FIRST_SLOT + np.arange(first, chain.clusters)
        found = np.zeros(len(slots))
        weigh_unions(chain.store, chain.allocation, FIRST_SLOT + k, slots, found)
        return found if distant is None else found + distant.ratios(k, first)

    return gains


def _beside(chain: Chain, anchors: Anchors, labels: np.ndarray) -> Chain:
    """The records of a chain, beside other frozen ones; cluster k is in the k-th slot from the first on."""
    return Chain(chain.data, chain.likelihood, chain.prior, labels, base=chain.base, anchors=anchors)


def _without(chain: Chain, into: int, gone: int) -> Chain:
    """A chain in which one cluster has become part of another."""
    anchors, labels = chain.anchors, chain.labels
    assert anchors is not None
    labels[labels == gone] = into
    labels -= labels > gone
    if gone < anchors.count:
        anchors = anchors.united(into, gone, chain.likelihood)
    return _beside(chain, anchors, labels)
