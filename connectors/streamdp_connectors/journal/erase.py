"""Erase records from a journal: each stays a line of its group, so that all others keep their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from streamdp.errors import Exit
from streamdp.records.erased import Erased
from streamdp.safe_files import written_anew
from streamdp_connectors.journal.segments import Segment, damaged, groups, opened, packed, segments
from streamdp_connectors.journal.source import JOURNAL
from streamdp_connectors.journal.writer import has_group_after
from streamdp_connectors.protocol import SinkError


def found_in(folder: Path, gone: Erased, text_field: str) -> Erased:
    """What a journal knows of records: ids, and what they say."""
    lines = _lines_of(gone)
    for segment in segments(folder):
        for line, data in enumerate(_records(segment.path), segment.before + 1):
            if line not in lines and not gone.came_as(data):
                continue
            ids = gone.ids_of(data)
            try:
                fields = msgspec.json.decode(data)
            except (msgspec.DecodeError, RecursionError):
                fields = None
            text = fields.get(text_field) if isinstance(fields, dict) else None
            gone = gone.with_more(ids=ids or [], texts=[text] if isinstance(text, str) else [])
    return gone


def _lines_of(gone: Erased) -> set[int]:
    """The numbers of the lines of a journal that are known to be the records."""
    places = map(msgspec.json.decode, gone.places)
    return {place["line"] for place in places if place.get("file") == JOURNAL}


def _records(path: Path) -> Iterator[bytes]:
    fd = opened(path)
    try:
        for group in groups(fd):
            yield from group.records
    finally:
        os.close(fd)


def rewrite(segment: Segment, into: Path, gone: Erased) -> int:
    """Write a file of a journal anew, durably, without what these records are; how many they were.

    Where there are none, no new file is made. Raises SinkError.
    """
    (path, line), lines = segment, _lines_of(gone)
    changed, end, fd = 0, 0, opened(path)
    try:
        with written_anew(into, os.fstat(fd).st_mode) as file:
            for group in groups(fd):
                left = [
                    _left_of(record, gone) if at in lines or gone.came_as(record) else record
                    for at, record in enumerate(group.records, line + 1)
                ]
                line += len(left)
                changed += sum(a is not b for a, b in zip(left, group.records, strict=True))
                file.write(packed(group.arrival, left))
                end += group.size
            if has_group_after(fd, end):
                raise damaged(path, 0)
            torn = os.pread(fd, os.fstat(fd).st_size - end, end)  # nobody has heard that it was accepted
            changed += bool(torn)
        if not changed:
            into.unlink()
    except OSError as error:
        raise SinkError(f"{path}: cannot be rewritten: {error.strerror or error}", Exit.IO_ERROR) from None
    finally:
        os.close(fd)
    return changed


def _left_of(record: bytes, gone: Erased) -> bytes:
    """What stands for a record that is erased: nothing that could be one."""
    return b"{}" if gone.id_field and record.startswith(b"{") and record != b"{}" else b""
