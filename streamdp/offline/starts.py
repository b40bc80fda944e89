"""Where a chain may start."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from streamdp.offline.chain import Chain
from streamdp.offline.exchangeable import weight_tables
from streamdp.offline.kernels.allocation import new_allocation
from streamdp.offline.kernels.clusters import prepare
from streamdp.offline.kernels.links import Links
from streamdp.offline.kernels.sequential import COUNTED, LINKED, PLAIN, assign, conditionals
from streamdp.offline.kernels.weights import Weights
from streamdp.offline.moves import links_of
from streamdp.offline.prepare import log_coefficients
from streamdp.priors import CRP, DistanceDependent
from streamdp.priors.base import SizedPrior

Order = Literal["given", "random", "ascending", "descending"]


def one_cluster(chain: Chain) -> None:
    """All records together."""
    chain.set_labels(np.zeros(chain.size, np.int64))


def singletons(chain: Chain) -> None:
    """Every record by itself."""
    chain.set_labels(np.arange(chain.size))


def random_clusters(chain: Chain, clusters: int | None = None) -> None:
    """Every record to one of so many clusters, all alike; None: log N of them."""
    k = max(round(math.log(chain.size)), 1) if clusters is None else clusters
    if k < 1:
        raise ValueError(f"clusters must be at least 1, not {k}")
    chain.set_labels(chain.generator().integers(0, k, chain.size))


def order_of(chain: Chain, order: Order) -> np.ndarray:
    """Record numbers in an order, shape (N,): by log H of each alone where ascending or descending.

    Of word counts with their multinomial coefficient, which no clustering depends on but the order does.
    """
    if order == "given":
        return np.arange(chain.size)
    if not chain.prior.exchangeable:
        raise ValueError(f"under {type(chain.prior).__name__} the order is part of the model: it is given")
    if order == "random":
        return chain.generator().permutation(chain.size)
    ascending = np.argsort(chain.store.fresh + log_coefficients(chain.store, chain.likelihood), kind="stable")
    return ascending if order == "ascending" else ascending[::-1].copy()


def sequential(
    chain: Chain,
    *,
    order: Order = "given",
    greedy: bool = True,
    temper: float = 1.0,
    count_prior: bool = False,
) -> None:
    """One record after the other to a cluster of those before it: the best, or one drawn.

    Parameters
    ----------
    chain
        Whose clustering is replaced.
    order
        In which the records are taken.
    greedy
        Take the best cluster, rather than draw one.
    temper
        Power of the prior by which the clusters are chosen, in [0, 1].
    count_prior
        Choose by the probability of the cluster sizes rather than of the clustering (Daume 2007, eq. 2;
        CRP only).
    """
    prior, n = chain.prior, chain.size
    if count_prior and not isinstance(prior, CRP):
        raise ValueError(f"the count prior is that of the CRP, not of {type(prior).__name__}")
    chain.need_all_records("a sequential start")
    places = order_of(chain, order)
    allocation = new_allocation(n, len(chain.allocation.free))
    links, mode, weights = _what_is_read(chain)
    mode = COUNTED if count_prior else mode
    prepare(chain.store)
    chain.allocation = allocation
    of_size = np.zeros(n + 2, np.int64)
    done = 0
    while done < n:
        chain.more_room()
        links = links._replace(total=np.zeros(len(chain.allocation.free)))
        done = assign(
            chain.store,
            chain.allocation,
            weights,
            links,
            of_size,
            mode,
            temper,
            greedy,
            chain.random,
            places,
            done,
            n,
        )
    chain.settle()


def _what_is_read(chain: Chain) -> tuple[Links, int, Weights]:
    """What the sequential kernels read of a chain's prior."""
    prior, n, weights = chain.prior, chain.size, chain.weights
    if weights is None:
        weights = weight_tables(prior if isinstance(prior, SizedPrior) else CRP(), n)
    return links_of(chain), LINKED if isinstance(prior, DistanceDependent) else PLAIN, weights


def sureness(chain: Chain) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probability of each record's cluster, and of one of its own; log p(x_i | the others) in nats.

    Each of shape (N,).

    Given the clusters of all other records. Where the prior depends on the order, a cluster weighs what
    it does for a record that comes next after those before it.
    """
    chain.need_all_records("the probability of a record's cluster")
    probability, of_new, log_predictive = (np.zeros(chain.size) for _ in range(3))
    links, mode, weights = _what_is_read(chain)
    chain.more_room()
    links = links._replace(total=np.zeros(len(chain.allocation.free)))
    conditionals(chain.store, chain.allocation, weights, links, mode, probability, of_new, log_predictive)
    return probability, of_new, log_predictive
