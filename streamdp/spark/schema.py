"""Rows of a micro-batch as records, in an order that does not depend on Spark; answers as rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import pandas as pd

from streamdp.encode.encoders import decoder_of
from streamdp.errors import ConfigError
from streamdp.records import JOINED, Answers, Assignment, Event, Final, Raw, Record, Reject
from streamdp.settings import Settings

RECORD, ORDER, POSITION = "streamdp_record", "streamdp_order", ("topic", "partition", "offset")
"""Columns between Spark's rows and ours: a record as it is written, what it is ordered by, where it stood."""
ARRIVAL = "timestamp"
"""When a broker had it."""
PART = "streamdp_part"
"""Which cluster a shard found for it."""


Written = Literal["jsonl", "text", "log"]
"""Formats of records as they are written."""


def format_of(settings: Settings) -> Written:
    """That of the records. Raises ConfigError for one that only files have."""
    found = "jsonl" if settings.format == "auto" else settings.format
    if found not in get_args(Written):
        raise ConfigError(f"format {found} is for files: let Spark read it, and give its columns")
    if found == "log" and settings.timestamp_format is None and settings.pattern is None:
        raise ConfigError("the first lines of a log are not the same for every worker: set timestamp_format")
    return found  # type: ignore[return-value]


class Row(NamedTuple):
    """A record as it is written, and what Spark says of it."""

    data: bytes
    order: tuple[object, ...]
    topic: str | None
    partition: int
    offset: int
    arrival: float | None
    part: int | None = None


def _of_part(found: Record | Reject, part: int | None) -> Record | Reject:
    if part is None or isinstance(found, Reject):
        return found
    return msgspec.structs.replace(found, part=part)


class Intake:
    """Decodes the rows of one key. What did not come from a topic has no position."""

    def __init__(self, settings: Settings) -> None:
        self._decoder = decoder_of(settings, format_of(settings))

    def take(self, rows: Iterable[Row]) -> tuple[list[Row], list[Record | Reject]]:
        """The rows of one micro-batch in order, and what they hold.

        By the columns to order by; else records of a topic as they are in their partitions, these merged by
        time; else by time. What is the same in all of that comes by its bytes.
        """
        raws = [(self._raw(row), row) for row in sorted(rows, key=_came)]
        found = [self._decoder.decode(raw) for raw, _ in raws]
        if self._decoder.log is not None:
            self._decoder.log.end()
        late = {id(raw): record for raw, record in self._decoder.overdue()}
        decoded = [
            (row, _of_part(late.get(id(raw), each), row.part))
            for (raw, row), each in zip(raws, found, strict=True)
        ]
        moments = dict(self._moments(decoded))
        decoded.sort(key=lambda each: (each[0].order, moments[id(each[0])], *_came(each[0])))
        kept = [found for _, found in decoded if not (isinstance(found, Reject) and found.reason == JOINED)]
        return [row for row, _ in decoded], kept

    def _raw(self, row: Row) -> Raw:
        position = {} if row.topic is None else dict(zip(POSITION, row[2:5], strict=True))
        arrival = row.arrival
        if arrival is None:  # nothing is too far beyond it; a log's year has to come from somewhere
            arrival = math.inf if self._decoder.log is None else time.time()
        return Raw(row.data, position, arrival, row.arrival)

    @staticmethod
    def _moments(decoded: list[tuple[Row, Record | Reject]]) -> Iterator[tuple[int, float]]:
        """The time by which each row is merged: of a partition the latest so far, as a consumer has it."""
        latest: dict[tuple[str | None, int], float] = {}
        for row, found in sorted(decoded, key=lambda each: each[0][2:5] if each[0].topic else ("", 0, 0)):
            moment = -math.inf if isinstance(found, Reject) or found.time is None else found.time
            if row.topic is not None:
                at = row.topic, row.partition
                moment = latest[at] = max(moment, latest.get(at, -math.inf))
            yield id(row), moment


def _came(row: Row) -> tuple[object, ...]:
    """The order in which rows are read: that of their partitions, where they are from a topic."""
    return row.topic or "", row.partition, row.offset, row.order, row.data


def _rank(value: Any) -> tuple[bool, object]:
    """What a value is ordered by; what is missing comes first."""
    missing = value is None or value is pd.NA or value != value
    return (False, 0) if missing else (True, value)


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """The rows that Spark hands over."""
    size = len(frame)
    orders = [frame[name] for name in frame.columns if name.startswith(ORDER)]
    offsets = POSITION[-1] in frame.columns
    where = [frame[name].tolist() if offsets else [None] * size for name in POSITION]
    arrival = frame[ARRIVAL].tolist() if offsets else [None] * size
    data = frame[RECORD].tolist()
    parts: list[int | None] = [None] * size
    if PART in frame.columns:
        parts = [None if each is None or each != each else int(each) for each in frame[PART].tolist()]
    order: list[tuple[object, ...]] = [()] * size
    if orders:
        order = list(zip(*(map(_rank, column.tolist()) for column in orders), strict=True))
    return [
        Row(
            b"" if each is None else bytes(each),
            order[n],
            topic,
            partition or 0,
            offset or 0,
            when,
            parts[n],
        )
        for n, (each, topic, partition, offset, when) in enumerate(zip(data, *where, arrival, strict=True))
    ]


COLUMNS = {
    "kind": "string",
    "seq": "bigint",
    "revision": "int",
    "id": "string",
    "position": "string",
    "time": "double",
    "cluster": "bigint",
    "probability": "double",
    "new_probability": "double",
    "lasting_probability": "double",
    "stability": "double",
    "confidence": "double",
    "confidence_labels": "bigint",
    "new": "boolean",
    "link": "bigint",
    "log_predictive": "double",
    "novelty": "double",
    "keep": "string",
    "template": "string",
    "params": "array<string>",
    "final_through": "bigint",
    "event": "string",
    "other": "bigint",
    "size": "bigint",
    "moved": "array<array<bigint>>",
    "first_time": "double",
    "last_time": "double",
    "words": "array<struct<word:string,count:bigint>>",
    "mean": "array<double>",
    "lines": "bigint",
    "usual": "double",
    "title": "string",
    "reason": "string",
    "detail": "string",
    "data": "binary",
}
"""Every column and its type in Spark: the names and units of the file formats.

``kind`` is assignment, final, event or reject; the columns of the others are null. ``time``, ``first_time``
and ``last_time`` are seconds since 1970. ``id`` is a text also where it was a number; ``position`` and
``keep`` are JSON, as in the files; only records of a topic have a position.
"""


def _json(value: Any) -> str | None:
    return msgspec.json.encode(value).decode() if value else None


_AS: dict[str, Callable[[Any], Any]] = {
    "id": str,
    "position": _json,
    "keep": _json,
    "words": lambda words: [{"word": word, "count": count} for word, count in words],
    "moved": lambda moved: [list(pair) for pair in moved],
}
"""How values are written that are no column as they are."""

_KINDS: dict[type[msgspec.Struct], str] = {
    Assignment: "assignment",
    Final: "final",
    Event: "event",
    Reject: "reject",
}
_HAS = {kind: frozenset(kind.__struct_fields__) for kind in _KINDS}


def frame_of(answers: Answers, key: dict[str, Any]) -> pd.DataFrame:
    """A row for each line, event and reject, in processing order; ``key``: columns alike in all."""
    rows: list[Any] = [*answers.lines, *answers.events, *answers.rejects]
    kinds = list(map(type, rows))
    columns: dict[str, Any] = {name: [value] * len(rows) for name, value in key.items()}
    columns["kind"] = [_KINDS[kind] for kind in kinds]
    for name in list(COLUMNS)[1:]:
        columns[name] = list(_column(name, rows, kinds))
    # object: pandas would make numbers with gaps among them floats, which do not hold every whole number
    return pd.DataFrame(columns, dtype=object)


def _column(name: str, rows: Iterable[Any], kinds: Iterable[type]) -> Iterable[Any]:
    value_of, written = attrgetter(name), _AS.get(name)
    for each, kind in zip(rows, kinds, strict=True):
        value = value_of(each) if name in _HAS[kind] else None
        if value is None or value is msgspec.UNSET:
            yield None
        else:
            yield value if written is None else written(value)
