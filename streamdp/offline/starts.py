"""Where a chain may start."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from streamdp.beam.data.state import Output
from streamdp.beam.looks.moves import apply
from streamdp.beam.looks.review import Due, decide
from streamdp.beam.looks.scales import follow
from streamdp.beam.search import NONE, BeamSearch
from streamdp.encode.batch import Labelled
from streamdp.errors import ConfigError, Exit
from streamdp.kernels.jit import entry, kernel
from streamdp.offline.chain import Chain, in_order
from streamdp.offline.kernels.allocation import Allocation, enter, leave, new_allocation, take_slot
from streamdp.offline.kernels.links import Links, link_weight
from streamdp.offline.kernels.store import Store, prepare, score
from streamdp.offline.plan import Order as Order
from streamdp.offline.prepare import log_coefficients
from streamdp.offline.problem import Problem
from streamdp.offline.samplers.links import links_of
from streamdp.priors import CRP, by_distance
from streamdp.priors.base import Weights
from streamdp.settings.assemble import build_model

PLAIN, COUNTED, LINKED = range(3)

LOOKS = 3
"""How often a beam looks back at vectors, at most."""


@kernel
def _log_weights(
    store: Store, allocation: Allocation, prior: Weights, links: Links, of_size: np.ndarray, mode: int, i: int
) -> float:
    """Fill ``totals`` with the log weight of each active slot; returns that of a new one."""
    n, out = allocation.counters.active, allocation.totals
    if mode == LINKED:
        for j in range(n):
            links.total[allocation.active[j]] = 0.0
        for j in range(links.reach[i], i):
            links.total[allocation.labels[j]] += link_weight(links, i, j)
        for j in range(n):
            out[j] = math.log(links.total[allocation.active[j]])
        return math.log(links.concentration)
    for j in range(n):
        size = store.size[allocation.active[j]]
        out[j] = prior.join[size]
        if mode == COUNTED:
            out[j] += math.log(of_size[size] / ((size + 1.0) * (of_size[size + 1] + 1.0)))
    new = prior.found[n]
    return new - math.log(of_size[1] + 1.0) if mode == COUNTED else new


@entry
def assign(
    store: Store,
    allocation: Allocation,
    prior: Weights,
    links: Links,
    of_size: np.ndarray,
    mode: int,
    order: np.ndarray,
    first: int,
) -> int:
    """Assign records ``order[first ..]``; returns where it stopped for want of a free slot.

    ``of_size[n]`` counts the clusters of n records. LINKED needs the records in their own order.
    """
    weights, totals = allocation.weights, allocation.totals
    for p in range(first, order.shape[0]):
        if allocation.counters.free == 0:
            return p
        i, n = order[p], allocation.counters.active
        new = _log_weights(store, allocation, prior, links, of_size, mode, i)
        score(store, i, allocation.active, n, weights)
        for j in range(n):
            weights[j] += totals[j]
        weights[n] = store.fresh[i] + new
        best = n
        for j in range(n):
            if weights[j] > weights[best]:
                best = j
        slot = allocation.active[best] if best < n else take_slot(allocation)
        size = store.size[slot]
        if size > 0:
            of_size[size] -= 1
        of_size[size + 1] += 1
        enter(store, allocation, i, slot)
    return order.shape[0]


@entry
def conditionals(
    store: Store,
    allocation: Allocation,
    prior: Weights,
    links: Links,
    mode: int,
    probability: np.ndarray,
    of_new: np.ndarray,
    log_predictive: np.ndarray,
) -> None:
    """Given where all others are: how sure each record's cluster is, and a new one; log p(x_i | them)."""
    weights, totals = allocation.weights, allocation.totals
    for i in range(allocation.labels.shape[0]):
        old = leave(store, allocation, i)
        n = allocation.counters.active
        new = _log_weights(store, allocation, prior, links, allocation.labels, mode, i)
        score(store, i, allocation.active, n, weights)
        totals[n], weights[n] = new, store.fresh[i]
        own = allocation.where[old] if store.size[old] > 0 else n
        if totals[own] == -math.inf:
            totals[own] = new  # all others are later: the record has founded its cluster
        peak, heaviest = -math.inf, -math.inf
        for j in range(n + 1):
            peak = max(peak, weights[j] + totals[j])
            heaviest = max(heaviest, totals[j])
        mass, norm = 0.0, 0.0
        for j in range(n + 1):
            mass += math.exp(weights[j] + totals[j] - peak)
            norm += math.exp(totals[j] - heaviest)
        probability[i] = math.exp(weights[own] + totals[own] - peak) / mass
        of_new[i] = math.exp(weights[n] + totals[n] - peak) / mass
        log_predictive[i] = math.log(mass) + peak - math.log(norm) - heaviest
        enter(store, allocation, i, allocation.active[own] if own < n else take_slot(allocation))


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
    if order != "given" and not chain.prior.exchangeable:
        raise ValueError(f"under {type(chain.prior).__name__} the order is part of the model: it is given")
    alone = chain.store.fresh + log_coefficients(chain.store, chain.likelihood)
    return in_order(order, alone, chain.generator)


def sequential(chain: Chain, *, order: Order = "given", count_prior: bool = False) -> None:
    """One record after the other to the best cluster of those before it.

    Parameters
    ----------
    chain
        Whose clustering is replaced.
    order
        In which the records are taken.
    count_prior
        Choose by the probability of the cluster sizes rather than of the clustering (Daume 2007, eq. 2;
        CRP only).
    """
    prior, n = chain.prior, chain.size
    if count_prior and not prior.ewens:
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
        done = assign(chain.store, chain.allocation, weights, links, of_size, mode, places, done)
    chain.settle()


def _what_is_read(chain: Chain) -> tuple[Links, int, Weights]:
    """What the sequential kernels read of a chain's prior."""
    prior, n, weights = chain.prior, chain.size, chain.weights
    if weights is None:
        weights = (prior if prior.by_size else CRP()).tables(n)
    return links_of(chain), PLAIN if by_distance(prior) is None else LINKED, weights


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


def beam_labels(problem: Problem) -> np.ndarray:
    """The clustering of a beam's best hypothesis at the end of the records, shape (N,)."""
    return _absorbed(problem)[1] if problem.start is None else problem.start


def looked_at(problem: Problem) -> Problem:
    """The problem with the parameters that clusters of vectors show, where these are to follow.

    A beam absorbs the records, then looks back: samplers start there.
    """
    if not problem.follows:
        return problem
    search, labels = _absorbed(problem)
    held, due = Labelled(0, problem.data, labels), Due(NONE, 0, last=True)
    for _ in decide(search, with_events=False):
        pass
    for _ in range(LOOKS):
        before = labels.copy()
        for moves in follow(search, held, due, problem.likelihood.vector):
            for _ in apply(search, held, moves, with_events=False):
                pass
        if (labels == before).all():
            break
    return dataclasses.replace(problem, likelihood=search.likelihood, start=labels, follows=False)


def _absorbed(problem: Problem) -> tuple[BeamSearch, np.ndarray]:
    """A beam that has seen all records, and its labels."""
    if problem.distances is not None:
        raise ConfigError("the beam does not read distances: use gibbs or astar", Exit.USAGE)
    data = problem.data
    search = BeamSearch(build_model(problem.settings, problem.prior, problem.likelihood), problem.likelihood)
    labels = np.zeros(data.size, np.int64)
    if data.sparse:
        search.ensure_words(int(data.words.max()) + 1)
    for start, stop, out in search.run(data):
        labels[start:stop] = out.answers["label"][start:stop]
        _revise(labels, out)
    return search, labels


def _revise(labels: np.ndarray, out: Output) -> None:
    for row in out.revisions[: out.counters.revisions]:  # in order: a record may be revised more than once
        labels[row["seq"]] = row["label"]
