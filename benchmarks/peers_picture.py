"""The picture of ``benchmarks.peers``: what each costs, and how well it finds the truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamdp.plots.style import COLOURS, FAINT, INK, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 3
"""Panels in a row."""


class Point(NamedTuple):
    """What one method reached on one set; ``first`` as announced, ``newest`` after all revisions."""

    data: str
    method: str
    measure: str
    records: int
    clusters: int
    first: float
    newest: float
    seconds: float

    @property
    def cost(self) -> float:
        """CPU microseconds a record."""
        return 1e6 * self.seconds / self.records


def draw(path: Path, points: Sequence[Point]) -> None:
    """A panel for each set: quality against cost, names beside the points."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(point.data for point in points))
    rows = -(-len(names) // ACROSS)
    with look():
        figure = Figure(figsize=(4.4 * min(len(names), ACROSS), 4.0 * rows), dpi=100, layout="constrained")
        panels = figure.subplots(rows, min(len(names), ACROSS), squeeze=False).flat
        shown = []
        for axes, name in zip(panels, names, strict=False):
            these = [point for point in points if point.data == name]
            _panel(axes, these)
            shown.append((axes, these))
        for axes in list(panels)[len(names) :]:
            axes.set_visible(False)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes, these in shown:
            _names(axes, these)
        figure.savefig(path, metadata={"Software": None})


def _colour(point: Point) -> str:
    return COLOURS[0] if point.method.startswith("streamdp") else COLOURS[5]


def _panel(axes: Axes, points: Sequence[Point]) -> None:
    """The points of one set; a hollow one is what was announced first, where it was revised."""
    for point in points:
        colour = _colour(point)
        if point.first != point.newest:
            axes.plot(point.cost, point.first, "o", color=colour, fillstyle="none", zorder=2)
        axes.plot(point.cost, point.newest, "o", color=colour, zorder=3)
    costs = [point.cost for point in points]
    least = min(min(point.first, point.newest) for point in points)
    axes.set(xscale="log", xlim=(min(costs) / 4, max(costs) * 6), ylim=(max(least - 0.15, -0.02), 1.04))
    axes.set(xlabel="CPU microseconds a record", ylabel=points[0].measure)
    axes.set_title(f"{points[0].data}, {points[0].records:,} records", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=FAINT, alpha=0.2)


def _names(axes: Axes, points: Sequence[Point]) -> None:
    """Each name as near to its point as others, their points and the edges allow."""
    from matplotlib.text import Text

    marks = [axes.transData.transform((p.cost, y)) for p in points for y in {p.first, p.newest}]
    taken = [(x - 5.0, y - 5.0, x + 5.0, y + 5.0) for x, y in marks]
    for point in sorted(points, key=lambda p: -p.newest):
        at = axes.transData.transform((point.cost, point.newest))
        label = axes.annotate(
            point.method,
            (point.cost, point.newest),
            xytext=(0.0, 0.0),
            textcoords="offset pixels",
            fontsize=8,
            color=INK,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
        )
        size = Text.get_window_extent(label)  # without the line to the point
        best = min(_places(size.width, size.height), key=lambda place: _badness(axes, at, size, place, taken))
        label.set_position(best)
        left, low = at[0] + best[0], at[1] + best[1]
        taken.append((left, low, left + size.width, low + size.height))
        taken += [(x - 1.0, y - 1.0, x + 1.0, y + 1.0) for x, y in _leader(at, best, size)]


def _leader(at: Any, place: tuple[float, float], size: Any) -> list[tuple[float, float]]:
    """Pixels of the line from a point to the middle of its label, none beside the point or in the label."""
    x, y = place[0] + size.width / 2, place[1] + size.height / 2
    shares = (share for share in (0.3, 0.5, 0.7) if abs(y) * (1 - share) > size.height / 2)
    return [(at[0] + share * x, at[1] + share * y) for share in shares]


def _places(width: float, height: float) -> Iterable[tuple[float, float]]:
    """Lower left corners of a label, in pixels from its point, the nearest first."""
    for rise in (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8):
        y = rise * 1.3 * height - height / 2
        yield from ((8.0, y), (-width - 8.0, y))
        if rise:
            yield from ((-width / 2, y), (-width / 4, y), (-3 * width / 4, y))


def _badness(axes: Axes, at: Any, size: Any, place: tuple[float, float], taken: Sequence[Any]) -> float:
    """Pixels of distance, and far more for what would be covered."""
    left, low = at[0] + place[0], at[1] + place[1]
    right, high = left + size.width, low + size.height
    frame = axes.get_window_extent()
    outside = left < frame.x0 + 2 or right > frame.x1 or low < frame.y0 + 2 or high > frame.y1 + 4
    covered = sum(left < c and a < right and low < d and b < high for a, b, c, d in taken)
    covered += sum(a < x < c and b < y < d for a, b, c, d in taken for x, y in _leader(at, place, size))
    off = abs(place[1] + size.height / 2) + abs(place[0] + size.width / 2) / 4
    return 1000.0 * covered + 3000.0 * outside + off
