"""The owner of a state folder that several processes may go on with: one runs, the others stand by.

A lock shows only what processes of one machine do, and not whether they are stuck. So the one that runs
has a file ``owner-N`` in the folder, of which it renews the time every second, and whoever takes over makes
the file of the next number, which only one can. No clocks are compared: a process that stands by sees whether
that time changes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from streamdp.errors import Exit
from streamdp.safe_files import create, open_regular
from streamdp.state.lock import FolderLock
from streamdp.state.snapshot import SnapshotError, in_use, unusable

BEAT = 1.0
"""Seconds from one sign of life to the next."""

LOOK = 0.2
"""Seconds between two looks at the one that runs."""

_AWAY = 1.0
"""Seconds between two looks after which the one that looks stood still itself, and has seen no silence."""

NAME = re.compile(r"owner-(\d{9})")
LAST = 999_999_999
"""The largest number that a name has room for."""

_LONGEST = 4096
"""Bytes of an owner's file at most."""

Text = Annotated[str, Meta(max_length=256)]


class Owner(msgspec.Struct, frozen=True):
    """A process, distinguished from all others.

    ``boot`` is of the machine since it was started (its name, where the system does not give it), ``space``
    of the processes that see each other's numbers, ``born`` of the process since then; empty where the system
    does not give them. ``ended`` says that it has given the folder back.
    """

    pid: Annotated[int, Meta(ge=1, lt=1 << 31)]
    host: Text
    boot: Text
    space: Text
    born: Text
    ended: bool = False

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        return cls(os.getpid(), platform.node(), _boot(), _space(), _born(os.getpid()))

    def same_machine(self, other: Owner) -> bool:
        """Whether both are known to run under one system, which knows of their locks."""
        return bool(self.boot) and self.boot == other.boot

    def sees(self, other: Owner) -> bool:
        """Whether the other's number means the same process here."""
        return self.same_machine(other) and bool(self.space) and self.space == other.space

    @property
    def alive(self) -> bool:
        """Whether a process that is seen from here is still there."""
        return bool(self.born) and _born(self.pid) == self.born


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    return platform.node()


def _space() -> str:
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _born(pid: int) -> str:
    """When a process was started, in ticks since the machine was; "" where that is not known."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    return ""


class Sign(NamedTuple):
    """The newest owner's file: its number, the owner, and when it last gave a sign of life.

    ``owner`` is None while the file is being written, and where it is none of streamdp's.
    """

    number: int
    owner: Owner | None
    beaten: int


def newest(folder: Path) -> Sign | None:
    """The last claim of a folder; None where there was none."""
    found = _numbers(folder)
    if not found:
        return None
    try:
        with open(open_regular(_path(folder, max(found))), "rb") as file:
            beaten = os.fstat(file.fileno()).st_mtime_ns
            return Sign(max(found), msgspec.json.decode(file.read(_LONGEST), type=Owner), beaten)
    except OSError:  # the next one has removed it, or it is a link, a pipe or a folder
        return Sign(max(found), None, -1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Sign(max(found), None, beaten)


def _numbers(folder: Path) -> list[int]:
    return [int(match[1]) for name in os.listdir(folder) if (match := NAME.fullmatch(name))]


def _path(folder: Path, number: int) -> Path:
    return folder / f"owner-{number:09}"


class Claim:
    """A folder that belongs to this process, until it is closed or another one takes over.

    Raises FileExistsError where another one has claimed it with this number, SnapshotError (73) where there
    is no such number.
    """

    def __init__(self, folder: Path, number: int, lock: FolderLock, owner: Owner) -> None:
        self._folder, self._number, self._lock, self._owner = folder, number, lock, owner
        if number > LAST:
            what = f"{_path(folder, LAST).name} is none of streamdp's: remove it"
            raise SnapshotError(f"{folder}: {what}", Exit.CANNOT_CREATE)
        self._fd = create(_path(folder, number))
        os.write(self._fd, msgspec.json.encode(owner))
        if not lock.take():  # of a process that stands still elsewhere
            lock.replace()
        for before in _numbers(folder):
            if before < number:
                with contextlib.suppress(OSError):
                    _path(folder, before).unlink()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="streamdp-owner", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._closing.wait(BEAT):
            with contextlib.suppress(OSError):  # a disk that is away now
                os.utime(self._fd)

    def check(self) -> None:
        """Raise SnapshotError (73) if another process has taken over."""
        with contextlib.suppress(OSError):  # what is wrong with a folder that is gone, its next snapshot says
            if max(_numbers(self._folder), default=0) > self._number:
                found = newest(self._folder)
                who = "another run" if found is None or found.owner is None else named(found.owner)
                raise SnapshotError(
                    f"{self._folder}: {who} has taken over while this run stood still: this one ends",
                    Exit.CANNOT_CREATE,
                )

    def close(self) -> None:
        """Give the folder back, so that nobody waits; again is harmless."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            ended = msgspec.json.encode(msgspec.structs.replace(self._owner, ended=True))
            os.pwrite(self._fd, ended, 0)
            os.ftruncate(self._fd, len(ended))
            os.close(self._fd)
        self._lock.close()


def named(owner: Owner) -> str:
    """What people call a process."""
    return f"PID {owner.pid} on {owner.host}"


class Standby:
    """Waits for its turn to own a folder. Raises SnapshotError (73) where the folder cannot be used.

    One that does not want to wait (``waits``) is refused as soon as the other is seen to live.

    ``patience`` is for how many seconds the one that runs may give no sign of life. Then another takes over,
    if it runs elsewhere. A process of this machine gets SIGTERM, and SIGKILL if it stays silent for as long
    again; but only if it is seen to hold the lock of this folder, because a file may name any process. Else
    it is waited for. One that has ended is seen at once where it ran on this machine. ``report`` is given the
    lines that say what happens.
    """

    def __init__(
        self,
        folder: Path,
        patience: float,
        report: Callable[[str], None],
        *,
        waits: bool = True,
        me: Owner | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self._patience, self._report = folder, patience, report
        self._me = me or Owner.here()
        self._clock = clock
        self._waits = waits
        self._reported: set[str] = set()
        self._seen: Sign | None = None
        self._silent, self._looked, self._lives = 0.0, clock(), False
        self._asked_at: float | None = None  # into the silence; None: it was not asked to end
        try:
            self._lock = FolderLock(folder)
        except OSError as error:
            raise unusable(folder, error) from error

    def turn(self) -> Claim | None:
        """The folder, if it is free now; None where another process runs with it."""
        try:
            return self._turn()
        except OSError as error:
            raise unusable(self.folder, error) from error

    def close(self) -> None:
        """Stand by no longer."""
        self._lock.close()

    def _turn(self) -> Claim | None:
        locked, sign = self._lock.take(), newest(self.folder)
        owner = None if sign is None else sign.owner
        self._listen(sign)
        silent = f"it gave no sign of life for {self._patience:g} s"
        if locked and (sign is None or (owner is not None and (owner.ended or owner.same_machine(self._me)))):
            return self._claim(sign, "it has ended" if self._asked_at is None else f"{silent}, and was ended")
        if self._silent < self._patience or sign is None:
            self._stand_by(locked, owner)
            return None
        if locked or owner is None or not self._me.sees(owner):
            return self._claim(sign, silent)
        if owner.ended or not owner.alive:
            self._stand_by(locked, None)  # another command has the lock
            return None
        if self._asked_at is None or self._silent >= self._asked_at + self._patience:
            self._end(owner)
        return None

    def _end(self, owner: Owner) -> None:
        """End a process of this machine that stands still: it must not wake up and write.

        It is asked first. The next look takes over.
        """
        try:
            process = os.pidfd_open(owner.pid)  # from here on the number cannot become another process's
        except OSError:
            return
        try:
            if not (owner.alive and self._lock.is_held_by(owner.pid)):
                self._once(
                    f"{named(owner)} is named as the run with {self.folder}, gives no sign of life, and is "
                    "not seen to hold its lock: it is waited for; end it if it is a run that hangs"
                )
                return
            number = signal.SIGTERM if self._asked_at is None else signal.SIGKILL
            self._asked_at = self._silent
            signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            self._once(f"{named(owner)} stands still, and may not be ended by this user: end it")
        finally:
            os.close(process)

    def _listen(self, sign: Sign | None) -> None:
        """Count for how long the one that runs has been silent while this process looked."""
        now = self._clock()
        away, self._looked = now - self._looked, now
        if sign != self._seen:
            self._lives = self._seen is not None
            self._seen, self._silent, self._asked_at = sign, 0.0, None
        elif away <= _AWAY:
            self._silent += away

    def _claim(self, sign: Sign | None, how: str) -> Claim | None:
        try:
            claim = Claim(self.folder, 1 if sign is None else sign.number + 1, self._lock, self._me)
        except FileExistsError:  # another one was faster
            self._lock.release()
            return None
        if self._reported and sign is not None:
            who = "the other run" if sign.owner is None else named(sign.owner)
            self._report(f"taking over from {who}: {how}")
        return claim

    def _stand_by(self, locked: bool, owner: Owner | None) -> None:
        if not self._waits and (self._lives or not locked):
            raise in_use(self.folder)
        if locked:
            self._lock.release()
        who = "another process" if owner is None or owner.ended else named(owner)
        self._once(f"standing by: {who} runs with {self.folder}")

    def _once(self, line: str) -> None:
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)
