"""``streamdp mcp``: a stream that programs ask, by the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from typing import BinaryIO

from streamdp.errors import ConfigError, Exit, how_to_install
from streamdp.questions.sources import LocalSource, RemoteSource
from streamdp.reports.source import is_address
from streamdp.run.observers import token_of
from streamdp.state.corrections import CorrectionRequest


def serve_programs(where: str, token: str | None, *, corrects: bool) -> None:
    """Answer until the client closes stdin. Raises StreamdpError."""
    try:
        from streamdp.programs.server import Tools
    except ImportError:
        raise ConfigError(f"mcp needs more packages: {how_to_install('mcp')}", Exit.UNAVAILABLE) from None
    source = RemoteSource(where, token_of(token)) if is_address(where) else LocalSource(where)
    if corrects and CorrectionRequest not in source.can:
        raise ConfigError(
            f"--allow-corrections: {where} takes none: name the folder of a state, or a service", Exit.USAGE
        )
    sys.stdin = io.TextIOWrapper(io.BufferedReader(WellFormed(sys.stdin.buffer)), encoding="utf-8")
    asyncio.run(Tools(source, corrects=corrects).run())


class WellFormed(io.RawIOBase):
    """Lines of JSON with a question mark for each lone surrogate, which is no text.

    The protocol's package gives no answer to a line that has one.
    """

    def __init__(self, lines: BinaryIO) -> None:
        self._lines, self._left = lines, b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        """Read from a line, as far as there is room."""
        self._left = self._left or _well_formed(self._lines.readline())
        size = min(len(into), len(self._left))
        into[:size], self._left = self._left[:size], self._left[size:]
        return size


def _well_formed(line: bytes) -> bytes:
    if b"\\ud" not in line.lower():
        return line
    try:
        return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    except (ValueError, RecursionError):
        return line  # the protocol's package refuses it
