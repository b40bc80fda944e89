"""What a source and a sink promise the engine, and the errors both report."""

from __future__ import annotations

from typing import Any, Protocol

from streamdp.errors import StreamdpError
from streamdp.records import Raw


class ConnectorError(StreamdpError):
    """A source or a sink cannot go on."""


class SourceError(ConnectorError):
    """The input cannot be opened, read or continued."""


class SinkError(ConnectorError):
    """The output cannot be created, written or continued."""


class SinkClosed(Exception):  # noqa: N818 - the reader has had enough; nothing is wrong
    """Whoever read the output has gone away (``| head``): end quietly."""


class Source(Protocol):
    """Where records come from."""

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""

    def read(self, max_records: int, timeout: float) -> list[Raw]:
        """Return what is there, at most ``max_records``; [] when nothing came within ``timeout`` seconds.

        Raises SourceError.
        """

    def positions(self) -> dict[str, Any]:
        """Return what ``seek`` needs to continue after the last record that ``read`` returned.

        It depends on that record alone, not on how reads were cut into batches.
        """

    def seek(self, positions: dict[str, Any]) -> None:
        """Continue at stored positions. Raises SourceError when the source no longer matches them."""

    def commit(self) -> None:
        """Learn that all up to ``positions`` is safe: whoever watches the source's lag may be told."""

    def close(self) -> None:
        """Give everything back; a second call does nothing."""


class Sink(Protocol):
    """Where lines go."""

    def write(self, lines: bytes) -> None:
        """Append whole lines. Raises SinkError, or SinkClosed when nobody reads any more."""

    def flush(self, sync: bool) -> None:
        """Hand everything to the operating system; with ``sync`` also to the disk. Raises as ``write``."""

    def length(self) -> int:
        """Return the bytes written so far, to be stored and given to ``truncate`` or on resuming."""

    def truncate(self, length: int) -> None:
        """Forget everything after the first ``length`` bytes. Raises SinkError."""

    def close(self) -> None:
        """Flush and give everything back; a second call does nothing."""
