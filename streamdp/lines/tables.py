"""Hash tables of whole numbers: open addressing, powers of two, nothing is ever taken out."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import Counters, ints, made, one, power_of_two

FREE = -1
SPREAD = -7046029254386353131
"""2^64 over the golden ratio: products with it have well mixed upper bits."""


class Table(NamedTuple):
    """Values by key; at most half of the places are taken."""

    keys: Annotated[np.ndarray, ints("places", fill=FREE)]  # a power of two; FREE, or at least 0
    values: Annotated[np.ndarray, ints("places")]
    counters: Annotated[Counters, one("taken")]  # how many keys


def new_table(most: int) -> Table:
    """An empty table for so many keys."""
    return made(Table, {"places": power_of_two(2 * max(most, 8))})


def with_room(table: Table, most: int) -> Table:
    """The table itself where it has room for so many keys, else a larger copy."""
    if 2 * most <= len(table.keys):
        return table
    held = table.keys != FREE
    return table_of(table.keys[held], table.values[held], 2 * most)


def table_of(keys: np.ndarray, values: np.ndarray, most: int) -> Table:
    """A table of these pairs, int64 each, with room for so many."""
    made = new_table(max(most, len(keys)))
    _fill(made, keys, values)
    return made


def filled(table: Table, keys: np.ndarray, values: np.ndarray) -> Table:
    """A table of the same size that holds these pairs instead."""
    return table_of(keys, values, len(table.keys) // 2)


def pairs_of(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Keys in ascending order, and the value of each."""
    order = np.argsort(table.keys)[np.count_nonzero(table.keys == FREE) :]
    return table.keys[order], table.values[order]


@kernel
def has_room(table: Table, more: int) -> bool:
    """Whether so many more keys find room."""
    return bool(2 * (table.counters.taken + more) <= table.keys.shape[0])


@kernel
def place_of(table: Table, key: int) -> int:
    """Where a key stands, or would stand."""
    mask = table.keys.shape[0] - 1
    at = ((key * SPREAD) >> 24) & mask
    while table.keys[at] != key and table.keys[at] != FREE:
        at = (at + 1) & mask
    return int(at)


@kernel
def look_up(table: Table, key: int) -> int:
    """The value of a key, or -1."""
    at = place_of(table, key)
    return table.values[at] if table.keys[at] == key else -1


@kernel
def put(table: Table, key: int, value: int) -> None:
    """Give a key a value."""
    at = place_of(table, key)
    if table.keys[at] == FREE:
        table.keys[at] = key
        table.counters.taken += 1
    table.values[at] = value


@entry
def _fill(table: Table, keys: np.ndarray, values: np.ndarray) -> None:
    for i in range(keys.shape[0]):
        put(table, keys[i], values[i])
