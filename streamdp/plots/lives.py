"""The lives of clusters: when each begins, what splits off and merges, how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamdp.plots.data import Answered
from streamdp.plots.style import FAINT, INK, Clock, Style, axes_or_new, filled, head, name_of
from streamdp.records import RENAMED, TITLED, TURNS, ClusterSummary, Event

ENDS = ("merged", "vanished", "closed", "retired")

MARKS = {
    "born": ("o", "born"),
    "split": ("^", "split off"),
    "merged": ("v", "merged into"),
    "vanished": ("X", "vanished"),
    "closed": ("|", "closed"),
    "retired": ("D", "retired"),
    "last": (".", "last record"),
}
"""Marker and word for how a life begins or ends; ``last`` is an end that is not known to be one."""


class Mark(NamedTuple):
    """How a kind of event is drawn: on the line of its cluster, or small beside that of another."""

    kind: str
    colour: str
    small: bool = False

    @property
    def marker(self) -> str:
        """Of matplotlib."""
        return MARKS[self.kind][0]


@dataclass(frozen=True)
class Life:
    """One cluster's.

    Parameters
    ----------
    cluster
        Its label.
    size
        Records that it has, or had when it ended.
    begin, end
        In seconds or numbers of records; ``end`` is None while it lives.
    began, ended
        Kinds of events; ``ended`` is None while it lives, and "last" where that is not known.
    parent, heir
        Labels that most of its records had before it split off, and have after it ended.
    """

    cluster: int
    size: int
    begin: float
    end: float | None
    began: str = "born"
    ended: str | None = None
    parent: int | None = None
    heir: int | None = None


def lives_of_events(events: Iterable[Event], clock: Clock, answered: Answered | None = None) -> list[Life]:
    """As events report them, the oldest first; the sizes of those that live are counted among the answers."""
    events = [event for event in events if event.event not in (*TURNS, TITLED, RENAMED)]
    times = filled([np.nan if e.time is None else e.time for e in events])
    at = clock.values([e.seq for e in events], times)
    at = np.maximum.accumulate(at)  # a record that comes late ends no life before it began
    labels, counts = np.unique([] if answered is None else answered.cluster, return_counts=True)
    sizes = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    lives: dict[int, Life] = {}
    for event, when in zip(events, at.tolist(), strict=True):
        label = event.cluster
        if event.event not in ENDS:
            size = sizes.get(label, event.size)
            lives[label] = Life(label, size, when, None, event.event, None, event.other)
            continue
        before = lives.get(label)
        if before is None:  # born in the state that the stream began with
            begin = when if event.first_time is None or clock.kind == "records" else event.first_time
            before = Life(label, event.size, begin, None)
        lives[label] = Life(
            label, event.size, before.begin, when, before.began, event.event, before.parent, event.other
        )
    return [lives[label] for label in sorted(lives)]


def lives_of_answers(answered: Answered) -> list[Life]:
    """From first to last record, which is all that answers say of a cluster's life."""
    at = Clock.of(answered).values(answered.seq, answered.time)
    labels, which, sizes = np.unique(answered.cluster, return_inverse=True, return_counts=True)
    first, last = np.full(len(labels), np.inf), np.full(len(labels), -np.inf)
    np.minimum.at(first, which, at)
    np.maximum.at(last, which, at)
    rows = zip(labels.tolist(), sizes.tolist(), first.tolist(), last.tolist(), strict=True)
    return [Life(label, size, begin, end, ended="last") for label, size, begin, end in rows if label >= 0]


def lives_of_clusters(
    live: Iterable[ClusterSummary], closed: Iterable[ClusterSummary], clock: Clock
) -> list[Life]:
    """As a state remembers them: those that live, and the last that closed."""
    lives = []
    for c in live:
        begin = c.first_seq if clock.kind == "records" else c.first_time
        if begin is not None:
            lives.append(Life(c.cluster, c.size, float(begin), None))
    for c in closed:
        if clock.kind != "records" and c.first_time is not None:
            lives.append(Life(c.cluster, c.size, c.first_time, c.last_time, ended="closed"))
    return sorted(lives, key=lambda life: life.cluster)


def life_lines(
    lives: Sequence[Life],
    clock: Clock,
    until: float,
    names: Mapping[int, str] | None = None,
    ax: Any = None,
    *,
    styles: Mapping[int, Style] | None = None,
    most: int = 25,
    title: str | None = None,
) -> Any:
    """Draw a line for the life of each of the largest clusters; returns the axes.

    Parameters
    ----------
    lives
        Of all clusters; those that are not drawn are marked where they merge with or split off one that is.
    clock
        What ``begin`` and ``end`` mean.
    until
        Up to where the lines of those that live go.
    names
        What clusters are about.
    ax
        Where to draw; None: a new figure.
    styles
        Colours of those that another picture shows too; the others are dark grey.
    most
        Lines.
    title
        None: what is counted.
    """
    axes = axes_or_new(ax)
    names, styles = names or {}, styles or {}
    chosen = sorted(
        sorted(lives, key=lambda life: (-life.size, life.cluster))[:most], key=lambda life: life.begin
    )
    row = {life.cluster: float(len(chosen) - 1 - i) for i, life in enumerate(chosen)}
    largest = max((life.size for life in chosen), default=1)
    marks: dict[Mark, list[tuple[float, float]]] = {}
    for life in chosen:
        colour = styles[life.cluster].colour if life.cluster in styles else INK
        y, end = row[life.cluster], until if life.end is None else life.end
        thick = 1.5 + 5.5 * (life.size / largest) ** 0.5
        span = clock.on_axis([life.begin, end])
        axes.plot(span, [y, y], color=colour, lw=thick, solid_capstyle="butt", gid=f"life {life.cluster}")
        marks.setdefault(Mark(life.began, colour), []).append((life.begin, y))
        if life.ended is not None:
            marks.setdefault(Mark(life.ended, colour), []).append((end, y))
    _draw_relations(axes, lives, row, clock, marks)
    for mark, places in marks.items():
        at, height = np.transpose(places)
        bar = mark.marker == "|"
        size, edge, wide = (12.0, mark.colour, 2.0) if bar else (5.5 if mark.small else 7.0, "white", 0.8)
        axes.plot(
            clock.on_axis(at), height, mark.marker, color=mark.colour, ms=size, mec=edge, mew=wide, zorder=3
        )
    for kind, (marker, word) in MARKS.items():
        if any(mark.kind == kind for mark in marks):
            axes.plot([], [], marker, color=INK, label=word, mew=2.0 if marker == "|" else 0.8)
    axes.plot([], [], "-", color=INK, lw=3, label="lives")
    labels = [f"{name_of(life.cluster, names, 32)} ({life.size:,})" for life in chosen]
    axes.set_yticks([row[life.cluster] for life in chosen], labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.8, max(len(chosen), 1) - 0.2)
    axes.set_ylabel("cluster (records)")
    clock.dress(axes)
    which = "" if len(chosen) == len(lives) else f"the {len(chosen)} largest of "
    head(axes, title or f"Lives of {which}{len(lives):,} clusters", legend=True, columns=4)
    return axes


def _draw_relations(
    axes: Any,
    lives: Iterable[Life],
    row: Mapping[int, float],
    clock: Clock,
    marks: dict[Mark, list[tuple[float, float]]],
) -> None:
    """Whence clusters split off, where they went: a dotted line, or a mark beside the one that is drawn."""
    for life in lives:
        for kind, at, other in ((life.began, life.begin, life.parent), (life.ended, life.end, life.heir)):
            there = None if other is None else row.get(other)
            if there is None or kind is None or at is None:
                continue
            if life.cluster in row:
                x = float(clock.on_axis(at))
                axes.plot([x, x], [row[life.cluster], there], color=FAINT, lw=1.0, ls=":", zorder=1)
            else:
                beside = there + (0.32 if kind in ENDS else -0.32)
                marks.setdefault(Mark(kind, FAINT, small=True), []).append((at, beside))
