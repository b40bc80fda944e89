"""Unpack a batch of records, however it is compressed, and never more of it than fits."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any

LIMIT = 64 << 20
"""Bytes that a batch may have when it is unpacked; brokers bound it packed, by default at one megabyte."""

_PIECE = 1 << 20
_XERIAL = b"\x82SNAPPY\0"


class UnreadableError(Exception):
    """A batch cannot be unpacked, or would be too large."""


class Unread(list[Any]):
    """In the place of a record's headers: why the records of a batch cannot be read, and which they are."""

    def __init__(self, why: str, first: int, last: int) -> None:
        super().__init__()
        self.why, self.first, self.last = why, first, last


def unpack(codec: int, packed: bytes, limit: int = LIMIT) -> bytes:
    """A batch's records; ``codec`` as in the attributes of a batch. Raises UnreadableError, ImportError."""
    try:
        pieces = _CODECS[codec](packed, limit)
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
    while packed:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = member.decompress(packed, _PIECE)
            packed = member.unconsumed_tail
            if not piece and not packed and not member.eof:
                raise UnreadableError("it ends too early")
            yield piece
        packed = member.unused_data


def _snappy(packed: bytes, limit: int) -> Iterator[bytes]:
    import snappy

    if not packed.startswith(_XERIAL):
        blocks = iter([packed])
    else:
        blocks = _xerial_blocks(packed)
    left = limit
    for block in blocks:
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
    """How long a block of snappy says it is; its decoder holds it to that."""
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


_CODECS: dict[int, Callable[[bytes, int], Iterator[bytes]]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}


def bound_batches(default_records: Any) -> None:
    """Let kafka-python unpack batches by ``unpack``, for all consumers of the process; a use of its inside.

    Its own codecs unpack whatever comes: 29 kB of zstd were 1.7 GB. And an error in the midst of a poll
    would leave it spinning. So a batch that cannot be read becomes one record without a value, at the
    offset of the batch's last one, its headers an ``Unread``.
    """
    batch = default_records.DefaultRecordBatch
    if batch.__iter__ is _records:
        return
    batch._maybe_uncompress = _uncompress  # noqa: SLF001
    batch.__iter__ = _records


def _uncompress(batch: Any) -> None:
    codec = batch.compression_type
    if codec and not batch._decompressed:  # noqa: SLF001
        batch._assert_has_codec(codec)  # noqa: SLF001
        packed = bytes(memoryview(batch._buffer)[batch._pos :])  # noqa: SLF001
        batch._buffer, batch._pos = bytearray(unpack(codec, packed)), 0  # noqa: SLF001
    batch._decompressed = True  # noqa: SLF001


def _records(batch: Any) -> Iterator[Any]:
    from kafka.record.default_records import DefaultRecord

    try:
        batch._maybe_uncompress()  # noqa: SLF001
    except UnreadableError as error:
        last = batch.last_offset
        headers = Unread(str(error), batch.base_offset, last)
        stamp = batch.max_timestamp
        return iter([DefaultRecord(0, last, stamp, batch.timestamp_type, None, None, headers)])
    return batch  # type: ignore[no-any-return]
