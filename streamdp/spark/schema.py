"""Answers as the rows of a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import msgspec
import pandas as pd

from streamdp.records import Answers, Assignment, Event, Final, Reject

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


def _words(words: list[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"word": word, "count": count} for word, count in words]


_AS: dict[str, Callable[[Any], Any]] = {
    "id": str,
    "position": _json,
    "keep": _json,
    "words": _words,
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
    told: list[Any] = [*answers.lines, *answers.events, *answers.rejects]
    kinds = list(map(type, told))
    columns: dict[str, Any] = {name: [value] * len(told) for name, value in key.items()}
    columns["kind"] = [_KINDS[kind] for kind in kinds]
    for name in list(COLUMNS)[1:]:
        columns[name] = list(_column(name, told, kinds))
    # object: pandas would make numbers with gaps among them floats, which do not hold every whole number
    return pd.DataFrame(columns, dtype=object)


def _column(name: str, told: Iterable[Any], kinds: Iterable[type]) -> Iterable[Any]:
    value_of, written = attrgetter(name), _AS.get(name)
    for each, kind in zip(told, kinds, strict=True):
        value = value_of(each) if name in _HAS[kind] else None
        if value is None or value is msgspec.UNSET:
            yield None
        else:
            yield value if written is None else written(value)
