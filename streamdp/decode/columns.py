"""Records written as CSV rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamdp.decode.fields import (
    LONGEST_ID,
    Fields,
    Parts,
    RefusedError,
    in_seconds,
    nothing_of,
    number_cell,
    plain_float,
    text_value,
    time_cell,
)

DELIMITERS = {"csv": ",", "tsv": "\t", "ssv": ";", "psv": "|"}
"""What separates two cells."""

TRUTH = "cluster"
"""The column in which prepared data sets hold the known answer; it never becomes a feature."""


_ODD = bytes([*range(0x20), 0x22, 0x7F])
"""What no plain row holds: control characters, and the quotation mark."""


class Rows(NamedTuple):
    """Rows of numbers side by side."""

    features: tuple[str, ...]
    vectors: np.ndarray  # float64[n, features]
    times: Sequence[float | None]
    ids: Sequence[str | None]
    kept: Sequence[Sequence[str] | None]  # of each kept field; None where the table has no such column


class TableColumns:
    """Knows what each column of one CSV header is for.

    ``categories`` are the columns that hold categories, () for all but time, id, the kept ones and
    ``cluster``; None where there are none. Then, without a text column, every column with a name becomes a
    feature, except time, id, the kept ones and ``cluster``. Raises ValueError for a header that repeats a
    name, lacks a column that is named, or leaves nothing to cluster by.
    """

    def __init__(
        self,
        header: Sequence[str],
        fields: Fields,
        delimiter: str = ",",
        categories: Sequence[str] | None = None,
    ) -> None:
        self._delimiter = delimiter
        self.header = tuple(header)
        named = [name for name in self.header if name]
        if len({*named}) < len(named):
            raise ValueError(f"the header repeats a name: {', '.join(map(repr, named))}")
        at = {name: i for i, name in enumerate(self.header) if name}
        self._fields = fields
        self._text = at.get(fields.text)
        self._time, self._date = at.get(fields.time), at.get(fields.date or "")
        self._id = at.get(fields.id)
        self._keep = [(name, at[name]) for name in fields.keep if name in at]
        other = {fields.time, fields.date, fields.id, TRUTH, *fields.keep}
        self._features = [(name, i) for name, i in at.items() if name not in other]
        self._categories = categories
        if categories is not None:
            lacking = [name for name in categories if name not in at]
            if lacking:
                raise ValueError(f"the CSV header has no column {', '.join(map(repr, lacking))}")
            self._text = None
            self._features = [(name, at[name]) for name in categories] or self._features
        if self._text is None and not self._features:
            raise ValueError(f"the CSV header has neither a column {fields.text!r} nor one for a feature")

    def read(self, data: bytes) -> Parts:
        """Return the value, time, id and kept cells; raises RefusedError or UnicodeDecodeError."""
        text = data.decode()
        row = parse_row(text, self._delimiter)
        if len(row) > len(self.header) and not any(row[len(self.header) :]):
            row = row[: len(self.header)]
        if len(row) < len(self.header) and not any(self.header[len(row) :]):
            row += [""] * (len(self.header) - len(row))
        if len(row) != len(self.header):
            raise RefusedError(
                "csv_columns", f"the row has {len(row)} columns, the header {len(self.header)}"
            )
        fields = self._fields
        value: str | dict[str, float] | dict[str, str]
        if self._categories is not None:
            value = {name: row[i] for name, i in self._features if row[i] and not row[i].isspace()}
            if not value:
                raise RefusedError("missing_field", nothing_of(self._categories))
        elif self._text is None:
            value = self._numbers(row, text)
        else:
            value = text_value(row[self._text], fields.text)
        time = None if self._time is None else self._time_of(row[self._time], row)
        identity = None if self._id is None else row[self._id] or None
        return value, time, identity, {name: row[i] for name, i in self._keep} if fields.keep else None

    def read_all(self, lines: Sequence[bytes]) -> Rows | None:
        """The same of rows of numbers that are plain, side by side; None where one is not, or is refused."""
        if self._text is not None or self._categories is not None or self._fields.comma:
            return None
        delimiter, joined = self._delimiter.encode(), b"".join(lines)
        odd, cuts = _ODD.replace(delimiter, b""), len(self.header) - 1
        if len(joined.translate(None, odd)) < len(joined) or not all(lines):
            return None
        if any(line.count(delimiter) != cuts for line in lines):
            return None
        try:
            texts = [line.decode() for line in lines]
            used = [at for _, at in self._features]
            vectors = np.loadtxt(texts, delimiter=self._delimiter, comments=None, usecols=used, ndmin=2)
            others = [at for at in (self._time, self._date, self._id) if at is not None]
            last = max([*others, *(at for _, at in self._keep)], default=-1)
            rows = [text.split(self._delimiter, last + 1) for text in texts] if last >= 0 else []
            times = [None] * len(texts) if self._time is None else self._times(rows, self._time)
        except (ValueError, RefusedError):
            return None
        ids = [None] * len(texts) if self._id is None else [row[self._id] or None for row in rows]
        if len(vectors) < len(texts) or not np.isfinite(vectors).all() or _longest(ids) > LONGEST_ID // 4:
            return None
        at = dict(self._keep)
        kept = [[row[at[name]] for row in rows] if name in at else None for name in self._fields.keep]
        return Rows(tuple(name for name, _ in self._features), vectors, times, ids, kept)

    def _times(self, rows: Sequence[list[str]], at: int) -> list[float | None]:
        """The times of rows; raises RefusedError."""
        fields = self._fields
        if self._date is None and fields.form is None:  # nearly always all of them are numbers, or none is
            try:
                seconds: list[float | None] = [in_seconds(plain_float(row[at]), fields.unit) for row in rows]
                if np.isfinite(np.array(seconds, float)).all():
                    return seconds
            except ValueError:
                pass
        return [self._time_of(row[at], row) for row in rows]

    def _time_of(self, cell: str, row: list[str]) -> float | None:
        """The time of a row, its date from a column of its own if there is one."""
        date, fields = "" if self._date is None else row[self._date].strip(), self._fields
        return time_cell(
            f"{date} {cell}" if date else cell, fields.time, fields.unit, fields.zone, fields.form
        )

    def _numbers(self, row: list[str], text: str) -> dict[str, float]:
        try:
            if "_" not in text and not self._fields.comma:
                values = {name: float(row[i]) for name, i in self._features}
                if math.isfinite(sum(values.values())):
                    return values
        except ValueError:
            pass
        return {name: number_cell(row[i], name, self._fields.comma) for name, i in self._features}


def _longest(ids: Sequence[str | None]) -> int:
    return max((len(each) for each in ids if each is not None), default=0)


def parse_row(text: str, delimiter: str = ",") -> list[str]:
    """Split one logical row into its cells; refuses ``csv_columns`` where quotes or line ends are wrong."""
    if text and not ('"' in text or "\n" in text or "\r" in text or "\0" in text):  # as nearly always
        return text.split(delimiter)
    usual = csv.field_size_limit()
    try:
        if len(text) > usual:
            csv.field_size_limit(len(text))  # the record's own limit has been checked already
        rows = list(csv.reader((text,), strict=True, delimiter=delimiter))
    except csv.Error as error:
        raise RefusedError("csv_columns", f"the row is not valid CSV: {error}") from None
    finally:
        csv.field_size_limit(usual)
    return rows[0] if rows else []
