"""Unpack gzip piece by piece, so that pipes work and a small file cannot fill the memory."""

from __future__ import annotations

import zlib

from streamdp.errors import Exit
from streamdp_connectors.protocol import SourceError

MAGIC = b"\x1f\x8b"
"""How gzip begins; no UTF-8 text does."""


class Gunzip:
    """Unpacks a stream of one or more gzip members; ``name`` is for messages. Raises SourceError."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._packed = b""
        self._member: zlib._Decompress | None = None
        self._more = False  # the last piece filled its limit, so zlib may hold some of the next

    def feed(self, packed: bytes) -> None:
        """Add packed bytes; take everything out before adding more."""
        self._packed += packed

    def take(self, limit: int) -> bytes:
        """Return up to ``limit`` unpacked bytes, b"" when more packed ones are needed."""
        while self._packed or self._more:
            if self._member is None:
                self._packed = self._packed.lstrip(b"\0")  # padding between and after members
                if not self._packed:
                    break
                self._member = zlib.decompressobj(wbits=31)
            try:
                piece = self._member.decompress(self._packed, limit)
            except zlib.error as error:
                raise SourceError(f"{self._name} is not valid gzip: {error}", Exit.BAD_DATA) from None
            self._more = len(piece) == limit
            self._packed = self._member.unconsumed_tail
            if self._member.eof:
                self._packed, self._member, self._more = self._member.unused_data, None, False
            if piece:
                return piece
        return b""

    def finish(self) -> None:
        """Check, at the end of the packed stream, that it ends where a member does."""
        if self._member is not None:
            raise SourceError(f"{self._name} is not valid gzip: it ends too early", Exit.BAD_DATA)
