"""Snapshots: one file each, written whole or not at all, and never trusted unchecked.

Layout: magic, format (2 bytes), length of the header (4), length of the body (8), all
little-endian; the header in msgpack (settings, positions, output lengths, wall clock); the body
(``Engine.dumps``); CRC-32 of everything before it (4 bytes). The format is that of all that is stored
(``stamp``): header and body say it, too.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta

from streamdp._version import __version__
from streamdp.errors import Exit, StreamdpError, foreseen
from streamdp.safe_files import open_regular, physical_memory, replaced
from streamdp.state.lock import LOCK, FolderLock
from streamdp.state.stamp import FORMAT, FormatError, check_format, checked, stamped

MAGIC = b"STREAMDP"
PREFIX = struct.Struct("<8sHIQ")
SUFFIX = ".sdp"
NAME = re.compile(r"snapshot-\d{15}\.sdp")
REPORTED = 5
"""Unsound snapshots that are reported one by one."""

LOADING = 3
"""How many times its size a snapshot takes while it is loaded: the file, its body, and arrays."""

ERASING = "erasing"
"""The file in a state's folder that says what an erasure is about to do."""

Taken = TypeVar("Taken")


class SnapshotError(StreamdpError):
    """A snapshot or a state folder cannot be used."""


Writer = Literal["consume", "fit", "refine"]
"""The command that a snapshot is of: a running stream, or the result of an offline pass."""


class Header(msgspec.Struct, frozen=True):
    """What a snapshot says of itself.

    ``ended`` says that the input had come to its end: what outputs hold beyond their recorded lengths was
    reported of records that the state still holds open, and is reported anew when it goes on. ``release`` is
    the one that wrote it.
    """

    settings: dict[str, Any]
    seq: Annotated[int, Meta(ge=0, lt=1 << 53)]
    positions: dict[str, Any]
    outputs: dict[str, Any]
    modes: dict[str, bool]
    written: Annotated[float, Meta(ge=0, lt=1e11)]
    writer: Writer = "consume"
    ended: bool = False
    release: str = __version__


_NO_HEADER = (msgspec.MsgspecError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What decoding a header, converting it, or checking it, may raise."""


def pack(header: Header, body: bytes) -> bytes:
    """The bytes of a snapshot file."""
    return b"".join(_parts(header, body))


def _parts(header: Header, body: bytes) -> tuple[bytes, bytes, bytes]:
    head = msgspec.msgpack.encode(stamped(msgspec.structs.asdict(header)))
    start = PREFIX.pack(MAGIC, FORMAT, len(head), len(body)) + head
    return start, body, zlib.crc32(body, zlib.crc32(start)).to_bytes(4, "little")


def unpack(data: bytes, name: str) -> tuple[Header, bytes]:
    """Header and body of a snapshot file. Raises SnapshotError."""
    if len(data) < PREFIX.size + 4 or data[:8] != MAGIC:
        raise SnapshotError(f"{name}: not a streamdp snapshot, or cut off", Exit.BAD_DATA)
    _, version, head, body = PREFIX.unpack_from(data)
    end = PREFIX.size + head + body
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise SnapshotError(f"{name}: damaged (its checksum does not hold)", Exit.BAD_DATA)
    try:  # all formats end with this checksum: one that cannot be read was really written
        check_format(version, f"{name}: was written")
    except FormatError as error:
        raise SnapshotError(error.message, error.exit_code) from None
    if len(data) != end + 4:
        raise SnapshotError(f"{name}: damaged (its lengths do not add up)", Exit.BAD_DATA)
    return _header_of(data[PREFIX.size : PREFIX.size + head], name), data[PREFIX.size + head : end]


def _header_of(head: bytes, name: str) -> Header:
    try:
        stored = checked(msgspec.msgpack.decode(head))
        if msgspec.json.decode(msgspec.json.encode(stored)) != stored:
            raise ValueError("it holds what JSON cannot say")
        header = msgspec.convert(stored, Header)
    except FormatError as error:
        raise SnapshotError(f"{name}: {error.message}", error.exit_code) from None
    except _NO_HEADER as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise SnapshotError(f"{name}: damaged (its header: {what})", Exit.BAD_DATA) from None
    return header


def read(path: Path, *, follow: bool = True) -> tuple[Header, bytes]:
    """Read and check one snapshot file. Raises SnapshotError.

    ``follow`` says whether it may be a link: one that the user has named, and none found in a folder.
    """
    try:
        with open(open_regular(path, follow=follow), "rb") as file:
            _check_size(os.fstat(file.fileno()).st_size, path)
            if file.read(len(MAGIC)) != MAGIC:
                raise SnapshotError(f"{path}: not a streamdp snapshot, or cut off", Exit.BAD_DATA)
            file.seek(0)
            data = file.read()
    except FileNotFoundError:
        raise SnapshotError(f"{path}: no such file", Exit.NO_INPUT) from None
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror or error}", Exit.NO_INPUT) from error
    return unpack(data, str(path))


def _check_size(size: int, path: Path) -> None:
    """Raise SnapshotError for a file that cannot be loaded, before any memory is asked for."""
    have = physical_memory()
    if LOADING * size > have:
        size_, have_ = (f"{number / (1 << 30):.1f} GiB" for number in (size, have))
        raise SnapshotError(
            f"{path}: has {size_}, and this machine has {have_} of memory, a third of which a snapshot may "
            "have: it is damaged, or was made on a larger machine",
            Exit.BAD_DATA,
        )


class Hold(Protocol):
    """What keeps other processes from a folder."""

    def check(self) -> None:
        """Raise SnapshotError if another process has the folder now."""

    def close(self) -> None:
        """Let others have it; again is harmless."""


def _locked(folder: Path) -> Hold:
    try:
        lock = FolderLock(folder)
    except OSError as error:
        raise unusable(folder, error) from error
    if not lock.take():
        lock.close()
        raise in_use(folder)
    return lock


def in_use(folder: Path) -> SnapshotError:
    """The error of a folder that another process has."""
    what = "in use by another streamdp process; stop it, or name another --state"
    return SnapshotError(f"{folder}: {what}", Exit.CANNOT_CREATE)


def unusable(folder: Path, error: OSError) -> SnapshotError:
    """The error of a folder that cannot be made or written to."""
    why = "it is a file" if isinstance(error, FileExistsError) else error.strerror or error
    what = f"the state folder cannot be used: {why}"
    return SnapshotError(f"{folder}: {what}", Exit.CANNOT_CREATE)


class StateFolder:
    """The folder that holds the snapshots of one stream, or of one offline pass; one process at a time.

    ``hold`` says that the folder is this process's already; else it is locked. Raises SnapshotError where
    the folder cannot be made, another process holds it (73), or an erasure was interrupted (78; unless it
    ``erases``).
    """

    def __init__(
        self, folder: str | os.PathLike[str], keep: int = 3, hold: Hold | None = None, erases: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.keep = keep
        self._given_up: list[Path] = []
        self._made = not self.folder.exists()
        self._hold = hold or _locked(self.folder)
        if (self.folder / ERASING).exists() and not erases:
            self.close()
            again = "an erasure was interrupted: give the same streamdp erase again"
            raise SnapshotError(f"{self.folder}: {again}", Exit.CONFIG)
        for leftover in self.folder.glob(f"*{SUFFIX}.tmp"):
            if NAME.fullmatch(leftover.stem):
                with contextlib.suppress(OSError):  # writing reports it
                    leftover.unlink()

    def close(self) -> None:
        """Let another process use the folder; one that was made for nothing goes."""
        with contextlib.suppress(OSError):
            if self._made and os.listdir(self.folder) == [LOCK]:
                (self.folder / LOCK).unlink()
                self.folder.rmdir()
        self._hold.close()

    def check(self) -> None:
        """Raise SnapshotError (73) if the folder is another process's by now."""
        self._hold.check()

    def write(self, header: Header, body: bytes) -> Path:
        """Add a snapshot and drop the oldest beyond ``keep``. Raises SnapshotError (74, or as ``check``).

        Those of later records do not count: the stream was resumed from before them, as they are unsound.
        """
        path = self.folder / f"snapshot-{header.seq:015d}{SUFFIX}"
        with foreseen(SnapshotError, path, "written", Exit.IO_ERROR), replaced(path, self.check) as file:
            file.writelines(_parts(header, body))
        given_up = [old for old in self._given_up if old != path]
        sound = [each for each in snapshots(self.folder) if each.name <= path.name]
        for old in given_up + sound[self.keep :]:
            with contextlib.suppress(OSError):
                old.unlink()
        self._given_up = []
        return path

    def claim(self, overwrite: bool = False) -> None:
        """See to it that the result of an offline pass can be written here. Raises SnapshotError (73).

        Where there are snapshots, the folder is refused; ``overwrite`` gives up those of offline passes, and
        never a stream's.
        """
        held = snapshots(self.folder)
        if not held:
            return
        found = newest(self.folder, lambda _: None)
        if found is None or found[0].writer == "consume":
            raise SnapshotError(
                f"{self.folder}: holds the snapshots of a stream, which would be lost: name another folder",
                Exit.CANNOT_CREATE,
            )
        if not overwrite:
            raise SnapshotError(
                f"{self.folder}: holds the result of {found[0].writer}: --overwrite replaces it",
                Exit.CANNOT_CREATE,
            )
        self._given_up = held

    def newest(self, warn: Callable[[str], None]) -> tuple[Header, bytes] | None:
        """See :func:`newest_taken`."""
        return newest(self.folder, warn)


def written_at(state: str | Path) -> int:
    """The time of the newest snapshot's file, 0 for none."""
    newest_file = next(iter(snapshots(Path(state))), Path(state))
    return newest_file.stat().st_mtime_ns if newest_file.exists() else 0


def headers(folder: Path) -> list[Header]:
    """What sound snapshots of a folder say of themselves, newest first; their bodies are not read."""
    found = []
    for path in snapshots(folder):
        with (
            contextlib.suppress(OSError, SnapshotError, struct.error),
            open(open_regular(path), "rb") as file,
        ):
            magic, version, head, _ = PREFIX.unpack(file.read(PREFIX.size))
            if magic == MAGIC and version == FORMAT:
                found.append(_header_of(file.read(min(head, 1 << 24)), str(path)))
    return found


def snapshots(folder: Path) -> list[Path]:
    """The snapshot files of a folder, by their names, newest first. Raises SnapshotError."""
    try:
        names = [name for name in os.listdir(folder) if NAME.fullmatch(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SnapshotError(f"{folder}: cannot be read: {error.strerror}", Exit.NO_INPUT) from None
    return [folder / name for name in sorted(names, reverse=True)]


def newest(folder: Path, warn: Callable[[str], None]) -> tuple[Header, bytes] | None:
    """Header and body of the newest snapshot that is whole; see :func:`newest_taken`."""
    return newest_taken(folder, warn, lambda header, body: (header, body))


def newest_taken(
    folder: Path, warn: Callable[[str], None], take: Callable[[Header, bytes], Taken]
) -> Taken | None:
    """What ``take`` makes of the newest sound snapshot, None where there is none yet. Raises SnapshotError.

    ``take`` may raise SnapshotError (65) too: such a snapshot, as any other that is damaged, is reported and
    passed over. Where all are damaged, the error says so (78).
    """
    found = snapshots(folder)
    for passed, path in enumerate(found):
        try:
            return take(*read(path, follow=False))
        except SnapshotError as error:
            if error.exit_code not in (Exit.BAD_DATA, Exit.NO_INPUT):
                raise
            name = "" if str(path) in error.message else f"{path}: "
            if passed < REPORTED:
                warn(f"{name}{error}; trying the one before it")
            elif passed == REPORTED:
                warn(f"{name}{error}; trying those before it, {len(found) - passed - 1:,}, without a word")
    if found:
        raise SnapshotError(
            f"{folder}: none of its {len(found)} snapshots is sound; "
            "move the folder away to start anew (records already read will be read again)",
            Exit.CONFIG,
        )
    return None
