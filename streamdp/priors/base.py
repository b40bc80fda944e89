"""The contract of a partition prior.

A prior is a value: parameters, their validation, and what they mean. The stream's kernels read it
through :meth:`Prior.configure`; everything else works on :meth:`Prior.log_probability`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np


class Prior(ABC):
    """A distribution over clusterings of a sequence of records."""

    exchangeable: bool
    """Whether the probability of a clustering does not depend on the order of the records."""

    @abstractmethod
    def configure(self, ints: np.ndarray, floats: np.ndarray) -> None:
        """Write the parameters where the kernels read them (see ``streamdp.beam.model``)."""

    @abstractmethod
    def weights(
        self, members: Sequence[Sequence[int]], now: int, times: Sequence[float]
    ) -> tuple[list[float], float]:
        """Weight of joining each cluster, and of a new one, for record ``now``.

        Parameters
        ----------
        members
            Record numbers of every cluster among the records before ``now``.
        now
            Number of the record to come.
        times
            Event times in seconds of records 0 .. now, non-decreasing.
        """

    @abstractmethod
    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """log p(z) of a whole clustering, in nats.

        ``labels[i]`` names the cluster of record i; ``times`` (seconds, non-decreasing) matter only to
        priors that depend on distance in event time.
        """


def positive(name: str, value: float) -> float:
    """Check a parameter that must be a positive finite number."""
    if not (0.0 < value < float("inf")):
        raise ValueError(f"{name} must be a positive number, not {value!r}")
    return float(value)


def discount_in_range(name: str, value: float) -> float:
    """Check a discount: 0 <= d < 1."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must be at least 0 and below 1, not {value!r}")
    return float(value)
