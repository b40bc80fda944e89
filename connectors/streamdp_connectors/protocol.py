"""What a source and a sink promise the engine, and the errors both report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from streamdp.errors import StreamdpError
from streamdp.records import Raw

Item = TypeVar("Item", contravariant=True)


class ConnectorError(StreamdpError):
    """A source or a sink cannot go on."""


class SourceError(ConnectorError):
    """The input cannot be opened, read or continued."""


class SinkError(ConnectorError):
    """The output cannot be created, written or continued."""


class SinkClosed(Exception):  # noqa: N818 - the reader has had enough; nothing is wrong
    """Whoever read the output has gone away (``| head``): end quietly."""


class Gap(NamedTuple):
    """Records that a source has passed over: where the first of them was, why, and how many are known of."""

    position: dict[str, Any]
    detail: str
    records: int


class Lag(NamedTuple):
    """How many records of a partition are not read yet, and the last that was, where there was one."""

    topic: str
    partition: int
    records: int
    last: Raw | None


class Source(Protocol):
    """Where records come from."""

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""

    @property
    def replayable(self) -> bool:
        """Whether ``seek`` can go back to records read before; a pipe only goes on."""

    def share(self) -> float | None:
        """Return how much of the source has been read, from 0 to 1; None where nobody knows."""

    def read(self, max_records: int, timeout: float) -> list[Raw]:
        """Return what is there, at most ``max_records``; [] when nothing came within ``timeout`` seconds.

        Raises SourceError.
        """

    @property
    def holds(self) -> bool:
        """Whether records have come that wait for others, so that a read without any is no silence."""

    def gaps(self) -> list[Gap]:
        """Return what was passed over since this was asked last."""

    def up(self) -> bool | None:
        """Return whether the source can be reached, asking when it was silent; None where that means nothing.

        Raises SourceError where it was away for longer than is waited for.
        """

    def positions(self) -> dict[str, Any]:
        """Return what ``seek`` needs to continue after the last record that ``read`` returned.

        It depends on that record alone, not on how reads were cut into batches.
        """

    def decided(self) -> dict[str, Any]:
        """Return what the wall clock has decided about records lately returned, to be noted with positions.

        ``replay`` takes it with them, and decides the same.
        """

    def seek(self, positions: dict[str, Any]) -> None:
        """Continue at stored positions. Raises SourceError when the source no longer matches them."""

    def replay(self, marks: Iterable[Mapping[str, Any]]) -> None:
        """Return records in the order of an earlier run, which had these positions after its reads.

        To be called after ``seek``; those of another source are passed over. A source of one order only
        does nothing.
        """

    def commit(self, positions: dict[str, Any]) -> None:
        """Learn that all up to these positions is safe: whoever watches the source's lag may be told.

        May be called in another thread.
        """

    def lags(self) -> list[Lag]:
        """Return how far reading is behind, by partition, without asking; [] where nobody knows."""

    def close(self) -> None:
        """Give everything back; a second call does nothing."""


class Unwatched:
    """What a source of files has nothing to do for: it has one order, and nobody asks how far it was read."""

    holds = False
    """Nothing waits."""

    def gaps(self) -> list[Gap]:
        """Nothing is passed over."""
        return []

    def up(self) -> None:
        """There is nothing to reach."""

    def decided(self) -> dict[str, Any]:
        """Nothing is noted with a file's positions."""
        return {}

    def replay(self, marks: Iterable[Mapping[str, Any]]) -> None:
        """There is one order only."""

    def commit(self, positions: dict[str, Any]) -> None:
        """Nobody is told."""

    def lags(self) -> list[Lag]:
        """Nobody knows how many records are left."""
        return []


class Sink(Protocol[Item]):
    """Where lines (bytes), or rejects, go."""

    @property
    def marks(self) -> Sequence[Mapping[str, Any]]:
        """What an interrupted run had marked after the state that this sink resumed from."""

    def mark(self, positions: Mapping[str, Any]) -> None:
        """Note the source's positions after a read, before what comes of it is written.

        A sink that cannot keep them does nothing.
        """

    def write(self, item: Item, /) -> None:
        """Append whole lines, or a reject. Raises SinkError, or SinkClosed when nobody reads any more."""

    def flush(self, sync: bool) -> None:
        """Hand everything to the operating system; with ``sync`` also to the disk. Raises as ``write``."""

    def lasting(self) -> Callable[[], None]:
        """Return what sees to it that all that was handed over by now lasts.

        It may be called in another thread, while this one goes on writing. Raises SinkError.
        """

    def state(self) -> Any:
        """Return what a snapshot keeps, to go on from here; to be asked for after a flush."""

    def close(self) -> None:
        """Flush and give everything back; a second call does nothing."""
