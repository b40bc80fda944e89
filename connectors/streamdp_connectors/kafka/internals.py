"""Every use of what kafka-python 3.0 keeps to itself (names that begin with ``_``), one function for each."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamdp_connectors.kafka.batches import (
    CODECS,
    DamagedError,
    Row,
    Unread,
    UnreadableError,
    rows_of,
    unpack,
)

_BEFORE_KIP_360 = (2, 4)


def ids_heard_of(client: Any, topic: str) -> tuple[str | None, str | None]:
    """The ids of a topic and its cluster, as a consumer or producer last heard.

    None for an id that the broker does not name: those before 2.8 and 0.10.1.
    """
    metadata = _metadata(client)
    found = metadata.topic_id(topic)
    return (str(found) if found is not None and found.int else None), metadata.cluster_id or None


def partitions_heard_of(client: Any, topic: str) -> list[int]:
    """The numbers of a topic's partitions as last heard, without asking; [] when there is no such topic."""
    return sorted(_metadata(client).partitions_for_topic(topic) or ())


def topics_heard_of(client: Any) -> set[str]:
    """The names of all topics as last heard, without asking."""
    found: set[str] = _metadata(client).topics()
    return found


def has_leaders(consumer: Any, topic: str) -> bool:
    """Whether every partition of an existing topic has a broker that leads it, as last heard."""
    metadata = _metadata(consumer)
    return bool(metadata.available_partitions_for_topic(topic) == metadata.partitions_for_topic(topic))


def refresh_metadata(consumer: Any, timeout: float) -> bool:
    """Ask what topics and partitions there are, and return whether an answer came in so many seconds."""
    from kafka.errors import UnknownTopicOrPartitionError

    asked, came = _metadata(consumer).request_update(), threading.Event()
    asked.add_both(lambda _: came.set())
    came.wait(timeout)
    return bool(asked.is_done) and (
        asked.succeeded() or isinstance(asked.exception, UnknownTopicOrPartitionError)
    )


def _metadata(client: Any) -> Any:
    return client._cluster if hasattr(client, "_cluster") else client._metadata


def clear_used_up(consumer: Any) -> None:
    """Let the next poll return records that the client holds of resumed partitions.

    kafka-python 3.0.12 returns such records only when the slot of the partition in hand is None, and leaves
    the slot filled when its records are used up: without this it stands still.
    """
    fetcher = consumer._fetcher
    if not fetcher._next_partition_records:
        fetcher._next_partition_records = None


def bound_batches() -> None:
    """Make kafka-python unpack batches by our ``unpack``, for all consumers of the process.

    Its own codecs have no limit: 29 kB of zstd were 1.7 GB. And an error in the midst of a poll would leave
    it spinning, or end every run at the same batch. So a batch that cannot be read becomes one record without
    a value, at the offset of the batch's last one, its headers an ``Unread``. Checksums are checked here.
    """
    from kafka.record.default_records import DefaultRecordBatch
    from kafka.record.memory_records import MemoryRecords

    DefaultRecordBatch._maybe_uncompress = _uncompress
    DefaultRecordBatch.__iter__ = _records
    if MemoryRecords.next_batch is not _next_batch:
        _originals["next_batch"] = MemoryRecords.next_batch
        MemoryRecords.next_batch = _next_batch


_originals: dict[str, Any] = {}


def _next_batch(records: Any) -> Any:
    from kafka.errors import CorruptRecordError

    batch = _originals["next_batch"](records)
    if batch is None or batch.validate_crc():
        return batch
    if batch.magic < 2:
        raise CorruptRecordError("a batch of an old format does not match its checksum")
    return Damaged(batch)


class Damaged:
    """Stands for a batch that does not match its checksum: nothing of it but its offsets is believed."""

    magic = 2
    is_control_batch = is_transactional = False

    def __init__(self, batch: Any) -> None:
        self.base_offset, self.leader_epoch = batch.base_offset, batch.leader_epoch
        self.last_offset = max(batch.last_offset, batch.base_offset)
        self.next_offset = self.last_offset + 1
        self.max_timestamp, self.timestamp_type = -1, 0

    def has_producer_id(self) -> bool:
        """Its producer is not known."""
        return False

    def __iter__(self) -> Iterator[Any]:
        return _unread(self, DamagedError("it does not match its checksum"))


def _unread(batch: Any, error: UnreadableError) -> Iterator[Any]:
    """One record that stands for a batch."""
    from kafka.record.default_records import DefaultRecord

    last, stamp = batch.last_offset, batch.max_timestamp
    damaged = isinstance(error, DamagedError)
    headers = Unread(str(error), batch.base_offset, last, damaged=damaged)
    return iter([DefaultRecord(0, last, stamp, batch.timestamp_type, None, None, headers)])


def _uncompress(batch: Any) -> None:
    codec = batch.compression_type
    if codec and not batch._decompressed:
        if codec in CODECS:
            batch._assert_has_codec(codec)
        packed = bytes(memoryview(batch._buffer)[batch._pos :])
        batch._buffer, batch._pos = bytearray(unpack(codec, packed)), 0
    batch._decompressed = True


def _records(batch: Any) -> Iterator[Any]:
    try:
        batch._maybe_uncompress()
    except UnreadableError as error:
        return _unread(batch, error)
    return batch  # type: ignore[no-any-return]


def poll_rows(consumer: Any) -> None:
    """Make a consumer's polls return rows in place of records.

    For each record kafka-python makes two objects, and looks at every byte of its lengths by a call.
    """
    consumer._fetcher.PartitionRecords = _rows_by_partition()


@functools.cache
def _rows_by_partition() -> type:
    from kafka.consumer.fetcher import Fetcher

    class Rows(Fetcher.PartitionRecords):  # type: ignore[misc]
        """What was fetched of a partition, of which batches are read whole."""

        def _maybe_skip_record(self, row: Row) -> bool:
            return bool(row[0] < self.fetch_offset)

        def _unpack_records(self, at: Any, records: Any, *_: Any) -> Iterator[Row]:
            for found in super()._unpack_records(at, _Batches(records), None, None):
                if isinstance(found.value, list):
                    yield from found.value
                else:
                    why = found.headers if isinstance(found.headers, Unread) else None
                    yield found.offset, found.value, found.timestamp, why

        def take(self, n: int | None = None) -> list[Row]:
            rows: list[Row] = super().take(n)
            if rows and self.record_iterator is not None:  # it may be within a batch
                self.next_fetch_offset = rows[-1][0] + 1
            return rows

    return Rows


class _Batches:
    """What was fetched, its batches such that they give their records at once."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        plain = batch is None or batch.magic < 2 or batch.is_control_batch or isinstance(batch, Damaged)
        return batch if plain else _Batch(batch)


class _Batch:
    """A batch that gives one record, whose value is the rows of all; record by record where it is odd."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        batch = self._batch
        try:
            batch._maybe_uncompress()
        except UnreadableError as error:
            return _unread(batch, error)
        appended = batch.timestamp_type == batch.LOG_APPEND_TIME
        time = batch.max_timestamp if appended else batch.first_timestamp
        records = bytes(memoryview(batch._buffer)[batch._pos :])
        rows = rows_of(records, batch.records_count, batch.base_offset, time, appended=appended)
        if rows is None:
            return iter(batch)
        return iter([_Whole(rows, rows[-1][0], batch.size_in_bytes)] if rows else [])


class _Whole(NamedTuple):
    """Stands for all records of a batch, as one."""

    value: list[Row]
    offset: int
    size_in_bytes: int
    key: None = None
    headers: tuple[()] = ()
    timestamp: int = 0
    timestamp_type: int = 0
    checksum: None = None


def hand_over(producer: Any, at: Any, records: bytes, count: int, *, futures: bool) -> list[Any]:
    """Give a producer a batch built by ``batches`` to send; return a future for each record if wanted.

    ``KafkaProducer.send`` looks at every record several times, and leaves an object behind for each.
    """
    from kafka.producer.future import FutureRecordMetadata
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.record.memory_records import MemoryRecordsBuilder

    accumulator = producer._accumulator
    config = accumulator.config
    builder = MemoryRecordsBuilder(2, config["compression_attrs"], config["batch_size"])
    inner = builder._builder
    inner._buffer += records
    inner._first_timestamp = inner._max_timestamp = int(1000 * time.time())
    inner._num_records = builder._next_offset = count
    inner._last_offset = count - 1
    batch = ProducerBatch(at, builder)
    if futures:
        of = batch.produce_future
        batch._record_futures = [FutureRecordMetadata(of, i, 0, None, 0, 0, 0) for i in range(count)]
    with accumulator._tp_lock(at):
        accumulator._batches[at].append(batch)
        accumulator._incomplete.add(batch)
    producer._sender.wakeup()
    return list(batch._record_futures)


def forbid_new_epochs(producer: Any) -> None:
    """Make a transactional producer fail if its records arrived out of order.

    It would get itself a new epoch, forget the transaction that it was in, and call its end a success. It
    does not do so with brokers of before KIP-360.
    """
    producer._transaction_manager._api_version = _BEFORE_KIP_360


def join_transaction(producer: Any, at: Any) -> None:
    """Make a partition part of the producer's transaction, as ``send`` does."""
    producer._transaction_manager.maybe_add_partition_to_transaction(at)


def begin_commit(producer: Any) -> Any:
    """Begin to commit the producer's transaction; return a result that can be waited for in steps."""
    done = producer._transaction_manager.begin_commit()
    producer._sender.wakeup()
    return done


def cause_of_abort(producer: Any) -> Exception | None:
    """The error that ended the producer's transaction, where a later one only says that it has ended."""
    cause: Exception | None = producer._transaction_manager.last_error
    return cause


def offset_after(producer: Any, at: Any) -> int:
    """The offset after the last record that a partition has acknowledged."""
    return int(producer._transaction_manager.last_acked_offset(at)) + 1


def abandon(producer: Any) -> None:
    """Drop what a producer has not delivered; for any thread.

    Its ``close`` waits for that, also when told not to wait, raises, and does so again when it is collected.
    """
    producer._sender.force_close()
    producer._closed = True
