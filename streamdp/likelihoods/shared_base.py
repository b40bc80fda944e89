"""The families over word counts whose clusters share a base measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from streamdp.beam import model
from streamdp.likelihoods.words import BaseMeasure, WordFamily
from streamdp.priors.base import discount_in_range, positive


@dataclass(frozen=True, kw_only=True)
class SharedBase(WordFamily):
    """A base measure learned from the stream, or fixed.

    For the V words seen, p_w = (N_w + smoothing - discount) / (N + smoothing V + escape), N the sum of all
    N_w; the mass that is left is spread evenly over the rest of 2^20 words. What N_w counts depends on the
    family. Without smoothing this is a Pitman-Yor process over words (Teh 2006): its discount lets the
    mass of the unseen grow with the vocabulary.

    Parameters
    ----------
    smoothing
        Added to the count of every word seen, >= 0.
    discount
        Taken from the count of every word seen, 0 <= discount < 1.
    escape
        Concentration: mass of all words not yet seen, in counts, > 0.
    base
        p_w by word id when it is fixed: positive and summing to one. None: learned.
    """

    smoothing: float = 0.0
    discount: float = 0.35
    escape: float = 1000.0
    base: tuple[float, ...] | None = field(default=None, repr=False)

    learned_from: ClassVar[int]

    def __post_init__(self) -> None:
        if not 0.0 <= self.smoothing < math.inf:
            raise ValueError(f"smoothing must be zero or a positive number, not {self.smoothing!r}")
        discount_in_range("discount", self.discount)
        positive("escape", self.escape)
        if self.base is not None:
            object.__setattr__(self, "base", _probabilities(self.base))

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Write the parameters where the kernels read them; a fixed base is an array of ``Model``."""
        ints[model.FAMILY] = model.INTERPOLATED
        ints[model.VOCABULARY] = 0
        ints[model.BASE] = self.learned_from if self.base is None else model.FIXED
        floats[model.SMOOTHING] = self.smoothing
        floats[model.BASE_DISCOUNT] = self.discount
        floats[model.ESCAPE] = self.escape
        return {} if self.base is None else {"base": np.array(self.base, dtype=np.float64)}

    def _base(self, base: BaseMeasure | None) -> BaseMeasure:
        found = self.base if base is None else base
        if found is None:
            raise ValueError("the base measure is learned from the stream: give p_w by word")
        return found


def _probabilities(base: Sequence[float]) -> tuple[float, ...]:
    values = tuple(float(p) for p in base)
    if not values or not all(p > 0.0 for p in values) or abs(math.fsum(values) - 1.0) > 1e-6:
        raise ValueError("base must be positive probabilities that sum to one")
    return values
