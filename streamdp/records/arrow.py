"""Answers and stories as tables of Arrow, which pyarrow, polars, DuckDB and pandas read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

Row = Mapping[str, Any]

ANSWERS: Mapping[str, str] = {
    "seq": "int64",
    "id": "",
    "time": "double",
    "cluster": "int64",
    "probability": "double",
    "new_probability": "double",
    "lasting_probability": "double",
    "stability": "double",
    "new": "bool",
    "link": "int64",
    "log_predictive": "double",
    "novelty": "double",
    "revision": "int64",
}
"""The columns that every table of answers has, and their types; "" where the values say it."""

_FURTHER = ("template", "params", "confidence", "confidence_labels")
_WHOLE = range(-(1 << 63), 1 << 63)
_json = msgspec.json.Encoder()


class Answer(Protocol):
    """What a row is made of: :class:`~streamdp.records.Assignment`, which lies above."""

    @property
    def position(self) -> dict[str, Any]:
        """Where the record stands."""

    @property
    def keep(self) -> Any:
        """Its kept fields."""


def answer_row(answer: Answer, place: Iterable[str] = ()) -> dict[str, Any]:
    """The columns of an answer: its fields, its position, its kept fields.

    ``place`` are keys that a position may have. A kept field of the name of another column is ``kept_NAME``.
    """
    row = {name: _set(getattr(answer, name)) for name in ANSWERS} | dict.fromkeys(place) | answer.position
    row |= {name: value for name in _FURTHER if (value := _set(getattr(answer, name))) is not None}
    kept = answer.keep if isinstance(answer.keep, dict) else {}
    return row | {f"kept_{name}" if name in row else name: value for name, value in kept.items()}


def _set(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


def types_of(rows: Iterable[Row], types: Mapping[str, str] | None = None) -> dict[str, str]:
    """The type of each column of some rows, with those known before; "" where only nothing was seen."""
    found = dict(types or {})
    for row in rows:
        for name, value in row.items():
            before = found.setdefault(name, "")
            if value is not None and before != "string":
                found[name] = _both(before, _type_of(value))
    return found


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if value in _WHOLE else "string"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "texts"
    return "double" if isinstance(value, float) else "string"


def _both(one: str, other: str) -> str:
    """The type of a column that holds values of both."""
    if one in ("", other):
        return other
    return "double" if {one, other} == {"int64", "double"} else "string"


def table_of(rows: Sequence[Row], types: Mapping[str, str] | None = None) -> Any:
    """A table of pyarrow; ``types`` are those of its columns, None: what the rows say.

    A column of values of several types holds texts, what is no text as JSON. ImportError without pyarrow.
    """
    arrow = _pyarrow()
    types = types_of(rows) if types is None else types
    fields = [arrow.field(name, _arrow_type(arrow, kind)) for name, kind in types.items()]
    columns = [
        arrow.array([_as(kind, row.get(field.name)) for row in rows], field.type)
        for field, kind in zip(fields, types.values(), strict=True)
    ]
    return arrow.Table.from_arrays(columns, schema=arrow.schema(fields))


def answers_table(answers: Iterable[Answer]) -> Any:
    """A table of answers and revisions, a row for each. ImportError without pyarrow."""
    rows = [*map(answer_row, answers)]
    return table_of(rows, types_of(rows, ANSWERS))


def _arrow_type(arrow: Any, kind: str) -> Any:
    own = {"": arrow.string(), "double": arrow.float64(), "bool": arrow.bool_()}
    return own.get(kind) or (arrow.list_(arrow.string()) if kind == "texts" else arrow.type_for_alias(kind))


def _as(kind: str, value: Any) -> Any:
    """A value in a column of a type."""
    if value is None or kind not in ("string", "double"):
        return value
    if kind == "double":
        return float(value)
    return value if isinstance(value, str) else _json.encode(value).decode()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError("tables of Arrow need one more package: pip install pyarrow") from None
    return pyarrow
