"""Colours that the colour-blind tell apart, and what else a picture's look consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
"""Okabe & Ito's (2008) without black."""

REST = "#D9D9D9"
"""Of all that has no colour of its own."""

FAINT = "#777777"

INK = "#333333"
HATCHES = (None, "//", "..", "xx")
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")

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
    """How one cluster or chain is told from the others, without its colour too."""

    colour: str = REST
    hatch: str | None = None
    dash: str = "-"
    marker: str = "o"


def style(number: int) -> Style:
    """The style of that number; those below 28 differ."""
    again = number // len(COLOURS) % len(HATCHES)
    return Style(COLOURS[number % len(COLOURS)], HATCHES[again], DASHES[again], MARKERS[again])


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


def head(axes: Any, title: str, *, legend: bool = False, columns: int = 4) -> None:
    """Title and legend above the axes, where they cover no data."""
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=columns,
            borderaxespad=0.2,
            markerscale=1.2,
            frameon=False,
        )
