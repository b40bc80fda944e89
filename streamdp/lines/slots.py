"""Slots of templates: constants or holes, which they learn from their values."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.base import (
    DISCOUNT,
    NO_TOKEN,
    SLOT_SHIFT,
    STRENGTH,
    Terms,
    hold,
    hole_class,
    value_of,
    wordy,
)
from streamdp.lines.state import Scratch, State, look_up, put


@kernel
def is_constant(state: State, slot: int) -> bool:
    """Whether a slot has had one token only."""
    return bool(state.slots[slot].distinct == 1)


@kernel
def same(state: State, a: int, b: int) -> bool:
    """Whether two slots are one constant."""
    return (
        is_constant(state, a) and is_constant(state, b) and state.slots[a].founder == state.slots[b].founder
    )


@kernel
def base_of(state: State, token: int, terms: Terms) -> tuple[float, float]:
    """Probability of a token's class among values of holes, and of the token given its class."""
    return hole_class(state, state.tokens[token].shown, terms), value_of(state, token, terms)


@kernel
def as_hole(
    state: State, slot: int, types: int, token: int, base: tuple[float, float], terms: Terms
) -> float:
    """The predictive of a token in a slot of so many distinct lines as a hole; ``base`` is the token's."""
    row, shown = state.slots[slot], state.tokens[token].shown
    if row.distinct == 1:
        seen = types if row.founder == token else 0
        alike = 1 if state.tokens[row.founder].shown == shown else 0
    else:
        value = look_up(state.by_value, (slot << SLOT_SHIFT) | token)
        seen = state.values[value].count if value >= 0 else 0
        alike = max(look_up(state.by_value, (slot << SLOT_SHIFT) | (NO_TOKEN - shown)), 0)
    a = terms.class_strength
    g = (alike + a * base[0]) / (row.distinct + a) * base[1]
    more = (STRENGTH + DISCOUNT * row.distinct + row.forgotten) * g
    return float((max(seen - DISCOUNT, 0.0) + more) / (types + STRENGTH))


@kernel
def in_slot(
    state: State, slot: int, types: int, token: int, base: tuple[float, float], terms: Terms
) -> float:
    """The predictive of a token in a slot of so many distinct lines, a constant or a hole."""
    row = state.slots[slot]
    own = 1.0 - row.hole if row.distinct == 1 and row.founder == token else 0.0
    return float(own + row.hole * as_hole(state, slot, types, token, base, terms))


@kernel
def new_slot(state: State, slot: int, token: int, glued: int, law: float) -> None:
    """A slot of one value, that of the founding line; ``law`` is how likely it is a hole."""
    row = state.slots[slot]
    row.founder = token
    row.distinct = 1
    row.first = -1
    row.wordy = 0
    row.glued = glued
    row.forgotten = 0
    row.law = law
    row.hole = law


@kernel
def _count_value(state: State, slot: int, token: int, count: int) -> bool:
    """Count so many more distinct lines for a value of a hole; whether it is new, and so known as a value."""
    key = (slot << SLOT_SHIFT) | token
    value = look_up(state.by_value, key)
    if value >= 0:
        state.values[value].count += count
        return False
    value = state.counters.values
    state.counters.values += 1
    put(state.by_value, key, value)
    row = state.values[value]
    row.token = token
    row.count = count
    row.next = state.slots[slot].first
    state.slots[slot].first = value
    of_class = (slot << SLOT_SHIFT) | (NO_TOKEN - state.tokens[token].shown)
    put(state.by_value, of_class, max(look_up(state.by_value, of_class), 0) + 1)
    if wordy(state, token):
        state.slots[slot].wordy = 1
    hold(state, token)
    return True


@kernel
def count_value(state: State, slot: int, types: int, token: int, count: int) -> None:
    """Count so many distinct lines for a value of a slot that has had ``types`` distinct lines so far."""
    row = state.slots[slot]
    if row.distinct == 1:
        if row.founder == token:
            return
        _count_value(state, slot, row.founder, types)
    if _count_value(state, slot, token, count):
        row.distinct += 1


@kernel
def add_token(state: State, slot: int, types: int, token: int, terms: Terms) -> None:
    """Count a token of a distinct line."""
    row = state.slots[slot]
    if row.founder != token:
        row.hole = 1.0
    elif row.distinct == 1:
        varies = row.hole * as_hole(state, slot, types, token, base_of(state, token, terms), terms)
        row.hole = varies / (1.0 - row.hole + varies)
    count_value(state, slot, types, token, 1)


@kernel
def gather(state: State, slot: int, types: int, scratch: Scratch, n: int) -> int:
    """Write the values of a slot behind the first ``n``; how many there are now."""
    row = state.slots[slot]
    if row.distinct == 1:
        scratch.token[n] = row.founder
        scratch.lines_of[n] = types
        return n + 1
    value = row.first
    while value >= 0:
        scratch.token[n] = state.values[value].token
        scratch.lines_of[n] = state.values[value].count
        value = state.values[value].next
        n += 1
    return n


@kernel
def sort_pairs(keys: np.ndarray, values: np.ndarray, n: int) -> None:
    """Sort the first ``n`` keys, ascending, and their values with them (a heap sort)."""
    for end in range(2 * n - 1, 0, -1):
        if end >= n:  # build the heap
            root, size = end - n, n
        else:
            keys[0], keys[end] = keys[end], keys[0]
            values[0], values[end] = values[end], values[0]
            root, size = 0, end
        while True:
            child = 2 * root + 1
            if child >= size:
                break
            if child + 1 < size and keys[child + 1] > keys[child]:
                child += 1
            if keys[root] >= keys[child]:
                break
            keys[root], keys[child] = keys[child], keys[root]
            values[root], values[child] = values[child], values[root]
            root = child


@kernel
def distinct_values(scratch: Scratch, n: int) -> int:
    """Make one of equal values among the first ``n``; how many are left."""
    sort_pairs(scratch.token, scratch.lines_of, n)
    left = 0
    for i in range(n):
        if left and scratch.token[left - 1] == scratch.token[i]:
            scratch.lines_of[left - 1] += scratch.lines_of[i]
        else:
            scratch.token[left] = scratch.token[i]
            scratch.lines_of[left] = scratch.lines_of[i]
            left += 1
    return left


@kernel
def log_terms(
    state: State, scratch: Scratch, n: int, founder: int, law: float, terms: Terms
) -> tuple[float, float]:
    """log of law times marginal of a slot as a constant and as a hole, of ``n`` distinct values.

    But of the founder's. One table a value: a lower bound where values repeat.
    """
    a, b, d, classes = terms.class_strength, STRENGTH, DISCOUNT, scratch.classes
    classes[state.tokens[founder].shown] = 1
    hole, number, lines, base = math.log(law) if law > 0.0 else -math.inf, 1, 0, math.lgamma(1.0 - d)
    for i in range(n):
        token, count = scratch.token[i], scratch.lines_of[i]
        lines += count
        if count > 1:
            hole += math.lgamma(count - d) - base
        if token == founder:
            continue
        shown = state.tokens[token].shown
        g = (classes[shown] + a * hole_class(state, shown, terms)) / (number + a)
        hole += math.log(g * value_of(state, token, terms))
        classes[shown] += 1
        number += 1
    for i in range(n):
        classes[state.tokens[scratch.token[i]].shown] = 0
    hole += (n - 1) * math.log(d) + math.lgamma(b / d + n) - math.lgamma(b / d + 1.0)
    hole += math.lgamma(b + 1.0) - math.lgamma(b + lines)
    return math.log(1.0 - law) if n == 1 and law < 1.0 else -math.inf, hole
