"""What goes into the engine and what comes out of it: plain records, no behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

Position = dict[str, Any]
"""Where a record stands in its source, as it is printed: ``{"file": ..., "line": n}`` or
``{"topic": ..., "partition": p, "offset": o}``."""


class Raw(msgspec.Struct, frozen=True, gc=False):
    """One event as a source delivers it: bytes, before anything has been decoded.

    ``time`` is the source's own timestamp in seconds since the epoch (a broker's), or None;
    ``arrival`` is the wall clock in seconds when the source read it.
    """

    data: bytes
    position: Position
    arrival: float
    time: float | None = None


class Record(msgspec.Struct, frozen=True, gc=False):
    """One decoded event: a text, a dense vector, or a mapping from feature name to number."""

    value: str | list[float] | dict[str, float]
    position: Position
    time: float | None = None
    id: str | int | None = None
    arrival: float | None = None
    keep: dict[str, Any] | None = None
    raw: bytes = b""


class Reject(msgspec.Struct, frozen=True, gc=False):
    """An event that was refused, with the reason and the original bytes."""

    position: Position
    reason: str
    detail: str
    data: bytes


class Assignment(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The answer to one record, or (``revision`` > 0) a later change of it.

    ``probability`` is the posterior mass of the cluster given the stream so far; ``log_predictive`` is
    log p(x_t | past) in nats; ``link`` is the likeliest earlier member under a distance-dependent prior.
    """

    seq: int
    id: str | int | None
    position: Position
    time: float | None
    cluster: int
    probability: float
    new: bool
    link: int | None
    log_predictive: float
    revision: int = 0
    keep: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class Final(msgspec.Struct, frozen=True, gc=False):
    """Every assignment up to ``final_through`` will never change again."""

    final_through: int


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What happened to a cluster: born, split, closed, retired, merged or vanished (docs/formats.md)."""

    event: str
    seq: int
    time: float | None
    cluster: int
    other: int | None
    size: int
    moved: list[tuple[int, int]] | None
    first_time: float | None
    last_time: float | None
    words: list[tuple[str, int]] | None = None
    mean: list[float] | None = None


class ClusterSummary(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A live cluster of the best hypothesis. ``words`` for text, ``mean`` for vectors.

    ``weight`` is the prior's; 0 where it is closed and only waits for the other hypotheses to agree.
    """

    cluster: int
    size: int
    first_time: float | None
    last_time: float | None
    last_seq: int
    weight: float
    words: list[tuple[str, int]] | None = None
    mean: list[float] | None = None


class Answers(msgspec.Struct, frozen=True, gc=False):
    """What a call of the engine produced, each list in processing order."""

    lines: list[Assignment | Final]
    rejects: list[Reject]
    events: list[Event]
