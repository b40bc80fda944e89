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
    hole,
    hole_class,
    wordy,
)
from streamdp.lines.state import SLABS, Scratch, State, look_up, put


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
    return hole_class(state, state.tokens[token].shown, terms), hole(state, token, terms)


@kernel
def slot_terms(
    state: State, slot: int, types: int, token: int, base: tuple[float, float], terms: Terms, out: np.ndarray
) -> float:
    """The predictive of a token under each of what a slot of so many distinct lines may be; the mixture.

    ``base`` is that of the token.
    """
    row, shown = state.slots[slot], state.tokens[token].shown
    if row.distinct == 1:
        same = row.founder == token
        seen = types if same else 0
        alike = 1 if state.tokens[row.founder].shown == shown else 0
        out[0] = 1.0 if same else 0.0
    else:
        value = look_up(state.by_value, (slot << SLOT_SHIFT) | token)
        seen = state.values[value].count if value >= 0 else 0
        alike = max(look_up(state.by_value, (slot << SLOT_SHIFT) | (NO_TOKEN - shown)), 0)
        out[0] = 0.0
    a = terms.class_strength
    g = (alike + a * base[0]) / (row.distinct + a) * base[1]
    total = state.weights[slot, 0] * out[0]
    for h in range(SLABS):
        b, d = STRENGTH[h], DISCOUNT[h]
        out[1 + h] = (max(seen - d, 0.0) + (b + d * row.distinct + row.forgotten) * g) / (types + b)
        total += state.weights[slot, 1 + h] * out[1 + h]
    return float(total)


@kernel
def new_slot(state: State, slot: int, token: int, glued: int, law: np.ndarray) -> None:
    """A slot of one value, that of the founding line."""
    row = state.slots[slot]
    row.founder = token
    row.distinct = 1
    row.first = -1
    row.wordy = 0
    row.glued = glued
    row.forgotten = 0
    for h in range(1 + SLABS):
        state.laws[slot, h] = law[h]
        state.weights[slot, h] = law[h]


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
def add_token(state: State, slot: int, types: int, token: int, terms: Terms, out: np.ndarray) -> None:
    """Count a token of a distinct line."""
    total = slot_terms(state, slot, types, token, base_of(state, token, terms), terms, out)
    for h in range(1 + SLABS):
        state.weights[slot, h] *= out[h] / total
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
    state: State, scratch: Scratch, n: int, founder: int, law: np.ndarray, terms: Terms, out: np.ndarray
) -> float:
    """log of law times marginal under each of what a slot may be, of ``n`` distinct values but the founder's.

    One table a value: a lower bound where values repeat. Returns the log of their sum.
    """
    a, classes = terms.class_strength, scratch.classes
    classes[state.tokens[founder].shown] = 1
    shared, number, lines = 0.0, 1, 0
    for i in range(n):
        lines += scratch.lines_of[i]
        token = scratch.token[i]
        if token == founder:
            continue
        shown = state.tokens[token].shown
        g = (classes[shown] + a * hole_class(state, shown, terms)) / (number + a) * hole(state, token, terms)
        shared += math.log(g)
        classes[shown] += 1
        number += 1
    for i in range(n):
        classes[state.tokens[scratch.token[i]].shown] = 0
    out[0] = math.log(law[0]) if n == 1 and law[0] > 0.0 else -math.inf
    for h in range(SLABS):
        if law[1 + h] <= 0.0:
            out[1 + h] = -math.inf
            continue
        b, d = STRENGTH[h], DISCOUNT[h]
        one = math.log(law[1 + h]) + shared
        one += (n - 1) * math.log(d) + math.lgamma(b / d + n) - math.lgamma(b / d + 1.0)
        base = math.lgamma(1.0 - d)
        for i in range(n):
            if scratch.lines_of[i] > 1:
                one += math.lgamma(scratch.lines_of[i] - d) - base
        out[1 + h] = one + math.lgamma(b + 1.0) - math.lgamma(b + lines)
    top = out[0]
    for h in range(SLABS):
        top = max(top, out[1 + h])
    total = 0.0
    for h in range(1 + SLABS):
        total += math.exp(out[h] - top)
    return float(top + math.log(total))
