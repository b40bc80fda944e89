"""A* search for the most probable clustering of a finite set of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.likelihoods import Likelihood
from streamdp.offline.best_first import Mode, Order, Score, Search
from streamdp.offline.chain import canonical
from streamdp.offline.distances import log_probability_by_weights
from streamdp.offline.heuristic import log_count_prior
from streamdp.offline.kernels.allocation import fill, new_allocation
from streamdp.offline.kernels.clusters import prepare
from streamdp.offline.kernels.store import FIRST_SLOT
from streamdp.offline.prepare import Data
from streamdp.priors.base import Prior


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


def astar(
    data: Data,
    likelihood: Likelihood[Any, Any],
    prior: Prior,
    *,
    queue: int = 0,
    score: Score = "admissible",
    mode: Mode = "joint",
    order: Order = "given",
    seed: int = 0,
    base: np.ndarray | None = None,
    distances: np.ndarray | None = None,
    max_states: int | None = None,
    until: Callable[[], bool] | None = None,
) -> AStarResult:
    """Search for the clustering of largest log p(z, x), one record after the other, best first.

    A state is a clustering of the first records. It waits in a queue by their log joint, plus the most
    that the prior can add for the other records, plus a look-ahead at their likelihood. ``ValueError``
    where the arguments do not go together.

    Parameters
    ----------
    data, likelihood, prior
        The model; every prior is served.
    queue
        Most states that wait, the worst being dropped: 1 is greedy search. 0: no bound, so that time and
        memory may grow exponentially with N.
    score
        The look-ahead. "admissible": no less than any clustering can add, so that a queue without a bound
        ends with the best for certain. "trivial" or "constant": none; as certain where no record can have
        a density above 1. "replica": each of the R records left after R - 1 copies of itself, in the
        cluster where it then does best. "predictive": each in all clusters, by the weights that the prior
        gives these for the next record. "inadmissible": each in a cluster of its own; finds good
        clusterings fast.
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

    Notes
    -----
    Daume 2007, sections 3.1 to 3.3, with bounds that hold for every record. Feng, Blei and Frazier search
    through the links of a distance dependent prior; here all links that make the same clustering are one
    state.
    """
    states = Search(
        data,
        likelihood,
        prior,
        queue=queue,
        score=score,
        mode=mode,
        order=order,
        seed=seed,
        base=base,
        distances=distances,
        max_states=max_states,
        until=until,
    )
    found = states.next_best()
    if found is None:
        raise ValueError("no clustering has a finite score")
    labels = canonical(found)
    log_likelihood = _log_likelihood(states.store, labels)
    if distances is None:
        times = None if data.times is None else data.times.tolist()
        log_joint = log_likelihood + prior.log_probability(labels.tolist(), times)
    else:
        log_joint = log_likelihood + log_probability_by_weights(prior, labels, states.link_weights)
    maximised = {"joint": log_joint, "likelihood_only": log_likelihood}.get(mode)
    if maximised is None:
        maximised = log_likelihood + log_count_prior(prior, labels)
    return AStarResult(labels, log_joint, maximised, states.exact, states.enqueued, states.expanded)


def _log_likelihood(store: Any, labels: np.ndarray) -> float:
    """log p(x | z) in nats, computed anew."""
    prepare(store)
    fill(store, new_allocation(len(labels), len(store.size)), labels, np.zeros(0, np.int64))
    return float(store.log_h[FIRST_SLOT : FIRST_SLOT + labels.max() + 1].sum())
