"""Second looks: templates that turn out to be one are merged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.base import Terms, is_fixed, is_value, is_verb, let_go, lettered, names_act, wordy
from streamdp.lines.scan import closed
from streamdp.lines.search import find_near
from streamdp.lines.slots import (
    count_value,
    distinct_values,
    gather,
    is_constant,
    log_terms,
    same,
    sort_pairs,
)
from streamdp.lines.state import Scratch, State

MANY = 10
"""So many words are values where they stand, be they verbs or where an act is named."""

CERTAIN = 1e6
"""Nats in favour of a merge where one template is the other with holes filled."""


@kernel
def current(state: State, cluster: int) -> int:
    """The template that one has become part of, or itself."""
    while state.clusters[cluster].into != cluster:
        cluster = state.clusters[cluster].into
    return cluster


@kernel
def _slot_logs(
    state: State, scratch: Scratch, group: np.ndarray, count: int, i: int, terms: Terms
) -> tuple[float, float, float]:
    """The law of slot i of several templates as one, the mean of theirs; see ``log_terms``."""
    n, law = 0, 0.0
    for g in range(count):
        row = state.clusters[group[g]]
        n = gather(state, row.slot + i, row.types, scratch, n)
        law += state.slots[row.slot + i].law / count
    if count > 1:
        n = distinct_values(scratch, n)
    founder = state.slots[state.clusters[group[0]].slot + i].founder
    constant, hole = log_terms(state, scratch, n, founder, law, terms)
    return law, constant, hole


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
        _, constant, hole = _slot_logs(state, scratch, group, count, i, terms)
        top = max(constant, hole)
        total += top + math.log(math.exp(constant - top) + math.exp(hole - top))
    return float(total + math.lgamma(size - terms.discount) - math.lgamma(1.0 - terms.discount))


@kernel
def _told_apart(state: State, scratch: Scratch, group: np.ndarray, count: int, i: int) -> bool:
    """Whether words in slot i of several templates are constants: two, of which none is known as a value.

    Or fewer than MANY, most of them verbs, or where an act is named; half at most may be values.
    """
    n, total = 0, 0
    for g in range(count):
        total += state.slots[state.clusters[group[g]].slot + i].distinct
    if total >= count * MANY:
        return False
    for g in range(count):
        n = gather(state, state.clusters[group[g]].slot + i, 1, scratch, n)
    n = distinct_values(scratch, n)
    verbs, held, values = 0, 0, 0
    for k in range(n):
        token = scratch.token[k]
        verbs += 1 if is_verb(state, token) else 0
        held += 1 if is_value(state, token) else 0
        values += 1 if is_value(state, token) or not wordy(state, token) else 0
    return (n == 2 and held == 0) or (
        n < MANY and 2 * values <= n and (2 * verbs > n or names_act(state, scratch.line, i))
    )


@kernel
def _allowed(state: State, scratch: Scratch, group: np.ndarray, count: int) -> bool:
    """Whether as one they keep a constant with a letter, and as many as holes of words.

    Words that are told apart are of as many templates.
    """
    first, constants, holes = state.clusters[group[0]].slot, 0, 0
    for i in range(state.clusters[group[0]].length):
        constant, word, shut = is_constant(state, first + i), False, False
        for g in range(count):
            slot = state.clusters[group[g]].slot + i
            constant = constant and same(state, first + i, slot)
            shut = shut or is_fixed(state, state.slots[slot].founder)
            word = word or state.slots[slot].wordy != 0 or wordy(state, state.slots[slot].founder)
        if constant:
            constants += 1 if lettered(state, state.slots[first + i].founder) else 0
        elif shut:
            return False
        elif word:
            if _told_apart(state, scratch, group, count, i):
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
    if not _allowed(state, scratch, group, count):
        return best
    gain = _worth(state, scratch, group, count, terms)
    for g in range(count):
        gain -= state.clusters[group[g]].worth
    for j in range(count - 1):
        gain -= math.log(terms.concentration + terms.discount * (state.counters.alive - 1 - j))
    if count == 2 and _subsumed(state, group[0], group[1], state.clusters[group[0]].length):
        gain += CERTAIN
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
        slot = state.slots[row.slot + i]
        slot.law, constant, hole = _slot_logs(state, scratch, group, count, i, terms)
        slot.hole = 1.0 / (1.0 + math.exp(constant - hole))
    for i in range(row.length):
        slot, types = row.slot + i, row.types
        for g in range(1, count):
            other = state.clusters[group[g]]
            n = gather(state, other.slot + i, other.types, scratch, 0)
            state.slots[slot].forgotten += state.slots[other.slot + i].forgotten
            for k in range(n):
                count_value(state, slot, types, scratch.token[k], scratch.lines_of[k])
                types += scratch.lines_of[k]  # while it is a constant, all of them have its token
            if not is_constant(state, other.slot + i):
                for k in range(n):  # it counts for the whole now
                    let_go(state, scratch.token[k])
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
        state.alike[row.length] -= 1
        state.counters.alive -= 1
        state.counters.merged += 1
    return int(target)
