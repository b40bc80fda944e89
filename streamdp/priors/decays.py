"""How the pull of an earlier record fades with its distance (Blei and Frazier 2011, section 2).

A decay is called with a distance >= 0, a number or an array of them. :meth:`Decay.earlier` sums the
pull of all earlier records for a whole sequence at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np

from streamdp.beam import model
from streamdp.priors.base import positive


@dataclass(frozen=True)
class Decay(ABC):
    """f(distance), non-increasing, in [0, 1].

    Parameters
    ----------
    scale
        In the unit of the distance (seconds or records), > 0.
    """

    scale: float

    kind: ClassVar[int]

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    @overload
    def __call__(self, distance: float) -> float: ...
    @overload
    def __call__(self, distance: np.ndarray) -> np.ndarray: ...
    def __call__(self, distance: Any) -> Any:
        """f of one distance, or of each distance of an array."""
        value = self._of(np.asarray(distance, dtype=np.float64))
        return value if isinstance(distance, np.ndarray) else float(value)

    @property
    @abstractmethod
    def reach(self) -> float:
        """A distance beyond which f is 0 in double precision."""

    @abstractmethod
    def _of(self, distance: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def earlier(self, positions: np.ndarray) -> np.ndarray:
        """sum_{j<i} f(positions[i] - positions[j]) for every i; positions do not decrease."""


class Window(Decay):
    """1 below the scale, 0 from there on: a record is forgotten at once."""

    kind = model.WINDOW

    @property
    def reach(self) -> float:
        """The scale."""
        return self.scale

    def _of(self, distance: np.ndarray) -> np.ndarray:
        return np.where(distance < self.scale, 1.0, 0.0)

    def earlier(self, positions: np.ndarray) -> np.ndarray:
        """How many earlier positions lie within the window of each, in O(N)."""
        p = positions.tolist()
        counts = np.empty(len(p))
        start = 0
        for i, here in enumerate(p):
            while not here - p[start] < self.scale:
                start += 1
            counts[i] = i - start
        return counts


class Exponential(Decay):
    """exp(-distance / scale): the pull halves every 0.69 scales."""

    kind = model.EXPONENTIAL

    @property
    def reach(self) -> float:
        """746 scales."""
        return 746.0 * self.scale

    def _of(self, distance: np.ndarray) -> np.ndarray:
        with np.errstate(under="ignore"):
            return np.exp(-distance / self.scale)

    def earlier(self, positions: np.ndarray) -> np.ndarray:
        """One number fades from each position to the next, in O(N)."""
        fade = self(np.diff(positions, prepend=positions[:1])).tolist()
        sums = np.empty(len(fade))
        pull = -1.0
        for i, f in enumerate(fade):
            pull = (pull + 1.0) * f
            sums[i] = pull
        return sums


class Logistic(Decay):
    """1 / (1 + exp(distance - scale)): a window whose edge is about 4 units wide, whatever the scale."""

    kind = model.LOGISTIC

    @property
    def reach(self) -> float:
        """746 units beyond the scale."""
        return self.scale + 746.0

    def _of(self, distance: np.ndarray) -> np.ndarray:
        with np.errstate(under="ignore"):
            e = np.exp(-np.abs(distance - self.scale))
            return np.where(distance > self.scale, e, 1.0) / (1.0 + e)

    def earlier(self, positions: np.ndarray) -> np.ndarray:
        """Term by term, in O(N) times the positions within reach (scale + 745) of one."""
        sums = np.empty(len(positions))
        start = 0
        for i, here in enumerate(positions):
            pull = self(here - positions[start:i])
            sums[i] = pull.sum()
            start += int(np.searchsorted(pull, 0.0, side="right"))
        return sums
