"""Settings and streams that cover the engine: every prior, both kinds of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from feeds import features, texts, vectors

from streamdp.records import Record
from streamdp.settings import Settings

Maker = Callable[[int, int], list[Record]]


def counted(n: int, seed: int) -> list[Record]:
    """Texts given as word counts."""
    made = []
    for item in texts(n, seed):
        assert isinstance(item.value, str)
        words = item.value.split()
        made.append(msgspec.structs.replace(item, value={w: float(words.count(w)) for w in words}))
    return made


def categories(n: int, seed: int) -> list[Record]:
    """Texts of which the first words are fields; the last of four is often missing."""
    made = []
    for item in texts(n, seed):
        assert isinstance(item.value, str)
        fields = dict(zip("abcd", item.value.split(), strict=False))
        made.append(msgspec.structs.replace(item, value=fields))
    return made


def letters_of(some: list[str]) -> list[list[float]]:
    """Vectors of texts, which say how often each has some letters."""
    return [[float(text.count(letter)) for letter in "aeiou"] for text in some]


WORDS: dict[str, Any] = {"likelihood": "hierarchical-pitman-yor"}
DIRICHLET: dict[str, Any] = {"likelihood": "hierarchical-dirichlet"}
CASES: dict[str, tuple[dict[str, Any], Maker]] = {
    "crp": ({"prior": "crp"}, texts),
    "crp greedy": ({"prior": "crp", "beam": 1}, texts),
    "crp counts": ({**WORDS, "prior": "crp"}, counted),
    "crp retiring": ({"prior": "crp", "retire_after": 6, "retain": 20}, texts),
    "pitman-yor full": ({"prior": "pitman-yor", "max_clusters": 3}, texts),
    "uniform": ({**DIRICHLET, "prior": "uniform"}, texts),
    "uniform retiring": ({**DIRICHLET, "prior": "uniform", "retire_after": 6, "max_clusters": 5}, texts),
    "window": ({"decay": "window", "decay_scale": 7.0, "concentration": 1.0}, texts),
    "window greedy": ({"decay": "window", "decay_scale": 7.0, "concentration": 1.0, "beam": 1}, texts),
    "window seconds": (
        {"decay": "window", "decay_scale": 5.0, "concentration": 1.0, "distance": "seconds"},
        texts,
    ),
    "exponential": ({"decay_scale": 6.0, "concentration": 1.0, "close_below": 0.05}, texts),
    "exponential seconds": ({"decay_scale": 4.0, "concentration": 1.0, "distance": "seconds"}, texts),
    "logistic": ({"decay": "logistic", "decay_scale": 5.0, "concentration": 1.0, "close_below": 0.05}, texts),
    "flat": ({"likelihood": "dirichlet-multinomial", "prior": "crp", "max_undecided": 9}, texts),
    "nothing retained": ({"prior": "crp", "retain": 0, "slack": 4.0}, texts),
    "categories": ({"prior": "crp"}, categories),
    "embedded": ({"prior": "crp", "embed": "engine_cases:letters_of"}, texts),
    "embedded window": (
        {"decay": "window", "decay_scale": 7.0, "concentration": 1.0, "embed": "engine_cases:letters_of"},
        texts,
    ),
    "vectors": ({"warmup": 20, "prior": "crp"}, vectors),
    "vectors greedy": ({"warmup": 20, "beam": 1, "forget": 0.95}, vectors),
    "vectors retiring": ({"warmup": 10, "prior": "crp", "retire_after": 6, "retain": 20}, vectors),
    "vectors window": ({"warmup": 10, "decay": "window", "decay_scale": 7.0}, vectors),
    "gaussian": (
        {"likelihood": "gaussian", "variance": 0.3, "decay_scale": 6.0, "close_below": 0.05},
        vectors,
    ),
    "directions": ({"warmup": 10, "normalise": True, "retain": 20}, vectors),
    "features": ({"warmup": 10, "prior": "pitman-yor", "max_clusters": 3}, features),
}


def case(name: str, **more: Any) -> tuple[Settings, Maker]:
    """Settings and stream of a case."""
    given_settings, maker = CASES[name]
    return Settings(**{**given_settings, **more}), maker
