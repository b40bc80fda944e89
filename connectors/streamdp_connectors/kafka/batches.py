"""Batches of Kafka's message format 2: unpack those that are read, within bounds, and build those to send."""

from __future__ import annotations

import functools
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

LIMIT = 64 << 20
"""Bytes that a batch may have when it is unpacked; brokers bound it packed, by default at one megabyte."""

USUAL_LIMIT = 1_048_588
"""Bytes that brokers accept at most in a batch unless they are set otherwise (``message.max.bytes``)."""

_PIECE = 1 << 20
_XERIAL = b"\x82SNAPPY\0"
_SEQUENCE = b"out_seq"
_BATCH = 61  # bytes around the records of a batch
_RECORD = 160  # lengths and numbers, and the headers ``epoch`` and ``out_seq``
_HEADER = 10
_NO_KEY = 1


class UnreadableError(Exception):
    """A batch cannot be unpacked, or would be too large."""


class DamagedError(UnreadableError):
    """A batch is not what was written."""


class Unread(list[Any]):
    """Stands for a record's headers: why a batch cannot be read, and its first and last offset.

    ``damaged`` says that it is not what its producer wrote.
    """

    def __init__(self, why: str, first: int, last: int, *, damaged: bool) -> None:
        super().__init__()
        self.why, self.first, self.last, self.damaged = why, first, last, damaged


def unpack(codec: int, packed: bytes, limit: int = LIMIT) -> bytes:
    """Return a batch's records; ``codec`` is its attribute. Raises UnreadableError, ImportError."""
    if codec not in CODECS:
        raise DamagedError(f"its codec, number {codec}, is none that there is")
    try:
        pieces = CODECS[codec](packed, limit)
        found: list[bytes] = []
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > limit:
                raise UnreadableError(f"it is larger than {limit >> 20} MiB when it is unpacked")
            found.append(piece)
    except (UnreadableError, ImportError, MemoryError):
        raise
    except Exception as error:  # every codec has errors of its own
        raise UnreadableError(f"it cannot be unpacked: {' '.join(str(error).split())}") from None
    return b"".join(found)


def _gzip(packed: bytes, limit: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        while piece := file.read(_PIECE):
            yield piece


def _snappy(packed: bytes, limit: int) -> Iterator[bytes]:
    import snappy

    left = limit
    for block in _xerial_blocks(packed) if packed.startswith(_XERIAL) else [packed]:
        left -= _announced(block)
        if left < 0:
            raise UnreadableError(f"it is larger than {limit >> 20} MiB when it is unpacked")
        yield snappy.decompress(block)


def _xerial_blocks(packed: bytes) -> Iterator[bytes]:
    at = 16
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big")
        at += 4
        yield packed[at : at + size]
        at += size


def _announced(block: bytes) -> int:
    """The length that a block of snappy claims; its decoder does not exceed it."""
    size = 0
    for shift, byte in zip(range(0, 35, 7), block, strict=False):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
    raise UnreadableError("it does not begin like snappy")


def _lz4(packed: bytes, limit: int) -> Iterator[bytes]:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    yield frame.decompress(packed, _PIECE)
    while not frame.eof:
        if frame.needs_input:
            raise UnreadableError("it ends too early")
        yield frame.decompress(b"", _PIECE)


def _zstd(packed: bytes, limit: int) -> Iterator[bytes]:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True) as reader:
        while piece := reader.read(_PIECE):
            yield piece


Row = tuple[int, bytes | None, int, Unread | None]
"""A record that was read: offset, value, time in milliseconds, and why its batch cannot be read."""


def rows_of(records: bytes, count: int, offset: int, time: int, *, appended: bool) -> list[Row] | None:
    """Return the records of an unpacked batch; None where they are not written as they should be.

    ``offset`` and ``time`` are those of the batch, to which the records' own are added; with ``appended`` the
    batch's time is that of all. Keys and headers are passed over.
    """
    rows: list[Row] = []
    at = 0
    try:
        for _ in range(count):
            stop, at = _number(records, at)
            stop += at
            at += 1  # the attributes, of which there are none
            later, at = _number(records, at)
            place, at = _number(records, at)
            if records[at] == _NO_KEY:
                at += 1
            else:
                size, at = _number(records, at)
                at += max(0, size)
            size, at = _number(records, at)
            value = records[at : at + size] if size >= 0 else None
            if not at <= at + max(0, size) < stop <= len(records):
                return None
            rows.append((offset + place, value, time if appended else time + later, None))
            at = stop
    except IndexError:
        return None
    return rows if at == len(records) else None


def _number(written: bytes, at: int) -> tuple[int, int]:
    """The inverse of ``varint``, and the place after the number."""
    byte = written[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    found, shift = byte & 0x7F, 7
    while byte >= 0x80:
        byte = written[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
    return (found >> 1) ^ -(found & 1), at


CODECS: dict[int, Callable[[bytes, int], Iterator[bytes]]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}


class Entry(NamedTuple):
    """A record to be written: its number in the output, its value, and headers beyond epoch and number."""

    number: int
    value: bytes
    headers: Sequence[tuple[str, bytes]] = ()


@functools.lru_cache(maxsize=1 << 16)
def varint(number: int) -> bytes:
    """A number as the format writes it: zigzag, seven bits a byte."""
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
    """Yield the records of batches of at most ``size`` bytes, as bytes, and their number.

    A record that is longer is a batch of its own.
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


def room(largest: int, headers: Sequence[tuple[str, bytes]]) -> int:
    """How many bytes are left for the value of a record with these headers, alone in its batch."""
    taken = sum(len(key) + len(value) + _HEADER for key, value in headers)
    return max(0, largest - _BATCH - _RECORD - taken)
