"""The latest stretch of event time ("now") and the one before, and the records of stories in each."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from streamdp.answers.describe import LATELY
from streamdp.answers.listing import is_date

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
STEPS = (
    *(1.0, 5.0, 15.0, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR),
    *(DAY, 7 * DAY, 30 * DAY, 365 * DAY),
)
"""Seconds that a stretch may take, where times are dates."""

UNITS = {"s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}


class Figures(NamedTuple):
    """A story's records in the latest stretch and in the one before, and where its busiest stretch began."""

    now: int
    before: int
    peak: float | None


NOTHING = Figures(0, 0, None)


class Clock(msgspec.Struct, frozen=True):
    """The time of a stream's newest record, and the length of a stretch of it.

    Both are in seconds of event time; of a stream without times in records.
    """

    time: float
    stretch: float
    dated: bool = True

    @classmethod
    def of(cls, times: np.ndarray | None, seq: int, stretch: float | None = None) -> Clock:
        """The clock after record ``seq`` - 1.

        Parameters
        ----------
        times
            Event times of the latest records, in order, shape (n,); None for a stream without times.
        seq
            Records so far.
        stretch
            Its length. None: what the last 1,000 records took (of fewer than 2,000 the later half), rounded
            down to a whole minute, hour, day and the like.
        """
        lately = min(LATELY, max(seq // 2, 1))
        if times is None or not len(times):
            return cls(float(seq - 1), float(stretch or lately), dated=False)
        ordered = np.sort(times)
        newest = float(ordered[-1])
        if stretch is None:
            took = newest - float(ordered[max(len(ordered) - 1 - lately, 0)])
            stretch = rounded_down(took, as_date=is_date(newest))
        return cls(newest, stretch)

    def figures(self, labels: np.ndarray, places: np.ndarray) -> dict[int, Figures]:
        """Figures by label, of records at these places: times, or numbers of records; both of shape (n,)."""
        if not len(labels):
            return {}
        back = np.floor((self.time - places) / self.stretch).astype(np.int64)
        cells, counts = np.unique(np.stack([labels, back]), axis=1, return_counts=True)
        return self.figures_of(cells[0], cells[1], counts, float(places.min()))

    def figures_of(
        self, labels: np.ndarray, back: np.ndarray, counts: np.ndarray, first: float
    ) -> dict[int, Figures]:
        """The same of counts by label and stretch: how many stretches ``back`` each is; all of shape (m,).

        ``first`` is the earliest place of all.
        """
        names, which = np.unique(labels, return_inverse=True)
        now = np.bincount(which, counts * (back <= 0), len(names)).astype(int).tolist()
        before = np.bincount(which, counts * (back == 1), len(names)).astype(int).tolist()
        order = np.lexsort((-back, -counts, which))  # of equal stretches the first
        _, best = np.unique(which[order], return_index=True)
        starts = self.time - (back[order[best]] + 1) * self.stretch
        peaks = np.maximum(starts, first).tolist() if self.dated else [None] * len(names)
        return {label: Figures(*row) for label, *row in zip(names.tolist(), now, before, peaks, strict=True)}

    @property
    def words(self) -> str:
        """The length of a stretch for people: ``3 hours``, ``1,000 records``."""
        if not self.dated:
            return "record" if self.stretch == 1 else f"{self.stretch:,.0f} records"
        if not is_date(self.time):
            return f"{self.stretch:,g}"
        for unit, seconds in (("day", DAY), ("hour", HOUR), ("minute", MINUTE)):
            if self.stretch >= seconds and self.stretch % seconds == 0:
                count = int(self.stretch / seconds)
                return f"{count} {unit}" + ("" if count == 1 else "s")
        return f"{self.stretch:g} s"


def rounded_down(took: float, *, as_date: bool) -> float:
    """A length that is easily said, no longer than what some records took."""
    if as_date:
        return max((step for step in STEPS if step <= took), default=STEPS[0])
    if took <= 0.0:
        return 1.0
    size = float(10.0 ** np.floor(np.log10(took)))
    return next(size * step for step in (5.0, 2.0, 1.0, 0.5) if size * step <= took)


def duration(text: str) -> float:
    """Seconds of ``90s``, ``15m``, ``6h``, ``2d``, ``1w``, or of a plain number. Raises ValueError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is no length of time (90s, 15m, 6h, 2d, 1w)")
    return seconds
