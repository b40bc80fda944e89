"""Event-time order: late records wait for their turn, too late ones are refused."""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import statistics
from collections.abc import Iterator
from operator import is_, itemgetter
from typing import Any

import msgspec
import numpy as np

from streamdp.kernels.sound import require
from streamdp.records import Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings.memory import AROUND

CONFIRM = 8
"""Records in a row that are as far ahead, until the stream is taken to have moved on."""

HELD = 1000
"""Arrivals after which a record that is alone in its time is placed in the stream's."""

FEW = 8
"""Records side by side that are put in order sooner one by one."""

ONE_BY_ONE = 16
"""Records that are put in order one by one, before it is asked again how many pass; then twice as many."""

STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400)
"""Seconds of lateness that are distinguished."""

LIMITS = ("max_lateness", "max_ahead", "max_leap", "place", "most_bytes", "needs_time")
"""Of a buffer, what is no state, but a setting."""

REASONS = (
    "missing_time",
    "ahead",
    "late",
    "wrong_kind",
    "too_many_tokens",
    "empty",
    "wrong_type",
    "unknown_feature",
    "wrong_length",
    "not_finite",
    "too_large",
    "zero_vector",
    "wrong_value",
    "untrained",
    "erased",
)
"""Every reason for which a decoded record is refused; some are the decoder's too. They label a metric."""

Waiting = tuple[float, int, Record]
Ready = list[tuple[float, Record | Reject]]
"""What goes on now, in order: records with the time at which each is placed, and what was refused."""


def refuse(record: Record, reason: str, detail: str) -> Reject:
    """The reject of a decoded record."""
    return Reject(record.position, reason, detail, record.raw)


def placed(ready: Ready) -> tuple[Columns, np.ndarray]:
    """What goes on now, side by side, and the times at which records are placed."""
    times = [time for time, record in ready if not isinstance(record, Reject)]
    return Columns.of(record for _, record in ready), np.array(times, float)


def size_of(record: Record) -> int:
    """Bytes that a record counts for: those of its content, never those that this machine takes for it."""
    return len(record.raw) + AROUND


def without_arrival(record: Record) -> Record:
    """A record as it waits: the wall clock is no part of the state."""
    return record if record.arrival is None else msgspec.structs.replace(record, arrival=None)


class ReorderBuffer(msgspec.Struct, dict=True, eq=False):
    """Brings records into the order of their times, as far as waiting for them goes.

    A record is released when one ``max_lateness`` seconds younger has been seen. Records of equal time
    keep their order of arrival, those without a time pass at the latest time seen. What comes later than that
    is placed at the time that the stream has reached, or refused.

    One clock that is wrong must not make all others late: a record further ahead of the stream than
    ``max_leap`` is held back until ``CONFIRM`` records in a row are (the stream has moved on), the stream has
    caught up with it, or ``HELD`` others have come (it is placed at the time that the stream has reached).
    In silence two in a row are enough, and at the end one is. A stream whose records lie far apart has longer
    leaps: eight times their mean distance.

    Nor may the first record, which nothing can be compared with: where ``CONFIRM`` in a row are as far behind
    while a stream has hardly begun, it has the time of the latest of them. What was released before stays,
    and until the stream has come to that time, records are placed there.

    Parameters
    ----------
    max_lateness, max_ahead, max_leap
        Seconds waited for late records; that a time may lie beyond the record's arrival; that it may lie
        beyond the stream's before others confirm it.
    place
        How late a record may be and still be placed, in seconds; beyond, it is refused.
    most_bytes
        Of the records that are held back. Above it the oldest are released early.
    needs_time
        Whether records without a time are refused.

    It is stored as it is.
    """

    max_lateness: float
    max_ahead: float
    max_leap: float = math.inf
    place: float = 0.0
    most_bytes: int = 1 << 62
    needs_time: bool = False
    latest: float = -math.inf
    released: float = -math.inf
    first: float = -math.inf
    arrivals: int = 0
    timed: int = 0
    dated: bool = False
    """Whether any record had a time."""
    streak: list[float] = []
    early: int = 0
    """Records that were released early for having been too many."""
    heap: list[Waiting] = []
    leaps: list[Waiting] = []

    def __post_init__(self) -> None:
        require(min(self.arrivals, self.timed, self.early) >= 0, "a count of records is negative")
        require(max(self.arrivals, self.timed, self.early) < 1 << 62, "a count of records out of range")
        waiting = [*self.heap, *self.leaps]
        require(
            len({number for _, number, _ in waiting}) == len(waiting), "two waiting records of one number"
        )
        heapq.heapify(self.heap)  # of which some may have been let go
        self.bytes = sum(size_of(record) for _, _, record in waiting)
        """Bytes that are held back."""
        self.lateness = Lateness()

    @property
    def limits(self) -> dict[str, Any]:
        """What settings say of it, by parameter."""
        return {name: getattr(self, name) for name in LIMITS}

    def in_order(self, given: Columns) -> Iterator[tuple[Columns, np.ndarray]]:
        """Records in order of arrival become those whose turn has come, and the times of these.

        They go together as far as they pass as they come, one by one where they do not.
        """
        at, some = 0, ONE_BY_ONE
        if len(given) < FEW:
            yield self._one_by_one(given)
            return
        while at < len(given):
            rest = given[at:]
            times = self.pass_through(rest.seconds, rest.arrivals)
            if len(times):
                yield rest[: len(times)], times
                at += len(times)
            else:
                yield self._one_by_one(rest[:some])
                at, some = at + some, 2 * some

    def _one_by_one(self, given: Columns) -> tuple[Columns, np.ndarray]:
        ready: Ready = []
        came = given.all()
        for record in came:
            if isinstance(record, Reject):
                ready.append((0.0, record))
            else:
                self.push(record, ready)
        if len(ready) == len(came) and all(map(is_, map(itemgetter(1), ready), came)):  # as nearly always
            times = [time for time, record in ready if not isinstance(record, Reject)]
            return given, np.array(times, float)
        return placed(ready)

    def push(self, record: Record, ready: Ready) -> None:
        """Take a record in; append to ``ready`` why it cannot be taken, and what may go now."""
        time = record.time
        if time is None and self.needs_time:
            detail = "it has no time, and distance is measured in seconds"
            ready.append((0.0, refuse(record, "missing_time", detail)))
            return
        if time is None:
            time = self.latest if self.latest > -math.inf else 0.0
        elif record.arrival is not None and time > record.arrival + self.max_ahead:
            # no figure that depends on the wall clock: a replay must write the same bytes
            detail = f"its time is more than {self.max_ahead:g} s beyond its arrival"
            ready.append((time, refuse(record, "ahead", detail)))
            return
        elif not self.dated:  # no record before it says where the stream is
            self.latest = self.released = -math.inf
            self.timed = 0
        elif time > self.latest + self.max_leap and self._leaps(time):
            self._hold(time, record, ready)
            self._give_way(ready)
            return
        elif self.timed < 2 * CONFIRM and time < self.latest - self.max_leap:
            self._doubt(time)
        elif self.streak:
            self.streak.clear()
        self.dated = self.dated or record.time is not None
        if time < self.latest:
            self.lateness.note(self.latest - time)
        self._accept(time, record, ready)
        if self.leaps:
            self._look_again(ready, self.max_leap)
        self._give_way(ready)

    def _give_way(self, ready: Ready) -> None:
        """Release the oldest records while more bytes are held back than may be."""
        while self.bytes > self.most_bytes and self.held:
            held = self.held
            if self.heap:
                self._release_until(self.heap[0][0], ready)
            else:
                _, _, record = self.leaps.pop(0)
                self.bytes -= size_of(record)
                self._place(record, ready)
            self.early += held - self.held

    @property
    def in_step(self) -> bool:
        """Whether nothing waits, and no time is in doubt: records pass as they come."""
        waits = self.max_lateness or self.heap or self.leaps or self.streak
        return not waits and self.timed >= 2 * CONFIRM and self.latest == self.released

    def pass_through(self, times: np.ndarray, arrivals: np.ndarray) -> np.ndarray:
        """Take in the first of some records, as many as pass as they come, and nothing of the others.

        As :meth:`push` does, for many at once. Times are NaN where records have none; returned are the times
        at which records are placed.
        """
        if not self.in_step:
            return times[:0]
        reached = np.fmax.accumulate(np.concatenate([[self.latest], times]))
        placed, before = reached[1:], reached[:-1]
        late = before - times  # NaN, which compares as false, where there is no time
        stays = (-late > self.max_leap) | (times > arrivals + self.max_ahead) | (late > self.place)
        if self.needs_time:
            stays |= np.isnan(times)
        if not self.dated:
            stays |= ~np.isnan(times)
        n = int(stays.argmax()) if stays.any() else len(times)
        if n:
            behind = late[:n][late[:n] > 0.0]
            for seconds in behind.tolist():
                self.lateness.note(seconds)
            self.timed += n - len(behind)
            self.arrivals += n - len(behind)
            self.latest = self.released = float(placed[n - 1])
        return placed[:n]

    def _accept(self, time: float, record: Record, ready: Ready) -> None:
        if time < self.released:
            late = min(self.released, self.latest) - time
            if late > self.place:
                before = f"its time is {late:g} s before that of a record already processed"
                ready.append((time, refuse(record, "late", f"{before} (see max_lateness)")))
            else:
                ready.append((self.released, record))
                self.latest = max(self.latest, time)
            return
        if time > self.latest:
            if self.timed == 0:
                self.first = time
            self.latest = time
        self.timed += 1
        self.arrivals += 1
        if self.max_lateness == 0.0 and not self.heap:
            self.released = time
            ready.append((time, record))
            return
        heapq.heappush(self.heap, (time, self.arrivals, without_arrival(record)))
        self.bytes += size_of(record)
        self._release_until(self.latest - self.max_lateness, ready)

    def _leaps(self, time: float) -> bool:
        """Whether a time is too far ahead for the distances that this stream is used to."""
        if self.timed == 0:
            return False
        mean = (self.latest - self.first) / self.timed
        return time - self.latest > 8.0 * mean

    def _doubt(self, time: float) -> None:
        """Go back to where all records are, if the first alone was far ahead."""
        if self.streak and self.streak[0] > self.latest:
            self.streak.clear()
        self.streak.append(time)
        if len(self.streak) >= CONFIRM:
            self.latest = self.first = max(self.streak)
            self.timed = 1
            self.streak.clear()

    def _hold(self, time: float, record: Record, ready: Ready) -> None:
        self.arrivals += 1
        self.leaps.append((time, self.arrivals, without_arrival(record)))
        self.bytes += size_of(record)
        if self.streak and self.streak[0] < self.latest:
            self.streak.clear()
        self.streak.append(time)
        if len(self.streak) >= CONFIRM:
            self._move_on(ready)
        else:
            self._look_again(ready, self.max_leap)

    def _move_on(self, ready: Ready) -> None:
        """Take the times of the latest records for those of the stream, though they are far ahead."""
        times = sorted(self.streak)
        gaps = [b - a for a, b in itertools.pairwise(times)]
        self.latest = times[0]
        self.streak.clear()
        self._look_again(ready, max([self.max_leap, *(8.0 * statistics.median(gaps) for _ in gaps[:1])]))

    def _look_again(self, ready: Ready, reach: float) -> None:
        """Take in what is at most ``reach`` seconds ahead now, and what has been held for too long."""
        held, self.leaps = sorted(self.leaps, key=lambda waiting: waiting[:2]), []
        for waiting in held:
            time, number, record = waiting
            self.bytes -= size_of(record)
            if self.released <= time <= self.latest + reach:
                self._accept(time, record, ready)
            elif time < self.released or self.arrivals - number > HELD:
                self._place(record, ready)
            else:
                self.leaps.append(waiting)
                self.bytes += size_of(record)

    def _place(self, record: Record, ready: Ready) -> None:
        """Let a record pass at the time that the stream has reached."""
        if self.released == -math.inf:
            self.released = self.heap[0][0] if self.heap else self.latest
        ready.append((self.released, record))

    def _release_until(self, time: float, ready: Ready) -> None:
        while self.heap and self.heap[0][0] <= time:
            self.released, _, record = heapq.heappop(self.heap)
            self.bytes -= size_of(record)
            ready.append((self.released, record))

    def time_of(self, record: Record) -> float:
        """The time of a record that may come next."""
        return self.latest if record.time is None else record.time

    def drain(self, ready: Ready, *, ended: bool = False) -> None:
        """Release everything: the stream has ended, or is silent, as before the first record of a morning.

        Where the last records are far ahead, the stream has moved on: at its end a single one says so, as
        nothing will come that could say otherwise; in silence two do.
        """
        self._release_until(math.inf, ready)
        if self.leaps and len(self.streak) >= (1 if ended else 2) and self.streak[0] > self.latest:
            self._move_on(ready)
            self._release_until(math.inf, ready)
        for _, _, record in self.leaps:
            self.bytes -= size_of(record)
            self._place(record, ready)
        self.leaps = []

    @property
    def held(self) -> int:
        """Records held back."""
        return len(self.heap) + len(self.leaps)


class Lateness:
    """How late the records of a run came, to say which ``max_lateness`` would have put them in order."""

    def __init__(self) -> None:
        self.counts = [0] * (len(STEPS) + 1)

    def note(self, seconds: float) -> None:
        """Count a record that came so long after one that happened later."""
        self.counts[bisect.bisect_left(STEPS, seconds)] += 1

    @property
    def total(self) -> int:
        """Records that came out of order."""
        return sum(self.counts)

    def within(self) -> list[tuple[float, int]]:
        """Steps of lateness in seconds, and how many records each would have put in order."""
        found, reached = [], 0
        for step, count in zip(STEPS, self.counts, strict=False):
            reached += count
            if count:
                found.append((step, reached))
        return found
