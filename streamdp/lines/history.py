"""What a log was like hour by hour: lines by template, values of holes, what stood around the first lines.

A unit of time is a minute at first, and an hour once there are many. Of lines without times it is a hundred
lines at first. What is oldest is forgotten where there is too much of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.packed import pack_all, unpack_all
from streamdp.kernels.rows import grown
from streamdp.kernels.sound import require, within
from streamdp.lines.state import Lines, State, Table, roots, table_of
from streamdp.lines.values import (
    COMMON,
    HOURLY,
    LETTERS,
    PLACE_SHIFT,
    PLACES,
    Seen,
    Tally,
    new_seen,
)

SECONDS, LINES = 60.0, 100.0
"""The shortest unit: of event time; lines of those that have no times."""

UNITS = (1, 5, 15, 60)
"""How many times as long a unit becomes, where there would be more than MANY."""

MANY = 200

BEFORE_ALL, AFTER_ALL = -(1 << 62), 1 << 62
"""Units that never come."""

CELLS, ROWS, HOLES = 500_000, 40_000, 10_000
"""At most so many counts of a template in a unit, of a hole in one, and holes."""

FOUNDED, LONGEST = 1_000, 200
"""First lines that are remembered with the lines around them, and bytes of each."""


class Around(NamedTuple):
    """The first line of a template, the line before it and the one after it; "" where there is none."""

    before: str
    line: str
    after: str


class Counted(NamedTuple):
    """Counts by unit: int64[n] units and keys, and the counts, uint32[n, ...]."""

    units: np.ndarray
    keys: np.ndarray
    counts: np.ndarray

    def of(self, lasting: np.ndarray) -> Counted:
        """Those that last, bool[n]."""
        return Counted(*(part[lasting] for part in self))

    def summed(self) -> Counted:
        """One row for each unit and key, in their order."""
        if not len(self.units):
            return self
        order = np.lexsort((self.keys, self.units))
        units, keys = self.units[order], self.keys[order]
        fresh = np.append(True, (units[1:] != units[:-1]) | (keys[1:] != keys[:-1]))
        total = np.add.reduceat(self.counts[order], np.flatnonzero(fresh), axis=0, dtype=self.counts.dtype)
        return Counted(units[fresh], keys[fresh], total)


def _bounded(seen: Seen) -> Seen:
    """With its bounds, before the first unit."""
    seen.lines.counters.most, seen.values.counters.most, seen.counters.most = CELLS, ROWS, HOLES
    seen.counters.last, seen.counters.ends = BEFORE_ALL, -np.inf
    return seen


def _counted(tally: Tally) -> Counted:
    """All counts, by unit."""
    return Counted(*(part[: int(tally.counters.used)] for part in (tally.units, tally.keys, tally.counts)))


def _put(tally: Tally, counted: Counted, begun: int) -> Tally:
    """Hold these counts in the place of all others; those from ``begun`` on are of the unit that runs."""
    used = len(counted.units)
    if used > len(tally.units):
        tally = grown(tally, "rows", used)
    for array, part in zip((tally.units, tally.keys, tally.counts), counted, strict=True):
        array[:used] = part
    tally.at[:] = -1
    tally.at[counted.keys[begun:]] = np.arange(begun, used)
    tally.counters.used, tally.counters.begun = used, begun
    return tally


def _roomy(tally: Tally) -> Tally:
    """With room for what a line may bring."""
    size = len(tally.units)
    return grown(tally, "rows", 2 * size) if tally.counters.used + PLACES + 1 >= size else tally


def _longer(tally: Tally, ratio: int) -> Tally:
    """Of units that are so many times as long; none of them runs."""
    counted = _counted(tally)
    summed = counted._replace(units=counted.units // ratio).summed()
    return _put(tally, summed, len(summed.units))


def _trimmed(tally: Tally) -> Tally:
    """Without the oldest half, of units that are over, where there are more than ``most``."""
    most, counted = int(tally.counters.most), _counted(tally)
    if len(counted.units) <= most:
        return tally
    counted = counted.of(counted.units > counted.units[len(counted.units) - most // 2 - 1])
    return _put(tally, counted, len(counted.units))


class History:
    """Counts lines and values by unit of time."""

    def __init__(self) -> None:
        self.since = 0
        """The first unit of which all counts of lines are here."""
        self.seen = _bounded(new_seen(2 * PLACES, 64))
        self.first: OrderedDict[int, Around] = OrderedDict()
        self._latest, self._waits, self._begun = "", -1, False

    @property
    def dated(self) -> bool:
        """Whether lines have times."""
        return bool(self.seen.counters.dated)

    @property
    def unit(self) -> int | None:
        """The unit that runs; None before the first line."""
        counters = self.seen.counters
        return int(counters.unit) if counters.last > BEFORE_ALL else None

    @property
    def length(self) -> float:
        """The length of a unit, in seconds or lines."""
        return int(self.seen.counters.scale) * (SECONDS if self.dated else LINES)

    # ---------------------------------------------------------------- lines in

    def begin(self, *, dated: bool) -> None:
        """Say of the first line of all whether the times of lines are their own."""
        if self._begun:
            return
        counters, self._begun = self.seen.counters, True
        counters.dated, counters.length = dated, SECONDS if dated else LINES
        counters.hourly = HOURLY if dated else 0

    def note(self, given: Lines) -> None:
        """Remember the lines that have founded a template, and the lines around them."""
        data, offsets = given.data.tobytes(), given.offsets.tolist()

        def text(line: int) -> str:
            begin = offsets[line]
            return data[begin : min(offsets[line + 1], begin + LONGEST)].decode("utf-8", "ignore")

        last = len(given.answers) - 1
        if self._waits in self.first:
            self.first[self._waits] = self.first[self._waits]._replace(after=text(0))
        self._waits = -1
        founding = np.flatnonzero(given.answers["founded"])[-FOUNDED:]
        for line, label in zip(founding.tolist(), given.answers["label"][founding].tolist(), strict=True):
            after = text(line + 1) if line < last else ""
            self.first[label] = Around(text(line - 1) if line else self._latest, text(line), after)
            self._waits = label if line == last else -1
        while len(self.first) > FOUNDED:
            self.first.popitem(last=False)
        self._latest = text(last)

    def said(self, founders: np.ndarray, latest: int) -> Iterator[tuple[int, str]]:
        """Numbers of lines, and what they say.

        ``founders`` are the numbers of first lines, by template; ``latest`` is that of the latest of all.
        """
        yield latest, self._latest
        for label, around in self.first.items():
            yield from enumerate(around, int(founders[label]) - 1)

    # ---------------------------------------------------------------- bounds

    def make_room(self, state: State) -> None:
        """Room for another line, or another unit."""
        clusters = int(state.counters.clusters) + 1
        if clusters > len(self.seen.ever):
            lines = grown(self.seen.lines, "keys", 2 * clusters)
            self.seen = grown(self.seen._replace(lines=lines), "clusters", 2 * clusters)
        if self.seen.counters.due:
            self._turn()
        lines, values = map(_roomy, (self.seen.lines, self.seen.values))
        self.seen = self.seen._replace(lines=lines, values=values)
        if self.seen.counters.holes + PLACES + 1 >= self.seen.counters.most:
            self._keep_newest(state)
        size = len(self.seen.holes)
        if self.seen.counters.holes + PLACES + 1 >= size:
            values = grown(self.seen.values, "keys", 2 * size)
            seen = grown(self.seen._replace(values=values), "holes", 2 * size)
            self.seen = seen._replace(by_key=_by_key(seen.holes["key"][: seen.counters.holes], 2 * size))

    def _turn(self) -> None:
        """Let the next unit begin: make units longer where there would be too many, forget the oldest."""
        counters = self.seen.counters
        fine, counters.due = int(counters.fine), 0
        if counters.last == BEFORE_ALL:
            self.since = fine
            self._bound()
        while fine // counters.scale > counters.last:
            scale = int(counters.scale)
            longest = next((unit for unit in UNITS if unit > scale), 2 * scale)
            self.since //= longest // scale
            counters.scale = longest
            lines, values = (
                _longer(tally, longest // scale) for tally in (self.seen.lines, self.seen.values)
            )
            self.seen = self.seen._replace(lines=lines, values=values)
            self._bound()
        lines, values = self.seen.lines, _trimmed(self.seen.values)
        if lines.counters.used > lines.counters.most:
            lines = _trimmed(lines)
            self.since = int(lines.units[0]) if lines.counters.used else fine // int(counters.scale)
            self._bound()
        self.seen = self.seen._replace(lines=lines, values=values)

    def _bound(self) -> None:
        """Say which unit is the last that may begin: any where they do not get longer."""
        counters = self.seen.counters
        longest = counters.dated and counters.scale >= UNITS[-1]
        counters.last = AFTER_ALL if longest else self.since + MANY - 1

    def counted(self) -> tuple[Counted, Counted]:
        """Lines by unit and template, values by unit and hole; those of the unit that runs among them."""
        lines = _counted(self.seen.lines)
        return lines._replace(counts=lines.counts[:, 0]), _counted(self.seen.values)

    def _keep_newest(self, state: State) -> None:
        """Keep half of the holes that there may be: those that came last."""
        clusters = state.clusters
        root = roots(clusters["into"][: int(state.counters.clusters)])
        held = self.seen.holes[: self.seen.counters.holes]
        living = clusters["alive"][root[held["key"] >> PLACE_SHIFT]] == 1
        newest = np.where(living, held["last"], -1)
        order = np.argsort(newest, kind="stable")
        lasting = np.zeros(len(held), bool)
        lasting[order[max(len(held) - HOLES // 2, 0) :]] = True
        self._keep_holes(lasting & living)

    def _keep_holes(self, lasting: np.ndarray) -> None:
        """Only the holes that last, bool[holes]."""
        number = np.cumsum(lasting) - 1
        size, count = len(self.seen.holes), np.count_nonzero(lasting)
        for name in _STORED:
            array = getattr(self.seen, name)
            array[:count] = array[: len(lasting)][lasting]
            array[count : len(lasting)] = np.zeros((), array.dtype)
        self.seen.counters.holes = count
        self.seen = self.seen._replace(by_key=_by_key(self.seen.holes["key"][:count], size))
        values = _counted(self.seen.values)
        here = lasting[values.keys]
        begun = int(np.count_nonzero(here[: int(self.seen.values.counters.begun)]))
        values = values.of(here)
        put = _put(self.seen.values, values._replace(keys=number[values.keys]), begun)
        self.seen = self.seen._replace(values=put)

    # ---------------------------------------------------------------- state

    def dump(self) -> dict[str, Any]:
        """All of it, as plain values."""
        lines, values = self.seen.lines, self.seen.values
        holes, scale = int(self.seen.counters.holes), int(self.seen.counters.scale)
        begun = [int(tally.counters.begun) for tally in (lines, values)]
        used = int(np.max(np.flatnonzero(self.seen.ever), initial=-1)) + 1
        plain = {
            "dated": self.dated,
            "units": [self.unit, scale, self.since, *begun],
            "first": [(label, *around) for label, around in self.first.items()],
            "latest": [self._latest, self._waits],
        }
        arrays = {
            "past": _counted(lines)._asdict(),
            "values": _counted(values)._asdict(),
            "seen": {name: getattr(self.seen, name)[:holes] for name in _STORED},
            "ever": self.seen.ever[:used],
        }
        return {"plain": plain, "arrays": pack_all(arrays)}

    def load(self, stored: dict[str, Any], clusters: int) -> None:
        """The inverse of :meth:`dump`, of so many templates. Raises UnsoundError for what it is not."""
        plain, stored = stored["plain"], unpack_all(stored["arrays"])
        unit, scale, since, *begun = plain["units"]
        require(type(plain["dated"]) is bool and type(since) is int, "a history of another type")
        require(unit is None or type(unit) is int, "an hour of another type")
        require(type(scale) is int and scale > 0, "a length of another type")
        seen, used = stored["seen"], len(stored["ever"])
        require(seen.keys() == set(_STORED), "holes of another type")
        holes = len(seen["holes"])
        made = new_seen(max(2 * PLACES, 2 * holes), max(64, 2 * used))
        for name in _STORED:
            _alike(seen[name], getattr(made, name), "values of holes")
            require(len(seen[name]) == holes, "values of holes of several lengths")
            getattr(made, name)[:holes] = seen[name]
        _alike(stored["ever"], made.ever, "counts of templates")
        require(used <= clusters, "counts of other templates")
        made.ever[:used] = stored["ever"]
        within(seen["holes"]["key"] >> PLACE_SHIFT, 0, clusters, "the template of a hole")
        require(len(np.unique(seen["holes"]["key"])) == holes, "a hole comes twice")
        for name, least, most in (("used", 0, COMMON + 1), ("newest", 0, COMMON)):
            within(seen["holes"][name], least, most, "values of a hole")
        within(seen["lengths"], 0, LETTERS + 1, "the length of a value")
        require(len(begun) == 2, "a history of another type")
        lines = _sound(stored["past"], made.lines, used, begun[0])
        values = _sound(stored["values"], made.values, holes, begun[1])
        made.counters.holes, made.counters.scale = holes, scale
        by_key = _by_key(seen["holes"]["key"], len(made.holes))
        self.seen = _bounded(made._replace(lines=lines, values=values, by_key=by_key))
        self.since = since
        if unit is not None:
            self.begin(dated=plain["dated"])
            counters = self.seen.counters
            counters.unit, counters.ends = unit, (unit + 1) * scale * counters.length
            self._bound()
        self.first = OrderedDict((label, Around(*texts)) for label, *texts in plain["first"])
        require(len(self.first) <= FOUNDED, "too many first lines")
        known = all(type(label) is int and 0 <= label < clusters for label in self.first)
        require(known, "the label of a first line")
        texts = (text for around in self.first.values() for text in around)
        require(all(type(text) is str for text in texts), "a first line of another type")
        self._latest, self._waits = plain["latest"]
        require(type(self._latest) is str and type(self._waits) is int, "the latest line of another type")


_STORED = ("holes", "codes", "counts", "excess", "lengths", "letters", "registers", "steps")
"""Arrays of what was seen that are stored."""


def _by_key(keys: np.ndarray, most: int) -> Table:
    return table_of(np.ascontiguousarray(keys), np.arange(len(keys)), most)


def _sound(stored: dict[str, Any], tally: Tally, keys: int, begun: Any) -> Tally:
    """Counts that were stored, of so many keys."""
    counted = Counted(**stored)
    for array, like in zip(counted, _counted(tally), strict=True):
        _alike(array, like, "a history")
        require(len(array) == len(counted.units), "a history of several lengths")
    require((np.diff(counted.units) >= 0).all(), "a history out of order")
    within(counted.keys, 0, keys, "the template of a history")
    require(type(begun) is int and 0 <= begun <= len(counted.units), "a unit that runs, of another type")
    return _put(tally, counted, begun)


def _alike(array: Any, like: np.ndarray, what: str) -> None:
    same = isinstance(array, np.ndarray) and array.dtype == like.dtype and array.shape[1:] == like.shape[1:]
    require(same and array.ndim == like.ndim, f"{what} of another type")
