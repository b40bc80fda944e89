"""The way of records into the journal, and of their answers back to those who wait.

What is known of records that wait belongs to the loop of the server; a thread writes the journal, a group of
whatever has come meanwhile; the thread that runs the stream reports answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from streamdp_connectors.journal.writer import Journal

from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import RefusedError, id_value
from streamdp.decode.objects import plain_fields
from streamdp.decode.otlp import UID
from streamdp.page.errors import AskError
from streamdp.questions.answers import Answer
from streamdp.records import Raw, Record
from streamdp.records.columns import Columns
from streamdp.serve.bodies import SMALL

QUEUE = 10_000
"""Records that may wait for the stream, or one body more than none."""

BYTES = 64 << 20
"""Bytes that may wait for the journal."""

RESERVE = 64 << 20
"""Bytes that stay free on the disk, so that store and snapshot find room for what was accepted."""

LOOK = 1.0
"""Seconds between two looks whether a full disk has room again."""


CONFLICT = "its id is that of a record that was taken before and says something else: give it one of its own"


class Named(NamedTuple):
    """The id of a record, as text, and a hash of what it says; empty where that is nothing, or not known."""

    id: str
    hash: bytes

    @classmethod
    def of(cls, name: str | int, text: str) -> Named:
        """Those of a record of an id that says so."""
        return cls(str(name), blake2b(text.encode(), digest_size=16).digest() if text else b"")

    def conflicts(self, other: Named | None) -> bool:
        """Whether a record of this id that was taken before says something else."""
        return other is not None and self.hash != other.hash != b""


class Waiting:
    """A record that has no answer yet, and the requests that wait for it."""

    __slots__ = ("answer", "asked", "data", "id", "line", "named")

    def __init__(self, data: bytes, name: Named | None, line: int | None = None) -> None:
        self.data, self.named, self.line = data, name, line
        self.id = None if name is None else name.id
        self.answer: Answer | None = None
        self.asked: list[Request] = []

    def told(self) -> Answer:
        """Its answer, or that it is safe and has none yet."""
        return self.answer or Answer(status="pending", line=self.line, id=self.id)


class Request:
    """Records that a client has sent at once, and when all of them have answers."""

    def __init__(self) -> None:
        self.missing = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wait_for(self, record: Waiting) -> None:
        """Wait for one more."""
        if record.answer is None:
            self.missing += 1
            record.asked.append(self)

    def heard(self) -> None:
        """One of them has its answer."""
        self.missing -= 1
        if self.missing == 0 and not self.done.done():
            self.done.set_result(None)

    def failed(self, error: AskError) -> None:
        """They could not be accepted."""
        if not self.done.done():
            self.done.set_exception(error)


class IngestQueue:
    """Takes records into a journal, and hands their answers back.

    Parameters
    ----------
    journal
        Where they are written.
    read
        The id of a record as it came, and what it says; None where it has none.
    known
        The answers that the store has, and to which records, by id; for the loop.
    call
        Has the server's loop call something.
    within
        Seconds that a request waits for answers.
    refused
        Why a record of an id is refused, and never written: reason and detail; None where it is not.
    """

    def __init__(
        self,
        journal: Journal,
        read: Callable[[bytes], Named | None],
        known: Callable[[Sequence[str]], Mapping[str, tuple[Answer, Named]]],
        call: Callable[..., None],
        within: float,
        refused: Callable[[str], tuple[str, str] | None] = lambda name: None,
    ) -> None:
        self._journal, self._read_name, self._known = journal, read, known
        self._call, self._within, self._refused = call, within, refused
        self.hindrance: str | None = "reading the journal again"
        """Why nothing is taken; None where records are."""
        self.reserve = RESERVE
        self.conflicts = 0
        """Records that were refused because others of their ids had been taken."""
        self._ids: dict[str, Waiting] = {}
        self._lines: dict[int, Waiting] = {}
        self._total, self._through = journal.records, 0
        self._read = self._settled = 0
        self._bytes = 0
        self._queue: queue.SimpleQueue[list[Waiting] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="streamdp-journal", daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------- the server's loop

    async def take(self, records: Sequence[bytes | Answer], within: float | None = None) -> list[Answer]:
        """Accept records, wait for their answers, ``within`` seconds, and return them in order.

        Raises AskError.
        """
        names = await self._names(records)
        if self.hindrance is not None:
            raise self._refusal(self.hindrance)
        request, found = Request(), self._enter(records, names)
        for record in found:
            if isinstance(record, Waiting):
                request.wait_for(record)
        if request.missing:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(request.done, self._within if within is None else within)
        return [record if isinstance(record, Answer) else record.told() for record in found]

    async def _names(self, records: Sequence[bytes | Answer]) -> list[Named | None]:
        """The ids of records, and what they say; read by a thread where they are many bytes."""

        def read() -> list[Named | None]:
            return [None if isinstance(record, Answer) else self._read_name(record) for record in records]

        small = sum(len(record) for record in records if not isinstance(record, Answer)) <= SMALL
        return read() if small else await asyncio.to_thread(read)

    def _enter(
        self, records: Sequence[bytes | Answer], names: Sequence[Named | None]
    ) -> list[Waiting | Answer]:
        """The answers that are known, and what waits: known by its id, or new, for the journal."""
        records = [self._taken(record, name) for record, name in zip(records, names, strict=True)]
        names = [name if name is None or name.hash else None for name in names]  # others are refused
        asked = [name.id for name in names if name is not None and name.id not in self._ids]
        stored = self._known(asked) if asked else {}
        found: list[Waiting | Answer] = []
        new: list[Waiting] = []
        within: dict[str, Waiting] = {}
        for record, name in zip(records, names, strict=True):
            if isinstance(record, Answer):
                found.append(record)
                continue
            before: Waiting | Answer | None = None
            if name is not None:
                waits = self._ids.get(name.id) or within.get(name.id)
                before, taken = (waits, waits.named) if waits else stored.get(name.id, (None, None))
                if name.conflicts(taken):
                    self.conflicts += 1
                    before = Answer(
                        status="refused", code=409, id=name.id, reason="conflict", detail=CONFLICT
                    )
            if before is None:
                before = Waiting(record, name)
                new.append(before)
                if name is not None:
                    within[name.id] = before
            found.append(before)
        if new:
            self._check_room(new)
            self._ids.update(within)
            self._total += len(new)
            self._bytes += sum(len(record.data) for record in new)
            self._queue.put(new)
        return found

    def _taken(self, record: bytes | Answer, name: Named | None) -> bytes | Answer:
        """A record that is taken, or why it is not."""
        why = None if name is None else self._refused(name.id)
        return record if why is None else Answer(status="refused", reason=why[0], detail=why[1])

    def _check_room(self, new: Sequence[Waiting]) -> None:
        waiting = self._total - self._through
        size = sum(len(record.data) for record in new)
        if (waiting and waiting + len(new) > QUEUE) or (self._bytes and self._bytes + size > BYTES):
            raise AskError(429, f"{waiting:,} records wait already: send these again in a moment", 1.0)

    def _refusal(self, hindrance: str) -> AskError:
        full = hindrance.startswith("no room")
        return AskError(507 if full else 503, f"{hindrance}: nothing was taken", 5.0 if full else 1.0)

    def pending(self, name: str) -> Answer | None:
        """Of an id that is accepted and has no answer: just that."""
        record = self._ids.get(name)
        return None if record is None else record.told()

    def _accepted(self, records: Sequence[Waiting], first: int) -> None:
        for line, record in enumerate(records, first):
            record.line, self._lines[line] = line, record
            self._bytes -= len(record.data)
            record.data = b""

    def _failed(self, records: Sequence[Waiting], why: str) -> None:
        self._total -= len(records)
        error = self._refusal(why)
        for record in records:
            self._bytes -= len(record.data)
            self._forget(record)
            for request in record.asked:
                request.failed(error)

    def _forget(self, record: Waiting) -> None:
        if record.id is not None:
            self._ids.pop(record.id, None)

    def _heard(self, found: Sequence[tuple[int, Answer]], through: int) -> None:
        for line, answer in found:
            record = self._lines.pop(line, None)
            if record is not None:
                self._answer(record, answer)
        self._through = max(self._through, through)

    def _answer(self, record: Waiting, answer: Answer) -> None:
        record.answer = answer
        self._forget(record)
        for request in record.asked:
            request.heard()

    def _settle(self, through: int) -> None:
        """All up to there is answered that will be: a line without an answer went on with one before it."""
        self._through = max(self._through, through)
        if not self._lines:
            return
        for line in [line for line in self._lines if line <= through]:
            went_on = Answer(
                status="refused", line=line, reason="joined", detail="it goes on with the line before it"
            )
            self._answer(self._lines.pop(line), went_on)

    def _open(self, waiting: Sequence[tuple[int, Named]]) -> None:
        stored = self._known([name.id for _, name in waiting])
        for line, name in waiting:
            if name.id not in stored and line not in self._lines:
                self._ids[name.id] = self._lines[line] = Waiting(b"", name, line)

    # ---------------------------------------------------------------- the stream's thread

    def open(self, waiting: Sequence[tuple[int, Named]]) -> None:
        """Take records from now on. ``waiting`` are lines and ids of those that may have no answer yet."""
        self._call(self._open, waiting)
        self._call(setattr, self, "hindrance", None)

    def answered(self, found: Sequence[tuple[int, Answer]], through: int) -> None:
        """These were answered, and are in the store; the stream has read through that line."""
        self._call(self._heard, found, through)

    def looked(self, line: int, *, held_back: bool) -> None:
        """The stream has read so far, and answered all unless some are held back."""
        before, self._read = self._read, line
        if not held_back and before > self._settled:
            self._settled = before
            self._call(self._settle, before)

    def hinder(self, why: str | None) -> None:
        """Take no more because of a full disk, which ``why`` begins with "no room"; None: go on."""
        self._call(self._say, why)

    def close(self) -> None:
        """Take no more; who waits hears that what was accepted is safe."""
        self._call(setattr, self, "hindrance", "stopping")
        self._queue.put(None)
        self._thread.join(10.0)
        self._journal.close()
        self._call(self._end)

    def _end(self) -> None:
        for record in [*self._lines.values()]:
            for request in record.asked:
                if not request.done.done():
                    request.done.set_result(None)

    # ---------------------------------------------------------------- the journal's thread

    def _write(self) -> None:
        full = False
        while True:
            try:
                group = self._queue.get(timeout=LOOK if full else None)
            except queue.Empty:
                if self._has_room():
                    full = False
                    self._call(self._say, None)
                continue
            ends, records = group is None, list(group or ())
            while not ends and len(records) < QUEUE:
                try:
                    group = self._queue.get_nowait()
                except queue.Empty:
                    break
                ends = group is None
                records += group or ()
            if records:
                full = not self._append(records)
            if ends:
                return

    def _append(self, records: list[Waiting]) -> bool:
        """Write a group; whether that is done."""
        try:
            if not self._has_room():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            first = self._journal.append([record.data for record in records])
        except OSError as error:
            why = f"no room for the journal ({error.strerror})"
            self._call(self._say, why)
            self._call(self._failed, records, why)
            return False
        self._call(self._accepted, records, first)
        self._journal.release()
        return True

    def _say(self, hindrance: str | None) -> None:
        if self.hindrance is None or self.hindrance.startswith("no room"):
            self.hindrance = hindrance

    def _has_room(self) -> bool:
        found = os.statvfs(self._journal.folder)
        return found.f_bavail * found.f_frsize >= self.reserve


def reader_of(decoder: Decoder) -> Callable[[bytes], Named | None]:
    """What reads the id of a record and what it says, as the stream does."""
    needed = UID.encode() if decoder.format == "otlp" else b""

    def read(data: bytes) -> Named | None:
        if needed not in data:
            return None
        found = decoder.decode_all(Raw(data, {}, 0.0))
        if len(found) == 1 and isinstance(record := found[0], Record):
            return None if record.id is None else Named.of(record.id, *Columns.of(found).said())
        try:
            name = id_value(plain_fields(data).get(decoder.fields.id), decoder.fields.id)
        except (RefusedError, UnicodeDecodeError):
            return None  # the stream refuses it, and says why
        return None if name is None else Named.of(name, "")

    return read
