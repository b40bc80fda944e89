"""Erase records from files of lines that streamdp has written: answers, events, rejects, messages.

A line stays where it is, without the record's id and what it says: so every other line is the same.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from streamdp.errors import Exit, foreseen
from streamdp.records.cells import as_it_was
from streamdp.records.erased import Erased, refused_data, texts_of
from streamdp.safe_files import open_regular, written_anew
from streamdp_connectors.protocol import SinkError

OWN = (b'{"seq":', b'{"final_through":', b'{"position":', b'{"event":', b"seq,")
"""How files begin that streamdp has written."""

_OF_RECORDS = ("id", "params")
"""Columns of a table of answers that are the record's own, beside kept fields."""

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
    """The columns of answers as CSV."""

    columns: tuple[str, ...]
    own: tuple[int, ...]  # those of the record's own

    @classmethod
    def of(cls, header: bytes) -> Table:
        """By the first line of a file."""
        columns = tuple(next(csv.reader([header.decode("utf-8", "replace")]), []))
        first = next((i for i, name in enumerate(columns) if name in _PLACE), len(columns))
        kept = first + _PLACE.get(columns[first], 0) if first < len(columns) else first
        own = [
            i for i, name in enumerate(columns) if name in _OF_RECORDS or (i >= kept and name != "template")
        ]
        return cls(columns, tuple(own))

    def cells(self, line: bytes) -> list[str] | None:
        """The cells of a line; None where it is no whole one."""
        found = next(csv.reader([line.decode("utf-8", "replace").rstrip("\n")]), [])
        return found if len(found) == len(self.columns) else None

    def fields(self, cells: Sequence[str]) -> dict[str, str]:
        """Cells by their columns; kept fields under their own names."""
        found = zip(self.columns, map(as_it_was, cells), strict=True)
        return {name.removeprefix("kept_"): cell for name, cell in found}

    def kept(self, cells: Sequence[str]) -> list[str]:
        """What fields hold that were kept."""
        return [as_it_was(cells[i]) for i in self.own if self.columns[i] not in _OF_RECORDS and cells[i]]


def found_in(path: Path, gone: Erased) -> Erased:
    """What a file knows of records: numbers of ids, ids of numbers, texts. Raises SinkError."""
    table: Table | None = None
    for number, (line, _) in enumerate(_lines(path)):
        if number == 0 and line.startswith(b"seq,"):
            table = Table.of(line)
        elif table is not None:
            cells = table.cells(line)
            gone = gone if cells is None else _of_cells(table, cells, gone)
        else:
            gone = _of_value(_value(line), gone)
    return gone


def _value(line: bytes) -> Any:
    try:
        return _decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _of_value(value: Any, gone: Erased) -> Erased:
    if not isinstance(value, dict) or "position" not in value:
        return gone
    if "reason" in value:
        return _of_reject(value, gone)
    kept = value.get("keep") or {}
    if not (gone.named(value.get("id")) or value.get("seq") in gone.seqs or gone.meant(kept)):
        return gone
    name = value.get("id")
    ids = [] if name is None else [str(name)]
    texts, places = texts_of(kept.values()), [value["position"]]
    return gone.with_more(ids=ids, seqs=[value["seq"]], texts=texts, places=places)


def _of_reject(value: dict[str, Any], gone: Erased) -> Erased:
    ids = gone.ids_of(refused_data(value))
    return gone if ids is None else gone.with_more(ids=ids)


def _of_cells(table: Table, cells: list[str], gone: Erased) -> Erased:
    fields = table.fields(cells)
    seq = int(fields["seq"]) if fields["seq"].isdecimal() else -1
    if not (gone.named(fields.get("id") or None) or seq in gone.seqs or gone.meant(fields)):
        return gone
    ids = [fields["id"]] if fields.get("id") else []
    place = {"file": fields["file"], "line": int(fields["line"])} if fields.get("file") else None
    texts, places = texts_of(table.kept(cells)), [] if place is None else [place]
    return gone.with_more(ids=ids, seqs=[seq], texts=texts, places=places)


class Rewritten(NamedTuple):
    """How many lines were changed, and where places of the file are in the new one."""

    lines: int
    places: dict[int, int]


def rewrite(path: Path, into: Path, gone: Erased, places: Sequence[int] = ()) -> Rewritten:
    """Write a file anew, durably, without what is the records'. Raises SinkError.

    ``places`` are ends of lines. Where nothing is changed there is no new file.
    """
    changed, before, after = 0, 0, 0
    found = {0: 0}
    wanted = set(places)
    with foreseen(SinkError, path, "rewritten", Exit.IO_ERROR):
        status = os.stat(path)
        with written_anew(into, status.st_mode) as file:
            table: Table | None = None
            for line, size in _lines(path):
                if before == 0 and line.startswith(b"seq,"):
                    table, left = Table.of(line), line
                else:
                    left = _left_of_row(table, line, gone) if table else _left_of_line(line, gone)
                changed += left is not line
                file.write(left)
                before, after = before + size, after + len(left)
                if before in wanted:
                    found[before] = after
        if not changed:
            into.unlink()
    return Rewritten(changed, found)


def _left_of_line(line: bytes, gone: Erased) -> bytes:
    value = _value(line)
    if value is None:  # torn, or not JSON
        text = line.decode("utf-8", "replace")
        names = any(f'"{name}"' in text for name in gone.ids)
        return b"" if names or gone.said(text) else line
    left = gone.scrubbed(value)
    return line if left is value else _encode(left) + b"\n"


def _left_of_row(table: Table, line: bytes, gone: Erased) -> bytes:
    cells = table.cells(line)
    if cells is None:
        return b"" if gone.said(line.decode("utf-8", "replace")) else line
    fields = table.fields(cells)
    if not (gone.named(fields.get("id") or None) or int(fields["seq"] or -1) in gone.seqs):
        return line
    for at in table.own:
        cells[at] = ""
    left = [
        "" if name == "template" and gone.said(as_it_was(cell)) else cell
        for name, cell in zip(table.columns, cells, strict=True)
    ]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(left)
    written = out.getvalue().encode()
    return line if written == line else written


def _lines(path: Path) -> Iterator[tuple[bytes, int]]:
    """The lines of a file with their newlines, and how many bytes each has."""
    with (
        foreseen(SinkError, path, "read", Exit.NO_INPUT),
        open(open_regular(path, follow=True), "rb") as file,
    ):
        for line in file:
            yield line, len(line)
