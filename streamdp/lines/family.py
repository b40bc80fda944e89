"""Labels: templates that differ by the length of one run of tokens with digits, a list, share a label."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.base import DIGIT, LETTERS, lettered
from streamdp.lines.scan import closed
from streamdp.lines.search import post
from streamdp.lines.slots import same
from streamdp.lines.state import Lines, Scratch, State
from streamdp.lines.tables import look_up

LOOKED_AT = 64
"""Templates of other lengths that one is compared with, of those that share two of its constants."""

FAMILY = 1 << 62
"""What sets the keys of families apart."""


@kernel
def label_of(state: State, cluster: int) -> int:
    """The label today of what was founded with this one."""
    while state.clusters[cluster].older != cluster:
        cluster = state.clusters[cluster].older
    return cluster


@kernel
def one_label(state: State, a: int, b: int, lines: Lines) -> None:
    """Two labels are one from now on, the older; the changes of ``lines`` name it, younger before older."""
    a, b = label_of(state, a), label_of(state, b)
    if a == b:
        return
    older, younger = min(a, b), max(a, b)
    state.clusters[younger].older = older
    at = lines.counters.changes
    lines.changes[at, 0] = younger
    lines.changes[at, 1] = older
    lines.counters.changes = at + 1


@kernel
def _related(state: State, a: int, b: int) -> bool:
    """Whether two templates differ by the length of one run of tokens of one class with digits."""
    if state.clusters[a].length > state.clusters[b].length:
        a, b = b, a
    n, m = state.clusters[a].length, state.clusters[b].length
    first, second = state.clusters[a].slot, state.clusters[b].slot
    head, tail, equal = 0, 0, 0
    while head < n and same(state, first + head, second + head):
        equal += 1 if lettered(state, state.slots[first + head].founder) else 0
        head += 1
    while tail < n - head and same(state, first + n - 1 - tail, second + m - 1 - tail):
        equal += 1 if lettered(state, state.slots[first + n - 1 - tail].founder) else 0
        tail += 1
    if n == m or equal < 2:
        return False
    shown = 0
    for part in range(2):
        begin, stop = (first + head, first + n - tail) if part == 0 else (second + head, second + m - tail)
        for slot in range(begin, stop):
            value, token = state.slots[slot].first, state.slots[slot].founder
            while True:
                if state.slots[slot].distinct > 1:
                    token = state.values[value].token
                    value = state.values[value].next
                of_token = state.tokens[token].shown
                if of_token & (LETTERS | DIGIT):
                    if of_token & DIGIT == 0 or (shown != 0 and shown != of_token):
                        return False
                    shown = of_token
                if state.slots[slot].distinct == 1 or value < 0:
                    break
    return shown != 0


@kernel
def _family_keys(state: State, cluster: int, keys: np.ndarray) -> None:
    """Keys that templates which are related share at least one of, or -1.

    Of the constants with a letter before the first hole the first two, of those behind the last hole the last
    two, and the first and the last.
    """
    row = state.clusters[cluster]
    a, b, y, z = -1, -1, -1, -1
    for i in range(row.length):
        slot = state.slots[row.slot + i]
        if slot.distinct > 1 or b >= 0:
            break
        if lettered(state, slot.founder):
            if a < 0:
                a = slot.founder
            else:
                b = slot.founder
    for i in range(row.length - 1, -1, -1):
        slot = state.slots[row.slot + i]
        if slot.distinct > 1 or y >= 0:
            break
        if lettered(state, slot.founder):
            if z < 0:
                z = slot.founder
            else:
                y = slot.founder
    _pair_key(keys, 0, a, b)
    _pair_key(keys, 1, a, z)
    _pair_key(keys, 2, y, z)


@kernel
def _pair_key(keys: np.ndarray, which: int, x: int, y: int) -> None:
    if x < 0 or y < 0:
        keys[which] = -1
    else:
        code = (np.uint64(x) * np.uint64(3) + np.uint64(which)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(y)
        keys[which] = FAMILY | (closed(code) >> 1)


@kernel
def relate(state: State, scratch: Scratch, cluster: int, new: bool, lines: Lines) -> None:
    """Give a template and those it is related to one label; a ``new`` one can be found from now on."""
    keys = scratch.few
    _family_keys(state, cluster, keys)
    for which in range(3):
        if keys[which] < 0:
            continue
        place, looked = look_up(state.by_place, keys[which]), 0
        entry = state.lists[place].first if place >= 0 else -1
        while entry >= 0 and looked < LOOKED_AT:
            other = state.posts[entry].cluster
            if other != cluster and state.clusters[other].alive and _related(state, cluster, other):
                one_label(state, cluster, other, lines)
            entry = state.posts[entry].next
            looked += 1
        if new:
            post(state, keys[which], cluster)
