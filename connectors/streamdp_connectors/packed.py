"""Make UTF-8 of gzip, Zstandard and UTF-16 piece by piece, so that a small file fills no memory."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Any

from streamdp.errors import Exit, needing
from streamdp_connectors.protocol import SourceError

_PIECE = 1 << 10
"""Packed bytes of Zstandard at a time: four of them may stand for 128 KiB."""


class Unpacker:
    """Unpacks a stream of one or more compressed frames; ``name`` is for messages. Raises SourceError."""

    kind: str
    magic: bytes
    """How such files begin; no UTF-8 text does."""
    ending: str | None = None
    """How their names end; None where that says nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._packed = b""
        self._frame: Any = None

    def feed(self, packed: bytes) -> None:
        """Add packed bytes; take everything out before adding more."""
        self._packed += packed

    def take(self, limit: int) -> bytes:
        """Return up to ``limit`` unpacked bytes, b"" when more packed ones are needed."""
        raise NotImplementedError

    def finish(self) -> None:
        """Check, at the end of the packed stream, that it ends where a frame does."""
        if self._frame is not None:
            raise self._invalid("it ends too early")

    def _invalid(self, why: object) -> SourceError:
        return SourceError(f"{self._name} is not valid {self.kind}: {why}", Exit.BAD_DATA)


class Gunzip(Unpacker):
    """Unpacks gzip."""

    kind, magic, ending = "gzip", b"\x1f\x8b", ".gz"
    _more = False  # the last piece filled its limit, so zlib may hold some of the next

    def take(self, limit: int) -> bytes:
        """Unpack no more than ``limit`` bytes, so that a small file cannot fill the memory."""
        while self._packed or self._more:
            if self._frame is None:
                self._packed = self._packed.lstrip(b"\0")  # padding between and after members
                if not self._packed:
                    break
                self._frame = zlib.decompressobj(wbits=31)
            try:
                piece: bytes = self._frame.decompress(self._packed, limit)
            except zlib.error as error:
                begins = "header" not in str(error)
                why = error if begins else "it does not begin so; if it is not packed, take .gz off its name"
                raise self._invalid(why) from None
            self._more = len(piece) == limit
            self._packed = self._frame.unconsumed_tail
            if self._frame.eof:
                self._packed, self._frame, self._more = self._frame.unused_data, None, False
            if piece:
                return piece
        return b""


class Unzstd(Unpacker):
    """Unpacks Zstandard."""

    kind, magic, ending = "Zstandard", b"\x28\xb5\x2f\xfd", ".zst"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        with needing(SourceError, f"{name} is Zstandard, and reading it needs", "zstandard"):
            import zstandard
        self._library: Any = zstandard
        self._at = 0  # of the packed bytes
        self._unpacked, self._given = b"", 0

    def feed(self, packed: bytes) -> None:
        """Add packed bytes; take everything out before adding more."""
        self._packed, self._at = packed, 0

    def take(self, limit: int) -> bytes:
        """Unpack a few packed bytes at a time; neither end of them is copied more often than needed."""
        while self._given == len(self._unpacked):
            piece = self._packed[self._at : self._at + _PIECE]
            if not piece:
                return b""
            if self._frame is None:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                self._unpacked, self._given = self._frame.decompress(piece), 0
            except self._library.ZstdError as error:
                raise self._invalid(error) from None
            self._at += len(piece)
            if self._frame.eof:
                self._at -= len(self._frame.unused_data)
                self._frame = None
        found = self._unpacked[self._given : self._given + limit]
        self._given += len(found)
        return found


class Utf16(Unpacker):
    """Makes UTF-8 of UTF-16; half of a pair of surrogates stays one, so that its record alone is refused."""

    kind = "UTF-16"

    def take(self, limit: int) -> bytes:
        """Return all that has come: at most three bytes for two."""
        if self._frame is None:
            self._frame = codecs.getincrementaldecoder("utf-16")("surrogatepass")
        text, self._packed = self._frame.decode(self._packed), b""
        return str(text).encode("utf-8", "surrogatepass")

    def finish(self) -> None:
        """Check that the stream ends with a whole sign."""
        if self._frame is not None and self._frame.getstate()[0]:
            raise self._invalid("it ends in the middle of a sign")


class Utf16Little(Utf16):
    """UTF-16 whose smaller byte comes first."""

    magic = codecs.BOM_UTF16_LE


class Utf16Big(Utf16):
    """UTF-16 whose larger byte comes first."""

    magic = codecs.BOM_UTF16_BE


class Windows1252(Unpacker):
    """Makes UTF-8 of Windows-1252, which has all printable signs of Latin-1."""

    kind = "Windows-1252 (Latin-1)"

    def take(self, limit: int) -> bytes:
        """Return all that has come: at most three bytes for one."""
        packed, self._packed = self._packed, b""
        return packed.decode("cp1252", "replace").encode()

    @staticmethod
    def wrote(sample: bytes) -> bool:
        """Whether bytes are mostly ASCII, and all but a few others are no UTF-8."""
        high = len(sample) - len(sample.decode("ascii", "ignore"))
        if not 0 < high < len(sample) / 4 or re.search(rb"[\0-\x08\x0e-\x1f]", sample):
            return False
        valid = sample.decode("utf-8", "ignore").encode("utf-8")
        return 20 * (len(valid) - len(sample) + high) < high


UNPACKERS: tuple[type[Unpacker], ...] = (Gunzip, Unzstd, Utf16Little, Utf16Big)
