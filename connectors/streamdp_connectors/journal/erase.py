"""Erase records from a journal: each stays a line of its group, so that all others keep their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from streamdp.errors import Exit
from streamdp.records.erased import Erased
from streamdp.safe_files import written_anew
from streamdp_connectors.journal.segments import damaged, groups, opened, packed, segments
from streamdp_connectors.journal.writer import has_group_after
from streamdp_connectors.protocol import SinkError


def found_in(folder: Path, gone: Erased, text_field: str) -> Erased:
    """What a journal knows of records: ids, and what they say."""
    for segment in segments(folder):
        for data in _records(segment.path):
            if not gone.came_as(data):
                continue
            try:
                fields = msgspec.json.decode(data)
            except msgspec.DecodeError:
                gone = gone.with_more(texts=[data.decode("utf-8", "replace")])
                continue
            if isinstance(fields, dict):
                name, text = fields.get(gone.id_field), fields.get(text_field)
                ids = [] if name is None else [str(name)]
                gone = gone.with_more(ids=ids, texts=[text] if isinstance(text, str) else [])
    return gone


def _records(path: Path) -> Iterator[bytes]:
    fd = opened(path)
    try:
        for group in groups(fd):
            yield from group.records
    finally:
        os.close(fd)


def rewrite(path: Path, into: Path, gone: Erased) -> int:
    """Write a file of a journal anew, durably, without what these records are; how many they were.

    Where there are none, no new file is made. Raises SinkError.
    """
    changed, end, fd = 0, 0, opened(path)
    try:
        with written_anew(into, os.fstat(fd).st_mode) as file:
            for group in groups(fd):
                left = [_left_of(record) if gone.came_as(record) else record for record in group.records]
                changed += sum(a is not b for a, b in zip(left, group.records, strict=True))
                file.write(packed(group.arrival, left))
                end += group.size
            if has_group_after(fd, end):
                raise damaged(path, 0)
            torn = os.pread(fd, os.fstat(fd).st_size - end, end)  # nobody has heard that it was accepted
            changed += any(map(gone.came_as, torn.split(b"\n"))) or any(
                b'"%s"' % name.encode() in torn for name in gone.ids
            )
        if not changed:
            into.unlink()
    except OSError as error:
        raise SinkError(f"{path}: cannot be rewritten: {error.strerror or error}", Exit.IO_ERROR) from None
    finally:
        os.close(fd)
    return changed


def _left_of(record: bytes) -> bytes:
    """What stands for a record that is erased: nothing that could be one."""
    return b"{}" if record.startswith(b"{") and record != b"{}" else b""
