"""Where a line goes: the templates near it, what each makes of it, and what a new one would."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.base import Terms, is_shut, is_value, length, lettered, own_terms, valued, wordy
from streamdp.lines.slots import base_of, is_constant, slot_terms, sort_pairs
from streamdp.lines.state import SLABS, Scratch, State, look_up, put

PLACE_SHIFT, LENGTH_SHIFT = 31, 41


@kernel
def place_key(n: int, i: int, token: int) -> int:
    """The key of a constant at a place of templates of a length."""
    return (n << LENGTH_SHIFT) | (i << PLACE_SHIFT) | token


@kernel
def post(state: State, key: int, cluster: int) -> None:
    """Put a template in a list."""
    place = look_up(state.by_place, key)
    if place < 0:
        place = state.counters.lists
        state.counters.lists += 1
        put(state.by_place, key, place)
        state.lists[place].first = -1
        state.lists[place].count = 0
    entry = state.counters.posts
    state.counters.posts += 1
    state.posts[entry].cluster = cluster
    state.posts[entry].next = state.lists[place].first
    state.lists[place].first = entry
    state.lists[place].count += 1


@kernel
def shares(state: State, cluster: int, line: np.ndarray, n: int) -> int:
    """How many tokens with a letter of a line (-1: none is meant) are constants of a template there."""
    first, found = state.clusters[cluster].slot, 0
    for i in range(n):
        token = line[i]
        if token >= 0 and is_constant(state, first + i) and state.slots[first + i].founder == token:
            found += 1 if lettered(state, token) else 0
    return found


@kernel
def find_near(state: State, scratch: Scratch, line: np.ndarray, n: int, words: int) -> int:
    """The templates that have enough of a line's tokens as constants to be one with it; how many there are.

    Half of its ``words`` must be. So all but that many of the lists need not be looked at: the longest.
    """
    need, listed, near, stamps = max(1, (words + 1) // 2), 0, scratch.near, scratch.stamps
    for i in range(n):
        token = line[i]
        if token >= 0 and lettered(state, token):
            place = look_up(state.by_place, place_key(n, i, token))
            scratch.places[listed] = max(place, -1)
            scratch.sizes[listed] = state.lists[place].count if place >= 0 else 0
            listed += 1
    sort_pairs(scratch.sizes, scratch.places, listed)
    state.counters.stamp += 1
    stamp, found = state.counters.stamp, 0
    for p in range(listed - need + 1):
        place, before = scratch.places[p], -1
        if place < 0:
            continue
        entry = state.lists[place].first
        while entry >= 0:
            cluster, after = state.posts[entry].cluster, state.posts[entry].next
            if state.clusters[cluster].alive == 0:  # let go of what has been merged
                state.lists[place].count -= 1
                if before < 0:
                    state.lists[place].first = after
                else:
                    state.posts[before].next = after
            else:
                before = entry
                if stamps[cluster] != stamp:
                    stamps[cluster] = stamp
                    if shares(state, cluster, line, n) >= need:
                        near[found] = cluster
                        found += 1
            entry = after
    sort_pairs(near, scratch.sign, found)
    return found


@kernel
def may_join(state: State, cluster: int, line: np.ndarray, n: int) -> bool:
    """Whether with a line a template still has a constant with a letter, and as many as holes of words.

    Holes of values do not count. Two words are two templates, unless one of them is known as a value.
    """
    first, constants, holes = state.clusters[cluster].slot, 0, 0
    for i in range(n):
        row, token = state.slots[first + i], line[i]
        if row.distinct == 1 and row.founder == token:
            constants += 1 if lettered(state, token) else 0
        elif is_shut(state, token) or is_shut(state, row.founder):
            return False
        elif valued(state, line, i, n):
            continue
        elif row.wordy or wordy(state, token) or wordy(state, row.founder):
            if row.distinct == 1 and not (is_value(state, token) or is_value(state, row.founder)):
                return False
            holes += 1
    return constants >= max(1, holes)


@kernel
def slots_product(state: State, scratch: Scratch, cluster: int, n: int, terms: Terms) -> float:
    """The product of the slots' predictives of the line at hand; 0 where that is too small for a number."""
    row, product = state.clusters[cluster], 1.0
    for i in range(n):
        token = scratch.line[i]
        base = base_of(state, token, terms)
        product *= slot_terms(state, row.slot + i, row.types, token, base, terms, scratch.terms)
    return product


@kernel
def _copied(state: State, scratch: Scratch, cluster: int, i: int, terms: Terms) -> tuple[float, float]:
    """Probability of token i in a line of a template, and in a mutated copy of it.

    ``scratch.terms``: the latter by what the token is there.
    """
    row, total = state.clusters[cluster], 0.0
    slot, base = row.slot + i, (scratch.classed[i], scratch.held[i])
    joined = slot_terms(state, slot, row.types, scratch.line[i], base, terms, scratch.terms)
    for h in range(1 + SLABS):
        copied = (1.0 - terms.mutation) * state.weights[slot, h] * scratch.terms[h]
        scratch.terms[h] = copied + terms.mutation * scratch.own[i, h]
        total += scratch.terms[h]
    return joined, total


@kernel
def new_line(state: State, scratch: Scratch, near: int, n: int, terms: Terms) -> float:
    """log p0 of the line at hand. What it is a copy of: in ``scratch.ways``, and of none in ``alone``.

    A copy is of any template of this length; those that are not near could not matter and are left out.
    ``scratch.joined``: log of the product of the slots' predictives in each that the line may join.
    """
    alike, log = state.lengths[n].alive, 0.0
    for i in range(n):
        scratch.classed[i], scratch.held[i] = base_of(state, scratch.line[i], terms)
        own_terms(state, scratch, i, n, terms)
        total = 0.0
        for h in range(1 + SLABS):
            total += scratch.own[i, h]
        log += math.log(total)
    if alike > 0:
        log += math.log(1.0 - terms.copies)
    for c in range(near):
        cluster, joined, way = scratch.near[c], 0.0, math.log(terms.copies / alike)
        may = may_join(state, cluster, scratch.line, n)
        for i in range(n):
            one, other = _copied(state, scratch, cluster, i, terms)
            way += math.log(other)
            joined += math.log(one) if may else 0.0
        scratch.ways[c] = way
        scratch.joined[c] = joined if may else -math.inf
    scratch.alone[0] = log
    top, whole = _all_ways(scratch, near)
    return math.log(length(state, n, terms)) + top + math.log(whole)


@kernel
def _all_ways(scratch: Scratch, near: int) -> tuple[float, float]:
    """The sum of the ways that the line at hand may have come, over the exponential of the best; that one."""
    top = scratch.alone[0]
    for c in range(near):
        top = max(top, scratch.ways[c])
    whole = math.exp(scratch.alone[0] - top)
    for c in range(near):
        whole += math.exp(scratch.ways[c] - top)
    return top, whole


@kernel
def find_law(state: State, scratch: Scratch, near: int, n: int, terms: Terms) -> None:
    """What the slots of a template that the line at hand founds are, into ``scratch.law``."""
    top, whole = _all_ways(scratch, near)
    for i in range(n):
        for h in range(1 + SLABS):
            scratch.law[i, h] = 0.0
    for c in range(-1, near):
        share = math.exp((scratch.alone[0] if c < 0 else scratch.ways[c]) - top) / whole
        if share == 0.0:
            continue
        for i in range(n):
            total = 0.0
            if c >= 0:
                _, total = _copied(state, scratch, scratch.near[c], i, terms)
            else:
                for h in range(1 + SLABS):
                    scratch.terms[h] = scratch.own[i, h]
                    total += scratch.own[i, h]
            for h in range(1 + SLABS):
                scratch.law[i, h] += share * scratch.terms[h] / total


@kernel
def fresh(state: State, cluster: int, terms: Terms) -> float:
    """The mass of lines that are not in a template's cache."""
    row = state.clusters[cluster]
    return float(terms.line_strength + terms.line_discount * row.types + row.forgotten)


@kernel
def choose(state: State, scratch: Scratch, near: int, log_p0: float, terms: Terms, out: np.ndarray) -> int:
    """The template that the line at hand joins, or -1 for a new one.

    ``out``: the log of the sum of all weights, the winner's, that of a new one.
    """
    new = math.log(terms.concentration + terms.discount * state.counters.alive) + log_p0
    best, score, top = -1, new, new
    for c in range(near):
        if scratch.joined[c] > -math.inf:
            cluster = scratch.near[c]
            size = state.clusters[cluster].size
            way = math.log(size - terms.discount) + math.log(fresh(state, cluster, terms))
            way += scratch.joined[c] - math.log(size + terms.line_strength)
            scratch.joined[c] = way
            if way > score:
                best, score = cluster, way
    top = max(score, new)
    whole = math.exp(new - top)
    for c in range(near):
        whole += math.exp(scratch.joined[c] - top)
    out[0] = top + math.log(whole)
    out[1] = score
    out[2] = new
    return best
