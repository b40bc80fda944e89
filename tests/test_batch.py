"""Batches of records: parts of them, joined ones, and as plain values."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.encode.batch import Batch
from streamdp.kernels.packed import as_type, encoded
from streamdp.ledger.ledger import Ledger
from streamdp.state.retained import Retained

FIELDS = ("offsets", "words", "counts", "vectors", "times")


def some(n: int, dense: bool, timed: bool = True) -> Batch:
    """Records of which no two are alike; every third holds no word."""
    times = np.arange(n) * 0.5 if timed else None
    if dense:
        return Batch.of_vectors(np.arange(2.0 * n).reshape(n, 2), times)
    lengths = [i % 3 for i in range(n)]
    return Batch.of_words([(np.arange(m) + 10 * i, np.arange(m) + 1) for i, m in enumerate(lengths)], times)


def same(a: Batch, b: Batch) -> bool:
    """Whether two batches hold the same, in arrays of the same kind."""
    pairs = [(getattr(a, name), getattr(b, name)) for name in FIELDS]
    return all(
        (x is None and y is None) or (x.dtype == y.dtype and x.shape == y.shape and (x == y).all())
        for x, y in pairs
    )


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.booleans(), st.booleans())
def test_parts_joined_are_the_whole(n: int, first: int, second: int, dense: bool, timed: bool) -> None:
    whole = some(n, dense, timed)
    assert whole.size == n
    assert whole.sparse == (not dense)
    a, b = sorted((min(first, n), min(second, n)))
    parts = [whole.slice(0, a), whole.slice(a, b), whole.slice(b)]
    assert [part.size for part in parts] == [a, b - a, n - b]
    assert same(Batch.concatenate(parts), whole)
    assert same(
        whole.slice(a, b), Batch.concatenate([whole.slice(i, i + 1) for i in range(a, b)] or parts[1:2])
    )


@pytest.mark.parametrize("dense", [False, True])
def test_records_taken_keep_their_times(dense: bool) -> None:
    batch = some(7, dense)
    taken = batch.take(np.array([5, 0, 2]))
    assert taken.times is not None
    assert taken.times.tolist() == [2.5, 0.0, 1.0]
    records = Batch.concatenate([batch.slice(i, i + 1) for i in (5, 0, 2)])
    for name in FIELDS[:-1]:
        np.testing.assert_array_equal(getattr(taken, name), getattr(records, name))


def test_sizes_are_tokens_or_dimensions() -> None:
    assert some(7, dense=False).sizes.tolist() == [0, 1, 3, 0, 1, 3, 0]
    assert some(7, dense=False).slice(2, 5).sizes.tolist() == [3, 0, 1]
    assert some(3, dense=True).sizes.tolist() == [2, 2, 2]
    assert Batch().sizes.tolist() == []


def test_rows_say_where_words_are() -> None:
    assert some(6, dense=False).rows.tolist() == [1, 2, 2, 4, 5, 5]
    assert some(6, dense=True).rows.tolist() == []


def test_times_are_joined_only_where_all_have_them() -> None:
    assert Batch.concatenate([some(2, True), some(2, True, timed=False)]).times is None


def test_vectors_and_words_do_not_mix() -> None:
    with pytest.raises(ValueError, match="one batch"):
        Batch.concatenate([some(2, dense=True), some(2, dense=False)])


def test_counts_are_whole() -> None:
    with pytest.raises(ValueError, match="record 1"):
        Batch.of_words([(np.array([0]), np.array([1])), (np.array([0]), np.array([0.5]))])


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_packed_and_unpacked(dense: bool, timed: bool) -> None:
    batch = some(5, dense, timed)
    stored = msgspec.msgpack.decode(encoded(batch))
    assert same(as_type(stored, Batch), batch)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 4, 30])
def test_the_last_records_are_retained(dense: bool, limit: int) -> None:
    whole, labels = some(12, dense), np.arange(12)
    ledger = Ledger(limit)
    retained = Retained(ledger, limit)
    for start, stop in ((0, 3), (3, 4), (4, 10), (10, 12)):
        retained.append(start, whole.slice(start, stop))
        ledger.put_labels(start, labels[start:stop])
    ledger.relabel(11, 99)
    ledger.relabel(0, 99)
    held = retained.collect()
    if limit == 0:
        assert held is None
        return
    assert held is not None
    assert held.first == max(12 - limit, 0)
    assert same(held.batch, whole.slice(held.first))
    assert held.labels[-1] == 99
    again = Retained(ledger, limit)
    again.hold(held.first, as_type(msgspec.msgpack.decode(encoded(held.batch)), Batch))
    other = again.collect()
    assert other is not None
    assert same(other.batch, held.batch)
