"""What goes into the engine and what comes out of it: plain records, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
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


def plain(record: Any) -> Record | Reject:
    """A record made in Python, its value a text, a list of floats or a dict of floats.

    Arrays, tuples and sequences of numbers become lists, numbers of numpy plain ones. TypeError, with what
    was expected, for anything else.
    """
    if isinstance(record, Reject):
        return record
    if not isinstance(record, Record):
        raise TypeError(
            f"a record is Record(value, position), not {_named(record)}: for a text, "
            'Record("storm over the coast", {"line": 1})'
        )
    value = record.value
    try:
        if isinstance(value, Mapping):
            features = {str(name): float(number) for name, number in value.items()}
            return msgspec.structs.replace(record, value=features)
        if not isinstance(value, str | bytes):
            return msgspec.structs.replace(record, value=list(map(float, value)))
    except (TypeError, ValueError):
        pass
    else:
        if isinstance(value, str):
            return record
    raise TypeError(
        "the value of a record is a text, a sequence of numbers, or a mapping from names to numbers, "
        f"not {_named(value)}"
    )


def _named(value: object) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"


class Reject(msgspec.Struct, frozen=True, gc=False):
    """An event that was refused, with the reason and the original bytes."""

    position: Position
    reason: str
    detail: str
    data: bytes


class Assignment(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The answer to one record, or (``revision`` > 0) a later change of it.

    ``probability`` is the posterior mass of the cluster given the stream so far, ``new_probability`` that
    of a new one when the record came, both in [0, 1]; ``log_predictive`` is log p(x_t | past) in nats,
    ``novelty`` its negative by token or dimension; ``link`` is the likeliest earlier member under a
    distance-dependent prior.
    """

    seq: int
    id: str | int | None
    position: Position
    time: float | None
    cluster: int
    probability: float
    new_probability: float
    new: bool
    link: int | None
    log_predictive: float
    novelty: float
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

    Times are None where no record had one. ``recent`` counts its records among the last 1,000, ``before``
    among the 1,000 before those (as far as they are retained); ``samples`` are up to three of its records.
    ``weight`` is the prior's; 0 where it is closed and only waits for the other hypotheses to agree.
    """

    cluster: int
    size: int
    first_time: float | None
    last_time: float | None
    first_seq: int
    last_seq: int
    weight: float
    recent: int = 0
    before: int = 0
    samples: list[str] = []
    words: list[tuple[str, int]] | None = None
    mean: list[float] | None = None


class Answers(msgspec.Struct, frozen=True, gc=False):
    """What a call of the engine produced, each list in processing order."""

    lines: list[Assignment | Final]
    rejects: list[Reject]
    events: list[Event]
