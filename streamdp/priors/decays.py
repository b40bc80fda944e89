"""How the weight of an earlier record fades with its distance (Blei and Frazier 2011, section 2).

A decay is called with a distance >= 0, a number or an array of them; kernels call :func:`decay_weight` with
its terms. :meth:`Decay.earlier` sums the weights of all earlier records for a whole sequence at once.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np

from streamdp.kernels.checks import positive
from streamdp.kernels.jit import entry, generic


class DecayTerms(NamedTuple):
    """What kernels read; every decay has a class of its own."""

    scale: float


class WindowTerms(DecayTerms):
    """Of :class:`Window`."""

    __slots__ = ()


class ExponentialTerms(DecayTerms):
    """Of :class:`Exponential`."""

    __slots__ = ()


class LogisticTerms(DecayTerms):
    """Of :class:`Logistic`."""

    __slots__ = ()


@generic
def decay_weight(decay: Any, distance: float) -> float:
    """f(distance)."""
    raise NotImplementedError


@decay_weight.of(WindowTerms)
def _window(decay: WindowTerms, distance: float) -> float:
    return 1.0 if distance < decay.scale else 0.0


@decay_weight.of(ExponentialTerms)
def _exponential(decay: ExponentialTerms, distance: float) -> float:
    return exp(-distance / decay.scale)


@decay_weight.of(LogisticTerms)
def _logistic(decay: LogisticTerms, distance: float) -> float:
    gap = distance - decay.scale
    e = exp(-abs(gap))  # without overflow on either side
    return (e if gap > 0.0 else 1.0) / (1.0 + e)


@entry
def _weigh_all(decay: Any, distances: np.ndarray, out: np.ndarray) -> None:
    for i in range(distances.shape[0]):
        out[i] = decay_weight(decay, distances[i])


@generic
def weigh_earlier(decay: Any, positions: np.ndarray, n: int, out: np.ndarray) -> None:
    """sum_{j<i} f(positions[i] - positions[j]) for the first n; they do not decrease."""
    for i in range(n):
        total = 0.0
        for j in range(i - 1, -1, -1):
            f = decay_weight(decay, positions[i] - positions[j])
            if f == 0.0:
                break
            total += f
        out[i] = total


@weigh_earlier.of(WindowTerms)
def _count_within(decay: WindowTerms, positions: np.ndarray, n: int, out: np.ndarray) -> None:
    start = 0
    for i in range(n):
        while not positions[i] - positions[start] < decay.scale:
            start += 1
        out[i] = i - start


@weigh_earlier.of(ExponentialTerms)
def _fade_on(decay: ExponentialTerms, positions: np.ndarray, n: int, out: np.ndarray) -> None:
    weight = -1.0
    for i in range(n):
        gap = positions[i] - positions[i - 1] if i > 0 else 0.0
        weight = (weight + 1.0) * decay_weight(decay, gap)
        out[i] = weight


@entry
def _weigh_earlier(decay: Any, positions: np.ndarray, out: np.ndarray) -> None:
    weigh_earlier(decay, positions, positions.shape[0], out)


@dataclass(frozen=True)
class Decay(ABC):
    """f(distance), non-increasing, in [0, 1].

    Parameters
    ----------
    scale
        In the unit of the distance (seconds or records), > 0.
    """

    scale: float

    memoryless: ClassVar[bool] = False
    """Whether the weights of all earlier records fade by one factor as time goes on."""

    sharp: ClassVar[bool] = False
    """Whether f is 1 or 0, so that a cluster with any weight has at least that of a record."""

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    kind: ClassVar[Any]
    """A named tuple of the scale, for which :func:`decay_weight` is implemented."""

    def terms(self) -> Any:
        """What kernels read."""
        return self.kind(float(self.scale))

    @property
    @abstractmethod
    def reach(self) -> float:
        """A distance beyond which f is 0 in double precision."""

    @overload
    def __call__(self, distance: float) -> float: ...
    @overload
    def __call__(self, distance: np.ndarray) -> np.ndarray: ...
    def __call__(self, distance: Any) -> Any:
        """f of one distance, or of each distance of an array."""
        if not isinstance(distance, np.ndarray):
            return float(decay_weight(self.terms(), float(distance)))
        values = np.empty(distance.size)
        _weigh_all(self.terms(), np.asarray(distance, np.float64).reshape(-1), values)
        return values.reshape(distance.shape)

    def earlier(self, positions: np.ndarray) -> np.ndarray:
        """sum_{j<i} f(positions[i] - positions[j]) for every i; positions do not decrease.

        In O(N) under a window or an exponential decay, else term by term, in O(N) times the positions within
        reach of one.
        """
        sums = np.empty(len(positions))
        _weigh_earlier(self.terms(), np.asarray(positions, np.float64), sums)
        return sums


class Window(Decay):
    """1 below the scale, 0 from there on: a record is forgotten at once.

    Examples
    --------
    >>> Window(4.0)(2.0)
    1.0
    """

    kind = WindowTerms
    sharp = True

    @property
    def reach(self) -> float:
        """The scale."""
        return self.scale


class Exponential(Decay):
    """exp(-distance / scale): the weight halves every 0.69 scales.

    Examples
    --------
    >>> round(Exponential(4.0)(2.0), 4)
    0.6065
    """

    kind = ExponentialTerms
    memoryless = True

    @property
    def reach(self) -> float:
        """746 scales."""
        return 746.0 * self.scale


class Logistic(Decay):
    """1 / (1 + exp(distance - scale)): a window whose edge is about 4 units wide, whatever the scale.

    Examples
    --------
    >>> round(Logistic(4.0)(2.0), 4)
    0.8808
    """

    kind = LogisticTerms

    @property
    def reach(self) -> float:
        """746 units beyond the scale."""
        return self.scale + 746.0
