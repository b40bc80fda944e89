"""What golden states are made of: generated records of every kind, settings for every family and prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import logs
import msgspec
import numpy as np
from engine_cases import CASES, categories, counted
from feeds import features, record, texts, untidy, vectors

from streamdp.records import Record

LEARNED = 250
"""Records that a state has seen."""

AFTER = 500
"""Records that it goes on with."""

N = LEARNED + AFTER
TOPICS = (
    "storm rain flood river bridge dam",
    "vote party poll seat count law",
    "goal match cup team coach win",
)


def _rounded(records: list[Record]) -> list[Record]:
    """Vectors with few digits, which take less room."""
    made = []
    for each in records:
        value: Any = each.value
        if isinstance(value, list):
            value = [round(x, 4) for x in value]
        elif isinstance(value, dict):
            value = {name: round(x, 4) for name, x in value.items()}
        made.append(msgspec.structs.replace(each, value=value))
    return made


def _rows(rows: np.ndarray) -> list[Record]:
    return _rounded([record(row, i + 1, float(i // 2)) for i, row in enumerate(rows.tolist())])


def _bits() -> list[Record]:
    p = np.kron(np.eye(3), np.ones(5)) * 0.8 + 0.1
    return _rows((np.random.default_rng(5).random((N, 15)) < p[np.arange(N) % 3]).astype(float))


def _counts() -> list[Record]:
    rates = np.array([[1.0, 20.0, 5.0, 0.2], [15.0, 1.0, 5.0, 4.0], [3.0, 2.0, 40.0, 9.0]])
    return _rows(np.random.default_rng(6).poisson(rates[np.arange(N) % 3]).astype(float))


def _directions() -> list[Record]:
    rows = np.eye(8)[np.arange(N) % 3] + np.random.default_rng(7).normal(0.0, 0.2, (N, 8))
    return _rows(rows)


def _lines() -> list[Record]:
    return [record(line, i + 1, float(i)) for i, line in enumerate(logs.lines(N, 8)[0])]


def _mixed() -> list[Record]:
    rng, made = np.random.default_rng(9), []
    for i in range(N):
        topic = TOPICS[i % 3]
        value: dict[str, Any] = {
            "product": topic.split()[0] if rng.random() < 0.8 else "other",
            "title": " ".join(rng.choice([*topic.split(), "please", "help"], 4)),
            "amount": round(float(10.0 ** (i % 3) * rng.lognormal(0.0, 0.5)), 2),
        }
        if rng.random() < 0.2:
            del value[str(rng.choice(["product", "amount"]))]
        made.append(record(value, i + 1, float(i // 2)))
    return made


def _beside() -> list[Record]:
    """The same with a direction for most, in the place of the amount."""
    rng, made = np.random.default_rng(10), []
    for i, each in enumerate(_mixed()):
        value: Any = {name: part for name, part in each.value.items() if name != "amount"}  # type: ignore[union-attr]
        if rng.random() < 0.9:
            value["embedding"] = [round(x, 4) for x in (np.eye(4)[i % 3] + rng.normal(0.0, 0.2, 4)).tolist()]
        made.append(msgspec.structs.replace(each, value=value))
    return made


def topics_of(some: list[str]) -> list[list[float]]:
    """Vectors of texts: how many of a text's words each topic has, and what all have in common."""
    words = [text.lower().split() for text in some]
    return [[*(float(sum(w in topic.split() for w in each)) for topic in TOPICS), 1.0] for each in words]


MAKERS: dict[str, Callable[[], list[Record]]] = {
    "texts": lambda: untidy(texts(N + 350, 1), 11, times=False),
    "bags": lambda: untidy(counted(N, 2), 12, times=False),
    "categories": lambda: untidy(categories(N, 3), 13, times=False),
    "vectors": lambda: untidy(_rounded(vectors(N, 4)), 14, times=False),
    "features": lambda: untidy(_rounded(features(N, 5)), 15, times=False),
    "bits": _bits,
    "counts": _counts,
    "directions": _directions,
    "lines": _lines,
    "mixed": _mixed,
    "beside": _beside,
}
"""Records by the name of their file; those of the engine's cases are out of order, some are no records."""

_OF_CASES = {
    texts: "texts",
    counted: "bags",
    categories: "categories",
    vectors: "vectors",
    features: "features",
}


class Golden(NamedTuple):
    """A state to make: settings of a stream, which records, and how many of them it has seen.

    ``corrected`` says that corrections by hand are in force at the end.
    """

    settings: dict[str, Any]
    records: str
    learned: int = LEARNED
    final_only: bool = False
    corrected: bool = False


def _of_cases() -> dict[str, Golden]:
    return {
        name: Golden({**settings, "max_lateness": 2.0}, _OF_CASES[maker])
        for name, (settings, maker) in CASES.items()
    }


GOLDEN: dict[str, Golden] = _of_cases() | {
    "texts by default": Golden({}, "texts"),
    "texts embedded": Golden({"embed": "golden.cases:topics_of"}, "texts"),
    "texts final only": Golden({"max_lateness": 2.0}, "texts", final_only=True),
    "texts corrected": Golden({"beam": 4, "base_concentration": 30.0}, "texts", corrected=True),
    "texts refined": Golden(
        {"refine_every": 512, "retain": 1024, "refine_moves": 2000, "beam": 4, "second_look": 200},
        "texts",
        600,
    ),
    "hierarchical dirichlet": Golden({"likelihood": "hierarchical-dirichlet", "prior": "uniform"}, "texts"),
    "vectors by default": Golden({}, "vectors", 220),
    "vectors of the warm-up": Golden({"warmup": 90, "prior": "crp"}, "vectors", 60),
    "normal inverse gamma": Golden(
        {"likelihood": "normal-inverse-gamma", "prior": "uniform", "warmup": 40}, "vectors"
    ),
    "bits": Golden(
        {
            "likelihood": "beta-bernoulli",
            "decay": "logistic",
            "decay_scale": 200.0,
            "concentration": 0.1,
            "warmup": 40,
        },
        "bits",
    ),
    "counts": Golden(
        {"likelihood": "gamma-poisson", "prior": "finite-mixture", "components": 3, "warmup": 40}, "counts"
    ),
    "unit vectors": Golden({"normalise": True, "warmup": 40}, "directions"),
    "mixed": Golden({"fields": ("product",), "texts": ("title",), "numbers": ("amount",)}, "mixed"),
    "vector beside": Golden(
        {"fields": ("product",), "texts": ("title",), "vector_field": "embedding"}, "beside"
    ),
    "lines": Golden({"likelihood": "template"}, "lines"),
    "lines forgotten": Golden({"likelihood": "template", "max_lines": 40, "retain": 50}, "lines"),
}
