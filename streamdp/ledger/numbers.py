"""The numbers of answers, rounded as they are announced, and what is written down with them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from streamdp.beam.data.state import REVISION
from streamdp.kernels.jit import Bound, entry, kernel
from streamdp.kernels.rows import new_rows
from streamdp.ledger.confidence import NONE_AGAIN
from streamdp.ledger.table import Table, lasting, move, put, stability, to_digits

_ROUNDED = ("probability", "new_probability", "log_predictive", "novelty")
NUMBERS = (*_ROUNDED, "lasting_probability", "stability", "confidence", "confidence_labels")
"""What is announced of a record, in the order of the rows of the arrays here; NaN where it is not told."""

NO_REVISIONS = new_rows(0, REVISION)

NOTHING_REVISED = NO_REVISIONS, NONE_AGAIN
"""No revisions, and what is told of them."""


@kernel
def _round(numbers: np.ndarray, size: int, i: int) -> None:
    # never -0; long records would else look novel
    numbers[3, i] = 0.0 - numbers[2, i] / max(size, 1)
    for k in range(4):
        numbers[k, i] = to_digits(numbers[k, i])


@entry
def _round_all(numbers: np.ndarray, sizes: np.ndarray) -> None:
    for i in range(sizes.shape[0]):
        _round(numbers, sizes[i], i)
        for k in range(4, numbers.shape[0]):
            numbers[k, i] = math.nan


@entry
def put_all(
    table: Table,
    rows: np.ndarray,
    sizes: np.ndarray,
    revisions: np.ndarray,
    first: int,
    numbers: np.ndarray,
    before: np.ndarray,
) -> None:
    """Write records down from number ``first`` on, by what a search says of them, and ``revisions``.

    ``numbers`` are written, shape (8, n), and which labels were ``before`` the revisions, shape (m,).
    """
    r = 0
    for i in range(sizes.shape[0]):
        row, seq = rows[i], first + i
        numbers[0, i], numbers[1, i] = row.probability, row.new_probability
        numbers[2, i] = row.log_predictive
        _round(numbers, sizes[i], i)
        put(table, seq, row, numbers[0, i], numbers[1, i])
        numbers[4, i], numbers[5, i] = lasting(table, numbers[1, i]), stability(table, seq)
        numbers[6, i] = numbers[7, i] = math.nan
        while r < revisions.shape[0] and revisions[r].by == seq:
            before[r] = move(table, revisions[r])
            r += 1


_rounding = Bound(_round_all)


def rounded(rows: np.ndarray | Mapping[str, np.ndarray], sizes: np.ndarray) -> np.ndarray:
    """The numbers of records that are no stream."""
    numbers = np.empty((len(NUMBERS), len(rows["probability"])))
    for k in range(3):
        numbers[k] = rows[NUMBERS[k]]
    _rounding((), numbers, np.ascontiguousarray(sizes, np.int64))
    return numbers
