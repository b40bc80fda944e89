"""Batches of records built and read at once are as the client builds and reads them record by record."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import encode_varint
from streamdp_connectors.kafka.batches import Entry, Row, batches, rows_of, varint


def of_the_client(entries: list[Entry], epoch: int) -> bytes:
    """Without the header of the batch."""
    builder = MemoryRecordsBuilder(2, 0, 1 << 30)
    empty = builder.size_in_bytes()
    for number, value, more in entries:
        headers = [("epoch", b"%d" % epoch), ("out_seq", b"%d" % number), *more]
        builder.append(1_700_000_000_000, None, value, headers)
    builder.close()
    return bytes(builder.buffer()[empty:])


def entries(count: int) -> list[Entry]:
    rng = random.Random(3)
    sizes = [0, 1, 63, 64, 8191, 8192, *(rng.randrange(300) for _ in range(count))]
    headers = [("reason", b"not_json"), ("näh", b""), ("detail", b"x" * 200)]
    return [Entry(10**6 + i, rng.randbytes(size), headers[: i % 4]) for i, size in enumerate(sizes)]


def test_numbers() -> None:
    for number in (0, 1, -1, 63, 64, -64, -65, 8191, 8192, 1 << 31, -(1 << 40)):
        expected = bytearray()
        encode_varint(number, expected.append)
        assert varint(number) == bytes(expected)


def test_one_batch() -> None:
    told = entries(500)
    (found,) = batches(told, 1234, 1 << 20)
    assert found == (of_the_client(told, 1234), len(told))


def test_no_batch_is_larger_than_asked_for_but_for_a_single_record() -> None:
    told = entries(500)
    rest, sizes = list(told), []
    for records, count in batches(told, 7, 1000):
        assert records == of_the_client(rest[:count], 7)
        assert len(records) <= 1000 or count == 1
        sizes.append(count)
        rest = rest[count:]
    assert not rest
    assert max(sizes) > 1
    assert list(batches([], 7, 1000)) == []


def test_the_client_reads_them() -> None:
    (found,) = batches(entries(50), 5, 1 << 20)
    builder = MemoryRecordsBuilder(2, 0, 1 << 20)
    inner = builder._builder
    inner._buffer += found[0]
    inner._num_records, inner._last_offset = found[1], found[1] - 1
    inner._first_timestamp = inner._max_timestamp = 1_700_000_000_000
    builder.close()
    (batch,) = list(MemoryRecords(bytes(builder.buffer())))
    read = list(batch)
    assert [record.value for record in read] == [entry.value for entry in entries(50)]
    assert {dict(record.headers)["epoch"] for record in read} == {b"5"}


def read_at_once(batch: Any) -> list[Row] | None:
    appended = batch.timestamp_type == batch.LOG_APPEND_TIME
    time = batch.max_timestamp if appended else batch.first_timestamp
    records = bytes(batch._buffer[batch._pos :])
    return rows_of(records, batch.records_count, batch.base_offset, time, appended=appended)


short = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=70), short), max_size=3)


@given(
    st.lists(st.tuples(st.integers(0, 2**42), short, short, headers), min_size=1, max_size=70), st.booleans()
)
def test_read_at_once_they_are_what_the_client_reads(given_: list[Any], appended: bool) -> None:
    builder = MemoryRecordsBuilder(2, 0, 1 << 30)
    for stamp, key, value, more in given_:
        builder.append(stamp, key, value, more)
    builder.close()
    (batch,) = MemoryRecords(bytes(builder.buffer()))
    attributes = batch.attributes | (batch.TIMESTAMP_TYPE_MASK if appended else 0)
    batch._header_data = (7000, *batch._header_data[1:5], attributes, *batch._header_data[6:])
    found = read_at_once(batch)
    assert found == [(record.offset, record.value, record.timestamp, None) for record in batch]
    assert [row[0] for row in found or ()] == list(range(7000, 7000 + len(given_)))


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(0, 9))
def test_what_is_no_record_is_not_read(junk: bytes, count: int) -> None:
    assert rows_of(junk, count, 0, 0, appended=False) in (None, []) or len(junk) >= 7 * count
    (found,) = batches(entries(20), 5, 1 << 20)
    rows = rows_of(*found, 0, 0, appended=False)
    assert [row[1] for row in rows or ()] == [entry.value for entry in entries(20)]
    for cut in (found[0][:-1], found[0] + b"\0", found[0][1:]):
        assert rows_of(cut, found[1], 0, 0, appended=False) is None
