"""Score the answers of streamdp against a file that holds the truth."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from streamdp.decode.answered import answers_in, by_record, is_table, table_rows
from streamdp.decode.objects import written_lines
from streamdp.decode.roles import id_column
from streamdp.errors import Exit, StreamdpError
from streamdp.scoring.agreement import Agreement, agreement

Key = str | int
"""By what a record is found in both files: its id, as a string, or its line number."""

Class = str | int | float
"""A true class."""


PROBED = 3_000
"""Records by which the field of ids is recognised."""


class ScoreError(StreamdpError):
    """Files that cannot be scored: not there (66), or of no use (65)."""


class ScoreReport(msgspec.Struct, frozen=True):
    """How well the labels agree with the truth, over the records that have both.

    ``first`` scores the labels as first announced, ``newest`` those after all revisions. ``by`` is
    "id" or "line". ``revised`` of the scored records changed their label; ``unlabelled`` truth
    records have no truth (null or missing) and were left out; ``unassigned`` records of the truth have no
    assignment; ``unknown`` assignments found no record of that id or line in the truth file.
    """

    first: Agreement
    newest: Agreement
    by: str
    revised: int
    unlabelled: int
    unassigned: int
    unknown: int


def score(
    assignments_path: str | Path, truth_path: str | Path, field: str = "cluster", id_field: str | None = None
) -> ScoreReport:
    """Score an output file against a truth file: JSON lines or a table with the true class in ``field``.

    A class is a string or a number. When any assignment carries an id, records are found by the
    truth file's ``id_field``, by default the one that ``consume`` recognises (an id written as a number
    equals the same digits as a string), else by line number, counted from 1; truth records without an id
    are skipped where ids are used. The truth file may well be the input itself. Either file may be gzipped.
    Of several lines with one seq, that of the highest revision is the newest; a last line that a running or
    killed writer has cut short is left out.
    Raises ``ScoreError``: a missing file, lines that cannot be read, one id with two classes, nothing
    that matches.
    """
    found = [*by_record(answer for _, answer in answers_in(assignments_path, ScoreError)).values()]
    by_id = any(first.id is not None for first, _ in found)
    sources = {first.position["file"] for first, _ in found if "file" in first.position}
    if not by_id and len(sources) > 1:
        raise ScoreError(
            f"{assignments_path}: assignments from {len(sources)} files cannot be matched by line, "
            "they need ids",
            Exit.BAD_DATA,
        )
    ids = (id_field or _id_field(truth_path)) if by_id else None
    classes, without = _read_truth(truth_path, field, ids)
    if ids and not classes and not without:
        raise ScoreError(
            f"{truth_path}: no record has an id in the field {ids!r} (--id-field names another)",
            Exit.BAD_DATA,
        )
    if not classes:
        raise ScoreError(f"{truth_path}: no record has a value in the field {field!r}", Exit.BAD_DATA)

    codes: dict[Class, int] = {}
    first, newest, true = [], [], []
    scored = set()
    unknown = 0
    for answer, latest in found:
        key: Key | None = answer.position.get("line")
        if by_id:
            key = None if answer.id is None else str(answer.id)
        if key is None or key not in classes:
            unknown += key is None or key not in without
            continue
        scored.add(key)
        first.append(answer.cluster)
        newest.append(latest.cluster)
        true.append(codes.setdefault(classes[key], len(codes)))
    by = "id" if by_id else "line"
    if not true:
        raise ScoreError(
            f"{assignments_path}: none of {len(found)} assignments matches a record of {truth_path} by {by}"
            + (f" in the field {ids!r} (--id-field names another)" if by_id else ""),
            Exit.BAD_DATA,
        )
    return ScoreReport(
        first=agreement(first, true),
        newest=agreement(newest, true),
        by=by,
        revised=sum(a != b for a, b in zip(first, newest, strict=True)),
        unlabelled=len(without),
        unassigned=len(classes) - len(scored),
        unknown=unknown,
    )


def _id_field(path: str | Path) -> str:
    """The field of a truth file that holds its ids, as ``consume`` recognises it."""
    rows: Iterator[tuple[int, Any]]
    if is_table(path, ScoreError):
        rows = table_rows(path, ScoreError)
    else:
        rows = written_lines(path, msgspec.json.decode, ScoreError)
    columns: dict[str, list[Any]] = {}
    for _, row in islice(rows, PROBED):
        for name, value in row.items() if isinstance(row, dict) else ():
            columns.setdefault(name, []).extend([] if value in (None, "") else [value])
    return "id" if "id" in columns else id_column(columns) or "id"


def _read_truth(path: str | Path, field: str, ids: str | None) -> tuple[dict[Key, Class], set[Key]]:
    """Class by key, and the keys of the records without one."""
    rows = (_truth_rows if is_table(path, ScoreError) else _truth_lines)(path, field, ids)
    classes: dict[Key, Class] = {}
    unlabelled: set[Key] = set()
    for number, named, value in rows:
        key: Key = number
        if ids is not None:
            if named is None:
                continue
            key = str(int(named) if isinstance(named, float) and named.is_integer() else named)
        if value is None:
            unlabelled.add(key)
        elif classes.setdefault(key, value) != value:
            raise ScoreError(
                f"{path}, line {number}: id {key!r} has the {field} {value!r}, "
                f"but {classes[key]!r} in an earlier line",
                Exit.BAD_DATA,
            )
    return classes, unlabelled.difference(classes)


_Row = tuple[int, Class | None, Class | None]
"""The number of a line, the id of its record, and its class."""


def _truth_lines(path: str | Path, field: str, ids: str | None) -> Iterator[_Row]:
    # A struct made for the field's name skips the texts and vectors beside it undecoded.
    scalar = str | int | float | None
    fields: list[tuple[str, Any, Any]] = [("value", scalar, msgspec.field(default=None, name=field))]
    if ids not in (None, field):
        fields.append(("id", scalar, msgspec.field(default=None, name=ids)))
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(msgspec.defstruct("TruthRecord", fields))
    key_field = "id" if ids != field else "value"
    for number, record in written_lines(path, decoder.decode, ScoreError):
        yield number, getattr(record, key_field, None), record.value


def _truth_rows(path: str | Path, field: str, ids: str | None) -> Iterator[_Row]:
    for number, row in table_rows(path, ScoreError):
        yield number, row.get(ids or "") or None, row.get(field) or None
