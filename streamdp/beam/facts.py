"""A state as facts: what a running beam must remember, without what follows from it.

Stored are the hypotheses, the clusters by slot, who holds which of them, their records' words in order or
their statistics, and the undecided history. Arenas, heaps, hash tables, postings, chains of free places and
back-pointers are made anew, in one order, when facts are read. So facts are the same whatever arrangement
they were taken from, and what is made of them goes on byte by byte like what it was taken from. Numbers that
later answers depend on are facts, too: of slots and size classes, by which ties are broken and sums are
added up, and sums that were kept up to date, which another order of additions would give other last digits.

Facts are checked as they are read: what no index, walk or loop of a kernel may run into raises UnsoundError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.cluster_facts import Facts, clusters_of, facts_of_clusters
from streamdp.beam.data.members import Expiry, Members
from streamdp.beam.data.pool import ALIVE, CLOSED, VACANT, Beam, Pool
from streamdp.beam.data.state import Model, State
from streamdp.beam.data.trellis import LINEAGE_BITS, Lineages, Trellis, in_preorder
from streamdp.beam.growth import SLOTS, new_clusters
from streamdp.kernels.blocks import blocks_for, places_of
from streamdp.kernels.rows import made, power_of_two
from streamdp.kernels.sound import (
    RECORDS,
    chain_of_runs,
    counters_of,
    ints_of,
    inverse,
    length_of,
    narrow,
    plain_counters,
    reals_of,
    require,
    runs,
)
from streamdp.likelihoods import Likelihood

LABELS = 1 << (63 - LINEAGE_BITS)


def facts_of(state: State) -> dict[str, Any]:
    """The facts of a running beam, as arrays of the narrowest types and plain numbers."""
    beam, pool, trellis, lineages = state.beam, state.pool, state.trellis, state.lineages
    counters = beam.counters
    width, used = int(counters.width), np.flatnonzero(pool.state != VACANT)
    named = np.flatnonzero(lineages.rows["refs"] > 0)
    named = named[np.lexsort((lineages.rows["label"][named], lineages.rows["founder"][named]))]
    lineage = inverse(named, len(lineages.rows))
    nodes = in_preorder(trellis)
    node = inverse(nodes, len(trellis.parent))
    contested = int(pool.counters.contested)
    undecided = np.arange(counters.decided + 1, counters.seq) & (len(state.announced) - 1)
    rows, queues = pool.slots[used], state.members.queues[used]
    waiting = queues["length"] - queues["head"]
    times = places_of(queues["start"] + queues["head"], waiting)
    return {
        "counters": plain_counters(counters),
        "joint": beam.joint[:width].copy(),
        "founded": narrow(beam.founded[:width]),
        "leaf": narrow(node[beam.leaf[:width]]),
        "slots": len(pool.slots),
        "free": runs(pool.slots["next"], int(pool.counters.free)),
        "slot": narrow(used),
        "closed": narrow(pool.state[used] == CLOSED),
        "lineage": narrow(lineage[rows["lineage"]]),
        **{name: narrow(rows[name]) for name in ("size", "last")},
        **{name: rows[name].copy() for name in ("first_time", "last_time")},
        "weight": pool.weight[used],
        "expires": np.where(state.expiry.place[used] >= 0, state.expiry.key[used], np.nan),
        "waiting": narrow(waiting),
        "times": state.members.time[times],
        "contested": narrow(pool.slot_of[:contested]),
        "holds": np.packbits(pool.holds[pool.counters.half, :width, :contested]),
        "founder": narrow(lineages.rows["founder"][named]),
        "label": narrow(lineages.rows["label"][named]),
        "parent": narrow(node[trellis.parent[nodes[1:]]]),
        "node": narrow(np.where(trellis.lineage[nodes] < 0, -1, lineage[trellis.lineage[nodes]])),
        "link": narrow(trellis.nodes["link"][nodes]),
        "announced": narrow(state.announced[undecided]),
        "announced_founder": narrow(state.announced_founder[undecided]),
        "clusters": facts_of_clusters(state, used),
    }


# ---------------------------------------------------------------- from facts


def state_of(facts: Facts, model: Model, likelihood: Likelihood) -> State:
    """The state that facts are of, under a model; UnsoundError where they are of none."""
    beam = _beam_of(facts, model.beam, model.max_undecided)
    counters = beam.counters
    width, seq, decided = int(counters.width), int(counters.seq), int(counters.decided)
    founders = ints_of(facts, "founder", 0, max(seq, 1))
    labels = ints_of(facts, "label", -1, int(counters.next_label), len(founders))
    pool = _pool_of(facts, model.beam, width, seq, founders)
    lineages, trellis = _histories_of(facts, beam, pool, founders, labels)
    undecided = np.arange(decided + 1, seq)
    size = max(power_of_two(len(undecided) + 2), SLOTS)
    announced = np.zeros((2, size), np.int64)
    announced[0, undecided & (size - 1)] = ints_of(
        facts, "announced", 0, int(counters.next_label), len(undecided)
    )
    announced[1, undecided & (size - 1)] = ints_of(facts, "announced_founder", 0, max(seq, 1), len(undecided))
    used = np.flatnonzero(pool.state != VACANT)
    clusters, sizes = clusters_of(facts["clusters"], new_clusters(likelihood), model.family, pool, used)
    return State(
        beam,
        pool,
        clusters,
        sizes,
        _expiry_of(facts, pool, used),
        _members_of(facts, pool, used),
        trellis,
        lineages,
        announced[0],
        announced[1],
    )


def _beam_of(facts: Facts, width_most: int, max_undecided: int) -> Beam:
    counters = counters_of(Beam, facts["counters"])
    beam = made(Beam, {"beam": width_most}, counters=counters)
    width, seq = int(counters.width), int(counters.seq)
    require(1 <= width <= width_most, "the number of hypotheses is out of range")
    for name in ("seq", "head", "next_label", "greedy", "leads"):
        require(0 <= getattr(counters, name) < RECORDS, f"{name} is out of range")
    require(max(counters.head, counters.greedy) < width, "the rank of the best hypothesis is out of range")
    require(-1 <= counters.decided < max(seq, 0) + (seq == 0), "more is decided than there is")
    require(seq - counters.decided <= max_undecided + 1, "more is undecided than may be")
    require(counters.next_label < LABELS, "the next label is out of range")
    beam.joint[:width] = reals_of(facts, "joint", (width,))
    beam.founded[:width] = ints_of(facts, "founded", 0, seq + 1, width)
    return beam


def _pool_of(facts: Facts, width_most: int, width: int, seq: int, founders: np.ndarray) -> Pool:
    slots = length_of(facts, "slots", SLOTS)
    used = ints_of(facts, "slot", 0, slots)
    count = len(used)
    require((np.diff(used) > 0).all(), "a slot comes twice")
    contested = ints_of(facts, "contested", 0, slots)
    columns = max(power_of_two(len(contested)), SLOTS)
    pool = made(Pool, {"slots": slots, "columns": columns, "beam": width_most})
    closed = ints_of(facts, "closed", 0, 2, count)
    pool.state[used] = np.where(closed == 1, CLOSED, ALIVE)
    rows = pool.slots
    rows["lineage"][used] = ints_of(facts, "lineage", 0, len(founders), count)
    rows["size"][used] = ints_of(facts, "size", 1, seq + 1, count)
    rows["last"][used] = ints_of(facts, "last", 0, max(seq, 1), count)
    for name in ("first_time", "last_time"):
        rows[name][used] = reals_of(facts, name, (count,))
    pool.founder[used] = founders[rows["lineage"][used]]
    pool.weight[used] = reals_of(facts, "weight", (count,))
    require((pool.weight >= 0.0).all(), "a weight is negative")
    require((pool.state[contested] != VACANT).all(), "the slot of a column is free")
    require(len(np.unique(contested)) == len(contested), "two columns are of one slot")
    pool.slot_of[: len(contested)] = contested
    pool.column[contested] = np.arange(len(contested))
    holds, bits = facts["holds"], width * len(contested)
    require(holds.dtype == np.uint8 and holds.shape == ((bits + 7) // 8,), "holds of another shape")
    held = np.unpackbits(holds, count=bits).reshape(width, len(contested))
    total = held.sum(axis=0, dtype=np.int64)
    require(((total > 0) & (total < width)).all(), "a column is held by none or by all")
    pool.holds[0, :width, : len(contested)] = held
    counters = pool.counters
    counters.used, counters.high = count, int(used.max(initial=-1)) + 1
    counters.open, counters.contested = int((closed == 0).sum()), len(contested)
    counters.free = chain_of_runs(rows["next"], facts["free"], np.flatnonzero(pool.state == VACANT))
    return pool


def _histories_of(
    facts: Facts, beam: Beam, pool: Pool, founders: np.ndarray, labels: np.ndarray
) -> tuple[Lineages, Trellis]:
    """Lineages and trellis; the leaves of the hypotheses."""
    counters, count = beam.counters, len(founders)
    lineages = made(Lineages, {"lineages": max(power_of_two(count + 2), SLOTS)})
    require(len(lineages.rows) <= 1 << LINEAGE_BITS, "the number of lineages is out of range")
    lineages.rows["founder"][:count], lineages.rows["label"][:count] = founders, labels
    lineages.counters.free, lineages.counters.used = count, count
    nodes = len(facts["node"])
    trellis = made(Trellis, {"nodes": max(power_of_two(nodes + 1), 16 * SLOTS)})
    parent = ints_of(facts, "parent", 0, nodes, nodes - 1)
    own = np.arange(1, nodes)
    require(nodes > 0 and (parent < own).all(), "the trellis is no tree")
    lineage = ints_of(facts, "node", -1, count, nodes)
    require((lineage[1:] >= 0).all(), "a node has no lineage")
    trellis.lineage[:nodes] = lineage
    trellis.parent[0], trellis.parent[1:nodes] = -1, parent
    rows = trellis.nodes[:nodes]
    rows["link"] = ints_of(facts, "link", -1, max(int(counters.seq), 1), nodes)
    depth = np.zeros(nodes, np.int64)
    for i, above in enumerate(parent.tolist(), 1):
        depth[i] = depth[above] + 1
    rows["seq"] = depth + counters.decided
    order = np.argsort(parent, kind="stable")  # siblings beside each other, as they were
    left, right = own[order][:-1], own[order][1:]
    beside = parent[order][:-1] == parent[order][1:]
    rows["right"][left[beside]], rows["left"][right[beside]] = right[beside], left[beside]
    first = np.concatenate([np.ones(min(len(order), 1), bool), ~beside])
    rows["child"][parent[order][first]] = own[order][first]
    trellis.counters.free, trellis.counters.used = nodes, nodes
    leaf = ints_of(facts, "leaf", 0, nodes, int(counters.width))
    require(
        np.array_equal(np.sort(leaf), np.flatnonzero(rows["child"] < 0)), "the ends of the trellis are wrong"
    )
    require((rows["seq"][leaf] == counters.seq - 1).all(), "a hypothesis ends too early")
    beam.leaf[: len(leaf)] = leaf
    held = np.concatenate([pool.slots["lineage"][pool.state != VACANT], lineage[lineage >= 0]])
    refs = np.bincount(held, minlength=count)
    require((refs > 0).all(), "a lineage that nobody refers to")
    lineages.rows["refs"][:count] = refs
    return lineages, trellis


def _expiry_of(facts: Facts, pool: Pool, used: np.ndarray) -> Expiry:
    expiry, key = made(Expiry, {"slots": len(pool.slots)}), facts["expires"]
    require(key.dtype == np.float64 and key.shape == used.shape, "expires of another type")
    waits = ~np.isnan(key)
    require((pool.state[used[waits]] == ALIVE).all(), "a closed cluster is in the heap")
    expiry.key[used[waits]] = key[waits]
    heap = used[waits][np.lexsort((used[waits], key[waits]))]
    expiry.heap[: len(heap)] = heap
    expiry.place[heap] = np.arange(len(heap))
    expiry.counters.length = len(heap)
    return expiry


def _members_of(facts: Facts, pool: Pool, used: np.ndarray) -> Members:
    lengths = ints_of(facts, "waiting", 0, RECORDS, len(used))
    times = reals_of(facts, "times", (int(lengths.sum()),))
    starts, block, end = blocks_for(lengths)
    members = made(Members, {"slots": len(pool.slots), "times": max(power_of_two(end), SLOTS)})
    rows = members.queues
    rows["start"][used], rows["block"][used], rows["length"][used] = starts, block, lengths
    members.header[0] = end
    members.time[places_of(starts, lengths)] = times
    return members
