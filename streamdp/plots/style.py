"""Colours that the colour-blind tell apart, axes of time, and what else the look of a picture consists of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamdp.answers.listing import is_date
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
        """The places of records: seconds, or their numbers."""
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


COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
"""Okabe & Ito's (2008) without black."""

REST = "#D9D9D9"
"""Of all that has no colour of its own."""

HATCHES = (None, "//", "..", "xx")

SIZE, DPI = (12.0, 7.0), 100
"""Of a picture: 1200 x 700 pixels."""

FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "WenQuanYi Zen Hei",
    "Noto Sans Thai",
    "Noto Sans Devanagari",
    "Noto Emoji",
    "Hiragino Sans",
    "Arial Unicode MS",
    "Microsoft YaHei",
)
"""In which a character is looked for, where they are installed."""


class Style(NamedTuple):
    """How one cluster is distinguished from the others, without its colour too."""

    colour: str = REST
    hatch: str | None = None


def style(number: int) -> Style:
    """The style of that number; those below 28 differ."""
    return Style(COLOURS[number % len(COLOURS)], HATCHES[number // len(COLOURS) % len(HATCHES)])


def styles_of(clusters: Iterable[int]) -> dict[int, Style]:
    """A style for each cluster, which depends on its label and on older clusters among these alone.

    So a picture of the same stream drawn later keeps the styles of those that it still shows, unless an
    older one has joined them.
    """
    styles: dict[int, Style] = {}
    taken: set[int] = set()
    for label in sorted(clusters):
        number = label % len(COLOURS)
        while number in taken:
            number += 1
        taken.add(number)
        styles[label] = style(number)
    return styles


def plain(text: str, most: int = 40) -> str:
    """A text as it is, however many dollar signs are in it, and no longer than that."""
    text = " ".join(text.split())
    text = text if len(text) <= most else text[: most - 1].rstrip() + "…"
    return text.replace("$", r"\$")


def name_of(cluster: int, names: Mapping[int, str], most: int = 40) -> str:
    """By what it is about, where that is known."""
    known = names.get(cluster)
    return plain(known, most) if known else f"cluster {cluster}"


@contextmanager
def look() -> Iterator[None]:
    """Fonts and lines of the pictures drawn inside."""
    import warnings

    import matplotlib as mpl
    from matplotlib.font_manager import get_font_names

    installed = set(get_font_names())
    settings: dict[str, Any] = {
        "font.family": [font for font in FONTS if font in installed] or ["sans-serif"],
        "font.size": 11,
        "axes.titlesize": 13,
        "legend.fontsize": 10,
        "hatch.linewidth": 0.8,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a box is drawn in its place
        yield


def axes_or_new(axes: Any) -> Any:
    """The given axes, or those of a new figure that a notebook shows."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=SIZE, dpi=DPI, layout="constrained")[1]
