"""A likelihood family of one's own: positive vectors, such as waiting times.

    streamdp consume --file waits.jsonl --likelihood own_family:ExponentialGamma

clusters with it, where Python finds this file (``PYTHONPATH``); run by itself, it clusters a small stream.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.engine import Engine
from streamdp.kernels.checks import PerDimension, positive, positive_per_dimension
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.vectors import (
    Row,
    VectorFamily,
    add,
    log_marginal,
    merge,
    predictive,
    remove,
    settle,
)
from streamdp.records import Record
from streamdp.settings import Settings

ROW = Row("count", "constant", "total[d]")
COUNT, CONSTANT, SUMS = ROW
"""Of a row of statistics: n, the constant of the predictive; then the sum in each dimension."""


class ExponentialGammaTerms(NamedTuple):
    """What the kernels read: a, and b in each dimension."""

    shape: float
    rate: np.ndarray


@dataclass(frozen=True)
class ExponentialGamma(VectorFamily):
    """Exponential, with a rate of the cluster's own in every dimension, Gamma(a, b) distributed.

    Parameters
    ----------
    dimension
        D, an integer >= 1; a record is D numbers above 0.
    shape, rate
        a and b of the gamma prior of the rates, > 0; b a number, or one for each dimension.

    Notes
    -----
    H = prod_d b^a Gamma(a + n) / (Gamma(a) (b + s_d)^(a + n)) of n records of sum s.
    """

    shape: float = 0.5
    rate: PerDimension = 1.0

    row = ROW
    settings = {"shape": "shape"}  # noqa: RUF012
    drawn = ("shape",)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("shape", self.shape)
        object.__setattr__(self, "rate", positive_per_dimension("rate", self.rate, self.dimension))

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """Rates around one over the mean of all records."""
        shape = given.get("shape", 0.5)
        return cls(len(moments.mean), shape, tuple((shape * np.maximum(moments.mean, 1e-9)).tolist()))

    @classmethod
    def read(cls, values: np.ndarray) -> np.ndarray:
        """ValueError where a number is not above 0."""
        if not (values > 0.0).all():
            raise ValueError(f"a record is {values.shape[1]} numbers above 0")
        return values

    def terms(self) -> ExponentialGammaTerms:
        """What the kernels read."""
        return ExponentialGammaTerms(float(self.shape), self._full(self.rate))

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """The density at the rate 1 / x."""
        return np.asarray(-(1.0 + np.log(rows)).sum(axis=1))


@add.of(ExponentialGammaTerms)
def _add(family: ExponentialGammaTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    row[COUNT] += 1.0
    for d in range(x.shape[0]):
        row[SUMS + d] += x[d]


@remove.of(ExponentialGammaTerms)
def _remove(family: ExponentialGammaTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    row[COUNT] -= 1.0
    for d in range(x.shape[0]):
        row[SUMS + d] = max(row[SUMS + d] - x[d], 0.0)


@merge.of(ExponentialGammaTerms)
def _merge(family: ExponentialGammaTerms, row: np.ndarray, other: np.ndarray) -> None:
    row[COUNT] += other[COUNT]
    for d in range(family.rate.shape[0]):
        row[SUMS + d] += other[SUMS + d]


@settle.of(ExponentialGammaTerms)
def _settle(family: ExponentialGammaTerms, row: np.ndarray) -> None:
    a, total = family.shape + row[COUNT], 0.0
    for d in range(family.rate.shape[0]):
        total += math.log(a) + a * math.log(family.rate[d] + row[SUMS + d])
    row[CONSTANT] = total


@predictive.of(ExponentialGammaTerms)
def _predictive(family: ExponentialGammaTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    # (a + n) (b + s)^(a + n) / (b + s + x)^(a + n + 1)
    total = 0.0
    for d in range(x.shape[0]):
        total += math.log(family.rate[d] + row[SUMS + d] + x[d])
    found: float = row[CONSTANT] - (family.shape + row[COUNT] + 1.0) * total
    return found


@log_marginal.of(ExponentialGammaTerms)
def _log_marginal(family: ExponentialGammaTerms, row: np.ndarray) -> float:
    a, n, total = family.shape, row[COUNT], 0.0
    for d in range(family.rate.shape[0]):
        total += math.lgamma(a + n) - math.lgamma(a)
        total += a * math.log(family.rate[d]) - (a + n) * math.log(family.rate[d] + row[SUMS + d])
    return total


def waits(n: int, seed: int = 1) -> list[list[float]]:
    """Vectors of eight waiting times each, of three kinds by turns."""
    rng = random.Random(seed)
    means = ([1.0] * 4 + [60.0] * 4, [60.0] * 8, [600.0] * 4 + [1.0] * 4)
    return [[rng.expovariate(1.0 / mean) for mean in means[i % 3]] for i in range(n)]


def main() -> None:
    """Cluster a small stream, and say what was found."""
    engine = Engine(Settings(likelihood="own_family:ExponentialGamma", prior="crp"))
    engine.advance(Record(x, {"line": i + 1}) for i, x in enumerate(waits(900)))
    for cluster in engine.clusters():
        print(f"{cluster.size:5,} records, mean", *(f"{value:7.1f}" for value in cluster.mean or ()))


if __name__ == "__main__":
    main()
