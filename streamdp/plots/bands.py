"""Writing what a band is into it, where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamdp.plots.data import Floats

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


def write_bands(axes: Any, bands: Sequence[Any], middle: Floats, texts: Sequence[str]) -> None:
    """Write a text into each band of a stack over these places: inside where it fits, else across its edges.

    No two texts overlap; a band that is nowhere as thick as the text is high, or where others stand
    already, has none.
    """
    from matplotlib.patheffects import withStroke

    axes.figure.draw_without_rendering()  # so that it is known how wide a text is
    to_data = axes.transData.inverted().transform
    halo = [withStroke(linewidth=2.5, foreground=(1.0, 1.0, 1.0, 0.75))]
    look = {"ha": "center", "va": "center", "fontsize": 9, "color": "black", "path_effects": halo}
    taken: list[Box] = []
    left: list[tuple[Any, Floats, Floats, float, float]] = []
    for band, text in zip(bands, texts, strict=True):
        low, high = _outline(band, middle)
        written = axes.text(middle[0], low[0], text, **look)
        width, height = (np.diff(to_data(written.get_window_extent()), axis=0)[0] * (1.1, 1.1)).tolist()
        box = _inside(low, high, middle, width, height)
        if box is None:
            left.append((written, low, high, width, height))
        else:
            _put(written, box, taken)
    for written, low, high, width, height in sorted(left, key=lambda each: -float((each[2] - each[1]).max())):
        box = _across(low, high, middle, width, height, taken)
        if box is None:
            written.remove()
        else:
            _put(written, box, taken)


def _put(written: Any, box: Box, taken: list[Box]) -> None:
    written.set_position((0.5 * (box[0] + box[2]), 0.5 * (box[1] + box[3])))
    taken.append(box)


def _outline(band: Any, middle: Floats) -> tuple[Floats, Floats]:
    """Lower and upper edge of a band at each place."""
    vertices = band.get_paths()[0].vertices
    place = np.abs(vertices[:, :1] - middle).argmin(axis=1)
    low, high = np.full(len(middle), np.inf), np.full(len(middle), -np.inf)
    np.minimum.at(low, place, vertices[:, 1])
    np.maximum.at(high, place, vertices[:, 1])
    return low, high


def _thickest(low: Floats, high: Floats, height: float) -> list[int]:
    """Places where a band is as thick as that, the thickest first."""
    order = np.argsort(low - high, kind="stable")
    return [int(at) for at in order if high[at] - low[at] >= height]


def _inside(low: Floats, high: Floats, middle: Floats, width: float, height: float) -> Box | None:
    for at in _thickest(low, high, height):
        left, right = middle[at] - width / 2, middle[at] + width / 2
        begin, end = np.searchsorted(middle, left), np.searchsorted(middle, right, side="right")
        floor, roof = float(low[begin:end].max()), float(high[begin:end].min())
        if middle[0] <= left and right <= middle[-1] and roof - floor >= height:
            y = 0.5 * (floor + roof)
            return float(left), y - height / 2, float(right), y + height / 2
    return None


def _across(
    low: Floats, high: Floats, middle: Floats, width: float, height: float, taken: Sequence[Box]
) -> Box | None:
    """Where as much of the text as possible is on the band, and nothing on another text."""
    best, most = None, 0.0
    for at in _thickest(low, high, height):
        x = float(np.clip(middle[at], middle[0] + width / 2, middle[-1] - width / 2))
        under = np.abs(middle - x) <= width / 2
        for y in (0.5 * (low[at] + high[at]) + height * np.arange(-2, 3)).tolist():
            bottom, top = y - height / 2, y + height / 2
            box = (x - width / 2, bottom, x + width / 2, top)
            if bottom < low[at] or high[at] < top or any(_overlap(box, other) for other in taken):
                continue
            covered = float(((low <= bottom) & (top <= high))[under].mean()) if under.any() else 0.0
            if covered > most:
                best, most = box, covered
    return best


def _overlap(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]
