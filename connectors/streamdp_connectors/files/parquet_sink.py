"""Write answers to a Parquet file: lines of JSON beside it until the run ends, then the whole table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from streamdp.errors import Exit, foreseen, needing
from streamdp.records import Assignment
from streamdp.records.arrow import ANSWERS, answer_row, table_of, types_of
from streamdp.safe_files import open_regular, replaced
from streamdp_connectors.files.sink import FileSink
from streamdp_connectors.protocol import SinkError

PART = ".part.jsonl"
"""The ending of the lines of a Parquet file that is not complete, behind its name."""

ROWS = 50_000
"""Rows of a row group."""

OURS = b"streamdp"
"""What the metadata of files written here name."""

_FINALITY = b'{"final_through":'


class ParquetSink(FileSink):
    """A Parquet file of answers, a row for each answer and revision.

    A Parquet file is whole or of no use: its end says what is in it. So answers are appended to
    ``NAME.part.jsonl`` as they come, as crash-proof as any output, and a snapshot remembers that file. When
    the run ends, in good order or by a signal, all of them become the Parquet file, in one step. The lines
    stay where a state goes on with them, which writes the Parquet file anew. Raises SinkError.
    """

    def __init__(
        self, path: str, left: Mapping[str, Any] | None = None, *, overwrite: bool = False, **how: Any
    ) -> None:
        _parquet(path)
        self._complete = os.path.realpath(path)
        if os.path.lexists(self._complete):
            _may_replace(path, left is not None and os.path.exists(path + PART), overwrite)
        self._resumable, self._sound = left is not None, True
        super().__init__(path + PART, left, overwrite=overwrite, **how)

    def state(self) -> dict[str, Any]:
        """Return how to recognise the lines. Raises SinkError."""
        self._resumable = True
        return super().state()

    def leave(self) -> bool:
        """It is one table: no other file is begun."""
        return False

    def close(self) -> None:
        """Write the Parquet file. Raises SinkError; then the lines stay."""
        whole = self._fd >= 0 and self._sound and not self._broken
        try:
            if whole:
                self.flush(sync=True)
                complete(self.path)
        finally:
            super().close()
        if whole and not self._resumable:
            os.unlink(self.path)

    def _drain(self) -> None:
        sound, self._sound = self._sound, False  # until all is written
        super()._drain()
        self._sound = sound


def complete(part: str) -> None:
    """Make the Parquet file of these lines, in the place of an earlier one. Raises SinkError."""
    path = os.path.realpath(part.removesuffix(PART))
    parquet, types = _parquet(path), dict(ANSWERS)
    with foreseen(SinkError, path, "written", Exit.IO_ERROR):
        for rows in _rows(part):
            types = types_of(rows, types)
        schema = table_of([], types).schema.with_metadata({OURS: b"answers"})
        with replaced(Path(path)) as file, parquet.ParquetWriter(file, schema) as writer:
            for rows in _rows(part):
                writer.write_table(table_of(rows, types).cast(schema))


def _rows(part: str) -> Iterator[list[dict[str, Any]]]:
    """The answers among the whole lines of a file, some at a time."""
    decode = msgspec.json.Decoder(Assignment).decode
    with open(open_regular(part, follow=True), "rb") as file:
        answers = (
            answer_row(decode(line))
            for line in file
            if line.endswith(b"\n") and not line.startswith(_FINALITY)
        )
        while rows := [*islice(answers, ROWS)]:
            yield rows


def _may_replace(path: str, resumed: bool, overwrite: bool) -> None:
    """Raise SinkError where a file stands there that is not this stream's own."""
    if overwrite and not os.path.isdir(path):
        return
    if not resumed or os.path.isdir(path):
        raise SinkError(
            f"{path} exists: --overwrite replaces it, --state continues an earlier run", Exit.CANNOT_CREATE
        )
    if not _is_ours(path):
        raise SinkError(
            f"{path} exists, and is no Parquet file that this state wrote: move it away", Exit.CANNOT_CREATE
        )


def _is_ours(path: str) -> bool:
    """Whether it is a Parquet file that was written here."""
    try:
        return OURS in (_parquet(path).read_metadata(path).metadata or {})
    except (OSError, ValueError):
        return False


def _parquet(path: str) -> Any:
    with needing(SinkError, f"{path} is Parquet, and writing it needs", "pyarrow"):
        from pyarrow import parquet
    return parquet
