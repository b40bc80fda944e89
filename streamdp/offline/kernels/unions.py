"""What likelihood and distance-dependent prior say of making two clusters one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.allocation import Allocation
from streamdp.offline.kernels.clusters import group_of_slot, score_group
from streamdp.offline.kernels.links import Held, held_weight
from streamdp.offline.kernels.store import Store
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


@entry
def weigh_beside(held: Held, decay: Any, position: np.ndarray, out: np.ndarray) -> None:
    """What the frozen records of each cluster weigh at each position."""
    for k in range(out.shape[0]):
        for i in range(position.shape[0]):
            out[k, i] = held_weight(held, decay, position[i], k)


@kernel
def _log(weight: float) -> float:
    return math.log(weight) if weight > 0.0 else -np.inf


@kernel
def _frozen_choices(company: Company, decay: Any, concentration: float, a: int, b: int) -> float:
    """log of the weights by which the frozen records of two clusters, made one, have joined it."""
    here, place = company.here, company.place
    p, p_end, q, q_end = company.start[a], company.start[a + 1], company.start[b], company.start[b + 1]
    if a == b:
        q = q_end
    n = 0
    while p < p_end or q < q_end:
        if q == q_end or (p < p_end and place[p] <= place[q]):
            here[n] = place[p]
            p += 1
        else:
            here[n] = place[q]
            q += 1
        n += 1
    if n == 0:
        return 0.0
    weigh_earlier(decay, here, n, company.weight)
    total = math.log(concentration)
    for i in range(1, n):
        total += _log(max(company.weight[i], company.least))
    return total


@kernel
def _choices(company: Company, decay: Any, concentration: float, a: int, b: int) -> float:
    """The same of the records that move."""
    both, member, held = company.both, company.member, company.beside.shape[0]
    p, p_end, q, q_end = company.first[a], company.first[a + 1], company.first[b], company.first[b + 1]
    if a == b:
        q = q_end
    n = 0
    while p < p_end or q < q_end:
        if q == q_end or (p < p_end and member[p] < member[q]):
            both[n] = member[p]
            p += 1
        else:
            both[n] = member[q]
            q += 1
        company.here[n] = company.position[both[n]]
        n += 1
    weigh_earlier(decay, company.here, n, company.weight)
    total = 0.0
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
