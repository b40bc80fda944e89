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
    outlines = [_outline(band, middle) for band in bands]
    taken: list[Box] = []
    for b in sorted(range(len(bands)), key=lambda b: -float(np.ptp(outlines[b], axis=0).max())):
        low, high = outlines[b]
        halo = [withStroke(linewidth=2.5, foreground=(1.0, 1.0, 1.0, 0.75))]
        look = {"ha": "center", "va": "center", "fontsize": 9, "color": "black", "path_effects": halo}
        written = axes.text(middle[0], low[0], texts[b], **look)
        width, height = (np.diff(to_data(written.get_window_extent()), axis=0)[0] * (1.1, 1.1)).tolist()
        box = _inside(low, high, middle, width, height) or _across(low, high, middle, width, height, taken)
        if box is None:
            written.remove()
            continue
        taken.append(box)
        written.set_position((0.5 * (box[0] + box[2]), 0.5 * (box[1] + box[3])))


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
    for at in _thickest(low, high, height):
        x = float(np.clip(middle[at], middle[0] + width / 2, middle[-1] - width / 2))
        y = float(0.5 * (low[at] + high[at]))
        box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        if all(box[0] > t[2] or box[2] < t[0] or box[1] > t[3] or box[3] < t[1] for t in taken):
            return box
    return None
