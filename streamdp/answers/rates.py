"""How often the lines of each template come: which have fallen silent, and whose rate has leapt.

Lines are counted by windows of a unit of time, or of as many as it takes for some lines to come. A unit in
which no line came at all is none: the log was silent, and not a template.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from streamdp.kernels.rows import longer, row_type
from streamdp.kernels.sound import finite, require

SECONDS, LINES = 60.0, 1000.0
"""A unit of time: of event time; lines of those that have no times."""

ENOUGH = 50
"""Lines of a window, at least; more where there are many templates: each is looked at when it ends."""

FADE = 0.98
"""What a window still counts for one later: half after 34."""

LEAST = 10
"""Windows for which a template is known before its rate is reported."""

DEVIATIONS, TIMES, LINES_AT_LEAST = 8.0, 3.0, 10.0
"""A rate has leapt that is so many standard deviations and so many times above what is usual."""

OTHERS, BUSIER = 10.0, 4.0
"""So many lines of others, and standard deviations more than usual, say how much busier the log is."""

MISSED, PAUSES = 16.0, 3.0
"""A template is silent once so many lines were to be expected, after so many times its longest pause."""

RATE = row_type(reals="now usual spread windows pause longest lacking reported size last")
"""By label: lines of this window; faded sums over windows of lines by unit of time, and of squares of what
they were off; windows since the first line; units since the last one, and the most between two; lines to be
expected in these; what was reported of it last; lines in all; the time of the last."""

TOGETHER = 64
"""Stretches of lines that are counted together."""

QUIET, LOUD = 1, 2
"""What was reported of a label."""


class Turn(NamedTuple):
    """A label whose rate has changed."""

    at: int  # the line that has ended the window, of those given
    silent: bool
    label: int
    lines: float  # of the window
    usual: float  # that would have been expected
    size: int
    last: float  # time of the label's last line


class Rates(msgspec.Struct, dict=True, eq=False):
    """Counts lines by label and window. ``seconds`` is the length of a unit of time.

    It is stored as it is, once it is :meth:`settled`. ``unit`` is the unit that runs, None before the first
    line; its window has so many ``units`` and ``lines`` so far, and ends with ``enough``.
    """

    seconds: float = SECONDS
    dated: bool = False
    unit: float | None = None
    units: int = 0
    lines: int = 0
    enough: int = ENOUGH
    rows: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(64, RATE))

    def __post_init__(self) -> None:
        require(min(self.units, self.lines, self.enough) >= 0, "a window out of range")
        require(self.rows.dtype == RATE and self.rows.ndim == 1, "rates of another type")
        for name in RATE.names or ():
            finite(self.rows[name], "rates")
            require(name == "last" or bool((self.rows[name] >= 0.0).all()), "a rate below zero")
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        """Labels and times of lines that are to be counted before rows are looked at."""

    def take(self, labels: np.ndarray, times: np.ndarray, first: int, *, dated: bool) -> Iterator[Turn]:
        """Count lines, of which the first is number ``first``; yields what the windows that end say.

        ``times`` are their event times in seconds, shape (n,), non-decreasing. The first line of all says for
        good whether lines are ``dated``.
        """
        if len(labels) == 0:
            return
        if self.unit is None:
            self.dated = dated
        clock = times / self.seconds if self.dated else (first + np.arange(len(labels))) / LINES
        unit = np.floor(clock[:: max(len(clock) - 1, 1)])  # of the first line and the last
        if self.unit is None:
            self.unit, self.units = float(unit[0]), 1
        if unit[0] == unit[-1] == self.unit:
            self._waiting.append((labels, times))
            self.lines += len(labels)
            if len(self._waiting) == TOGETHER:
                self._count_waiting()
            return
        unit = np.floor(clock)
        self._count_waiting()
        ends = np.flatnonzero(np.diff(unit, prepend=self.unit) > 0)
        self._grow(int(labels.max()) + 1)
        start, passed = 0, 0
        while True:
            e = passed + int(np.searchsorted(ends[passed:], start + self.enough - self.lines))
            if e >= len(ends):
                break
            at = int(ends[e])
            self._count(labels[start:at], times[start:at])
            self.units += e - passed
            yield from self._close(at)
            self.lines, self.units, start, passed = 0, 1, at, e + 1
        self._count(labels[start:], times[start:])
        self.lines += len(labels) - start
        self.units += len(ends) - passed
        self.unit = max(self.unit, float(unit[-1]))

    def unite(self, younger: int, older: int) -> None:
        """Two labels are one from now on."""
        self._count_waiting()
        if younger >= len(self.rows) or older >= len(self.rows):
            return
        rows = self.rows
        gone, into = rows[younger].copy(), rows[older]
        for part in ("now", "usual", "spread", "size"):
            into[part] += gone[part]
        for part in ("windows", "longest", "last"):
            into[part] = max(into[part], gone[part])
        for part in ("pause", "lacking"):
            into[part] = min(into[part], gone[part])
        rows[younger] = 0.0

    def forget(self, labels: np.ndarray) -> None:
        """Labels are gone for good."""
        self._count_waiting()
        self.rows[labels[labels < len(self.rows)]] = 0.0

    def _grow(self, labels: int) -> None:
        if labels > len(self.rows):
            self.rows = longer(self.rows, 2 * labels)

    def _count_waiting(self) -> None:
        if self._waiting:
            labels, times = map(np.concatenate, zip(*self._waiting, strict=True))
            self._waiting.clear()
            self._grow(int(labels.max()) + 1)
            self._count(labels, times)

    def _count(self, labels: np.ndarray, times: np.ndarray) -> None:
        np.add.at(self.rows["now"], labels, 1.0)
        np.add.at(self.rows["size"], labels, 1.0)
        np.maximum.at(self.rows["last"], labels, times)

    def _close(self, at: int) -> Iterator[Turn]:
        """End a window: what is silent now, then what has leapt, by label; and learn what is usual."""
        known = np.flatnonzero(self.rows["size"] > 0.0)
        rows, units = self.rows[known], self.units
        lines = rows["now"].copy()
        total = np.maximum((1.0 - FADE ** rows["windows"]) / (1.0 - FADE), 1.0)
        usual, spread = rows["usual"] / total, rows["spread"] / total
        busier, calmer = _busyness(lines, usual * units)
        expected = usual * units * busier
        deviation = np.sqrt(np.maximum(expected, spread * units * busier))
        came, reported = lines > 0.0, rows["reported"].copy()
        pause = np.where(came & (reported != QUIET), rows["pause"], 0.0)
        rows["longest"] = np.maximum(rows["longest"], pause)
        rows["pause"] = np.where(came, 0.0, rows["pause"] + units)
        rows["lacking"] = np.where(came, 0.0, rows["lacking"] + usual * units * calmer)
        of_age = rows["windows"] >= LEAST
        silent = of_age & (rows["lacking"] >= MISSED)
        silent &= rows["pause"] >= PAUSES * np.maximum(rows["longest"], 1.0)
        far = lines > expected + DEVIATIONS * deviation
        loud = of_age & far & (lines >= TIMES * expected) & (lines >= LINES_AT_LEAST)
        calm = came & (lines <= expected + DEVIATIONS / 4.0 * deviation)
        for which, flag in ((silent & (reported != QUIET), QUIET), (loud & (reported != LOUD), LOUD)):
            for i in np.flatnonzero(which).tolist():
                size, last = int(rows["size"][i]), float(rows["last"][i])
                figures = int(known[i]), float(lines[i]), float(usual[i] * units)
                yield Turn(at, flag == QUIET, *figures, size, last)
        rows["reported"][came & (reported == QUIET) | calm] = 0.0
        rows["reported"][silent], rows["reported"][loud] = QUIET, LOUD
        as_usual = lines / busier / units
        rows["spread"] = FADE * rows["spread"] + np.square(as_usual - usual) * units
        rows["usual"] = FADE * rows["usual"] + as_usual
        rows["windows"] += 1.0
        rows["now"] = 0.0
        self.rows[known] = rows
        self.enough = max(ENOUGH, len(known) // 10)

    def settled(self) -> Rates:
        """Itself, all lines counted, with the rows of labels that have lines."""
        self._count_waiting()
        used = int(np.max(np.flatnonzero(self.rows["size"] > 0.0), initial=-1)) + 1
        self.rows = self.rows[:used].copy()
        return self


def _busyness(lines: np.ndarray, usual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many times as busy as usual the others of each template are: at least 1, and at most."""
    others, before = lines.sum() - lines, np.maximum(usual.sum() - usual, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = (others >= OTHERS) & (before > 0.0) & (others > before + BUSIER * np.sqrt(before))
        busier = np.where(more, others / before, 1.0)
    return busier, np.minimum((others + OTHERS) / (before + OTHERS), 1.0)
