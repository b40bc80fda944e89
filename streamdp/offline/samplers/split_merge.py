"""Moves that split a cluster in two or merge two (Jain and Neal 2004; Dahl 2005).

Two records are picked. Where they are together, a split of the others between them is proposed, else
the merger; the probability of a split being proposed enters the acceptance of both. In a split, the
side of the first record keeps the slot, and the frozen records in it.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import ints, made, reals
from streamdp.offline.chain import Chain, Sampler
from streamdp.offline.kernels.allocation import Allocation, enter, is_held, leave, take_slot
from streamdp.offline.kernels.rng import below, shuffle, uniform
from streamdp.offline.kernels.store import Store, add_to_group, empty_group, score, score_group
from streamdp.offline.samplers.gibbs import Gibbs
from streamdp.priors.base import Prior, Weights

COIN, SEQUENTIAL = -1, -2
"""In place of a number of scans: sides by coin; one pass that allots a record after the other (Dahl)."""


class Case(NamedTuple):
    """What moves read and change; scratch: the records between the two that were picked."""

    store: Store
    allocation: Allocation
    prior: Weights
    random: np.ndarray
    members: Annotated[np.ndarray, ints("records")]
    home: Annotated[np.ndarray, ints("records")]  # slot that a member was in
    pair: Annotated[np.ndarray, ints(2)]  # slots of the two sides
    value: Annotated[np.ndarray, reals(2)]


@kernel
def _collect(case: Case, i: int, j: int) -> int:
    """All others in the clusters of records i and j."""
    allocation = case.allocation
    a, b = allocation.labels[i], allocation.labels[j]
    n = 0
    for r in range(allocation.labels.shape[0]):
        slot = allocation.labels[r]
        if slot in (a, b) and r not in (i, j):
            case.members[n] = r
            n += 1
    return n


@kernel
def _to(case: Case, r: int, slot: int) -> None:
    """Move a record between slots that both stay in use."""
    if case.allocation.labels[r] != slot:
        leave(case.store, case.allocation, r)
        enter(case.store, case.allocation, r, slot)


@kernel
def _unite(case: Case, n: int, j: int, slot: int) -> None:
    """Move both sides to one slot, record j last: the other slot is then given up."""
    for p in range(n):
        _to(case, case.members[p], slot)
    leave(case.store, case.allocation, j)
    enter(case.store, case.allocation, j, slot)


@kernel
def _allot(case: Case, r: int, forced: int) -> float:
    """Put a record that is nowhere on a side, by draw or as forced (a slot); log probability of that."""
    store, prior, pair, value = case.store, case.prior, case.pair, case.value
    score(store, r, pair, 2, value)
    a = value[0] + prior.join[store.size[pair[0]]]
    b = value[1] + prior.join[store.size[pair[1]]]
    peak = max(a, b)
    total = peak + math.log(math.exp(a - peak) + math.exp(b - peak))
    if forced < 0:
        forced = pair[0] if uniform(case.random) < math.exp(a - total) else pair[1]
    enter(store, case.allocation, r, forced)
    return (a if forced == pair[0] else b) - total


@kernel
def _scan(case: Case, n: int, forced: bool) -> float:
    """A Gibbs scan restricted to the two sides; log probability of its outcome."""
    total = 0.0
    for p in range(n):
        r = case.members[p]
        leave(case.store, case.allocation, r)
        total += _allot(case, r, case.home[r] if forced else -1)
    return total


@kernel
def _divide(case: Case, n: int, scans: int, forced: bool) -> float:
    """Propose a split, or the way back to the present one; log probability of its outcome.

    ``scans``: of the launch state, with one more for the proposal; or COIN, or SEQUENTIAL.
    """
    random, members = case.random, case.members
    if scans == SEQUENTIAL:
        shuffle(random, members, n)
        for p in range(n):
            leave(case.store, case.allocation, members[p])
        total = 0.0
        for p in range(n):
            total += _allot(case, members[p], case.home[members[p]] if forced else -1)
        return total
    if scans == COIN and forced:
        return -n * math.log(2.0)
    for p in range(n):
        _to(case, members[p], case.pair[0 if uniform(random) < 0.5 else 1])
    if scans == COIN:
        return -n * math.log(2.0)
    for _ in range(scans):
        _scan(case, n, False)
    return _scan(case, n, forced)


@kernel
def _split(case: Case, n: int, j: int, scans: int) -> None:
    """Propose to split the cluster of record j, which leaves it."""
    store, allocation, prior = case.store, case.allocation, case.prior
    log_h, held = store.log_h, allocation.counters.active
    a = allocation.labels[j]
    together = log_h[a]
    b = take_slot(allocation)
    case.pair[0], case.pair[1] = a, b
    _to(case, j, b)
    proposed = _divide(case, n, scans, False)
    n_a, n_b = store.size[a], store.size[b]
    gain = log_h[a] + log_h[b] - together + prior.found[held]
    gain += prior.grown[n_a] + prior.grown[n_b] - prior.grown[n_a + n_b]
    if math.log(1.0 - uniform(case.random)) < gain - proposed:
        allocation.counters.joint += gain
        return
    _unite(case, n, j, a)


@kernel
def _merge(case: Case, n: int, i: int, j: int, scans: int) -> None:
    """Propose to merge the cluster of record j into that of record i."""
    store, allocation, prior, members = case.store, case.allocation, case.prior, case.members
    a, b = allocation.labels[i], allocation.labels[j]
    case.pair[0], case.pair[1] = a, b
    for p in range(n):
        case.home[members[p]] = allocation.labels[members[p]]
    back = _divide(case, n, scans, True)
    empty_group(store)
    add_to_group(store, j)
    for p in range(n):
        if allocation.labels[members[p]] == b:
            add_to_group(store, members[p])
    score_group(store, case.pair, 1, case.value)
    n_a, n_b = store.size[a], store.size[b]
    gain = case.value[0] - store.log_h[b] - prior.found[allocation.counters.active - 1]
    gain += prior.grown[n_a + n_b] - prior.grown[n_a] - prior.grown[n_b]
    if math.log(1.0 - uniform(case.random)) < gain + back:
        allocation.counters.joint += gain
        _unite(case, n, j, a)


@entry
def split_merge_moves(case: Case, scans: int, moves: int) -> int:
    """Propose ``moves`` splits or mergers; returns how many were, fewer for want of a free slot."""
    allocation, random = case.allocation, case.random
    n = allocation.labels.shape[0]
    if n < 2:
        return moves
    for move in range(moves):
        if allocation.counters.free == 0:
            return move
        i = below(random, n)
        j = below(random, n - 1)
        j += j >= i
        members = _collect(case, i, j)
        if allocation.labels[i] == allocation.labels[j]:
            _split(case, members, j, scans)
        elif not is_held(allocation, allocation.labels[j]):
            # frozen records stay: the way back would have to move them
            _merge(case, members, i, j, scans)
    return moves


SIMPLE, RESTRICTED, MIXED = 1, 2, 3
"""Jain and Neal's variants: sides by coin; restricted Gibbs scans; those, and Gibbs sweeps in between."""


class SplitMerge(Sampler):
    """Propose to split a cluster or to merge two (Jain and Neal 2004).

    Parameters
    ----------
    variant
        1: the sides of a split are thrown by coin. 2: they come out of a Gibbs scan restricted to the
        two sides, after ``scans`` of the kind. 3: as 2, with a Gibbs sweep after every round.
    scans
        Scans before the one that proposes, an integer >= 0.
    proposals
        Of one round.
    """

    needs = "exchangeable priors"
    instead = ": take the method hybrid"

    def __init__(self, variant: int = RESTRICTED, *, scans: int = 5, proposals: int = 10) -> None:
        if variant not in (SIMPLE, RESTRICTED, MIXED):
            raise ValueError(f"variant must be 1, 2 or 3, not {variant!r}")
        if scans < 0 or proposals < 1:
            raise ValueError("scans must be at least 0, proposals at least 1")
        self.variant, self.proposals = variant, proposals
        self._scans = COIN if variant == SIMPLE else scans
        self._gibbs = Gibbs() if variant == MIXED else None

    @staticmethod
    def serves(prior: Prior) -> bool:
        """Where the sizes of the two sides tell the ratio."""
        return prior.exchangeable

    def round(self, chain: Chain) -> None:
        """One round of proposals."""
        assert chain.weights is not None
        given = {"store": chain.store, "allocation": chain.allocation, "prior": chain.weights}
        case = made(Case, {"records": chain.size}, **given, random=chain.random)
        left = self.proposals
        while left:
            chain.more_room()
            case = case._replace(store=chain.store, allocation=chain.allocation)
            left -= split_merge_moves(case, self._scans, left)
        if self._gibbs is not None:
            self._gibbs(chain)


class SequentiallyAllocated(SplitMerge):
    """Split and merge, the sides of a split filled one record after the other (SAMS: Dahl 2005).

    Parameters
    ----------
    proposals
        Of one round.
    """

    def __init__(self, *, proposals: int = 10) -> None:
        super().__init__(SIMPLE, proposals=proposals)
        self._scans = SEQUENTIAL
