"""Unpack Zstandard piece by piece."""

from __future__ import annotations

from typing import Any

from streamdp.errors import Exit
from streamdp_connectors.protocol import SourceError

MAGIC = b"\x28\xb5\x2f\xfd"
"""How Zstandard begins; no UTF-8 text does."""

_PIECE = 1 << 12  # packed bytes at a time: four of them may stand for 128 KiB


class Unzstd:
    """Unpacks a stream of one or more Zstandard frames; ``name`` is for messages. Raises SourceError."""

    def __init__(self, name: str) -> None:
        try:
            import zstandard
        except ImportError:
            raise SourceError(
                f"{name} is Zstandard, and reading it needs one more package: pip install zstandard",
                Exit.UNAVAILABLE,
            ) from None
        self._name = name
        self._error: Any = zstandard.ZstdError
        self._new: Any = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._packed = b""
        self._unpacked = b""

    def feed(self, packed: bytes) -> None:
        """Add packed bytes; take everything out before adding more."""
        self._packed += packed

    def take(self, limit: int) -> bytes:
        """Return up to ``limit`` unpacked bytes, b"" when more packed ones are needed."""
        while not self._unpacked and self._packed:
            if self._frame is None:
                self._frame = self._new()
            piece, self._packed = self._packed[:_PIECE], self._packed[_PIECE:]
            try:
                self._unpacked = self._frame.decompress(piece)
            except self._error as error:
                raise SourceError(f"{self._name} is not valid Zstandard: {error}", Exit.BAD_DATA) from None
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data + self._packed, None
        found, self._unpacked = self._unpacked[:limit], self._unpacked[limit:]
        return found

    def finish(self) -> None:
        """Check, at the end of the packed stream, that it ends where a frame does."""
        if self._frame is not None:
            raise SourceError(f"{self._name} is not valid Zstandard: it ends too early", Exit.BAD_DATA)
