"""Counts of lines by label and hour, and what was seen in the holes of each template, for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from streamdp.lines.closed_places import CLASSES, classes_of
from streamdp.lines.history import Around, History
from streamdp.lines.shown import NUMBERS, kind_of, mask_of, shown_hole
from streamdp.lines.state import State, roots
from streamdp.lines.values import (
    BY_HASH,
    COMMON,
    LEAST,
    LEVEL,
    PLACE_SHIFT,
    RATIO,
    REGISTERS,
    STEPS,
)

CLOSED = tuple(f"<{name}>" for name in CLASSES)
"""Kinds of holes whose values are few by nature."""


class Hole(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What stands in a hole of a template, in the lines that were looked at.

    ``kind`` is how the template shows it, or "<status>", "<method>", "<level>" or "<state>". ``distinct`` is
    how many values there are, about; ``common`` the commonest, with the share of lines that has each at
    least, and ``counts`` how many lines; ``newest`` the latest that was not among these before. Of numbers
    there are the least, the median, the ninth decile and the largest; deciles are within an eighth.
    """

    place: int
    kind: str
    lines: int
    distinct: int
    common: list[tuple[str, float]]
    newest: str
    counts: list[int] = []
    least: float | None = None
    median: float | None = None
    decile: float | None = None
    most: float | None = None

    def said(self, nth: int) -> str:
        """All of it in a line, for people; ``nth`` is which hole of its template it is."""
        parts = [f"{self.distinct:,} values" if self.distinct != 1 else "1 value"]
        if self.least is not None:
            parts.append(f"{self.least:g} to {self.most:g}, half up to {self.median:g}")
            parts.append(f"nine in ten up to {self.decile:g}")
        if self.kind in CLOSED:
            told = zip(self.common, self.counts, strict=False)
            parts.append(", ".join(f"{text}: {count:,}" for (text, _), count in told))
        elif self.common:
            parts.append(", ".join(f"{text} {share:.1%}" for text, share in self.common))
        parts.append(f"newest {self.newest}")
        name = "level" if self.kind == "level" else f"hole {nth} {self.kind}"
        return f"{name}: {'; '.join(parts)} (of {self.lines:,} lines)"


class Bins(msgspec.Struct, frozen=True, gc=False):
    """Counts of what was in a hole, float64[bins, units], and what each bin is called."""

    names: list[str]
    counts: np.ndarray


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What a log was like, unit by unit.

    ``counts`` are lines, float64[labels, units]; the first unit is number ``first``, and takes ``length``
    seconds or lines. ``bins`` are those of the holes of each label, by place, with what was seen there.
    """

    dated: bool
    first: int
    length: float
    labels: np.ndarray
    counts: np.ndarray
    holes: dict[int, list[Hole]]
    bins: dict[int, list[Bins]]
    around: dict[int, Around]

    def levels(self, label: int) -> dict[str, int]:
        """How many lines of a template had each level, of those looked at; "" are all others."""
        for hole, bins in zip(self.holes.get(label, ()), self.bins.get(label, ()), strict=False):
            if hole.place == LEVEL:
                return dict(zip(bins.names, bins.counts.sum(axis=1).astype(int).tolist(), strict=True))
        return {}


def past_of(
    state: State, history: History, templates: Mapping[int, Sequence[str]], masks: Sequence[str]
) -> Past:
    """The past of the labels that live, whose templates have these pieces; the names of masks."""
    clusters = state.clusters[: int(state.counters.clusters)]
    into = roots(clusters["into"])
    label = roots(clusters["older"])[into]
    lines, values = history.counted()
    living = clusters["alive"][into[lines.keys]] == 1
    lines = lines.of(living)
    first = history.since
    units = int((history.unit or first) - first + 1)
    labels, which = np.unique(label[lines.keys], return_inverse=True)
    counts = np.zeros((len(labels), units))
    np.add.at(counts, (which, lines.units - first), lines.counts)
    by_hole: defaultdict[int, list[int]] = defaultdict(list)
    for at, hole in enumerate(values.keys.tolist()):
        by_hole[hole].append(at)
    holes: dict[int, list[Hole]] = {}
    bins: dict[int, list[Bins]] = {}
    for cluster, place, rows in _places(history, into):
        if not clusters[cluster]["alive"] or label[cluster] != cluster or cluster not in templates:
            continue
        seen = _Seen(history, rows)
        whole = place != LEVEL and state.slots["distinct"][int(clusters[cluster]["slot"]) + place] > 1
        named = _class_of(templates[cluster], place, seen.order, whole=whole) or _kind(
            state, cluster, place, masks, seen.common[0][0] if seen.common else ""
        )
        holes.setdefault(cluster, []).append(seen.hole(place, named))
        found = np.zeros((values.counts.shape[1], units))
        for row in rows:
            own = np.array(by_hole[row], np.int64)
            own = own[values.units[own] >= first]
            np.add.at(found.T, values.units[own] - first, values.counts[own])
        bins.setdefault(cluster, []).append(seen.bins(found))
    around = {at: each for at, each in history.first.items() if at < len(label) and label[at] == at}
    return Past(
        dated=history.dated,
        first=first,
        length=history.length,
        labels=labels,
        counts=counts,
        holes=holes,
        bins=bins,
        around=around,
    )


def _places(history: History, into: np.ndarray) -> Iterator[tuple[int, int, list[int]]]:
    """Template, place, and rows of each hole, in their order: of templates that became one together."""
    keys = history.seen.holes["key"][: int(history.seen.counters.holes)]
    own = (into[keys >> PLACE_SHIFT] << PLACE_SHIFT) | (keys & LEVEL)
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row, key in enumerate(own.tolist()):
        found[key].append(row)
    for key in sorted(found):
        yield key >> PLACE_SHIFT, key & LEVEL, found[key]


def _class_of(pieces: Sequence[str], place: int, values: Sequence[str], *, whole: bool) -> str | None:
    """The class of all values of a hole where they stand, in brackets; None where they are of none.

    ``whole`` says that they are whole tokens. A number before them is taken for a status if it may be one.
    """
    if place >= len(pieces) or not values or not (whole or pieces[place].strip() == NUMBERS):
        return None
    before, found = [piece.replace(NUMBERS, "200") for piece in pieces[:place]], -1
    for value in values:
        own = " " * pieces[place].startswith(" ") + value
        found &= classes_of([*before, own])[place]
    return next((f"<{name}>" for name, bit in CLASSES.items() if found & bit), None)


def _kind(state: State, cluster: int, place: int, masks: Sequence[str], value: str) -> str:
    if place == LEVEL:
        return "level"
    slot = int(state.clusters[cluster]["slot"]) + place
    if state.slots["distinct"][slot] > 1:
        return shown_hole(state, slot)
    return mask_of(state, slot, masks) or kind_of(value)


class _Seen:
    """What the rows of one hole hold together."""

    def __init__(self, history: History, rows: list[int]) -> None:
        seen = history.seen
        self.rows = seen.holes[rows]
        self.lines = int(self.rows["lines"].sum())
        self.few = len(rows) == 1 and not self.rows["replaced"].any()
        self.codes: dict[int, tuple[str, int]] = {}
        self.order: list[str] = []
        for row in rows:
            for k in range(int(seen.holes[row]["used"])):
                text = bytes(seen.letters[row, k, : seen.lengths[row, k]]).decode("utf-8", "replace")
                code, sure = int(seen.codes[row, k]), int(seen.counts[row, k] - seen.excess[row, k])
                self.codes[code] = text, self.codes.get(code, ("", 0))[1] + sure
                self.order.append(text)
        self.common = sorted(self.codes.values(), key=lambda each: (-each[1], each[0]))
        latest = rows[int(np.argmax(self.rows["last"]))]
        k = int(seen.holes[latest]["newest"])
        self.newest = bytes(seen.letters[latest, k, : seen.lengths[latest, k]]).decode("utf-8", "replace")
        self.distinct = max(_distinct(seen.registers[rows].max(axis=0)), len(self.codes))
        if not self.rows["replaced"].any():
            self.distinct = len(self.codes)
        self.distinct = min(self.distinct, self.lines)
        self.steps = seen.steps[rows].sum(axis=0)

    @property
    def numeric(self) -> bool:
        """Whether nearly all values are numbers."""
        return bool(self.rows["numbers"].sum() > 0.9 * self.lines)

    def hole(self, place: int, kind: str) -> Hole:
        least = 1 if len(self.common) <= 3 or kind in CLOSED else 2
        often = [(text, n) for text, n in self.common if n >= least][:COMMON]
        numbers = {}
        if (
            self.numeric
            and kind not in CLOSED
            and ((kind.startswith("<") and kind != "<ip>") or kind == NUMBERS)
        ):
            counted = self.rows[self.rows["numbers"] > 0]
            low, high = float(counted["least"].min()), float(counted["most"].max())
            median, decile = (min(max(_quantile(self.steps, q), low), high) for q in (0.5, 0.9))
            numbers = {"least": low, "median": median, "decile": decile, "most": high}
        return Hole(
            place=place,
            kind=kind,
            lines=self.lines,
            distinct=self.distinct,
            common=[(text, round(n / self.lines, 4)) for text, n in often],
            newest=self.newest,
            counts=[n for _, n in often],
            **numbers,
        )

    def bins(self, found: np.ndarray) -> Bins:
        """What may be compared: few values by name, numbers by size, other values by their hash."""
        if self.few:
            return Bins(self.order, found[: len(self.order)])
        if self.numeric:
            rising = self.rows["rising"].sum() > 0.9 * self.rows["numbers"].sum()  # a counter, or a clock
            sizes = found[COMMON + BY_HASH :]
            wide = STEPS // len(sizes)
            edges = [LEAST * RATIO ** (wide * i) for i in range(len(sizes) + 1)]
            names = [f"{_about(a)} to {_about(b)}" for a, b in pairwise(edges)]
            return Bins([], sizes[:0]) if rising else Bins(names, sizes)
        names = [""] * BY_HASH
        for code, (text, _) in sorted(self.codes.items(), key=lambda each: each[1][1]):
            names[(code >> 40) % BY_HASH] = text
        return Bins(names, found[COMMON : COMMON + BY_HASH])


def _about(number: float) -> str:
    return f"{number:.2g}" if number < 100 else f"{float(f'{number:.2g}'):,.0f}"


def _distinct(registers: np.ndarray) -> int:
    """How many distinct values there were, about (HyperLogLog)."""
    m = REGISTERS
    raw = 0.709 * m * m / np.sum(2.0 ** -registers.astype(float))
    zeros = int(np.count_nonzero(registers == 0))
    return round(m * np.log(m / zeros)) if raw <= 2.5 * m and zeros else round(float(raw))


def _quantile(steps: np.ndarray, share: float) -> float:
    """The number below which this share of those counted is, in the middle of its step."""
    step = int(np.searchsorted(np.cumsum(steps), share * steps.sum()))
    return 0.0 if step == 0 else float(f"{LEAST * RATIO ** (step + 0.5):.3g}")
