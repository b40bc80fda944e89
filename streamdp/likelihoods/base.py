"""The contract of a likelihood family.

A family is a value: parameters, their validation, and the conjugate algebra of one cluster. Records
are *encoded*: a sparse record is a pair of arrays (word ids, counts), a dense one a vector. The
stream's kernels read the parameters through :meth:`Likelihood.configure`; offline passes work on
statistics, which can be added to, removed from and merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

S = TypeVar("S")
X = TypeVar("X")


class Likelihood(ABC, Generic[S, X]):
    """A family of distributions over records with the parameters of a cluster integrated out."""

    sparse: bool
    """Whether records are word counts (else: vectors)."""

    @abstractmethod
    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Write the parameters where the kernels read them; return the array fields of ``Model`` to set."""

    @abstractmethod
    def empty(self) -> S:
        """Statistics of no record."""

    @abstractmethod
    def add(self, statistics: S, x: X) -> None:
        """Let a record join."""

    @abstractmethod
    def remove(self, statistics: S, x: X) -> None:
        """Take a record out that had joined."""

    @abstractmethod
    def merge(self, statistics: S, other: S) -> None:
        """Let all records of another cluster join."""

    @abstractmethod
    def log_marginal(self, statistics: S, base: Any = None) -> float:
        """log H of the records of a cluster, in nats; ``base`` is p_w by word where the family needs it."""

    @abstractmethod
    def log_predictive(self, statistics: S, x: X, base: Any = None) -> float:
        """log H(x | S), in nats."""
