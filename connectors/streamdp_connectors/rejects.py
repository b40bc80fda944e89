"""Keep what was refused: one JSON line per rejected record, with the original bytes."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from streamdp.records import Reject
from streamdp_connectors.file_sink import FileSink


class RejectSink:
    """The file of rejected records, created when the first one comes.

    Each line is ``{"position", "reason", "detail", "data"}``, with ``data_base64`` instead of ``data`` for
    bytes that are not UTF-8. ``resume_length`` and ``overwrite`` mean what they mean for a FileSink, and a
    file that is in the way is refused at once. Raises SinkError.
    """

    marks: tuple[Mapping[str, Any], ...] = ()
    """Nothing is marked in a file."""

    def __init__(self, path: str, resume_length: int | None = None, overwrite: bool = False) -> None:
        self._path = path
        self._sink: FileSink | None = None
        if path == "-" or path.endswith(".gz") or resume_length or os.path.exists(path):
            self._sink = FileSink(path, resume_length, overwrite)

    def mark(self, positions: Mapping[str, Any]) -> None:
        """A file does not tell how the source was read."""

    def write(self, reject: Reject) -> None:
        """Append one rejected record. Raises SinkError or SinkClosed."""
        if self._sink is None:
            self._sink = FileSink(self._path)
        self._sink.write(reject_line(reject))

    def flush(self, sync: bool) -> None:
        """Hand everything to the operating system; with ``sync`` also to the disk."""
        if self._sink is not None:
            self._sink.flush(sync)

    def state(self) -> int:
        """Return the bytes written so far; 0 while there is no file."""
        return 0 if self._sink is None else self._sink.state()

    def close(self) -> None:
        """Flush and close the file, if there is one."""
        if self._sink is not None:
            self._sink.close()


def reject_line(reject: Reject) -> bytes:
    """Return the JSON line that stands for a rejected record, with its newline."""
    line: dict[str, Any] = {"position": reject.position, "reason": reject.reason, "detail": reject.detail}
    try:
        line["data"] = reject.data.decode()
    except UnicodeDecodeError:
        line["data_base64"] = base64.b64encode(reject.data).decode()
    return msgspec.json.encode(line) + b"\n"
