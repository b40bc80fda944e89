"""Rows of numbers to columns: a kernel reads what is ordinary, and leaves every other row to Python.

Ordinary is a row in valid UTF-8 without quotation marks and control characters, that has as many cells as the
header, writes numbers as JSON does, a time so that six decimals hold its seconds, and id and kept cells
without escapes. Whatever is accepted here is read as :class:`~streamdp.decode.columns.Columns` reads it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.decode.grammar import ESCAPE, NOWHERE, QUOTE, is_utf8
from streamdp.decode.numbers import after_double
from streamdp.decode.times import time_of
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import row_type

_SPACE, _DELETE = 0x20, 0x7F

SCANNED = row_type("ordinary id_start id_stop", "time")
"""Of each line: whether it is ordinary, where its id stands, its time."""

FEATURES, TIME, ID, KEPT = range(4)
"""The parts that cells play."""


class Found(NamedTuple):
    """What was found; a span begins below 0 where there is nothing."""

    rows: np.ndarray  # SCANNED[n]
    kept: np.ndarray  # int64[n, fields, 2] where the values of kept fields stand
    vectors: np.ndarray  # float64[n, D] the features in order


class Table(NamedTuple):
    """What the cells of a row are for, and what is written of ids and kept cells."""

    parts: np.ndarray  # int64[cells, 2] the part that each plays, and which feature or kept field it is
    values: np.ndarray  # uint8[...] ids and kept cells in JSON
    used: np.ndarray  # int64[1] how many bytes of values


@kernel
def _is_plain(data: np.ndarray, start: int, stop: int, delimiter: int) -> bool:
    """Whether a row is what it says, cut at each delimiter."""
    i = start
    while i < stop and (
        data[i] == delimiter or (data[i] >= _SPACE and data[i] != QUOTE and data[i] != _DELETE)
    ):
        i += 1
    return i == stop and is_utf8(data, start, stop)


@kernel
def _number(data: np.ndarray, i: int, stop: int) -> float:
    """The number that a cell holds between blanks; not a number for any other cell."""
    while i < stop and data[i] == _SPACE:
        i += 1
    i, number = after_double(data, i, stop)
    while 0 <= i < stop and data[i] == _SPACE:
        i += 1
    return number if i == stop else math.nan


@kernel
def _write(table: Table, data: np.ndarray, i: int, stop: int) -> bool:
    """Write a cell as a string of JSON; whether it can be, without escapes."""
    at = table.used[0]
    table.values[at] = QUOTE
    for k in range(i, stop):
        if data[k] == ESCAPE:
            return False
        at += 1
        table.values[at] = data[k]
    table.values[at + 1] = QUOTE
    table.used[0] = at + 2
    return True


@kernel
def _read_cell(
    table: Table, found: Found, n: int, cell: int, data: np.ndarray, i: int, stop: int, unit: float
) -> bool:
    """Read a cell of line n; whether it is ordinary."""
    part, which, row, before = table.parts[cell, 0], table.parts[cell, 1], found.rows[n], table.used[0]
    if part == FEATURES:
        number = _number(data, i, stop)
        found.vectors[n, which] = number
        return not math.isnan(number)
    if part == TIME and i < stop:
        row.time = time_of(data, i, stop, unit)
        return not math.isnan(row.time)
    if part == ID and i < stop:
        if not _write(table, data, i, stop):
            return False
        row.id_start, row.id_stop = before, table.used[0]
    elif part == KEPT:
        if not _write(table, data, i, stop):
            return False
        found.kept[n, which, 0], found.kept[n, which, 1] = before, table.used[0]
    return True


@kernel
def _scan_row(
    table: Table, found: Found, n: int, data: np.ndarray, start: int, stop: int, delimiter: int, unit: float
) -> bool:
    """Read line n; whether it is ordinary."""
    if not _is_plain(data, start, stop, delimiter):
        return False
    i, cells = start, table.parts.shape[0]
    for cell in range(cells):
        end = i
        while end < stop and data[end] != delimiter:
            end += 1
        if (end < stop) != (cell < cells - 1) or not _read_cell(table, found, n, cell, data, i, end, unit):
            return False
        i = end + 1
    return True


@entry
def scan_table(
    table: Table,
    found: Found,
    data: np.ndarray,
    ends: np.ndarray,
    most: int,
    delimiter: int,
    unit: float,
) -> None:
    """Read rows, which follow each other and end there; those longer than ``most`` bytes are not ordinary.

    ``unit`` is how many units of a time are a second, 0 where its size says so.
    """
    start = 0
    for n in range(ends.shape[0]):
        row, stop, used = found.rows[n], ends[n], table.used[0]
        row.id_start, row.id_stop, row.time = NOWHERE, NOWHERE, math.nan
        for k in range(found.kept.shape[1]):
            found.kept[n, k, 0], found.kept[n, k, 1] = NOWHERE, NOWHERE
        row.ordinary = 1
        if stop - start > most or not _scan_row(table, found, n, data, start, stop, delimiter, unit):
            row.ordinary, table.used[0] = 0, used
        start = stop
