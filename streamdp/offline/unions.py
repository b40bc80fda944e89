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

import numpy as np

from streamdp.offline.anchors import Anchors, Past
from streamdp.offline.chain import Chain
from streamdp.offline.kernels.store import FIRST_SLOT
from streamdp.offline.kernels.unions import Company, weigh_beside, weigh_company
from streamdp.offline.kernels.weights import Weights
from streamdp.priors import DistanceDependent, Uniform


def ratios_by_count(chain: Chain, anchors: Anchors) -> np.ndarray | None:
    """Of each cluster with frozen records and each other one, shape (A, K), in nats: new after every union.

    Of a chain whose labels were set last; ``anchors`` are its own, and tell of unions. None under the
    distance-dependent prior, of which :class:`ByDistance` tells.
    """
    prior, past = chain.prior, anchors.past
    if chain.weights is not None:
        sizes = chain.store.size[FIRST_SLOT : FIRST_SLOT + chain.clusters]
        return _by_size(chain.weights, sizes, anchors.count)
    if isinstance(prior, Uniform):
        assert past is not None
        return _by_founding(prior, anchors, past, chain.labels)
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
    whole, ratio = prior.log_founded(ascending, n), np.zeros(len(founders))
    for p, k in enumerate(order.tolist()):
        ratio[k] = prior.log_founded(np.delete(ascending, p), n) - whole
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
        beside = np.zeros((anchors.count, len(labels)))
        weigh_beside(anchors.held, self._decay, anchors.positions, beside)
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
        """Of cluster k with each from number ``first`` on, in nats; not finite where it cannot be told."""
        others = np.arange(first, len(self._alone))
        with np.errstate(invalid="ignore"):
            return np.asarray(self._chosen(k, others) - self._alone[k] - self._alone[others])
