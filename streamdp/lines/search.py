"""Where a line goes: the templates near it, what each makes of it, and what a new one would."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.base import (
    Terms,
    is_fixed,
    is_value,
    is_verb,
    length,
    lettered,
    names_act,
    own_terms,
    valued,
    wordy,
)
from streamdp.lines.slots import base_of, in_slot, is_constant, sort_pairs
from streamdp.lines.state import Scratch, State, look_up

PLACE_SHIFT, LENGTH_SHIFT = 31, 41


@kernel
def place_key(n: int, i: int, token: int) -> int:
    """The key of a constant at a place of templates of a length."""
    return (n << LENGTH_SHIFT) | (i << PLACE_SHIFT) | token


@kernel
def next_living(state: State, place: int, before: int) -> int:
    """The entry of a list behind another, or the first (-1), whose template lives; others are let go."""
    while True:
        entry = state.lists[place].first if before < 0 else state.posts[before].next
        if entry < 0 or state.clusters[state.posts[entry].cluster].alive:
            return int(entry)
        state.lists[place].count -= 1
        if before < 0:
            state.lists[place].first = state.posts[entry].next
        else:
            state.posts[before].next = state.posts[entry].next


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
    scratch.stamp[0] += 1
    stamp, found = scratch.stamp[0], 0
    for p in range(listed - need + 1):
        place = scratch.places[p]
        entry = next_living(state, place, -1) if place >= 0 else -1
        while entry >= 0:
            cluster = state.posts[entry].cluster
            if stamps[cluster] != stamp:
                stamps[cluster] = stamp
                if shares(state, cluster, line, n) >= need:
                    near[found] = cluster
                    found += 1
            entry = next_living(state, place, entry)
    sort_pairs(near, scratch.sign, found)
    return found


@kernel
def _are_apart(state: State, a: int, b: int, act: bool) -> bool:
    """Whether words are constants: neither a value, or not both, and they are verbs or name an act."""
    if not (is_value(state, a) or is_value(state, b)):
        return True
    words = (wordy(state, a) and not is_value(state, a)) or (wordy(state, b) and not is_value(state, b))
    return words and (act or (is_verb(state, a) and is_verb(state, b)))


@kernel
def may_join(state: State, cluster: int, line: np.ndarray, n: int) -> bool:
    """Whether with a line a template still has a constant with a letter, and as many as holes of words.

    Holes of values do not count. Two words that are constants are two templates.
    """
    first, constants, holes = state.clusters[cluster].slot, 0, 0
    for i in range(n):
        row, token = state.slots[first + i], line[i]
        if row.distinct == 1 and row.founder == token:
            constants += 1 if lettered(state, token) else 0
        elif is_fixed(state, token) or is_fixed(state, row.founder):
            return False
        elif valued(state, line, i, n):
            continue
        elif row.wordy or wordy(state, token) or wordy(state, row.founder):
            if row.distinct == 1 and _are_apart(state, token, row.founder, names_act(state, line, i)):
                return False
            holes += 1
    return constants >= max(1, holes)


@kernel
def new_line(state: State, scratch: Scratch, near: int, n: int, terms: Terms) -> float:
    """log p0 of the line at hand; in ``scratch.law`` the law of each slot, were it to found a template.

    A copy is of any template of this length; those that are not near could not matter and are left out.
    ``scratch.joined``: log of the product of the slots' predictives in each that the line may join.
    """
    alike, log = state.alike[n], 0.0
    for i in range(n):
        scratch.classed[i], scratch.held[i] = base_of(state, scratch.line[i], terms)
        own, varies = own_terms(state, scratch, i, n, terms)
        scratch.own[i] = own + varies
        scratch.law[i] = varies / scratch.own[i]
        log += math.log(scratch.own[i])
    if alike > 0:
        log += math.log(1.0 - terms.copies)
    top = log
    for c in range(near):
        cluster, joined, way = scratch.near[c], 0.0, math.log(terms.copies / alike)
        first, types = state.clusters[cluster].slot, state.clusters[cluster].types
        for i in range(n):
            base = (scratch.classed[i], scratch.held[i])
            one = in_slot(state, first + i, types, scratch.line[i], base, terms)
            way += math.log((1.0 - terms.mutation) * one + terms.mutation * scratch.own[i])
            joined += math.log(one) if one > 0.0 else -math.inf
        scratch.ways[c] = way
        scratch.joined[c] = joined if may_join(state, cluster, scratch.line, n) else -math.inf
        top = max(top, way)
    whole = math.exp(log - top)
    for c in range(near):
        whole += math.exp(scratch.ways[c] - top)
    return length(n) + top + math.log(whole)


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
            row = state.clusters[cluster]
            fresh = terms.line_strength + terms.line_discount * row.types + row.forgotten
            way = math.log(row.size - terms.discount) + math.log(fresh)
            way += scratch.joined[c] - math.log(row.size + terms.line_strength)
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
