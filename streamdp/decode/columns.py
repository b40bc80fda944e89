"""Records written as CSV rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence

from streamdp.decode.fields import Fields, Parts, RefusedError, nothing_of, number_cell, text_value, time_cell

DELIMITERS = {"csv": ",", "tsv": "\t", "ssv": ";"}
"""What separates two cells."""

TRUTH = "cluster"
"""The column in which prepared data sets hold the known answer; it never becomes a feature."""


class Columns:
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
        repeated = sorted({name for name in named if named.count(name) > 1})
        if repeated:
            raise ValueError(f"the CSV header repeats {', '.join(map(repr, repeated))}")
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

    @property
    def roles(self) -> list[str]:
        """What the cells of a row are for: time, id, kept, feature, text, or nothing."""
        found = [""] * len(self.header)
        for role, at in (("time", self._time), ("id", self._id), ("text", self._text)):
            if at is not None:
                found[at] = role
        for role, cells in (("kept", self._keep), ("feature", self._features if self._text is None else ())):
            for _, at in cells:
                found[at] = role
        return found

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


def parse_row(text: str, delimiter: str = ",") -> list[str]:
    """Split one logical row into its cells; refuses ``csv_columns`` where quotes or line ends are wrong."""
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
