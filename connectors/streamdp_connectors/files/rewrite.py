"""The lines of files that streamdp has written, as rows: answers, events, rejects, messages, corrections.

They are read, and written anew with what somebody leaves of each. A line stays where it is.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from streamdp.errors import Exit, foreseen
from streamdp.records.cells import as_it_was
from streamdp.records.erased import rows_of_alert
from streamdp.safe_files import open_regular, written_anew
from streamdp_connectors.protocol import SinkError

OWN = (b'{"seq":', b'{"final_through":', b'{"position":', b'{"event":', b"seq,")
"""How files begin that streamdp has written."""

_OF_RECORDS = ("id", "params", "keep", "template")
"""What of an answer is the record's own."""

_PLACE = {"file": 2, "topic": 3}
"""How many columns a position has, by the first of them; kept fields follow."""

_decode, _encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode


def is_ours(path: Path) -> bool:
    """Whether a file begins as streamdp writes answers, events or rejects. Raises SinkError."""
    with (
        foreseen(SinkError, path, "read", Exit.NO_INPUT),
        open(open_regular(path, follow=True), "rb") as file,
    ):
        return file.read(64).startswith(OWN)


class Table(NamedTuple):
    """The columns of answers as CSV; those from ``kept`` on are kept fields."""

    columns: tuple[str, ...]
    kept: int

    @classmethod
    def of(cls, header: bytes) -> Table:
        """By the first line of a file."""
        columns = tuple(next(csv.reader([header.decode("utf-8", "replace")]), []))
        first = next((i for i, name in enumerate(columns) if name in _PLACE), len(columns))
        return cls(columns, first + _PLACE.get(columns[first], 0) if first < len(columns) else first)

    def cells(self, line: bytes) -> list[str] | None:
        """The cells of a line; None where it is no whole one."""
        found = next(csv.reader([line.decode("utf-8", "replace").rstrip("\n")]), [])
        return found if len(found) == len(self.columns) else None

    def _where(self, at: int) -> str:
        """What of an answer a column has: kept fields are one part of it."""
        name = self.columns[at]
        return "keep" if at >= self.kept and name != "template" else name

    def row(self, cells: Sequence[str]) -> dict[str, Any]:
        """An answer as JSON has it, of texts; without what is empty."""
        found: dict[str, Any] = {"keep": {}, "position": None}
        for at, (name, cell) in enumerate(zip(self.columns, map(as_it_was, cells), strict=True)):
            if cell and self._where(at) == "keep":
                found["keep"][name.removeprefix("kept_")] = cell
            elif cell:
                found[name] = cell
        if "file" in found:
            found["position"] = {"file": found["file"], "line": int(found["line"])}
        return found | {"seq": int(found["seq"]) if found.get("seq", "").isdecimal() else -1}

    def left(self, cells: Sequence[str], row: dict[str, Any]) -> bytes:
        """The line of an answer of which this is left."""
        gone = [name for name in _OF_RECORDS if not row.get(name)]
        left = ["" if self._where(at) in gone else cell for at, cell in enumerate(cells)]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(left)
        return out.getvalue().encode()


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """What whole lines say of records: objects of JSON, answers of a table. Raises SinkError."""
    table: Table | None = None
    for number, line in enumerate(_lines(path)):
        if number == 0 and line.startswith(b"seq,"):
            table = Table.of(line)
        elif table is None:
            value = _value(line)
            if isinstance(value, dict) and "position" in value:
                yield value
            elif isinstance(value, dict) and "key" in value:  # an alert
                yield from rows_of_alert(value)
        elif (cells := table.cells(line)) is not None:
            yield table.row(cells)


def _value(line: bytes) -> Any:
    try:
        return _decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


class Rewritten(NamedTuple):
    """How many lines were changed, and where places of the file are in the new one."""

    lines: int
    places: dict[int, int]


def rewrite(
    path: Path,
    into: Path,
    left_of: Callable[[Any], Any],
    left_of_torn: Callable[[bytes], bytes],
    places: Sequence[int] = (),
) -> Rewritten:
    """Write a file anew, durably, with what is left of each row; or of a line that is not whole.

    ``places`` are ends of lines. Where nothing is changed there is no new file. Raises SinkError.
    """
    changed, before, after = 0, 0, 0
    found = {0: 0}
    wanted = set(places)
    with foreseen(SinkError, path, "rewritten", Exit.IO_ERROR):
        status = os.stat(path)
        with written_anew(into, status.st_mode) as file:
            table: Table | None = None
            for line in _lines(path):
                left = line
                if before == 0 and line.startswith(b"seq,"):
                    table = Table.of(line)
                elif table is not None and (cells := table.cells(line)) is not None:
                    row = table.row(cells)
                    left = line if (rest := left_of(row)) is row else table.left(cells, rest)
                elif table is None and (value := _value(line)) is not None:
                    left = line if (rest := left_of(value)) is value else _encode(rest) + b"\n"
                else:
                    left = left_of_torn(line)
                changed += left != line
                file.write(left)
                before, after = before + len(line), after + len(left)
                if before in wanted:
                    found[before] = after
        if not changed:
            into.unlink()
    return Rewritten(changed, found)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their newlines."""
    with (
        foreseen(SinkError, path, "read", Exit.NO_INPUT),
        open(open_regular(path, follow=True), "rb") as file,
    ):
        yield from file
