"""What stands in the holes of templates, in plain Python: what is remembered of values, and all of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

COMMON, REGISTERS = 8, 64
RATIO, LEAST, STEPS = 1.25, 1e-3, 128
ALWAYS, ONE_IN = 256, 64
NUMBER = re.compile(r"([+-]?[0-9]*\.?[0-9]+)[A-Za-z \t%]*")
WORD = 1 << 64


def mixed(code: int) -> int:
    """A hash of 63 bits, well mixed."""
    code ^= code >> 32
    code = code * 0xD6E8FEB86659FD93 % WORD
    return (code ^ code >> 32) >> 1


def code_of(value: str) -> int:
    """The hash of a value's bytes."""
    code = 0xCBF29CE484222325
    for byte in value.encode():
        code = (code ^ byte) * 0x100000001B3 % WORD
    return mixed(code)


def number_of(value: str) -> float | None:
    """The number that a value is, a unit behind it or not."""
    found = NUMBER.fullmatch(value)
    return float(found[1]) if found and sum(map(str.isdigit, found[1])) <= 18 else None


def step_of(number: float) -> int:
    """Which step a number is in."""
    return min(int(math.log(number / LEAST) / math.log(RATIO)), STEPS - 1) if number > LEAST else 0


@dataclass
class Remembered:
    """One of the few values that a hole remembers: its lines at most, and how many fewer they may be."""

    value: str
    lines: int
    excess: int


@dataclass
class Sketch:
    """What one hole remembers of its values; and all of them, which it does not."""

    every: list[str] = field(default_factory=list)
    few: list[Remembered] = field(default_factory=list)
    replaced: int = 0
    newest: int = 0
    """The latest that was new among the few."""
    last: int = -1
    """The number of its last line."""
    ranks: list[int] = field(default_factory=lambda: [0] * REGISTERS)

    def add(self, value: str, line: int) -> None:
        """Count a value of a line."""
        self.every.append(value)
        self.last = line
        code = code_of(value)
        self.ranks[code % REGISTERS] = max(self.ranks[code % REGISTERS], rank_of(code // REGISTERS))
        for each in self.few:
            if each.value == value:
                each.lines += 1
                return
        if len(self.few) < COMMON:
            self.newest = len(self.few)
            self.few.append(Remembered(value, 1, 0))
            return
        rarest = min(self.few, key=lambda each: each.lines)
        self.newest, self.replaced = self.few.index(rarest), self.replaced + 1
        rarest.value, rarest.lines, rarest.excess = value, rarest.lines + 1, rarest.lines

    @property
    def numbers(self) -> list[float]:
        """Those that are numbers."""
        return [number for value in self.every if (number := number_of(value)) is not None]


def rank_of(bits: int) -> int:
    """Where the lowest bit that is set is, counted from 1; the last of 57 if none is."""
    return (bits & -bits).bit_length() if bits else 57


@dataclass
class Summary:
    """What several sketches of one hole say together."""

    lines: int
    distinct: int
    common: list[tuple[str, int]]
    newest: str
    numbers: tuple[float, float, float, float] | None


def summed(sketches: Sequence[Sketch]) -> Summary:
    """The sum of some sketches: a value of several counts once."""
    lines = sum(len(sketch.every) for sketch in sketches)
    sure = Counter[str]()
    for sketch in sketches:
        for each in sketch.few:
            sure[each.value] += each.lines - each.excess
    distinct = len(sure)
    if any(sketch.replaced for sketch in sketches):
        ranks = [max(ranks) for ranks in zip(*(sketch.ranks for sketch in sketches), strict=True)]
        distinct = max(estimated(ranks), distinct)
    order = sorted(sure.items(), key=lambda each: (-each[1], each[0]))
    least = 1 if len(order) <= 3 else 2
    latest = max(sketches, key=lambda sketch: sketch.last)
    numbers = [number for sketch in sketches for number in sketch.numbers]
    told = None
    if len(numbers) > 0.9 * lines:
        steps = sorted(map(step_of, numbers))
        low, high = min(numbers), max(numbers)
        told = low, *(min(max(quantile(steps, q), low), high) for q in (0.5, 0.9)), high
    common = [each for each in order if each[1] >= least][:COMMON]
    return Summary(lines, min(distinct, lines), common, latest.few[latest.newest].value, told)


def estimated(ranks: Sequence[int]) -> int:
    """How many distinct values there were, by HyperLogLog."""
    raw = 0.709 * REGISTERS**2 / sum(2.0**-rank for rank in ranks)
    zeros = list(ranks).count(0)
    return round(REGISTERS * math.log(REGISTERS / zeros) if raw <= 2.5 * REGISTERS and zeros else raw)


def quantile(steps: Sequence[int], share: float) -> float:
    """The middle of the step below which this share of numbers, in order, is."""
    step = steps[max(math.ceil(share * len(steps)) - 1, 0)]
    return 0.0 if step == 0 else float(f"{LEAST * RATIO ** (step + 0.5):.3g}")
