"""The contract of a partition prior.

A prior is a value: parameters, their checks, and what follows from them. Its file holds a named tuple of
what kernels read (its terms), and implements for it two functions of scalars, the weight of joining a cluster
of n records and that of founding one beside K; or, where the weight depends on how far back the records of a
cluster lie, a decay. Stream, samplers, A* and evaluation all work from these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from streamdp.kernels.jit import generic


@generic
def join_weight(prior: Any, size: float) -> float:
    """Weight of joining a cluster of ``size`` records."""
    raise NotImplementedError


@generic
def found_weight(prior: Any, clusters: float) -> float:
    """Weight of founding a cluster beside ``clusters`` that there are, or ever were."""
    raise NotImplementedError


class Prior(ABC):
    """A distribution over clusterings of a sequence of records."""

    exchangeable: ClassVar[bool]
    """Whether the probability of a clustering does not depend on the order of the records."""

    settings: ClassVar[Mapping[str, str]]
    """The settings that mean something to the prior, and the parameter that each of them is."""

    drawn: ClassVar[tuple[str, ...]] = ("concentration",)
    """Parameters that samplers draw anew."""

    concentration: float

    @classmethod
    def automatic(cls, given: Mapping[str, Any], sparse: bool) -> Self:
        """The prior with these settings, the others as fit words (``sparse``) or vectors.

        Raises ValueError.
        """
        return cls(**{cls.settings[name]: value for name, value in given.items()})

    @abstractmethod
    def terms(self) -> Any:
        """What kernels read: a named tuple, whose class says which kernels are meant."""

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


class SizedPrior(Prior):
    """A prior whose weights depend on how many records a cluster has, and on how many clusters there are."""

    def weights(
        self, members: Sequence[Sequence[int]], now: int, times: Sequence[float]
    ) -> tuple[list[float], float]:
        """Of each cluster by its size, and of a new one by how many there are."""
        terms = self.terms()
        return [join_weight(terms, float(len(c))) for c in members], found_weight(terms, float(len(members)))
