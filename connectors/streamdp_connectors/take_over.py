"""How much of an output file a run goes on with, or why it may not touch it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from streamdp.errors import Exit
from streamdp_connectors.left import (
    STANDARD_OUTPUT,
    Left,
    begins_alike,
    is_what_was_left,
    stranger,
    whole_lines,
)
from streamdp_connectors.protocol import SinkError


class Claim(NamedTuple):
    """What a run says of an output file; the words are those of a FileSink. Its methods raise SinkError."""

    path: str
    left: Left | None
    overwrite: bool
    anew: bool
    replayed: bool
    beginnings: Sequence[bytes]

    @classmethod
    def of(cls, path: str, left: Mapping[str, Any] | None, **how: Any) -> Claim:
        """With what a snapshot holds of the file."""
        return cls(path, None if left is None else Left.of(left), **how)

    def check_name(self) -> None:
        """Before the file is made: whether an empty one may stand there."""
        if self.left is not None and not os.path.exists(self.path):
            self._may_begin(self.left)

    def end_rotation(self, fd: int) -> bool:
        """Rename the file where a rotation was interrupted just before; whether it was. Raises OSError."""
        before = None if self.left is None else self.left.rotated
        if before is None or not self._is_at(self.left) or os.path.lexists(before.path):
            return False
        if is_what_was_left(fd, before):
            os.rename(self.path, before.path)
            return True
        if begins_alike(fd, before):
            raise SinkError(
                f"{self.path} has changed since this state wrote to it, and was to be rotated: restore it, "
                f"or rename it to {before.path}",
                Exit.BAD_DATA,
            )
        return False  # it was rotated, and is somewhere else by now

    def length_kept(self, fd: int) -> int:
        """Bytes of the open file that stay; what follows is this stream's own, and is written again."""
        size = os.fstat(fd).st_size
        left = self.left
        if left is None:
            if size and not self.overwrite:
                raise SinkError(
                    f"{self.path} exists: --overwrite replaces it, --state continues an earlier run",
                    Exit.CANNOT_CREATE,
                )
            return 0
        if size == 0:
            self._may_begin(left)
            return 0
        same = self._is_at(left)
        if left.length == 0 and not same:
            before = "standard output" if left.path == STANDARD_OUTPUT else left.path
            raise SinkError(
                f"{self.path} exists, and is not what this state wrote to ({before}): name another file",
                Exit.CANNOT_CREATE,
            )
        if not is_what_was_left(fd, left):
            what = (
                "has changed since this state wrote to it"
                if same
                else f"is not {left.path}, which this state wrote"
            )
            raise SinkError(
                f"{self.path} {what}: restore it, or name a new file with --new-output", Exit.BAD_DATA
            )
        strange = stranger(fd, left.length, self.beginnings)
        if strange is not None:
            raise SinkError(
                f"{self.path} goes on after byte {left.length} with what this stream did not write "
                f"({strange[:40]!r}): it would be cut; move it away, or name a new file with --new-output",
                Exit.BAD_DATA,
            )
        return left.length if self.replayed else whole_lines(fd, size)

    def _is_at(self, left: Left | None) -> bool:
        return left is not None and os.path.realpath(self.path) == os.path.realpath(left.path)

    def _may_begin(self, left: Left) -> None:
        """Raise where an empty file would not hold the answers that went before."""
        if left.length == 0 or self.anew:
            return
        gone = "is gone or empty" if self._is_at(left) else "does not hold the answers so far"
        raise SinkError(
            f"{self.path} {gone}: the state has written {left.length} bytes to {left.path}; name that file "
            "as it is called now, or begin another with --new-output",
            Exit.BAD_DATA,
        )
