"""A small stream for every likelihood family: three kinds of records by turns, and one record it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from streamdp.settings.registry import LIKELIHOODS

N = 300
REFUSED_AT = 100
TOPICS = (
    "storm rain flood river bridge dam",
    "vote party poll seat count law",
    "goal match cup team coach win",
)


class Kind(NamedTuple):
    """Records of one kind as JSON, one that is refused and why, and what is true of each of three kinds."""

    values: list[dict[str, Any]]
    refused: dict[str, Any]
    reason: str
    centres: np.ndarray | None


def _words(rng: np.random.Generator) -> Kind:
    values = [{"text": " ".join(rng.choice(TOPICS[i % 3].split(), 4))} for i in range(N)]
    return Kind(values, {"text": "!?"}, "empty", None)


def _categories(rng: np.random.Generator) -> Kind:
    pairs = [np.array(topic.split()).reshape(3, 2) for topic in TOPICS]
    values = [{name: str(rng.choice(pairs[i % 3][f])) for f, name in enumerate("abc")} for i in range(N)]
    for i in range(5, N, 7):
        del values[i]["abc"[i % 3]]
    return Kind(values, {"a": "storm", "b": [1.0]}, "wrong_type", None)


def _vectors(rows: np.ndarray, refused: list[float], reason: str = "wrong_value") -> Kind:
    centres = np.array([rows[k::3].mean(axis=0) for k in range(3)])
    return Kind([{"vector": row} for row in rows.tolist()], {"vector": refused}, reason, centres)


def _points(rng: np.random.Generator) -> Kind:
    centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 1.0], [0.0, 5.0, -4.0]])
    rows = centres[np.arange(N) % 3] + rng.normal(0.0, 0.4, (N, 3))
    return _vectors(rows, [1e200, 0.0, 0.0], "too_large")


def _bits(rng: np.random.Generator) -> Kind:
    p = np.kron(np.eye(3), np.ones(5)) * 0.9 + 0.05
    return _vectors((rng.random((N, 15)) < p[np.arange(N) % 3]).astype(float), [0.5] * 15)


def _counts(rng: np.random.Generator) -> Kind:
    rates = np.array([[1.0, 20.0, 5.0, 0.2], [15.0, 1.0, 5.0, 4.0], [3.0, 2.0, 40.0, 9.0]])
    return _vectors(rng.poisson(rates[np.arange(N) % 3]).astype(float), [1.0, 2.5, 0.0, 3.0])


def _directions(rng: np.random.Generator) -> Kind:
    rows = np.eye(8)[np.arange(N) % 3] + rng.normal(0.0, 0.12, (N, 8))
    return _vectors(rows / np.linalg.norm(rows, axis=1, keepdims=True), [0.3] + [0.0] * 7)


_MAKERS = {
    "beta-bernoulli": _bits,
    "categorical": _categories,
    "gamma-poisson": _counts,
    "von-mises-fisher": _directions,
}
FAMILIES = tuple(LIKELIHOODS)
WORDS = ("dirichlet-multinomial", "hierarchical-dirichlet", "hierarchical-pitman-yor")


def kind_of(family: str) -> Kind:
    """The stream of a family."""
    return _MAKERS.get(family, _words if family in WORDS else _points)(np.random.default_rng(5))


def lines_of(family: str) -> list[str]:
    """The stream as JSON lines, with ids and times, and the refused record in the middle."""
    kind = kind_of(family)
    lines = [json.dumps({"id": i, "time": 10.0 * i, **value}) + "\n" for i, value in enumerate(kind.values)]
    lines.insert(REFUSED_AT, json.dumps({"id": "refused", **kind.refused}) + "\n")
    return lines


PRIORS = {
    "crp": ("--prior", "crp"),
    "uniform": ("--prior", "uniform"),
    "finite": ("--prior", "finite-mixture", "--components", "3"),
    "exponential": ("--decay-scale", "200", "--concentration", "0.1"),
    "logistic": ("--decay", "logistic", "--decay-scale", "200", "--concentration", "0.1"),
}
"""Options of priors."""
TOGETHER = {
    "hierarchical-dirichlet": "uniform",
    "gaussian": "exponential",
    "normal-inverse-gamma": "uniform",
    "von-mises-fisher": "exponential",
    "beta-bernoulli": "logistic",
    "gamma-poisson": "finite",
}
"""Families whose kernels are compiled with another prior than crp for other tests, too."""


class Model(NamedTuple):
    """A family and a prior."""

    family: str
    prior: str

    @property
    def options(self) -> tuple[str, ...]:
        """Options that name both."""
        return ("--likelihood", self.family, *PRIORS[self.prior])

    @property
    def settings(self) -> tuple[str, ...]:
        """Options of a stream under them."""
        warmup = () if self.family in (*WORDS, "categorical") else ("--warmup", "40")
        return (*self.options, "--beam", "16", "--snapshot-every", "50", *warmup)


def models() -> list[Any]:
    """Every family with one prior; and all of them with crp, which is slow."""
    chosen = [Model(family, TOGETHER.get(family, "crp")) for family in FAMILIES]
    others = [Model(family, "crp") for family in TOGETHER]
    return [pytest.param(model, id="-".join(model)) for model in chosen] + [
        pytest.param(model, id="-".join(model), marks=pytest.mark.slow) for model in others
    ]


def write(folder: Path, lines: list[str], name: str = "in.jsonl") -> None:
    """Lines as a file."""
    (folder / name).write_text("".join(lines))
