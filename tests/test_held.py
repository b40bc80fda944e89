"""What kernels read from memory is what they were given."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from streamdp.kernels.held import Held
from streamdp.kernels.jit import Bound, entry


class Inner(NamedTuple):
    flag: bool
    table: np.ndarray
    number: int


class Outer(NamedTuple):
    first: bool
    share: float
    empty: tuple[()]
    inner: Inner
    pair: tuple[np.ndarray, np.ndarray]
    rows: np.ndarray
    last: bool


ROWS = np.dtype([("a", np.int32), ("b", np.float64)])


@entry
def read(held: Any, out: np.ndarray) -> None:
    """Every field, as numbers."""
    out[0], out[1], out[2] = held.first, held.share, held.inner.flag
    out[3], out[4] = held.inner.table[1, 2], held.inner.number
    out[5], out[6] = held.inner.table.shape[0], held.inner.table.shape[1]
    out[7], out[8] = held.pair[0][0], held.pair[1].shape[0]
    out[9], out[10], out[11] = held.rows[1].a, held.rows[1].b, held.last


@entry
def write(held: Any, value: float) -> None:
    """One number into each array."""
    held.inner.table[0, 1] = value
    held.rows[0].b = value


def outer(first: bool, share: float, flag: bool, number: int, last: bool) -> Outer:
    table = np.arange(12, dtype=np.int32).reshape(3, 4)
    rows = np.zeros(2, ROWS)
    rows["a"], rows["b"] = [1, -2], [0.5, 2.5]
    return Outer(first, share, (), Inner(flag, table, number), (np.ones(1), np.zeros(5)), rows, last)


@limits(deadline=None)
@given(st.booleans(), st.floats(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_every_field_is_read(first: bool, share: float, flag: bool, number: int, last: bool) -> None:
    value, seen = outer(first, share, flag, number, last), np.zeros(12)
    plain = seen.copy()
    read(Held(value), seen)
    read(value, plain)
    np.testing.assert_array_equal(seen, plain)
    np.testing.assert_array_equal(seen, [first, share, flag, 6, float(number), 3, 4, 1, 5, -2, 2.5, last])


def test_what_kernels_write_is_in_the_arrays() -> None:
    value = outer(True, 0.0, False, 1, False)
    write(Held(value), 9.0)
    assert value.inner.table[0, 1] == 9
    assert value.rows["b"].tolist() == [9.0, 2.5]


def test_lasting_arguments_are_laid_out_again_where_they_were_replaced() -> None:
    values = [outer(True, share, False, 1, False) for share in (1.0, 2.0)]
    bound, seen = Bound(read), np.zeros(12)
    for i in (0, 0, 1, 0):
        bound((values[i],), seen)
        assert seen[1] == i + 1.0
    values[0].inner.table[1, 2] = 40
    bound((values[0],), seen)
    assert seen[3] == 40


@pytest.mark.parametrize("value", ["text", None, 1j])
def test_other_things_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="arrays and numbers"):
        Held((1, (value,)))


def test_a_copy_is_of_arrays_of_its_own() -> None:
    held = Held(outer(True, 0.5, False, 3, True))
    copied = copy.deepcopy(held)
    write(copied, 7.0)
    assert copied.value.inner.table[0, 1] == 7
    assert held.value.inner.table[0, 1] == 1
