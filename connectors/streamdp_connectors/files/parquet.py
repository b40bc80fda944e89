"""Read the rows of a Parquet file as JSON objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from streamdp.errors import Exit, needing
from streamdp.records import Raw
from streamdp_connectors.files.source import check_same
from streamdp_connectors.protocol import SourceError

ROWS = 64
"""Rows decoded at a time: a cell that a file holds once may stand in all of them."""

ENOUGH = 16 << 20
"""Bytes after which a read ends, however few records they are."""

Row = dict[str, Any]


class RowSource:
    """Rows of a file that knows how many it has; a class of its own says what they are.

    A record's position is ``{"file": path, "line": n}``, n the number of its row from 1.
    """

    place = ("file", "line")

    def __init__(self, path: str, total: int) -> None:
        self.path, self._total, self._taken = path, total, 0

    @property
    def at_end(self) -> bool:
        """Whether all rows were read."""
        return self._taken >= self._total

    def positions(self) -> dict[str, Any]:
        """Return the file, and how many rows were read."""
        return {"file": self.path, "line": self._taken}

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue after as many rows as were read."""
        check_same(positions.get("file"), self.path)
        row = positions.get("line")
        if not isinstance(row, int) or row > self._total:
            raise SourceError(f"{self.path} has only {self._total} rows: it is another file", Exit.BAD_DATA)
        self._taken = row
        return True

    def share(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return self._taken / max(self._total, 1)


class ParquetSource(RowSource):
    """The rows of one Parquet file, each as the bytes of a JSON object of its columns.

    A record's position is ``{"file": path, "line": n}``, n the number of its row from 1. ``shape`` makes the
    object of a row; it is given the names of the columns that hold numbers first. Bytes that are UTF-8 are
    text; a row with others in a column that ``counts`` is refused. Raises SourceError.
    """

    def __init__(
        self,
        path: str,
        shape: Callable[[list[str], set[str]], Callable[[Row], Row]],
        counts: Callable[[str], bool] = lambda name: True,
    ) -> None:
        with needing(SourceError, f"{path} is Parquet, and reading it needs", "pyarrow"):
            import pyarrow as arrow
            from pyarrow import parquet
        self._arrow = arrow
        try:
            self._file = parquet.ParquetFile(path)
        except FileNotFoundError:
            raise SourceError(f"cannot open {path}: no such file", Exit.NO_INPUT) from None
        except (OSError, arrow.ArrowException) as error:
            raise SourceError(f"{path} is not valid Parquet: {error}", Exit.BAD_DATA) from None
        schema = self._file.schema_arrow
        numbers = {field.name for field in schema if _is_number(arrow, field.type)}
        self._counts = counts
        self._of_bytes = [field.name for field in schema if "binary" in str(field.type)]
        self._padded = {field.name for field in schema if arrow.types.is_fixed_size_binary(field.type)}
        self._shape = shape(schema.names, numbers)
        super().__init__(path, self._file.metadata.num_rows)
        self._rows = self._from(0)

    def read(self, max_records: int, timeout: float) -> list[Raw]:
        """Return the next rows, at most ``max_records``, and fewer where they are long."""
        found, size, now = [], 0, time.time()
        for row in self._rows:
            self._taken += 1
            refused = self._read_bytes(row) if self._of_bytes else ""
            data = msgspec.json.encode(self._shape(row), enc_hook=str)
            found.append(Raw(data, {"file": self.path, "line": self._taken}, now, refused=refused))
            size += len(data)
            if len(found) >= max_records or size > ENOUGH:
                break
        return found

    def _read_bytes(self, row: Row) -> str:
        """Make the bytes in a row text; why it is refused where they are none."""
        for name in self._of_bytes:
            try:
                row[name] = _as_text(row[name], b"\0" if name in self._padded else b"")
            except UnicodeDecodeError:
                if self._counts(name):
                    return f"column {name!r} holds bytes that are not UTF-8"
        return ""

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue after as many rows as were read."""
        super().seek(positions)
        self._rows = self._from(self._taken)
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _from(self, row: int) -> Iterator[Row]:
        """The rows from one on; whole groups before it are not read."""
        counts = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        first = 0
        while first < len(counts) and row >= counts[first]:
            row -= counts[first]
            first += 1
        groups = range(first, len(counts))
        try:
            for batch in self._file.iter_batches(ROWS, row_groups=list(groups)) if groups else ():
                rows = self._readable(batch).to_pylist()
                yield from rows[row:]
                row = max(row - len(rows), 0)
        except self._arrow.ArrowException as error:
            raise SourceError(f"{self.path} is not valid Parquet: {error}", Exit.BAD_DATA) from None

    def _readable(self, batch: Any) -> Any:
        """Times in microseconds, as Python's know no nanoseconds; decimals with a fraction as floats."""
        table, types = self._arrow.Table.from_batches([batch]), self._arrow.types
        for i, field in enumerate(table.schema):
            if types.is_timestamp(field.type) and field.type.unit == "ns":
                kind = self._arrow.timestamp("us", field.type.tz)
            elif _is_fraction(self._arrow, field.type):
                kind = self._arrow.float64()
            else:
                continue
            table = table.set_column(i, field.name, table.column(i).cast(kind, safe=False))
        return table


def _as_text(value: Any, padding: bytes = b"") -> Any:
    """A value whose bytes are text, also those in lists and structs."""
    if isinstance(value, bytes):
        return (value.rstrip(padding) if padding else value).decode()
    if isinstance(value, list):
        return list(map(_as_text, value))
    return {name: _as_text(item) for name, item in value.items()} if isinstance(value, dict) else value


def _is_number(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    whole = types.is_integer(kind) or types.is_boolean(kind)
    return bool(whole or types.is_floating(kind) or _is_fraction(arrow, kind))


def _is_fraction(arrow: Any, kind: Any) -> bool:
    return bool(arrow.types.is_decimal(kind) and kind.scale > 0)
