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
