"""What a source and a sink promise, and the errors that they raise.

A source needs the five members of ``Source``, a sink those of ``Sink``. What only some of them can do is a
protocol of its own: ``isinstance`` tells whether a source or a sink can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from streamdp.errors import StreamdpError
from streamdp.records import Raw

Item = TypeVar("Item", contravariant=True)


class ConnectorError(StreamdpError):
    """A source or a sink cannot go on."""

    passing = False
    """Whether that may change by itself in a moment: a broker is away."""


class SourceError(ConnectorError):
    """The input cannot be opened, read or continued."""


class SinkError(ConnectorError):
    """The output cannot be created, written or continued."""


class FullError(SinkError):
    """The disk is full: what the output was given is held, and may be flushed again."""


class SinkClosed(Exception):  # noqa: N818 - the reader has had enough; nothing is wrong
    """The reader of the output has gone away (``| head``): end quietly."""


class Gap(NamedTuple):
    """Records that a source has skipped: the position of the first, the reason, and how many are known of."""

    position: dict[str, Any]
    detail: str
    records: int


class Lag(NamedTuple):
    """How many records of a partition are still unread, and the last record read, if there is one."""

    topic: str
    partition: int
    records: int
    last: Raw | None


@dataclass(frozen=True)
class SourceRequest:
    """What a source is opened for.

    ``address`` is as the user wrote it, such as ``redis://host/news?group=a``; ``follow`` says whether it
    waits for more at its end, ``longest`` how many bytes of a record are worth reading.
    """

    address: str
    follow: bool
    longest: int


@dataclass(frozen=True)
class SinkRequest:
    """What a sink is opened for.

    ``left`` is what its ``state`` returned at the snapshot that the run resumes from, None for a new output.
    ``replayed`` says whether what was written after it comes again, ``ended`` that the input had come to its
    end at the snapshot, and ``overwrite`` that what is there may be replaced.
    """

    address: str
    left: Any
    replayed: bool
    ended: bool
    overwrite: bool


@runtime_checkable
class Source(Protocol):
    """Where records come from. Every method but ``close`` may raise SourceError.

    It may have a ``place``: the names in the positions of its records, which are columns of a table.
    """

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""

    def read(self, max_records: int, timeout: float) -> Sequence[Raw]:
        """Return at most ``max_records`` records; [] when none came within ``timeout`` seconds."""

    def positions(self) -> dict[str, Any]:
        """Return what ``seek`` needs to continue after the last record that ``read`` returned.

        It depends on that record alone, not on how reads were cut into batches.
        """

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue at stored positions; return False if the source cannot go back, as a pipe.

        Raises SourceError when the source no longer matches the positions.
        """

    def close(self) -> None:
        """Release everything; a second call does nothing."""


@runtime_checkable
class Sized(Protocol):
    """A source that knows how long it is."""

    def share(self) -> float | None:
        """Return how much of it has been read, from 0 to 1; None if that is not known just now."""


@runtime_checkable
class Replayable(Protocol):
    """A source whose records come in an order that depends on the clock, and that can repeat this order."""

    def decided(self) -> dict[str, Any]:
        """Return what the clock has decided about recent records; it is stored with the positions."""

    def replay(self, marks: Iterable[Mapping[str, Any]]) -> None:
        """Return records in the order of an earlier run, given its positions (and decisions) after each read.

        To be called after ``seek``. Marks of another source are ignored.
        """


@runtime_checkable
class Watched(Protocol):
    """A source that others write to while it is read, and that can be out of reach."""

    @property
    def holds(self) -> bool:
        """Whether records have arrived that wait for others, so that a read without records is no silence."""

    def up(self) -> bool:
        """Return whether the source answers; it is asked if nothing was heard from it lately.

        Raises SourceError if it has been away for too long.
        """

    def gaps(self) -> list[Gap]:
        """Return what was skipped since the last call."""

    def lags(self) -> list[Lag]:
        """Return how far reading is behind, by partition, as last heard of."""

    def commit(self, positions: dict[str, Any]) -> None:
        """Tell those who watch the lag that everything up to these positions is safe; for any thread."""


def share_of(source: Source) -> float | None:
    """How much of a source has been read, from 0 to 1; None if it does not know."""
    return source.share() if isinstance(source, Sized) else None


@runtime_checkable
class Sink(Protocol[Item]):
    """Where lines (bytes), or rejects, go. Every method may raise SinkError.

    A sink is made from what ``state`` returned at the snapshot that a run resumes from: what was written
    after it is cut off, or recognised when it is written again.
    """

    def write(self, item: Item, /) -> None:
        """Append whole lines, or a reject. Raises SinkClosed when nobody reads any more."""

    def flush(self, sync: bool) -> None:
        """Hand everything to the operating system; with ``sync`` also to the disk. Raises as ``write``."""

    def lasting(self) -> Callable[[], None]:
        """Return a function that makes everything handed over so far durable; for any thread."""

    def state(self) -> Any:
        """Return what a snapshot stores of the sink; to be called after a flush."""

    def close(self) -> None:
        """Flush and release everything; a second call does nothing."""


@runtime_checkable
class Marked(Protocol):
    """A sink that stores, along with what it writes, how the source was read."""

    @property
    def marks(self) -> Sequence[Mapping[str, Any]]:
        """What an interrupted run marked after the state that this sink resumed from."""

    def mark(self, positions: Mapping[str, Any]) -> None:
        """Store the source's positions after a read, before the answers to it are written."""
