"""Along which axis records follow each other: dates, seconds that are no dates, or their numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from streamdp.answers.times import is_date
from streamdp.plots.data import Answered, Floats

UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def filled(times: ArrayLike) -> Floats:
    """Times in processing order; a record without one counts as it comes, after the last that has one."""
    values = np.asarray(times, float)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return values
    last = np.maximum(np.searchsorted(known, np.arange(len(values)), side="right") - 1, 0)
    return values[known[last]]


@dataclass(frozen=True)
class Clock:
    """An axis of time."""

    kind: Literal["dates", "seconds", "records"]

    @classmethod
    def of(cls, answered: Answered) -> Clock:
        """The axis that suits the records: their numbers where they have no times, or all the same."""
        times = filled(answered.time)
        if not len(times) or np.isnan(times).any() or times.min() == times.max():
            return cls("records")
        return cls("dates" if is_date(float(times.min())) and is_date(float(times.max())) else "seconds")

    def values(self, seq: ArrayLike, times: ArrayLike) -> Floats:
        """Where records stand: seconds, or their numbers."""
        return np.asarray(seq, float) if self.kind == "records" else filled(times)

    def on_axis(self, values: ArrayLike) -> Floats:
        """The same in the units of a matplotlib axis."""
        values = np.asarray(values, float)
        if self.kind != "dates":
            return values
        from matplotlib.dates import date2num

        return np.asarray(date2num((values * 1e6).astype("datetime64[us]")), float)

    def edges(self, values: Floats, bins: int) -> Floats:
        """So many bins of one width over all values; fewer where they would hold no whole record number."""
        low, high = float(values.min()), float(values.max())
        if self.kind == "records":
            width = math.ceil((high - low + 1.0) / bins)
            count = math.ceil((high - low + 1.0) / width)
            return np.asarray(low - 0.5 + width * np.arange(count + 1.0))
        return np.linspace(low, high, bins + 1)

    def width(self, edges: Floats) -> str:
        """How wide the bins are, for people: ``41 min``, ``50 records``."""
        width = float(edges[1] - edges[0])
        if self.kind == "records":
            return f"{width:,.0f} records" if width > 1.0 else "record"
        units = UNITS if self.kind == "dates" else UNITS[-1:]
        size, unit = next((u for u in units if width >= u[0]), units[-1])
        return f"{width / size:.3g} {unit}"

    def dress(self, axes: Any) -> None:
        """Ticks and the name of a horizontal axis."""
        if self.kind == "dates":
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator(minticks=4, maxticks=10, tz="UTC")
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz="UTC"))
            axes.set_xlabel("event time (UTC)")
            return
        from matplotlib.ticker import FuncFormatter

        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}" if abs(x) < 1e6 else f"{x:g}"))
        axes.set_xlabel("event time (seconds)" if self.kind == "seconds" else "number of the record")
