"""Second looks: templates that turn out to be one are merged.

Templates that differ by the length of one run of tokens with digits, a list, share a label.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.base import DIGIT, LETTERS, Terms, lettered, wordy
from streamdp.lines.scan import closed
from streamdp.lines.search import find_near, post
from streamdp.lines.slots import (
    count_value,
    distinct_values,
    gather,
    is_constant,
    log_terms,
    same,
    sort_pairs,
)
from streamdp.lines.state import SLABS, Lines, Scratch, State, look_up

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
def _outer(state: State, cluster: int, backwards: bool) -> tuple[int, int]:
    """The first two constants with a letter before the first hole, from either end; -1 for none."""
    row, first, second = state.clusters[cluster], -1, -1
    for i in range(row.length):
        slot = state.slots[row.slot + (row.length - 1 - i if backwards else i)]
        if slot.distinct > 1 or second >= 0:
            break
        if lettered(state, slot.founder):
            if first < 0:
                first = slot.founder
            else:
                second = slot.founder
    return first, second


@kernel
def _family_keys(state: State, cluster: int, keys: np.ndarray) -> None:
    """Keys that templates which are related share at least one of, or -1.

    Of the constants with a letter before the first hole the first two, of those behind the last hole the last
    two, and the first and the last.
    """
    a, b = _outer(state, cluster, False)
    z, y = _outer(state, cluster, True)
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


@kernel
def current(state: State, cluster: int) -> int:
    """The template that one has become part of, or itself."""
    while state.clusters[cluster].into != cluster:
        cluster = state.clusters[cluster].into
    return cluster


@kernel
def _slot_logs(state: State, scratch: Scratch, group: np.ndarray, count: int, i: int, terms: Terms) -> float:
    """log marginal of slot i of several templates as one; terms in ``scratch.terms``, law in ``own``."""
    n = 0
    law = scratch.own[0]
    for h in range(1 + SLABS):
        law[h] = 0.0
    for g in range(count):
        row = state.clusters[group[g]]
        n = gather(state, row.slot + i, row.types, scratch, n)
        for h in range(1 + SLABS):
            law[h] += state.laws[row.slot + i, h] / count
    if count > 1:
        n = distinct_values(scratch, n)
    founder = state.slots[state.clusters[group[0]].slot + i].founder
    return log_terms(state, scratch, n, founder, law, terms, scratch.terms)


@kernel
def _worth(state: State, scratch: Scratch, group: np.ndarray, count: int, terms: Terms) -> float:
    """log H and prior of several templates as one, the first of them the oldest."""
    b, d = terms.line_strength, terms.line_discount
    size, types, total = 0, 0, state.clusters[group[0]].founded
    for g in range(count):
        row = state.clusters[group[g]]
        size += row.size
        types += row.types
        total += row.repeats
    total += (types - 1) * math.log(d) + math.lgamma(b / d + types) - math.lgamma(b / d + 1.0)
    total -= math.lgamma(b + size) - math.lgamma(b + 1.0)
    for i in range(state.clusters[group[0]].length):
        total += _slot_logs(state, scratch, group, count, i, terms)
    return float(total + math.lgamma(size - terms.discount) - math.lgamma(1.0 - terms.discount))


@kernel
def _two_values(state: State, group: np.ndarray, count: int, i: int) -> bool:
    """Whether slot i of several templates has no third value."""
    one, two = state.slots[state.clusters[group[0]].slot + i].founder, -1
    for g in range(count):
        slot = state.clusters[group[g]].slot + i
        value, token = state.slots[slot].first, state.slots[slot].founder
        while True:
            if state.slots[slot].distinct > 1:
                token = state.values[value].token
                value = state.values[value].next
            if two < 0 and token != one:
                two = token
            if token not in (one, two):
                return False
            if state.slots[slot].distinct == 1 or value < 0:
                break
    return True


@kernel
def _allowed(state: State, group: np.ndarray, count: int) -> bool:
    """Whether as one they keep a constant with a letter, and as many as holes of words.

    A hole of words has three values at least: two words are two templates.
    """
    first, constants, holes = state.clusters[group[0]].slot, 0, 0
    for i in range(state.clusters[group[0]].length):
        constant, word = is_constant(state, first + i), False
        for g in range(count):
            slot = state.clusters[group[g]].slot + i
            constant = constant and same(state, first + i, slot)
            word = word or state.slots[slot].wordy != 0 or wordy(state, state.slots[slot].founder)
        if constant:
            constants += 1 if lettered(state, state.slots[first + i].founder) else 0
        elif word:
            if _two_values(state, group, count, i):
                return False
            holes += 1
    return constants >= max(1, holes)


@kernel
def _subsumed(state: State, a: int, b: int, n: int) -> bool:
    """Whether one is the other with holes filled, and half of the slots are equal constants."""
    alike, in_a, in_b = 0, True, True
    first, second = state.clusters[a].slot, state.clusters[b].slot
    for i in range(n):
        if same(state, first + i, second + i):
            alike += 1
        else:
            in_a = in_a and not is_constant(state, first + i)
            in_b = in_b and not is_constant(state, second + i)
    return 2 * alike >= n and (in_a or in_b)


@kernel
def _sign(state: State, a: int, b: int, n: int) -> Any:
    """A hash of the slots in which two templates differ; holes in both do not."""
    first, second, code = state.clusters[a].slot, state.clusters[b].slot, np.uint64(0)
    for i in range(n):
        x, y = is_constant(state, first + i), is_constant(state, second + i)
        if (x or y) and not same(state, first + i, second + i):
            code = (code + np.uint64(i + 1)) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(29)
    return closed(code)


@kernel
def _try(state: State, scratch: Scratch, count: int, best: float, terms: Terms) -> float:
    """By how much the group is better as one, where it may be and that is more than ``best``, else that."""
    group = scratch.group
    sort_pairs(group, scratch.rest, count)
    if not _allowed(state, group, count):
        return best
    gain = _worth(state, scratch, group, count, terms)
    for g in range(count):
        gain -= state.clusters[group[g]].worth
    for j in range(count - 1):
        gain -= math.log(terms.concentration + terms.discount * (state.counters.alive - 1 - j))
    if count == 2 and _subsumed(state, group[0], group[1], state.clusters[group[0]].length):
        gain += terms.subsumed
    return max(gain, best)


@kernel
def best_merge(state: State, scratch: Scratch, cluster: int, terms: Terms) -> int:
    """How many templates to make one, the oldest first in ``scratch.best``; 0 where none are better so."""
    row = state.clusters[cluster]
    n, words, line, near = row.length, 0, scratch.line, scratch.near
    for i in range(n):
        slot = state.slots[row.slot + i]
        line[i] = slot.founder if slot.distinct == 1 else -1
        words += 1 if slot.wordy or (slot.distinct == 1 and wordy(state, slot.founder)) else 0
    found, others = find_near(state, scratch, line, n, words), 0
    for c in range(found):
        if near[c] != cluster:
            near[others] = near[c]
            others += 1
    scratch.group[0] = cluster
    state.clusters[cluster].worth = _worth(state, scratch, scratch.group, 1, terms)
    best, count = 0.0, 0
    for c in range(others):
        scratch.sign[c] = _sign(state, cluster, near[c], n)
        scratch.group[0] = near[c]
        state.clusters[near[c]].worth = _worth(state, scratch, scratch.group, 1, terms)
    sort_pairs(scratch.sign, near, others)
    c = 0
    while c < others:
        end = c
        while end < others and scratch.sign[end] == scratch.sign[c]:
            scratch.group[0] = cluster
            scratch.group[1] = near[end]
            gain = _try(state, scratch, 2, best, terms)
            if gain > best:
                best, count = gain, 2
                scratch.best[0] = scratch.group[0]
                scratch.best[1] = scratch.group[1]
            end += 1
        if end - c > 1:
            scratch.group[0] = cluster
            for k in range(c, end):
                scratch.group[1 + k - c] = near[k]
            gain = _try(state, scratch, 1 + end - c, best, terms)
            if gain > best:
                best, count = gain, 1 + end - c
                for k in range(count):
                    scratch.best[k] = scratch.group[k]
        c = end
    return count


@kernel
def values_of(state: State, group: np.ndarray, count: int) -> int:
    """How many values the slots of some templates have at most, as one."""
    total = 0
    for g in range(count):
        row = state.clusters[group[g]]
        for i in range(row.length):
            total += state.slots[row.slot + i].distinct + 1
    return total


@kernel
def unite(state: State, scratch: Scratch, group: np.ndarray, count: int, terms: Terms) -> int:
    """Make one of several templates: the oldest, which comes first, takes in the others."""
    target = group[0]
    row = state.clusters[target]
    for i in range(row.length):
        slot = row.slot + i
        _slot_logs(state, scratch, group, count, i, terms)
        top = scratch.terms[0]
        for h in range(SLABS):
            top = max(top, scratch.terms[1 + h])
        total = 0.0
        for h in range(1 + SLABS):
            total += math.exp(scratch.terms[h] - top)
        for h in range(1 + SLABS):
            state.laws[slot, h] = scratch.own[0, h]
            state.weights[slot, h] = math.exp(scratch.terms[h] - top) / total
        types = row.types
        for g in range(1, count):
            other = state.clusters[group[g]]
            n = gather(state, other.slot + i, other.types, scratch, 0)
            state.slots[slot].forgotten += state.slots[other.slot + i].forgotten
            for k in range(n):
                count_value(state, slot, types, scratch.token[k], scratch.lines_of[k])
            types += other.types
    for g in range(1, count):
        other = state.clusters[group[g]]
        row.size += other.size
        row.types += other.types
        row.repeats += other.repeats
        row.forgotten += other.forgotten
        row.first = min(row.first, other.first)
        row.last = max(row.last, other.last)
        row.first_time = min(row.first_time, other.first_time)
        row.last_time = max(row.last_time, other.last_time)
        other.alive = 0
        other.into = target
        state.lengths[row.length].alive -= 1
        state.counters.alive -= 1
        state.counters.merged += 1
    return int(target)
