"""A generated stream of headlines with known truth: stories begin, grow, split and end.

Only the uniform random numbers of Python's Mersenne Twister and arithmetic that IEEE 754 rounds
exactly are used, so a seed gives the same bytes on every platform and Python release. The grammar of the
headlines is data: ``headlines.toml``.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from importlib import resources
from math import sqrt
from typing import Any, TypeVar

import msgspec

START = 1_767_571_200.0
"""Event time at which every stream begins: 5 January 2026, 00:00 UTC."""

PHASES = {"begin": 0.0, "grow": 0.12, "late": 0.6, "end": 0.88}
"""What headlines of a story tell of, and from which share of its records on."""

_MINUTES_BETWEEN_BIRTHS = 120
_LIFE_HOURS = (4, 6, 8, 12, 18, 24, 36, 48, 72)
_SMALLEST, _LARGEST = 14, 600  # records of a story
_PEAK = 0.15  # of a story's life
_SPLITS_FROM, _SPLITS = 60, 0.3  # records of a story that may split, and how often it does
_DETAILS = 3  # of a story
_APART = 11  # stories between two of one kind, at least
_EARLIER, _OPENED, _DETAILED = 0.5, 0.15, 0.9
"""Shares of the headlines that tell of what was before, that have an opening, and that have a detail."""

_Choice = TypeVar("_Choice")


class DemoRecord(msgspec.Struct, frozen=True):
    """One headline: event time in seconds since the epoch, and the story it truly belongs to."""

    time: float
    id: str
    text: str
    topic: str


class _Story(msgspec.Struct):
    """A story in progress: what its headlines are made of, and how far it has come."""

    name: str
    kind: dict[str, Any]
    slots: dict[str, str]
    details: list[str]
    size: int
    headlines: int = 0


@cache
def grammar() -> dict[str, Any]:
    """What ``headlines.toml`` holds: lists of words, and kinds of stories."""
    found = tomllib.loads((resources.files(__package__) / "headlines.toml").read_text("utf-8"))
    return {name: part.split() if isinstance(part, str) else part for name, part in found.items()}


def demo_stream(n: int, seed: int) -> Iterator[DemoRecord]:
    """The first ``n`` records of the stream of ``seed``, in time order.

    Stories are born at random, one in two hours (a Poisson process by the minute), and live four
    hours to three days with a fast rise and a slow decay; their sizes follow a power law between 14
    and 600 records. From a large one, another story may split: an inquiry, or a vote of the council.

    ``topic`` is a story's number and what it is about, such as "17 strike, Aldport, Okoye". A shorter
    stream is the beginning of a longer one. Raises ``ValueError`` for a negative argument.
    """
    if n < 0 or seed < 0:
        raise ValueError(f"n and seed must not be negative, got {n} and {seed}")
    return _records(n, random.Random(seed))  # noqa: S311 - a stream that can be repeated


def _records(n: int, rng: random.Random) -> Iterator[DemoRecord]:
    due: list[tuple[float, int, _Story]] = []  # time, serial, story: the serial decides between equal times
    recent: deque[str] = deque(maxlen=_APART)
    stories = serial = 0
    birth = START
    for i in range(n):
        while not due or due[0][0] >= birth:
            for begins, story in _born(rng, stories, birth, recent):
                stories += 1
                for time in _times(rng, begins, story.size):
                    heappush(due, (time, serial, story))
                    serial += 1
            birth = _next_birth(rng, birth)
        time, _, story = heappop(due)
        yield DemoRecord(time=time, id=f"{i:06}", text=_headline(rng, story), topic=story.name)


def _below(rng: random.Random, k: int) -> int:
    """A whole number from 0 to k - 1."""
    return int(rng.random() * k)


def _one_of(rng: random.Random, choices: Sequence[_Choice]) -> _Choice:
    return choices[_below(rng, len(choices))]


def _next_birth(rng: random.Random, birth: float) -> float:
    minutes = 1
    while rng.random() * _MINUTES_BETWEEN_BIRTHS >= 1.0:
        minutes += 1
    return birth + 60.0 * minutes


def _times(rng: random.Random, birth: float, size: int) -> list[float]:
    life = 3600.0 * _one_of(rng, _LIFE_HOURS)
    return [round(birth + life * min(_triangular(rng), _triangular(rng)), 3) for _ in range(size)]


def _triangular(rng: random.Random) -> float:
    u = rng.random()
    return sqrt(u * _PEAK) if u < _PEAK else 1.0 - sqrt((1.0 - u) * (1.0 - _PEAK))


def _born(
    rng: random.Random, number: int, birth: float, recent: deque[str]
) -> Iterator[tuple[float, _Story]]:
    """A story and, hours later, the one that splits from it, if one does; each with its begin."""
    kinds, places = grammar()["kinds"], grammar()["places"]
    kind = _one_of(rng, [each for each in kinds if "split" not in each and each["name"] not in recent])
    recent.append(kind["name"])
    slots = {"place": _one_of(rng, places), "area": _one_of(rng, places)}
    slots |= {"person": _person(rng), "other": _person(rng)}
    story = _story(rng, number, kind, slots, _size(rng))
    yield birth, story
    if story.size >= _SPLITS_FROM and rng.random() < _SPLITS:
        name = _one_of(rng, kind["leads_to"])
        after = next(each for each in kinds if each["name"] == name)
        slots |= {"person": slots["other"], "other": _person(rng), "about": kind["name"]}
        begins = birth + 3600.0 * (2 + _below(rng, 5))
        yield begins, _story(rng, number + 1, after, slots, max(story.size // 3, _SMALLEST))


def _person(rng: random.Random) -> str:
    return f"{_one_of(rng, grammar()['first_names'])} {_one_of(rng, grammar()['people'])}"


def _story(rng: random.Random, number: int, kind: dict[str, Any], slots: dict[str, str], size: int) -> _Story:
    name = f"{number} {kind['name']}, {slots['place']}, {slots['person']}"
    details = [_one_of(rng, kind["details"]) for _ in range(_DETAILS)]
    return _Story(name, kind, {**slots, "thing": _one_of(rng, kind["things"])}, details, size)


def _size(rng: random.Random) -> int:
    u = 1.0 - rng.random()
    # Pareto with exponent 2/3: its inverse distribution function needs a square root only.
    return int(min(_SMALLEST / (u * sqrt(u)), _LARGEST))


def _headline(rng: random.Random, story: _Story) -> str:
    """The next headline of a story; each is of what happens now, or of what was before."""
    share = story.headlines / story.size
    story.headlines += 1
    past = [phase for phase, begin in PHASES.items() if begin <= share]
    phase = _one_of(rng, past) if rng.random() < _EARLIER else past[-1]
    form = _one_of(rng, story.kind[phase])
    opening = _one_of(rng, grammar()["openings"]) if rng.random() < _OPENED else ""
    if "{place}" not in form:
        opening = "{place}: "
    filled = _filled(rng, form, story.slots)
    if rng.random() < _DETAILED and not form.endswith(("say", "says", "hears", "told")):
        filled += " " + _one_of(rng, story.details)
    return _filled(rng, opening, story.slots) + filled[0].upper() + filled[1:]


def _filled(rng: random.Random, text: str, slots: dict[str, str]) -> str:
    """A text of the grammar in words."""
    text = re.sub(r"\[(.*?)\]", lambda found: _one_of(rng, found[1].split("|")), text)
    return text.format_map(
        {**slots, **{name: _one_of(rng, grammar()[f"{name}s"]) for name in ("number", "day")}}
    )
