"""What a prior gives for the next record, and the most it can still give for all that come after.

Daume III 2007, sections 3.1 and 3.3; Feng, Blei and Frazier 2015, eq. 3. The best completion of p(z) is
exact, in place of greedy steps; the papers' look-aheads at the likelihood are no bounds.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.offline.kernels.store import (
    FIRST_SLOT,
    Store,
    add_to_group,
    copies_in_group,
    score,
    score_group,
)

JOINT, COUNTS, SUPPORT = range(3)
"""Modes: log p(z), log P(m) of how many clusters there are of each size, or only what is possible."""

SUMS, REPLICA, PREDICTIVE = range(3)
"""Look-aheads: one number for each depth, or functions of the clusters."""


class Heuristic(NamedTuple):
    """A prior for N records, and the look-ahead.

    A record joins a cluster of size n beside K with the log weight ``join[n] - norm[K]``, or founds one with
    ``found[K] - norm[K]``. Under a distance dependent prior (LINKED) it joins with the log of the sum of
    its ``link_weight`` by the members.
    """

    closed: bool  # the best rest is all joins or all founders
    linked: bool
    mode: int
    look: int
    join: np.ndarray  # float64[N + 1]
    found: np.ndarray  # float64[N + 1]
    norm: np.ndarray  # float64[N + 1]
    grown: np.ndarray  # float64[N + 1] sum of join[1 .. n - 1]
    founded: np.ndarray  # float64[N + 1] sum of found - norm of [0 .. K - 1]
    link_weight: np.ndarray  # float64[N, N] of record i by each before it; or empty
    rest: np.ndarray  # float64[N + 1] most that linked records from the n-th on can add
    ahead: np.ndarray  # float64[N + 1] what log H of the records from the n-th on is expected to add
    length: np.ndarray  # float64[N] of each record, by which copies of it are scaled; or empty


@kernel
def weigh(
    heuristic: Heuristic, sizes: np.ndarray, labels: np.ndarray, depth: int, clusters: int, out: np.ndarray
) -> None:
    """Log weights of each cluster, and of a new one, for the record after ``depth`` others."""
    if heuristic.linked:
        for k in range(clusters):
            out[k] = 0.0
        for i in range(depth):
            out[labels[i]] += heuristic.link_weight[depth, i]
        for k in range(clusters):
            out[k] = math.log(out[k]) if out[k] > 0.0 else -math.inf
    else:
        for k in range(clusters):
            out[k] = heuristic.join[sizes[k + FIRST_SLOT]] - heuristic.norm[clusters]
    out[clusters] = heuristic.found[clusters] - heuristic.norm[clusters]


@kernel
def _best_rest(heuristic: Heuristic, clusters: int, largest: int, left: int) -> float:
    """The most that ``left`` records can add: join the largest cluster first, then found some."""
    best = -math.inf
    for founders in range(0, left + 1, max(left, 1) if heuristic.closed else 1):
        joins = left - founders
        value = heuristic.grown[largest + joins] - heuristic.grown[largest] - joins * heuristic.norm[clusters]
        value += heuristic.founded[clusters + founders] - heuristic.founded[clusters]
        best = max(best, value)
    return best


@kernel
def _joint(
    heuristic: Heuristic, sizes: np.ndarray, depth: int, clusters: int, left: int, rests: np.ndarray
) -> None:
    """The best rest after each choice."""
    if heuristic.linked:
        for k in range(clusters + 1):
            rests[k] = heuristic.rest[depth + 1]
        return
    largest = 0
    for k in range(clusters):
        largest = max(largest, sizes[k + FIRST_SLOT])
    grows = stays = 0.0
    if clusters > 0:
        grows = _best_rest(heuristic, clusters, largest + 1, left)
        stays = _best_rest(heuristic, clusters, largest, left)
    for k in range(clusters):
        rests[k] = grows if sizes[k + FIRST_SLOT] == largest else stays
    rests[clusters] = _best_rest(heuristic, clusters + 1, max(largest, 1), left)


@kernel
def _counted(
    heuristic: Heuristic,
    sizes: np.ndarray,
    clusters: int,
    left: int,
    tally: np.ndarray,
    steps: np.ndarray,
    rests: np.ndarray,
) -> None:
    """The same for log P(m) = K log alpha - sum log n_k - sum log m_i! + constant.

    As the rest: all records in the largest cluster, or each in one of its own.
    """
    largest, concentration = 0, heuristic.found[0]
    for k in range(clusters):
        tally[sizes[k + FIRST_SLOT]] += 1
        largest = max(largest, sizes[k + FIRST_SLOT])
    for k in range(clusters + 1):
        size = sizes[k + FIRST_SLOT] if k < clusters else 0
        if k < clusters:
            steps[k] = math.log(size * tally[size] / ((size + 1.0) * (tally[size + 1] + 1.0)))
        else:
            steps[k] = concentration - math.log(tally[1] + 1.0)
        rests[k] = 0.0
        if left > 0:
            top = max(largest, size + 1)
            equals = tally[top] + (1 if size + 1 == top else 0)
            singles = tally[1] + (1 if size == 0 else 0) - (1 if size == 1 else 0)
            together = math.log(top * equals / (top + left))
            alone = left * concentration + math.lgamma(singles + 1.0) - math.lgamma(singles + left + 1.0)
            rests[k] = max(together, alone)
    for k in range(clusters):
        tally[sizes[k + FIRST_SLOT]] = 0


@kernel
def complete(
    heuristic: Heuristic,
    sizes: np.ndarray,
    depth: int,
    clusters: int,
    tally: np.ndarray,
    steps: np.ndarray,
    rests: np.ndarray,
) -> None:
    """Turn the log weights in ``steps`` into what each choice adds in this mode; ``rests``: what may follow.

    A choice of weight 0 stays at -inf in every mode.
    """
    left = heuristic.ahead.shape[0] - 1 - (depth + 1)
    if heuristic.mode == JOINT:
        _joint(heuristic, sizes, depth, clusters, left, rests)
    elif heuristic.mode == COUNTS:
        _counted(heuristic, sizes, clusters, left, tally, steps, rests)
    else:
        for k in range(clusters + 1):
            rests[k] = 0.0
            if steps[k] > -math.inf:
                steps[k] = 0.0


@kernel
def predictive(
    store: Store,
    order: np.ndarray,
    depth: int,
    slots: np.ndarray,
    clusters: int,
    weights: np.ndarray,
    out: np.ndarray,
) -> float:
    """Each record from the depth-th on in the cluster where it does best (Feng et al. 2015, eq. 3).

    The paper weighs a cluster by its probability for each record, which depends on where the records in
    between go. Here all have the log weights of the first, ``weights``, made to sum to one.
    """
    peak, mass, ahead = -math.inf, 0.0, 0.0
    for k in range(clusters + 1):
        peak = max(peak, weights[k])
    for k in range(clusters + 1):
        mass += math.exp(weights[k] - peak)
    norm = peak + math.log(mass)
    for place in range(depth, order.shape[0]):
        i = order[place]
        score(store, i, slots, clusters, out)
        best = weights[clusters] + store.fresh[i]
        for k in range(clusters):
            best = max(best, weights[k] + out[k])
        ahead += best - norm
    return ahead


@kernel
def _gain_of_group(store: Store, slots: np.ndarray, k: int, clusters: int, out: np.ndarray) -> float:
    """What the group adds to log H of the k-th cluster, or of a new one."""
    alone = score_group(store, slots[k:], 1 if k < clusters else 0, out)
    return out[0] if k < clusters else alone


@kernel
def replica(
    store: Store,
    order: np.ndarray,
    depth: int,
    slots: np.ndarray,
    clusters: int,
    length: np.ndarray,
    out: np.ndarray,
) -> float:
    """Daume 2007, section 3.3: each of the R remaining records after copies of itself.

    It goes where it then does best: into a cluster, or a new one. Copies are scaled to the largest
    ``length`` among the R, and added while that helps, at most R - 1, as many as there are others.
    """
    total, left, largest = 0.0, order.shape[0] - depth, 0.0
    for place in range(depth, order.shape[0]):
        largest = max(largest, length[order[place]])
    for place in range(depth, order.shape[0]):
        i, best = order[place], -math.inf
        factor = largest / length[i] if length[i] > 0.0 else 1.0
        for k in range(clusters + 1):
            value = -math.inf
            for copies in range(left):
                copies_in_group(store, i, copies, factor)
                before = _gain_of_group(store, slots, k, clusters, out)
                add_to_group(store, i)
                gain = _gain_of_group(store, slots, k, clusters, out) - before
                if gain <= value:
                    break
                value = gain
            best = max(best, value)
        total += best
    return total
