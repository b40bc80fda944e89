"""What stands in the holes of templates: how many values, the commonest, the newest, numbers.

Of each hole there is a row of fixed size. A place of a template is a hole where its token is one, or where
something of it is folded, as numbers are. What a line was, as its level, may be counted as one more hole. Of
a busy template not every line is looked at.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, made, of, one, row_type, rows
from streamdp.lines.base import is_shut
from streamdp.lines.closed_places import BEGIN, END, FIRST, LAST, find_spans
from streamdp.lines.merge import current
from streamdp.lines.scan import MOST, closed, code_of, fold_line
from streamdp.lines.state import Lines, Scratch, State, Table, has_room, look_up, new_table, put
from streamdp.lines.words import ALNUM, DIGIT, KINDS, SPACE

PLACES = 32
"""Holes of a template that are counted; those behind them are not."""

PLACE_SHIFT = 10
LEVEL = (1 << PLACE_SHIFT) - 1
"""The place of a line's level."""

COMMON = 8
"""Values of a hole that are remembered, by the space-saving algorithm (Metwally et al., 2005)."""

LETTERS = 32
"""Bytes of a value that are remembered."""

REGISTERS = 64
"""Of the count of distinct values (HyperLogLog, Flajolet et al., 2007): 13 % off is usual."""

RATIO, LEAST, STEPS = 1.25, 1e-3, 128
"""Numbers are counted by steps of this ratio, from this one on; what is smaller is in the first."""

ALWAYS, HOURLY, ONE_IN = 256, 2, 64
"""Lines that are looked at: so many first ones of a template, so many in each unit of time if they have
times, and of the rest one in so many."""

BY_HASH = 16
BY_SIZE = 16
BINS = COMMON + BY_HASH + BY_SIZE
"""What is counted by the hour: the values remembered, all values by their hash, numbers by eight steps."""

ROOM = 1024
"""Rows of counts that there is room for at first."""

SPANS = 2 * MOST
"""Tokens and folded parts of a line that are looked at."""

HOLE = row_type("key lines used replaced newest numbers rising last", "least most previous")
"""Template and place; lines; values remembered, values that were replaced; the newest of those remembered;
lines with a number, how many of them no less than the one before; the last line; the least number, the
largest, the latest."""


class Tally(NamedTuple):
    """Counts by unit of time and key: a row for each pair that there is, the units one after the other.

    ``used`` rows; those from ``begun`` on are of the unit that runs; with more than ``most`` the oldest go.
    """

    counters: Annotated[Counters, one("used begun most")]
    units: Annotated[np.ndarray, ints("rows")]
    keys: Annotated[np.ndarray, ints("rows")]
    counts: Annotated[np.ndarray, of(np.uint32, "rows", "bins")]
    at: Annotated[np.ndarray, ints("keys", fill=-1)]  # the latest row of each key


class Seen(NamedTuple):
    """What was seen in holes, a row of each array for each, and counts by unit of time.

    ``most``: holes that there may be; ``hourly``: HOURLY, or 0 where lines have no times, are not ``dated``;
    ``unit``: the one that runs, ``scale`` shortest ones long, until the clock is at ``ends``; ``last``: the
    last that may begin at this scale; ``due``: whether one cannot, number ``fine`` of the shortest ones,
    whose ``length`` is in seconds or lines.
    """

    counters: Annotated[
        Counters, one("holes most hourly dated unit scale last due fine", "ends length", scale=1)
    ]
    holes: Annotated[np.ndarray, rows(HOLE, "holes")]
    codes: Annotated[np.ndarray, of(np.int64, "holes", COMMON)]  # the hash of each value
    counts: Annotated[np.ndarray, of(np.int64, "holes", COMMON)]  # its lines, at most
    excess: Annotated[np.ndarray, of(np.int64, "holes", COMMON)]  # how many fewer they may be
    lengths: Annotated[np.ndarray, of(np.uint8, "holes", COMMON)]
    letters: Annotated[np.ndarray, of(np.uint8, "holes", COMMON, LETTERS)]
    registers: Annotated[np.ndarray, of(np.uint8, "holes", REGISTERS)]
    steps: Annotated[np.ndarray, of(np.uint32, "holes", STEPS)]
    ever: Annotated[np.ndarray, ints("clusters")]  # lines of each template, as they were announced
    marks: Annotated[np.ndarray, ints(SPANS, 2)]  # of a line: see ``fold_line``
    lines: Tally  # of templates
    values: Tally  # of holes
    by_key: Table


def new_seen(holes: int, clusters: int) -> Seen:
    """Room for so many holes, and templates."""
    lines = made(Tally, {"rows": ROOM, "bins": 1, "keys": clusters})
    values = made(Tally, {"rows": ROOM, "bins": BINS, "keys": holes})
    sizes = {"holes": holes, "clusters": clusters}
    return made(Seen, sizes, lines=lines, values=values, by_key=new_table(holes))


@kernel
def _row_of(tally: Tally, unit: int, key: int) -> int:
    """The row of a key in the unit that runs."""
    row = tally.at[key]
    if row < tally.counters.begun:
        row = tally.counters.used
        tally.counters.used += 1
        tally.at[key] = row
        tally.units[row] = unit
        tally.keys[row] = key
        tally.counts[row] = 0
    return int(row)


@kernel
def _turn(seen: Seen, clock: float) -> bool:
    """Begin the unit of a line; whether it may begin, as it may not where units get longer, or some go."""
    counters, lines, values = seen.counters, seen.lines.counters, seen.values.counters
    counters.fine = math.floor(clock / counters.length)
    unit = counters.fine // counters.scale
    if unit > counters.last or lines.used > lines.most or values.used > values.most:
        counters.due = 1
        return False
    counters.unit = unit
    counters.ends = (unit + 1) * counters.scale * counters.length
    lines.begun, values.begun = lines.used, values.used
    return True


@kernel
def _number(data: np.ndarray, begin: int, stop: int) -> float:
    """The number that some bytes are, a unit behind it or not; nan for anything else."""
    i, sign, digits, value, scale = begin, 1.0, 0, 0.0, 0.0
    if i < stop and (data[i] == 45 or data[i] == 43):
        sign = -1.0 if data[i] == 45 else 1.0
        i += 1
    while i < stop and (KINDS[data[i]] & DIGIT or (data[i] == 46 and scale == 0.0)):
        if data[i] == 46:
            scale = 1.0
        else:
            digits += 1
            value = 10.0 * value + (data[i] - 48)
            scale *= 10.0
        i += 1
    if digits == 0 or digits > 18 or (data[i - 1] == 46):
        return math.nan
    while i < stop:
        if KINDS[data[i]] & DIGIT or not (KINDS[data[i]] & (ALNUM | SPACE) or data[i] == 37):
            return math.nan
        i += 1
    return sign * value / (scale if scale > 0.0 else 1.0)


@kernel
def _remember(seen: Seen, hole: int, code: int, data: np.ndarray, begin: int, stop: int) -> int:
    """Count a value among those remembered, in the place of the rarest where there is no room; its number."""
    row = seen.holes[hole]
    rarest = 0
    for k in range(row.used):
        if seen.codes[hole, k] == code:
            seen.counts[hole, k] += 1
            return k
        if seen.counts[hole, k] < seen.counts[hole, rarest]:
            rarest = k
    if row.used < COMMON:
        rarest = row.used
        row.used += 1
    else:
        row.replaced += 1
    seen.excess[hole, rarest] = seen.counts[hole, rarest]
    seen.counts[hole, rarest] += 1
    seen.codes[hole, rarest] = code
    length = min(stop - begin, LETTERS)
    seen.lengths[hole, rarest] = length
    for i in range(length):
        seen.letters[hole, rarest, i] = data[begin + i]
    row.newest = rarest
    return rarest


@kernel
def step_of(number: float) -> int:
    """Which step a number is in."""
    if not number > LEAST:
        return 0
    return min(int(math.log(number / LEAST) / math.log(RATIO)), STEPS - 1)


@kernel
def _count(seen: Seen, hole: int, line: int, data: np.ndarray, begin: int, stop: int, first: int) -> None:
    """Count the value between two places of a line; ``first`` is where its number begins, if it has one."""
    row = seen.holes[hole]
    code = code_of(data, begin, stop)
    row.lines += 1
    row.last = line
    register, bits, rank = code & (REGISTERS - 1), code >> 6, 1
    while rank < 57 and not bits & 1:
        bits >>= 1
        rank += 1
    if rank > seen.registers[hole, register]:
        seen.registers[hole, register] = rank
    place = _remember(seen, hole, code, data, begin, stop)
    now = seen.values.counts[_row_of(seen.values, seen.counters.unit, hole)]
    if row.replaced == 0:
        now[place] += 1
    now[COMMON + (code >> 40) % BY_HASH] += 1
    number = _number(data, first, stop)
    if number == number:
        step = step_of(number)
        seen.steps[hole, step] += 1
        now[COMMON + BY_HASH + step * BY_SIZE // STEPS] += 1
        if row.numbers == 0:
            row.least = row.most = number
        elif number >= row.previous:
            row.rising += 1
        row.least = min(row.least, number)
        row.most = max(row.most, number)
        row.previous = number
        row.numbers += 1


@kernel
def _hole_of(seen: Seen, cluster: int, place: int) -> int:
    """The row of a hole, which is made where there is none."""
    key = (cluster << PLACE_SHIFT) | place
    hole = look_up(seen.by_key, key)
    if hole < 0:
        hole = seen.counters.holes
        seen.counters.holes += 1
        put(seen.by_key, key, hole)
        seen.holes[hole].key = key
    return hole


@kernel
def _count_line(
    state: State, seen: Seen, line: int, data: np.ndarray, spans: np.ndarray, n: int, cluster: int
) -> None:
    """Count the values of a line of so many tokens, of which there are the spans."""
    slot, held = state.clusters[cluster].slot, 0
    for token in range(min(n, state.clusters[cluster].length)):
        begin, end, first = spans[token, BEGIN], spans[token, END], spans[token, FIRST]
        if state.slots[slot + token].distinct > 1:
            _count(seen, _hole_of(seen, cluster, token), line, data, begin, end, begin)
        elif first >= 0 and not is_shut(state, state.slots[slot + token].founder):
            _count(seen, _hole_of(seen, cluster, token), line, data, first, spans[token, LAST], first)
        else:
            continue
        held += 1
        if held == PLACES:
            break


class Levels(NamedTuple):
    """What lines were: bytes, and where the level of each begins and ends in them, int64[n, 2].

    A line without one begins below 0. Of no levels at all there are no places.
    """

    data: np.ndarray
    places: np.ndarray


NO_LEVELS = Levels(np.frombuffer(b" ", np.uint8), np.zeros((0, 2), np.int64))


@kernel
def is_ready(state: State, seen: Seen, clock: float) -> bool:
    """Whether what the next line may bring finds room; its unit begins where it must."""
    lines, values, more = seen.lines, seen.values, PLACES + 1
    return bool(
        state.counters.clusters < seen.ever.shape[0]
        and lines.counters.used < lines.units.shape[0]
        and values.counters.used + more < values.units.shape[0]
        and seen.counters.holes + more < min(seen.holes.shape[0], seen.counters.most)
        and has_room(seen.by_key, more)
        and (clock < seen.counters.ends or _turn(seen, clock))
    )


@kernel
def count_values(state: State, seen: Seen, scratch: Scratch, given: Lines, n: int) -> None:
    """Count line ``n`` of those given, the latest of the stream, and its values."""
    counters, lines, announced = seen.counters, seen.lines, given.answers[n].cluster
    row = _row_of(lines, counters.unit, announced)
    lines.counts[row, 0] += 1
    seen.ever[announced] += 1
    ever = seen.ever[announced]
    often = ever > ALWAYS and lines.counts[row, 0] > counters.hourly
    if often and closed(ever) & (ONE_IN - 1):  # one in some, by a hash of its number
        return
    line, stop, cluster = state.counters.records - 1, given.offsets[n + 1], current(state, announced)
    size, _, _ = fold_line(given.masked, given.offsets[n], stop, scratch.folded, scratch.glued, seen.marks)
    tokens = find_spans(given.data, stop, scratch.folded, size, seen.marks, scratch.spans)
    _count_line(state, seen, line, given.data, scratch.spans, tokens, cluster)
    if given.places.shape[0] and 0 <= given.places[n, 0] < given.places[n, 1]:
        begin, end = given.places[n, 0], given.places[n, 1]
        _count(seen, _hole_of(seen, cluster, LEVEL), line, given.levels, begin, end, end)
