"""A prior of one's own: the rich get richer, but by the square root of their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamdp.priors.base import SizedPrior, found_weight, join_weight


class SquareRootTerms(NamedTuple):
    """What kernels read."""

    concentration: float


@dataclass(frozen=True)
class SquareRoot(SizedPrior):
    """Join a cluster of n records with weight n^0.5, found one with the concentration."""

    concentration: float = 1.0

    exchangeable = False
    settings = {"concentration": "concentration"}  # noqa: RUF012

    def terms(self) -> SquareRootTerms:
        """What kernels read."""
        return SquareRootTerms(float(self.concentration))

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """The product of the weights chosen over their sums."""
        sizes: dict[int, int] = {}
        total = 0.0
        for label in labels:
            weights = {k: math.sqrt(n) for k, n in sizes.items()}
            chosen = weights.get(label, self.concentration)
            if sizes:
                total += math.log(chosen / (sum(weights.values()) + self.concentration))
            sizes[label] = sizes.get(label, 0) + 1
        return total


@join_weight.of(SquareRootTerms)
def _join(prior: SquareRootTerms, size: float) -> float:
    return size**0.5


@found_weight.of(SquareRootTerms)
def _found(prior: SquareRootTerms, clusters: float) -> float:
    return prior.concentration
