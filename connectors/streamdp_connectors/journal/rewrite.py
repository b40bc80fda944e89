"""The records of a journal as rows. Written anew, each stays a line: all others keep their numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from streamdp.errors import Exit
from streamdp.safe_files import written_anew
from streamdp_connectors.journal.segments import Segment, damaged, groups, opened, packed, segments
from streamdp_connectors.journal.source import JOURNAL
from streamdp_connectors.journal.writer import has_group_after
from streamdp_connectors.protocol import SinkError


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal as they came: ``position`` and ``data``."""
    for path, line in segments(folder):
        fd = opened(path)
        try:
            for group in groups(fd):
                for line, data in enumerate(group.records, line + 1):  # noqa: B020 - it goes on
                    yield _row(line, data)
        finally:
            os.close(fd)


def _row(line: int, data: bytes) -> dict[str, Any]:
    return {"position": {"file": JOURNAL, "line": line}, "data": data}


def rewrite(segment: Segment, into: Path, left_of: Callable[[Any], Any]) -> int:
    """Write a file of a journal anew, durably, with what is left of each row; how many were changed.

    Where there are none, no new file is made. Raises SinkError.
    """
    (path, line), changed, end, fd = segment, 0, 0, opened(segment.path)
    try:
        with written_anew(into, os.fstat(fd).st_mode) as file:
            for group in groups(fd):
                rows = (_row(at, record) for at, record in enumerate(group.records, line + 1))
                left = [left_of(row)["data"] for row in rows]
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
