"""Files of answers as ``consume`` and ``fit`` write them: JSON lines or CSV, gzipped or not, or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from streamdp.decode.objects import Error, unpacked, written_lines
from streamdp.errors import Exit, needing
from streamdp.records import Assignment
from streamdp.records.cells import as_it_was

BOM = b"\xef\xbb\xbf"


class _Said(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What an answer may say beside its record and cluster."""

    id: str | int | float | None = None
    time: float | None = None
    probability: float | None = None
    new_probability: float | None = None
    new: bool = False
    novelty: float | None = None
    revision: int = 0
    position: dict[str, Any] = {}
    keep: dict[str, Any] = {}
    template: str | None = None


class Answer(_Said, frozen=True, gc=False):
    """What is read of a line: the same as ``records.Assignment``, as far as the file has it."""

    seq: int
    cluster: int


A = TypeVar("A", Answer, Assignment, Answer | Assignment)


class _Line(_Said, frozen=True, gc=False):
    """A line of JSON: what tells an answer from other lines, which are passed over or refused."""

    seq: int | None = None
    cluster: int | None = None
    final_through: int | None = None
    event: str | None = None


def by_record(answers: Iterable[A]) -> dict[int, tuple[A, A]]:
    """The first and the newest answer to each record, by its number, in the order in which they are met.

    These are of the lowest revision and of the highest: the later on ties.
    """
    found: dict[int, tuple[A, A]] = {}
    for answer in answers:
        first, newest = found.get(answer.seq, (answer, answer))
        found[answer.seq] = (
            answer if answer.revision < first.revision else first,
            answer if answer.revision >= newest.revision else newest,
        )
    return found


_FIELDS = Answer.__struct_fields__
_PLACE = ("file", "line", "topic", "partition", "offset", "record")
_NUMBERS = ("line", "partition", "offset", "record")
_OTHER = (
    "link",
    "lasting_probability",
    "stability",
    "confidence",
    "confidence_labels",
    "log_predictive",
    "params",
    "keep",
    "position",
)


def answers_in(path: str | Path, error: Error) -> Iterator[tuple[int, Answer]]:
    """The answers and revisions in a file, with the numbers of their lines; finality is passed over.

    A last line that was cut short is left out, since a writer may not be done with it. Raises ``error``:
    66 where the file cannot be read, 65 where a line is no answer, 69 where a package is missing.
    """
    if is_parquet(path, error):
        return _parquet(path, error)
    return _rows(path, error) if is_table(path, error) else _lines(path, error)


def is_table(path: str | Path, error: Error) -> bool:
    """Whether a file holds no objects, and so, rows of cells under a header. Raises ``error``."""
    with unpacked(path, error) as file:
        first = file.readline(1 << 20).removeprefix(BOM).lstrip()
    return first[:1] not in (b"", b"{", b"[") and any(d in first for d in (b",", b"\t", b";"))


def is_parquet(path: str | Path, error: Error) -> bool:
    """Whether a file is Parquet. Raises ``error`` where it cannot be read."""
    with unpacked(path, error) as file:
        return file.read(4) == b"PAR1"


def table_rows(
    path: str | Path, error: Error, needed: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table by column, each with the number of its first line. Raises ``error``.

    Cells are parted by what the header has most of: comma, semicolon or tab. It has the columns that are
    ``needed``, or begins with the first of them where it is cut short. A last row that was cut short is left
    out.
    """
    try:
        with (
            unpacked(path, error) as binary,
            io.TextIOWrapper(binary, "utf-8-sig", newline="") as file,
        ):
            header = file.readline()
            names = next(csv.reader([header], delimiter=delimiter_of(header)))
            begun = not header.endswith("\n") and names[:1] == [*needed[:1]]
            if lacking := set(needed) - {*names, *(needed if begun else ())}:
                raise error(f"{path}: its columns have no {' and no '.join(sorted(lacking))}", Exit.BAD_DATA)
            reader = csv.reader(file, delimiter=delimiter_of(header))
            number = 2
            for row in reader:
                if len(row) == len(names):
                    yield number, dict(zip(names, row, strict=True))
                elif row and next(reader, None) is None and len(row) < len(names):
                    return  # cut short by a writer that is not done
                elif row:
                    why = f"{path}, line {number}: {len(row)} cells under a header of {len(names)}"
                    raise error(why, Exit.BAD_DATA)
                number = reader.line_num + 2
    except (csv.Error, UnicodeDecodeError) as cause:
        raise error(f"{path}: no table of text: {cause}", Exit.BAD_DATA) from cause


CLUSTER = "cluster the file first, with streamdp consume"


def delimiter_of(header: str) -> str:
    """What parts the cells of a header: of comma, semicolon and tab that which it has most of."""
    return max((",", ";", "\t"), key=header.count)


def _lines(path: str | Path, error: Error) -> Iterator[tuple[int, Answer]]:
    decode = msgspec.json.Decoder(_Line).decode
    for number, line in written_lines(path, decode, error, torn=(b'{"seq":', b'{"final_through":')):
        if line.seq is not None and line.cluster is not None and line.event is None:
            yield number, Answer(**{name: getattr(line, name) for name in _FIELDS})
        elif line.final_through is None:
            raise error(
                f"{path}, line {number}: not an assignment of streamdp: {CLUSTER} {path}", Exit.BAD_DATA
            )


def _rows(path: str | Path, error: Error) -> Iterator[tuple[int, Answer]]:
    for number, row in table_rows(path, error, ("seq", "cluster")):
        cells = {name: as_it_was(cell) for name, cell in row.items()}
        yield number, _answer(f"{path}, line {number}", cells, error)


def _parquet(path: str | Path, error: Error) -> Iterator[tuple[int, Answer]]:
    with needing(error, f"{path} is Parquet, and reading it needs", "pyarrow"):
        from pyarrow import ArrowException, parquet
    try:
        with parquet.ParquetFile(path) as file:
            rows = chain.from_iterable(batch.to_pylist() for batch in file.iter_batches())
            for number, row in enumerate(rows, 1):
                yield number, _answer(f"{path}, row {number}", row, error)
    except (OSError, ArrowException) as cause:
        raise error(f"{path} is not valid Parquet: {cause}", Exit.BAD_DATA) from cause


def _answer(where: str, row: Mapping[str, Any], error: Error) -> Answer:
    """The answer in a row of a table. Raises ``error`` where it is none."""
    given: dict[str, Any] = {}
    place: dict[str, Any] = {}
    keep: dict[str, Any] = {}
    for name, cell in row.items():
        if name in _FIELDS and name not in _OTHER:
            given |= {} if cell in ("", None) else {name: cell}
        elif name in _PLACE:
            number = name in _NUMBERS and isinstance(cell, str) and cell.isdecimal()
            place |= {name: int(cell) if number else cell}
        elif name not in _OTHER:
            keep[name.removeprefix("kept_")] = cell
    try:
        answer: Answer = msgspec.convert({**given, "position": place, "keep": keep}, Answer, strict=False)
    except msgspec.ValidationError as cause:
        missing = "`seq`" in str(cause) or "`cluster`" in str(cause)
        why = f"not an assignment of streamdp: {CLUSTER} FILE" if missing else str(cause)
        raise error(f"{where}: {why}", Exit.BAD_DATA) from cause
    return answer
