"""Record batches of Kafka's message format 2, built at once and handed to a producer whole.

``KafkaProducer.send`` looks at every record several times, and leaves an object behind for each. Here records
become bytes in one loop, and the producer gets what it would have made of them: this module knows its inside.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_SEQUENCE = b"out_seq"


class Entry(NamedTuple):
    """A record to be written: its number in the output, its value, and headers beyond epoch and number."""

    number: int
    value: bytes
    headers: Sequence[tuple[str, bytes]] = ()


@functools.lru_cache(maxsize=1 << 16)
def varint(number: int) -> bytes:
    """A number as the format has it: zigzag, seven bits a byte."""
    left = number << 1 if number >= 0 else ((-number) << 1) - 1
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def _header(key: bytes, value: bytes) -> bytes:
    return b"".join((varint(len(key)), key, varint(len(value)), value))


def batches(entries: Sequence[Entry], epoch: int, size: int) -> Iterator[tuple[bytes, int]]:
    """Records side by side, as a batch has them, and how many: batches of at most ``size`` bytes.

    A record longer than that is a batch of its own.
    """
    always = _header(b"epoch", b"%d" % epoch) + varint(len(_SEQUENCE)) + _SEQUENCE
    plain = varint(2) + always
    room, count, parts = size, 0, list[bytes]()
    for number, value, more in entries:
        digits = b"%d" % number
        length = varint(len(digits))
        headers = plain + length + digits
        if more:
            others = b"".join(_header(key.encode(), content) for key, content in more)
            headers = b"".join((varint(2 + len(more)), always, length, digits, others))
        needed = len(value) + len(headers) + 32  # more than all the lengths take
        if needed > room and count:
            yield b"".join(parts), count
            room, count, parts = size, 0, []
        # attributes, time after the batch's, number in the batch, no key
        body = b"".join((b"\0\0", varint(count), b"\1", varint(len(value)), value, headers))
        parts.append(varint(len(body)))
        parts.append(body)
        count += 1
        room -= needed
    if count:
        yield b"".join(parts), count


def hand_over(producer: Any, at: Any, records: bytes, count: int, *, futures: bool) -> list[Any]:
    """Let a producer send a batch to a partition; return a future for each record, where those are wanted."""
    from kafka.producer.future import FutureRecordMetadata
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.record.memory_records import MemoryRecordsBuilder

    accumulator = producer._accumulator  # noqa: SLF001
    builder = MemoryRecordsBuilder(
        2, accumulator.config["compression_attrs"], accumulator.config["batch_size"]
    )
    inner = builder._builder  # noqa: SLF001
    inner._buffer += records  # noqa: SLF001
    inner._first_timestamp = inner._max_timestamp = int(1000 * time.time())  # noqa: SLF001
    inner._num_records = builder._next_offset = count  # noqa: SLF001
    inner._last_offset = count - 1  # noqa: SLF001
    batch = ProducerBatch(at, builder)
    if futures:
        of = batch.produce_future
        batch._record_futures = [FutureRecordMetadata(of, i, 0, None, 0, 0, 0) for i in range(count)]  # noqa: SLF001
    with accumulator._tp_lock(at):  # noqa: SLF001
        accumulator._batches[at].append(batch)  # noqa: SLF001
        accumulator._incomplete.add(batch)  # noqa: SLF001
    producer._sender.wakeup()  # noqa: SLF001
    return list(batch._record_futures)  # noqa: SLF001
