"""A* search for the most probable clustering of a finite set of records.

Daume III 2007, section 3; Feng, Blei and Frazier 2015. A state is a clustering, where the latter have a set
of links, and it is scored by log p(z, x) unless their p(x | z), or Daume's prior of counts, is asked for.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from streamdp.kernels.rows import grown
from streamdp.likelihoods import Likelihood, VectorFamily, WordFamily
from streamdp.likelihoods.vectors import NormalFamily
from streamdp.offline.chain import canonical, in_order
from streamdp.offline.kernels.allocation import fill, new_allocation
from streamdp.offline.kernels.astar import (
    EMPTY_QUEUE,
    FOUND,
    LIMIT,
    NO_NODE,
    NO_SLOT,
    new_tree,
    new_workspace,
    search,
)
from streamdp.offline.kernels.completion import COUNTS, JOINT, PREDICTIVE, REPLICA, SUMS, SUPPORT, Heuristic
from streamdp.offline.kernels.store import FIRST_SLOT, Store, WordStore, prepare
from streamdp.offline.plan import Order, Score
from streamdp.offline.prepare import Data, log_coefficients, new_store, word_totals
from streamdp.priors import by_distance, by_order
from streamdp.priors.base import Prior, cluster_sizes
from streamdp.priors.distance_dependent import MOST


def from_each_on(terms: np.ndarray) -> np.ndarray:
    """The sums of the terms from the n-th on, for n = 0 .. N."""
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def all_link_weights(prior: Prior, data: Data, distances: np.ndarray | None) -> np.ndarray:
    """f(distance) of each record to each before it, shape (N, N); of other priors none, shape (0, 0).

    Parameters
    ----------
    prior, data
        How distance is measured, and where the records lie.
    distances
        d(i, j), shape (N, N), of which only j < i is read; None: as the prior measures it.
    """
    n = data.size
    if distances is not None:
        return prior.link_weights(distances, n)
    if (linked := by_distance(prior)) is None:
        return np.zeros((0, 0))
    if n > MOST:
        raise ValueError(f"{n:,} records are too many for a distance-dependent prior: at most {MOST:,}")
    positions = linked.positions(n, None if data.times is None else data.times.tolist())
    return linked.link_weights(np.abs(np.subtract.outer(positions, positions)), n)


def log_count_prior(prior: Prior, labels: np.ndarray) -> float:
    """log P(m), the probability that there are m_i clusters of size i, in nats (Daume 2007, eq. 2)."""
    sizes = cluster_sizes(labels.tolist())
    total = prior.log_probability(labels.tolist()) + math.lgamma(len(labels) + 1)
    total -= math.fsum(math.lgamma(size + 1) for size in sizes)
    return total - math.fsum(math.lgamma(m + 1) for m in cluster_sizes(sizes))


def lengths_of(data: Data, likelihood: Likelihood) -> np.ndarray:
    """The Euclidean lengths of the records; ones where a multiple of a record is none, as of unit vectors."""
    if isinstance(likelihood, NormalFamily) and data.vectors is not None:
        lengths: np.ndarray = np.linalg.norm(data.vectors, axis=1)
        return lengths
    if isinstance(likelihood, WordFamily) and data.vectors is None:
        return np.sqrt(np.bincount(data.rows, np.square(data.counts, dtype=float), data.size))
    return np.ones(data.size)


def with_long_tables(
    store: Store, likelihood: Likelihood, base: np.ndarray | None, length: np.ndarray
) -> Store:
    """The same with tables for clusters that N scaled copies of any record join; to be prepared."""
    if not isinstance(store, WordStore) or not store.words.size:
        return store
    factor = length.max() / np.maximum(length, 1.0)
    scaled = np.floor(store.counts * np.repeat(factor, np.diff(store.offsets)) + 0.5)
    by_word, by_record = word_totals(store.words, store.counts)
    most = np.zeros(len(by_word))
    np.maximum.at(most, store.words, scaled)
    by_word += len(length) * most
    if base is None:
        base = likelihood.bag.base_of_records(store.offsets, store.words)
    longer = likelihood.bag.set_terms(by_word, by_record, base)
    if "mass" in longer._fields:
        longer = longer._replace(mass=store.terms.mass)
    return store._replace(terms=longer)


def _bounds_beside(vectors: np.ndarray, family: VectorFamily) -> np.ndarray:
    """Of the vectors beside words, 0 where there is none; in any order, each record is bound by itself."""
    bounds, has = np.zeros(len(vectors)), ~np.isnan(vectors[:, 0])
    bounds[has] = family.upper_bounds(vectors[has])
    return bounds


def new_heuristic(
    prior: Prior, mode: int, look: int, ahead: np.ndarray, link_weights: np.ndarray, length: np.ndarray
) -> tuple[Heuristic, float]:
    """What the kernels read, and the score of the state in which no record is placed.

    Parameters
    ----------
    prior
        Of the clusterings.
    mode, look
        As numbered where the kernels of the completion stand.
    ahead
        What log H of the records from the n-th on is expected to add, shape (N + 1,).
    link_weights
        Those of a distance dependent prior.
    length
        Of each record, shape (N,), for the look-ahead by copies.
    """
    n = len(ahead) - 1
    join, grown, norm, rest = np.zeros((4, n + 1))
    root = 0.0
    linked = by_distance(prior) is not None
    if linked:
        alpha = prior.concentration
        found = np.full(n + 1, math.log(alpha))
        sums = link_weights.sum(axis=1)
        rest = from_each_on(np.log(np.maximum(sums, alpha)))
        root = -float(np.log(alpha + sums).sum())
    elif by_order(prior) is not None:
        found = prior.tables(n).found
        # all clusters are alike, so that the weights add up to their number and that of a new one
        norm = np.log(np.exp(found) + np.arange(n + 1))
    elif prior.exchangeable:
        join, grown, found, norms = prior.tables(n)
        root = -float(norms[0])
    else:
        raise ValueError(f"{type(prior).__name__} is not exchangeable")
    if mode == COUNTS:
        root += math.lgamma(n + 1)
    elif mode != JOINT:
        root = 0.0
    return Heuristic(
        closed=prior.all_or_none,
        linked=linked,
        mode=int(mode),
        look=int(look),
        join=join,
        found=found,
        norm=norm,
        grown=grown,
        founded=np.concatenate([[0.0], np.cumsum(found[:-1] - norm[:-1])]),
        link_weight=link_weights,
        rest=rest,
        ahead=ahead,
        length=length,
    ), root


Mode = Literal["joint", "count_prior", "likelihood_only"]

BUDGET = 10_000
"""States to expand before all statistics are computed anew, so that rounding errors do not add up."""

FIRST_STATES = 1024
ROUNDING = 1e-9
NO_LIMIT = int(np.iinfo(np.int64).max)

_MODES = {"joint": JOINT, "count_prior": COUNTS, "likelihood_only": SUPPORT}
_LOOKS = {"replica": REPLICA, "predictive": PREDICTIVE}


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """What A* maximises, and how. ValueError for what it has not.

    Parameters
    ----------
    queue
        Most states that wait, the worst being dropped: 1 is greedy search. 0: no bound, so that time and
        memory may grow exponentially with N.
    score
        The look-ahead. "admissible": no less than any clustering can add, so that a queue without a bound
        ends with the best for certain. "trivial" or "constant": none; as certain where no record can have
        a density above 1. "replica": each of the R records left after copies of itself, in the cluster
        where it then does best (Daume 2007, 3.3); copies are scaled to the greatest length among the R
        and added while that helps, at most R - 1. Not a bound. "predictive": each in the cluster where it
        does best, weighed by the probabilities that the prior gives for the next record (Feng et al. 2015,
        eq. 3). Not a bound. "inadmissible": each in a cluster of its own; finds good clusterings fast.
    mode
        "joint". "count_prior": under ``CRP``, with the probability of how many clusters there are of each
        size in place of p(z); what that can still add is a guess, namely the better of all records in the
        largest cluster, and each in one of its own. "likelihood_only": log p(x | z), for all z that the
        prior allows.
    order
        "given"; or, where the prior is exchangeable, "random", or by log H of each record alone,
        "ascending" or "descending".
    seed
        Of the random order.
    base
        p_w by word, shape (V,), of the hierarchical families; None: that of the family, or else learned
        from the records.
    distances
        d(i, j) of a ``DistanceDependent`` prior in place of its own, shape (N, N), read where j < i.
    max_states
        Once so many have entered the queue, only the best goes on, greedily; None: no limit.
    until
        Asked every now and then; once it says so, the same happens.
    """

    queue: int = 0
    score: Score = "admissible"
    mode: Mode = "joint"
    order: Order = "given"
    seed: int = 0
    base: np.ndarray | None = None
    distances: np.ndarray | None = None
    max_states: int | None = None
    until: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        for name, kind in (("score", Score), ("mode", Mode), ("order", Order)):
            if getattr(self, name) not in get_args(kind):
                raise ValueError(
                    f"{name} must be one of {', '.join(get_args(kind))}, not {getattr(self, name)!r}"
                )
        for name, least, other in (("queue", 0, ""), ("max_states", 1, ", or None")):
            value = getattr(self, name)
            if not (value is None and other) and (
                not isinstance(value, int) or isinstance(value, bool) or value < least
            ):
                raise ValueError(f"{name} must be an integer of at least {least}{other}, not {value!r}")

    def check(self, prior: Prior) -> None:
        """ValueError where they do not go with a prior."""
        name = type(prior).__name__
        if self.order != "given" and not prior.exchangeable:
            raise ValueError(f"order must be 'given' under {name}: it is part of the model")
        if self.mode == "count_prior" and not prior.ewens:
            raise ValueError(f"mode 'count_prior' is for CRP, not for {name}")


class Search:
    """A tree of clusterings of the first records, grown where most is expected of it."""

    def __init__(self, data: Data, likelihood: Likelihood, prior: Prior, options: Options) -> None:
        options.check(prior)
        if likelihood.ordered and (options.order != "given" or options.score == "replica"):
            raise ValueError("with a document level A* takes the records in the order given, and no replicas")
        score, base, self.until = options.score, options.base, options.until
        self.bound, self.limit = options.queue, options.max_states or NO_LIMIT
        self.store = new_store(data, likelihood, base)
        length = np.zeros(0)
        if score == "replica":
            length = lengths_of(data, likelihood)
            self.store = with_long_tables(self.store, likelihood, base, length)
        prepare(self.store)
        store: Any = self.store
        fresh = store.fresh
        alone = fresh + log_coefficients(self.store, likelihood)
        self.order = in_order(options.order, alone, lambda: np.random.default_rng(options.seed))
        self.link_weights = all_link_weights(prior, data, options.distances)
        if likelihood.sparse:
            given = store.terms, store.offsets, store.words, store.counts
            most = likelihood.bag.upper_bounds(*given)
            if likelihood.vector is not None:
                most = most + _bounds_beside(store.beside.vectors, likelihood.vector)
            most = most[self.order]
        else:
            most = likelihood.vector.upper_bounds(store.vectors[self.order])
        ahead = {"admissible": most, "inadmissible": fresh[self.order]}.get(score, np.zeros(data.size))
        look = _LOOKS.get(score, SUMS)
        self.heuristic, root = new_heuristic(
            prior, _MODES[options.mode], look, from_each_on(ahead), self.link_weights, length
        )
        self.workspace = new_workspace(self.order, len(self.store.size))
        self.tree = new_tree(root, FIRST_STATES)
        learned = likelihood.sparse and likelihood.bag.learns_base and base is None
        bounded = score == "admissible" or (score in ("trivial", "constant") and bool(most.max() <= ROUNDING))
        self.exact = bounded and options.queue == 0 and options.mode == "joint" and not learned
        """Whether the next complete state is the best; not once ``max_states`` is reached."""

    def next_best(self) -> np.ndarray | None:
        """The clusters of all records in the next complete state, by record; None when there is no other.

        An exact search gives them in the order of their scores.
        """
        while True:
            prepare(self.store)
            self.workspace.counters.here = self.workspace.counters.clusters = 0
            ended = search(
                self.store, self.heuristic, self.workspace, self.tree, self.bound, self.limit, BUDGET
            )
            if ended == FOUND:
                return self._labels(int(self.tree.counters.answer))
            if ended == EMPTY_QUEUE:
                return None
            if ended == LIMIT:
                self._hurry()
            elif ended == NO_NODE:
                self.tree = grown(self.tree, "nodes", 2 * len(self.tree.heap))
            elif ended == NO_SLOT:
                capacity = 2 * len(self.store.size)
                self.store = grown(self.store, "slots", capacity)
                self.workspace = new_workspace(self.order, capacity)
            if self.until is not None and self.until():
                self._hurry()

    def _hurry(self) -> None:
        """From now on only the best state goes on, greedily."""
        self.bound, self.limit, self.exact, self.until = 1, NO_LIMIT, False, None
        self.tree.counters.queued = 1

    def _labels(self, node: int) -> np.ndarray:
        labels = np.empty(len(self.order), np.int64)
        for i in self.order[::-1]:
            labels[i] = self.tree.label[node]
            node = self.tree.parent[node]
        return labels


@dataclass(frozen=True, eq=False)
class AStarResult:
    """A clustering, and what is known of it.

    Parameters
    ----------
    labels
        The cluster of every record as given, shape (N,), numbered from 0 by first members.
    log_joint
        log p(z, x) in nats.
    score
        What the search maximised, in nats: the log joint unless ``mode`` says otherwise.
    proved
        Whether no clustering has a larger log joint, but for rounding.
    enqueued, expanded
        How many states entered the queue, and the children of how many were looked at.
    """

    labels: np.ndarray
    log_joint: float
    score: float
    proved: bool
    enqueued: int
    expanded: int


def astar(data: Data, likelihood: Likelihood, prior: Prior, **options: Any) -> AStarResult:
    """Search for the clustering of largest log p(z, x), one record after the other, best first.

    A state is a clustering of the first records. It waits in a queue by their log joint, plus the most
    that the prior can add for the other records, plus a look-ahead at their likelihood. Every prior is
    served; ``options`` are those of :class:`Options`. ``ValueError`` where the arguments do not go together.

    Notes
    -----
    Daume 2007, sections 3.1 to 3.3. Under "joint" the best completion of p(z) is exact, and "admissible"
    holds for every record; his lemma on copies, "replica", is false. "count_prior" is his eq. 2, with the
    better of two completions in place of a greedy one. Feng, Blei and Frazier search through the links of
    a distance dependent prior; here all links that make the same clustering are one state.
    """
    chosen = Options(**options)
    states = Search(data, likelihood, prior, chosen)
    found = states.next_best()
    if found is None:
        raise ValueError("no clustering has a finite score")
    labels = canonical(found)
    log_likelihood = _log_likelihood(states.store, labels)
    if chosen.distances is not None and (linked := by_distance(prior)) is not None:
        log_joint = log_likelihood + linked.log_probability_by(states.link_weights, labels)
    else:
        times = None if data.times is None else data.times.tolist()
        log_joint = log_likelihood + prior.log_probability(labels.tolist(), times)
    maximised = {"joint": log_joint, "likelihood_only": log_likelihood}.get(chosen.mode)
    if maximised is None:
        maximised = log_likelihood + log_count_prior(prior, labels)
    counters = states.tree.counters
    enqueued, expanded = int(counters.enqueued), int(counters.expanded)
    return AStarResult(labels, log_joint, maximised, states.exact, enqueued, expanded)


def _log_likelihood(store: Any, labels: np.ndarray) -> float:
    """log p(x | z) in nats, computed anew."""
    prepare(store)
    fill(store, new_allocation(len(labels), len(store.size)), labels, np.zeros(0, np.int64))
    return float(store.log_h[FIRST_SLOT : FIRST_SLOT + labels.max() + 1].sum())
