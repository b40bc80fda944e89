"""What is to be told and was not delivered yet: lines of JSON in a file of the state's folder.

The file ``alerts.jsonl`` is only appended to, and now and then written anew without what is done. A line is
a :class:`Notification`, or says which of these were delivered or given up, or the file that an alert is
appended to. Each has the name of its alert and nothing else of its receiver: no address and no token.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from streamdp.safe_files import open_regular, replaced

_log = logging.getLogger("streamdp")

NAME = "alerts.jsonl"
"""The file in a state's folder."""

MOST = 10_000
"""What may wait for one alert; beyond, the oldest is given up."""

KNOWN = 10_000
"""Keys of an alert that are remembered after delivery, so that what is read again is not told again."""

DEAD = 2_000
"""Lines without a use from which the file is written anew, where they are more than the others."""

MOST_BYTES = 256 << 20
"""Bytes of the file that are read."""


class MovedRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record that was announced in one story and is in another now, with the ``probability`` of that."""

    seq: int
    id: str | int | None = None
    time: float | None = None
    text: str = ""
    keep: dict[str, Any] = {}
    probability: float
    revision: int


class Notification(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that somebody is told: an event of a story, or answers that have changed."""

    alert: str
    """Name of the alert."""
    key: str
    """``EVENT:CLUSTER@SEQ`` of an event, ``revised:SEQ.REVISION@SEQ`` of a change; it is told once."""
    event: str
    """Kind of the event, or ``revised``."""
    at: float
    """The clock when it was noticed, in seconds since 1970."""
    story: int | None = None
    """The label."""
    title: str = ""
    """The title, else the template, else a few telling words."""
    template: bool = False
    """Whether the story is a template."""
    other: int | None = None
    """Another label; of ``revised`` the one that the records have now."""
    size: int | None = None
    """Records of the story; of ``revised`` those that went from it to ``other``."""
    time: float | None = None
    """Event time."""
    seq: int | None = None
    """Number of the record that caused it."""
    record: str | int | None = None
    """Its id."""
    lines: int | None = None
    """As of an event."""
    usual: float | None = None
    """As of an event."""
    level: str | None = None
    """Level of the template's lines, where it is kept."""
    other_title: str = ""
    """Title of ``other``."""
    split: bool = False
    """Whether ``other`` began with these records."""
    probability: float | None = None
    """Mean probability of the records in ``other``."""
    expected: float | None = None
    """How many of a hundred answers were to change."""
    sources: dict[str, dict[str, int]] = {}
    """How many of the records have each value of a kept field."""
    records: list[MovedRecord] = []
    """Some of the records."""


class Done(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Keys that are done."""

    alert: str
    """Name of the alert."""
    delivered: list[str] = []
    """Their receiver has them."""
    dropped: list[str] = []
    """Given up."""
    forgotten: list[str] = []
    """Their records are others now: they are told again when they come again."""
    file: str = ""
    """A file that the alert is appended to, which an erasure has to know of."""


_encode_lines = msgspec.json.Encoder().encode_lines


class Counts(msgspec.Struct):
    """What has become of an alert's notifications in this process, and how many wait now."""

    delivered: int = 0
    failures: int = 0
    dropped: int = 0
    waiting: int = 0


class Waiting:
    """What waits for one alert, in order, and the keys that are known of it."""

    def __init__(self) -> None:
        self.queue: deque[Notification] = deque()
        self.known: dict[str, None] = {}
        self.files: dict[str, None] = {}
        self.counts = Counts()

    def add(self, one: Notification) -> bool:
        """Take one in; False where its key is known."""
        if one.key in self.known:
            return False
        self.known[one.key] = None
        self.queue.append(one)
        return True

    def settle(self, keys: Sequence[str]) -> None:
        """These wait no more."""
        gone = set(keys)
        while self.queue and self.queue[0].key in gone:
            self.queue.popleft()
        if gone & {one.key for one in self.queue}:
            self.queue = deque(one for one in self.queue if one.key not in gone)
        self.known |= dict.fromkeys(keys)
        while len(self.known) > KNOWN + len(self.queue):
            del self.known[next(iter(self.known))]


class Outbox:
    """The outbox of a state's folder; one process at a time. It may be used from several threads.

    What it cannot write it keeps in memory, and tries again: a full disk stops no stream. ``mine`` says
    whether the folder is this process's still: the file of another is left alone. Without ``names`` it has
    all alerts that the file knows.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        names: Iterable[str] | None,
        mine: Callable[[], bool] = lambda: True,
    ) -> None:
        self.path, self._mine = Path(folder) / NAME, mine
        self.changed = threading.Condition()
        self._by = {name: Waiting() for name in names or ()}
        self._unwritten: list[Notification | Done] = []
        self._lines, self._failing = 0, False
        with self.changed:
            for name, waiting in self._read().items():
                if (
                    names is None or name in self._by or waiting.queue or waiting.files
                ):  # its table may come back
                    self._by[name] = waiting
            self._write_anew()

    # ---------------------------------------------------------------- what waits

    def add(self, told: Iterable[Notification]) -> None:
        """Take in what is to be told; what is known already is left out."""
        with self.changed:
            fresh: list[Notification | Done] = [one for one in told if self._by[one.alert].add(one)]
            if not fresh:
                return
            for name in dict.fromkeys(one.alert for one in fresh):
                waiting = self._by[name]
                gone = [waiting.queue[i].key for i in range(max(len(waiting.queue) - MOST, 0))]
                if gone:
                    fresh.append(self._give_up(name, gone, f"{MOST:,} others wait"))
            self._append(fresh)
            self.changed.notify_all()

    def _give_up(self, name: str, keys: Sequence[str], why: str) -> Done:
        waiting = self._by[name]
        if not waiting.counts.dropped or why != f"{MOST:,} others wait":
            _log.warning("alert %s: the oldest are given up: %s", name, why)
        waiting.counts.dropped += len(keys)
        waiting.settle(keys)
        return Done(alert=name, dropped=list(keys))

    def next(self, name: str, most: int) -> list[Notification]:
        """What waits longest for an alert, so many at most."""
        with self.changed:
            return [*itertools.islice(self._by[name].queue, most)]

    def delivered(self, name: str, told: Sequence[Notification]) -> None:
        """These have arrived."""
        with self.changed:
            keys = [one.key for one in told]
            self._by[name].settle(keys)
            self._by[name].counts.delivered += len(keys)
            self._append([Done(alert=name, delivered=keys)])
            self.changed.notify_all()

    def give_up(self, name: str, told: Sequence[Notification], why: str) -> None:
        """These will never arrive."""
        with self.changed:
            self._append([self._give_up(name, [one.key for one in told], why)])
            self.changed.notify_all()

    def note_file(self, name: str, path: str) -> None:
        """Remember that an alert is appended to this file."""
        with self.changed:
            if path not in (files := self._by[name].files):
                files[path] = None
                self._append([Done(alert=name, file=path)])

    def files(self) -> dict[str, list[str]]:
        """The files that each alert is or was appended to; none of one that is sent."""
        with self.changed:
            return {name: list(each.files) for name, each in self._by.items()}

    def forget_from(self, seq: int) -> None:
        """Records from this number on are others than before: what is said of them is new."""
        with self.changed:
            for name, waiting in self._by.items():
                later = [key for key in waiting.known if _number(key) >= seq]
                for key in later:
                    del waiting.known[key]
                if later:
                    self._append([Done(alert=name, forgotten=later)])

    def failed(self, name: str) -> None:
        """A message has not arrived."""
        with self.changed:
            self._by[name].counts.failures += 1

    def counts(self) -> dict[str, Counts]:
        """What has become of notifications, by alert."""
        with self.changed:
            return {name: replace(each.counts, waiting=len(each.queue)) for name, each in self._by.items()}

    # ---------------------------------------------------------------- the file

    def sync(self) -> None:
        """Wait until what was taken in outlives the machine, as far as it can be written."""
        with self.changed:
            self._append([])
            with contextlib.suppress(OSError), open(open_regular(self.path), "rb") as file:
                os.fsync(file.fileno())

    def _append(self, lines: Sequence[Notification | Done]) -> None:
        self._unwritten += lines
        if not self._unwritten or not self._mine():
            return
        try:
            file = open_regular(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                write_whole(file, _encode_lines(self._unwritten))
            finally:
                os.close(file)
        except OSError as error:
            if not self._failing:
                _log.warning("%s: cannot be written: %s", self.path, error.strerror or error)
            self._failing = True
            return
        self._lines += len(self._unwritten)
        self._unwritten, self._failing = [], False
        live = sum(len(each.queue) for each in self._by.values())
        if self._lines - live > DEAD and self._lines > 2 * live:
            self._write_anew()

    def _write_anew(self) -> None:
        """Leave out what is done, but for the keys."""
        if not self._mine() or (not self.path.exists() and not any(w.known for w in self._by.values())):
            return
        lines = list(self._live())
        try:
            with replaced(self.path) as file:
                file.write(_encode_lines(lines))
        except OSError as error:
            _log.warning("%s: cannot be written anew: %s", self.path, error.strerror or error)
            return
        self._lines, self._unwritten = len(lines), []

    def _live(self) -> Iterator[Notification | Done]:
        for name, waiting in self._by.items():
            here = {one.key for one in waiting.queue}
            done = [key for key in waiting.known if key not in here]
            if done:
                yield Done(alert=name, delivered=done)
            yield from (Done(alert=name, file=path) for path in waiting.files)
            yield from waiting.queue

    def _read(self) -> dict[str, Waiting]:
        """What the file says; lines that are none are left out, as the last of a crash is."""
        found: dict[str, Waiting] = {}
        try:
            with open(open_regular(self.path), "rb") as file:
                data = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return found
        except OSError as error:
            _log.warning("%s: cannot be read: %s", self.path, error.strerror or error)
            return found
        wrong = 0
        for line in data[: data.rfind(b"\n") + 1].splitlines():
            try:
                self._take(line, found)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                wrong += 1
        if wrong:
            _log.warning("%s: %d lines are no alerts, and are left out", self.path, wrong)
        return found

    def _take(self, line: bytes, found: dict[str, Waiting]) -> None:
        try:
            one = msgspec.json.decode(line, type=Notification)
        except msgspec.ValidationError:
            done = msgspec.json.decode(line, type=Done)
        else:
            found.setdefault(one.alert, Waiting()).add(one)
            return
        waiting = found.setdefault(done.alert, Waiting())
        waiting.settle([*done.delivered, *done.dropped])
        waiting.files |= {done.file: None} if done.file else {}
        for key in done.forgotten:
            waiting.known.pop(key, None)


def write_whole(file: int, data: bytes) -> None:
    """Append all of it, or nothing: half a line would spoil the next."""
    before = os.fstat(file).st_size
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        os.ftruncate(file, before)
        raise


def _number(key: str) -> int:
    """The number of the record in the key of an event; of a key without one, a larger one than any."""
    last = key.rpartition("@")[2]
    return int(last) if last != key and last.isdecimal() and len(last) < 16 else 1 << 62
