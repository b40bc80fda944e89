"""Records that were erased, remembered by hashes of their ids; and what an erasure under way will do.

The file ``erased`` in a state's folder is only appended to: a line of JSON that says what it is, with a salt,
then a line for each id. So a record that comes again is known, and the file does not say which it was.

The file ``erasing`` is there while records are erased. First it says which; then, once every file has been
written anew beside the old one, which files take the place of which. Whoever finds it does that again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from streamdp.errors import Exit, foreseen
from streamdp.records import Reject
from streamdp.records.columns import Columns
from streamdp.records.erased import Erased
from streamdp.safe_files import open_regular, replaced, sync_folder
from streamdp.state.snapshot import ERASING, SnapshotError

NAME = "erased"
START = b'{"streamdp":"erased",'
REASON = "erased"
"""The reason of the reject that stands for a record that was erased and comes again."""

DETAIL = "a record of this id was erased"

FRESH = ".erasing"
"""Ending of a file that is to take the place of another."""


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    salt: str
    streamdp: str = "erased"
    version: int = 1


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str


class ErasedFile:
    """The ids that were erased from a state; none without one. Raises SnapshotError for another file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ErasedFile(folder).add({"7"})
    ...     again = ErasedFile(folder)
    >>> again.holds(7), again.holds("8")
    (True, False)
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._salt, self._held = secrets.token_hex(16), set[str]()
        if folder is None:
            return
        self.path = Path(folder) / NAME
        try:
            with open(open_regular(self.path), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise SnapshotError(f"{self.path}: cannot be read: {error.strerror}", Exit.NO_INPUT) from None
        head, *lines = data[: data.rfind(b"\n") + 1].splitlines() or [b""]
        if head:
            try:
                self._salt = msgspec.json.decode(head, type=_Head).salt
                self._held = {msgspec.json.decode(line, type=_Line).id for line in lines}
            except (msgspec.MsgspecError, ValueError):
                raise SnapshotError(f"{self.path}: is no list of erased ids", Exit.BAD_DATA) from None

    def __len__(self) -> int:
        return len(self._held)

    def _hash(self, name: object) -> str:
        salt = self._salt.encode()[:64]
        return hashlib.blake2b(
            str(name).encode("utf-8", "surrogatepass"), key=salt, digest_size=16
        ).hexdigest()

    def holds(self, name: object) -> bool:
        """Whether the record of an id was erased."""
        return name is not None and bool(self._held) and self._hash(name) in self._held

    def why(self, name: object) -> tuple[str, str] | None:
        """Why the record of an id is refused, if it was erased: the reason, and what to say of it."""
        return (REASON, DETAIL) if self.holds(name) else None

    def add(self, names: Iterable[str]) -> None:
        """Remember these ids, durably. Raises SnapshotError."""
        fresh = sorted({self._hash(name) for name in names} - self._held)
        if not fresh:
            return
        lines = [_Line(each) for each in [*sorted(self._held), *fresh]]
        data = msgspec.json.Encoder().encode_lines([_Head(self._salt), *lines])
        _write(self.path, data)
        self._held.update(fresh)

    def without(self, records: Columns) -> Columns:
        """Records but for those that were erased: they are refused, and nothing of them is kept."""
        if not self._held:
            return records
        gone = [i for i in range(len(records)) if self.holds(records.id(i))]
        return _refused(records, gone) if gone else records


def _reject(position: dict[str, object]) -> Reject:
    return Reject(position, REASON, DETAIL, b"")


def _refused(texts: Columns, gone: Sequence[int]) -> Columns:
    """Records, of which those of some numbers are refused."""
    kept = np.delete(np.arange(len(texts)), gone)
    own = [(i, _reject(texts[i].position)) for i in gone]
    refused = sorted([*texts.refused, *own], key=lambda pair: pair[0])
    left = texts.take(kept)
    left.refused = [(int(np.searchsorted(kept, at)), reject) for at, reject in refused]
    return left


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an erasure will do: erase which records; then, once all is ready, put which files in place."""

    gone: Erased
    files: list[str] | None = None
    snapshot: str | None = None

    @classmethod
    def found(cls, folder: Path) -> Plan | None:
        """That of an erasure that was interrupted; None where none was. Raises SnapshotError."""
        path = folder / ERASING
        try:
            with open(open_regular(path), "rb") as file:
                return msgspec.json.decode(file.read(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            raise SnapshotError(f"{path}: cannot be used: {error}", Exit.BAD_DATA) from None

    def write(self, folder: Path) -> None:
        """Let it be known, durably. Raises SnapshotError."""
        _write(folder / ERASING, msgspec.json.encode(self))

    def put_in_place(self) -> None:
        """Let the new files take the places of the old ones; again is harmless. Raises OSError."""
        for name in self.files or ():
            if os.path.exists(name + FRESH):
                os.replace(name + FRESH, name)
        for folder in sorted({os.path.dirname(os.path.abspath(name)) for name in self.files or ()}):
            sync_folder(folder)


def _write(path: Path, data: bytes) -> None:
    """Write a file whole, or not at all."""
    with foreseen(SnapshotError, path, "written", Exit.IO_ERROR), replaced(path) as file:
        file.write(data)
