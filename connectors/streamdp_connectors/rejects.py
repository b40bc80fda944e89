"""Keep what was refused: one JSON line per rejected record, with the original bytes."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from streamdp.records import Reject
from streamdp_connectors.file_sink import FileSink
from streamdp_connectors.left import STANDARD_OUTPUT, Left
from streamdp_connectors.rotate import Rotation, unused

BEGINNINGS = (b'{"position":',)
"""How every line of rejects begins."""


class RejectSink:
    """The file of rejected records, created when the first one comes.

    Each line is ``{"position", "reason", "detail", "data"}``, with ``data_base64`` instead of ``data`` for
    bytes that are not UTF-8. ``left``, ``overwrite``, ``anew`` and ``replayed`` mean what they mean for a
    FileSink, and a file that is in the way is refused at once. Where it is ``spare``, no more than a name to
    begin with, a number is put before its ending until no such file exists. Raises SinkError.
    """

    marks: tuple[Mapping[str, Any], ...] = ()
    """Nothing is marked in a file."""

    def __init__(
        self,
        path: str,
        left: Mapping[str, Any] | None = None,
        *,
        spare: bool = False,
        **how: bool,
    ) -> None:
        self.path = path
        """Where the file is, or will be."""
        self._spare = spare
        self._left = left
        self._how = how
        self._sink: FileSink | None = None
        lost = left is not None and left["length"] > 0
        if path == STANDARD_OUTPUT or path.endswith(".gz") or lost or (os.path.exists(path) and not spare):
            self._sink = self._open()

    def _open(self) -> FileSink:
        return FileSink(self.path, self._left, beginnings=BEGINNINGS, **self._how)

    def mark(self, positions: Mapping[str, Any]) -> None:
        """A file does not tell how the source was read."""

    def write(self, reject: Reject) -> None:
        """Append one rejected record. Raises SinkError or SinkClosed."""
        if self._sink is None:
            if self._spare:
                self.path = unused(self.path)
            self._sink = self._open()
        self._sink.write(reject_line(reject))

    def flush(self, sync: bool) -> None:
        """Hand everything to the operating system; with ``sync`` also to the disk."""
        if self._sink is not None:
            self._sink.flush(sync)

    def lasting(self) -> Callable[[], None]:
        """Return what brings all that was handed over by now to the disk."""
        return (lambda: None) if self._sink is None else self._sink.lasting()

    def state(self) -> dict[str, Any]:
        """Return how the file is known again."""
        return Left(os.path.abspath(self.path)).plain() if self._sink is None else self._sink.state()

    def full(self, rotation: Rotation | None) -> bool:
        """Whether the file is to be rotated; without a rule, whether it can be."""
        return self._sink is not None and self._sink.full(rotation)

    def begin_rotation(self) -> str:
        """As of a FileSink."""
        assert self._sink is not None
        return self._sink.begin_rotation()

    def rotate(self) -> None:
        """As of a FileSink."""
        assert self._sink is not None
        self._sink.rotate()

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
