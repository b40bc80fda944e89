"""Whether arrays that come from outside are those of a beam: kernels trust every index in them.

What is checked is what no index, no walk and no loop of a kernel may run into: shapes, ranges, chains that
end, and that what points at each other does. What a clustering says is not: another one is as sound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.expiry import Expiry
from streamdp.beam.members import Members
from streamdp.beam.pool import ALIVE, CLOSED, VACANT, Beam, Pool
from streamdp.beam.state import State
from streamdp.beam.trellis import LINEAGE_BITS, Lineages, Trellis
from streamdp.kernels.blocks import SIZES
from streamdp.kernels.rows import power_of_two

LABELS = 1 << (63 - LINEAGE_BITS)
RECORDS = 1 << 53
"""More than any stream has; times on a clock of records are doubles."""


class UnsoundError(ValueError):
    """What was stored is not what streamdp stores; the message says what of it."""


def require(holds: Any, what: str) -> None:
    """Raise UnsoundError unless something holds."""
    if not holds:
        raise UnsoundError(what)


def within(values: np.ndarray, low: float, high: float, what: str) -> None:
    """All values are at least ``low`` and below ``high``."""
    require(values.size == 0 or (values.min() >= low and values.max() < high), f"{what} out of range")


def finite(values: np.ndarray, what: str) -> None:
    """All values are finite numbers."""
    require(np.isfinite(values).all(), f"{what} not finite")


def alike(found: Any, fresh: Any, name: str = "state") -> None:
    """Types and numbers of axes are those of a fresh state, and lengths that never change."""
    if not isinstance(fresh, np.ndarray):
        require(type(found) is type(fresh), f"{name} is of another kind")
        for field in fresh._fields:
            alike(getattr(found, field), getattr(fresh, field), field)
        return
    require(isinstance(found, np.ndarray) and found.dtype == fresh.dtype, f"{name} of another type")
    require(found.ndim == fresh.ndim, f"{name} of another shape")
    fixed = ("counters", "header", "postings", "entries", "posted", "length", "empty")
    if name in fixed or name in ("joint", "select", "founded", "leaf"):
        require(found.shape == fresh.shape, f"{name} of another shape")
    require(found.shape[1:] == fresh.shape[1:] or name == "holds", f"{name} of another shape")


def chain(first: int, after: np.ndarray, places: np.ndarray, what: str) -> None:
    """A list from ``first`` on, ended by -1, holds exactly the places, each once."""
    left, at = len(places), int(first)
    expected = np.zeros(len(after) + 1, bool)
    expected[places] = True
    while at != -1:
        require(left > 0 and 0 <= at < len(after) and expected[at], f"{what}: the free list is broken")
        expected[at] = False
        left -= 1
        at = int(after[at])
    require(left == 0, f"{what}: the free list is broken")


def arena(header: np.ndarray, payload: np.ndarray, lists: np.ndarray, what: str) -> None:
    """No two blocks overlap, used ones or free ones, and all lie where something was given out."""
    within(lists["block"], -1, SIZES, f"{what}: a block size")
    used = lists[lists["block"] >= 0]
    starts, sizes = [used["start"]], [np.int64(4) << used["block"]]
    for j in range(SIZES):
        free: list[int] = []
        at = int(header[1 + j]) - 1
        while at != -1:
            inside = 0 <= at < len(payload) and len(free) <= len(payload) >> (2 + j)
            require(inside, f"{what}: a list of free blocks is broken")
            free.append(at)
            at = int(payload[at]) - 1
        starts.append(np.array(free, np.int64))
        sizes.append(np.full(len(free), np.int64(4) << j))
    begin, size = np.concatenate(starts), np.concatenate(sizes)
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], begin[order] + size[order]
    require(0 <= header[0] <= len(payload), f"{what}: an end out of range")
    within(begin, 0, int(header[0]) + 1, f"{what}: a block")
    within(end, 0, int(header[0]) + 1, f"{what}: a block")
    require((end[:-1] <= begin[1:]).all(), f"{what}: two blocks overlap")


def check_state(state: State, fresh: State, max_undecided: int) -> None:
    """Raise UnsoundError unless a state is one of the model that ``fresh`` is of; not of its clusters."""
    alike(state, fresh)
    slots = len(state.pool.slots)
    require(slots > 0, "there is no slot")
    for name, array in (
        *zip(Pool._fields[2:6], state.pool[2:6], strict=True),
        *zip(Expiry._fields[1:], state.expiry[1:], strict=True),
        ("queues", state.members.queues),
    ):
        require(len(array) == slots, f"{name} of another length than the slots")
    _check_beam(state.beam, max_undecided)
    _check_pool(state.pool, state.beam)
    _check_expiry(state.expiry, state.pool)
    _check_members(state.members, state.pool)
    _check_trellis(state.trellis, state.beam, len(state.lineages.rows))
    _check_lineages(state)
    pace = state.pace
    require(len(pace) >= 2, "the pace has too few rows")
    finite(pace.view(np.float64), "the pace")
    _check_announced(state)


def _check_beam(beam: Beam, max_undecided: int) -> None:
    counters, width = beam.counters, int(beam.counters.width)
    require(1 <= width <= len(beam.joint), "the number of hypotheses is out of range")
    values = np.array(counters.tolist())
    within(values, -np.inf, RECORDS, "a count of the beam")
    within(np.array([counters.head, counters.lane]), 0, width, "the rank of the best hypothesis")
    require(counters.decided < max(counters.seq, 0) + (counters.seq == 0), "more is decided than there is")
    require(counters.seq - counters.decided <= max_undecided + 1, "more is undecided than may be")
    require(counters.next_label < LABELS, "the next label is out of range")
    within(beam.founded[:width], 0, int(counters.seq) + 1, "the number of clusters")
    finite(beam.joint[:width], "a log joint")
    finite(beam.select[:width], "a log joint")
    finite(values, "a sum of the beam")


def _check_pool(pool: Pool, beam: Beam) -> None:
    counters, width, seq = pool.counters, int(beam.counters.width), int(beam.counters.seq)
    contested, columns = int(counters.contested), len(pool.slot_of)
    within(pool.state, VACANT, CLOSED + 1, "the state of a slot")
    used = np.flatnonzero(pool.state != VACANT)
    require(counters.used == len(used), "the number of slots in use is wrong")
    require(counters.open == (pool.state == ALIVE).sum(), "the number of open clusters is wrong")
    require(counters.high == (used.max(initial=-1) + 1), "the highest slot is wrong")
    chain(counters.free, pool.slots["next"], np.flatnonzero(pool.state == VACANT), "slots")
    rows = pool.slots[used]
    within(rows["size"], 1, seq + 1, "the size of a cluster")
    within(rows["last"], 0, seq, "the last record of a cluster")
    within(pool.founder[used], 0, seq, "the founder of a cluster")
    finite(pool.weight[used], "the weight of a cluster")
    require((pool.weight[used] >= 0.0).all(), "a weight is negative")
    finite(rows["first_time"], "a time")
    finite(rows["last_time"], "a time")
    require(counters.half in (0, 1), "the table of holders is out of range")
    require(pool.holds.shape == (2, len(beam.joint), columns), "holds of another shape")
    require(columns > 0 and 0 <= contested <= columns, "the number of columns is out of range")
    within(pool.slot_of[:contested], 0, len(pool.slots), "the slot of a column")
    expected = np.full(len(pool.slots), -1, np.int64)
    expected[pool.slot_of[:contested]] = np.arange(contested)
    require((pool.column[used] == expected[used]).all(), "slots and columns do not match")
    require((expected >= 0).sum() == contested, "two columns are of one slot")
    require((expected[pool.state == VACANT] < 0).all(), "a free slot has a column")
    holds = pool.holds[counters.half, :width, :contested]
    require((holds <= 1).all(), "a holder is neither 0 nor 1")
    held = holds.sum(axis=0, dtype=np.int64)
    require(((held > 0) & (held < width)).all(), "a column is held by none or by all")


def _check_expiry(expiry: Expiry, pool: Pool) -> None:
    n, slots = int(expiry.counters.length), len(pool.slots)
    require(0 <= n <= slots, "the length of the heap of clusters is out of range")
    heap = expiry.heap[:n]
    within(heap, 0, slots, "a slot in the heap")
    place = np.full(slots, -1, np.int64)
    place[heap] = np.arange(n)
    require((place == expiry.place).all(), "heap and places do not match")
    require((pool.state[heap] == ALIVE).all(), "a closed cluster is in the heap")
    require(not np.isnan(expiry.key[heap]).any(), "a key in the heap is no number")


def _check_members(members: Members, pool: Pool) -> None:
    queues = members.queues
    arena(members.header, members.time, queues, "times of members")
    held = queues[queues["block"] >= 0]
    within(held["length"], 0, 1 << 62, "the length of a queue")
    require((held["length"] <= np.int64(4) << held["block"]).all(), "a queue is longer than its block")
    within(held["head"], 0, 1 << 62, "the head of a queue")
    require((held["head"] <= held["length"]).all(), "a queue begins behind its end")
    open_ = queues[pool.state == ALIVE]
    open_ = open_[open_["block"] >= 0]
    require((open_["head"] < open_["length"]).all(), "an open cluster has no member left")
    require((queues["block"][pool.state == VACANT] < 0).all(), "a free slot has members")


def _check_trellis(trellis: Trellis, beam: Beam, lineages: int) -> None:
    nodes, count, seq = trellis.nodes, len(trellis.nodes), int(beam.counters.seq)
    require(count > 0 and len(trellis.parent) == len(trellis.lineage) == count, "trellis of several lengths")
    root = int(trellis.counters.root)
    require(0 <= root < count, "the root of the trellis is out of range")
    for name in ("child", "right", "left"):
        within(nodes[name], -1, count, "a node of the trellis")
    require(nodes["seq"][root] == beam.counters.decided, "the root is not what is decided")
    used = np.zeros(count, bool)
    used[root] = True
    level, childless = np.array([root]), []
    while len(level):
        childless.append(level[nodes["child"][level] < 0])
        parents = level[nodes["child"][level] >= 0]
        first, found = nodes["child"][parents], []
        require((nodes["left"][first] == -1).all(), "siblings do not match")
        while len(first):
            require(not used[first].any() and len(np.unique(first)) == len(first), "the trellis is no tree")
            used[first] = True
            require((trellis.parent[first] == parents).all(), "a parent in the trellis is wrong")
            require((nodes["seq"][first] == nodes["seq"][parents] + 1).all(), "records are out of order")
            found.append(first)
            onwards = nodes["right"][first] >= 0
            after = nodes["right"][first[onwards]]
            require((nodes["left"][after] == first[onwards]).all(), "siblings do not match")
            first, parents = after, parents[onwards]
        level = np.concatenate(found) if found else np.zeros(0, np.int64)
    leaves = np.sort(beam.leaf[: beam.counters.width])
    require(np.array_equal(leaves, np.sort(np.concatenate(childless))), "the ends of the trellis are wrong")
    require((nodes["seq"][leaves] == seq - 1).all(), "a hypothesis ends too early")
    require(trellis.counters.used == used.sum(), "the number of nodes is wrong")
    chain(trellis.counters.free, trellis.parent, np.flatnonzero(~used), "trellis")
    used[root] = trellis.lineage[root] >= 0
    within(trellis.lineage[used], 0, lineages, "the lineage of a node")
    require((trellis.lineage[~used] == -1).all(), "a free node has a lineage")
    within(nodes["link"][used], -1, max(seq, 1), "a link")


def _check_lineages(state: State) -> None:
    lineages: Lineages = state.lineages
    rows, count = lineages.rows, len(lineages.rows)
    require(0 < count <= 1 << LINEAGE_BITS, "the number of lineages is out of range")
    held = state.pool.slots["lineage"][state.pool.state != VACANT]
    within(held, 0, count, "the lineage of a cluster")
    nodes = state.trellis.lineage[state.trellis.lineage >= 0]
    refs = np.bincount(np.concatenate([held, nodes]), minlength=count)
    used = refs > 0
    require((rows["refs"][used] == refs[used]).all(), "lineages and those who refer to them do not match")
    require(lineages.counters.used == used.sum(), "the number of lineages is wrong")
    chain(lineages.counters.free, rows["next"], np.flatnonzero(~used), "lineages")
    within(rows["founder"][used], 0, int(state.beam.counters.seq), "a founder")
    within(rows["label"][used], -1, int(state.beam.counters.next_label), "a label")


def _check_announced(state: State) -> None:
    size, counters = len(state.announced), state.beam.counters
    require(size == power_of_two(size) and len(state.announced_founder) == size, "announced of odd length")
    require(counters.seq - counters.decided <= size, "less is announced than undecided")
    open_ = np.arange(counters.decided + 1, counters.seq) & (size - 1)
    within(state.announced[open_], 0, int(counters.next_label), "an announced label")
    within(state.announced_founder[open_], 0, int(counters.seq), "an announced founder")
