"""The contract of a partition prior.

A prior is a value: parameters, their checks, and what follows from them. Its file holds a named tuple of
what kernels read (its terms), and implements for it two functions of scalars, the weight of joining a cluster
of n records and that of founding one beside K; or, where the weight depends on how far back the records of a
cluster lie, a decay. Stream, samplers, A* and evaluation all work from these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from streamdp.kernels.checks import positive, whole_or_none
from streamdp.kernels.jit import generic

LIMITS = {"retire_after": "retire_after", "max_clusters": "max_clusters"}
"""The settings of :class:`Retiring`."""


@generic
def join_weight(prior: Any, size: float) -> float:
    """Weight of joining a cluster of ``size`` records."""
    raise NotImplementedError


@generic
def found_weight(prior: Any, clusters: float) -> float:
    """Weight of founding a cluster beside ``clusters`` that there are, or ever were."""
    raise NotImplementedError


class Weights(NamedTuple):
    """A prior by size as tables for N records.

    Where it is exchangeable, log p(z) is the sum of ``found[0 .. K - 1]``, and over clusters of
    ``grown[n_k]``, less ``norm``.
    """

    join: np.ndarray  # float64[N + 1] log weight of joining a cluster of that size
    grown: np.ndarray  # float64[N + 1] sum of ``join`` from 1 to below that size
    found: np.ndarray  # float64[N + 1] log weight of founding one beside that many
    norm: np.ndarray  # float64[1] log of the product of the normalisers of N records


class Prior(ABC):
    """A distribution over clusterings of a sequence of records.

    What a prior is, samplers ask of its attributes: they know no class of priors.
    """

    exchangeable: ClassVar[bool]
    """Whether the probability of a clustering does not depend on the order of the records."""

    by_size: ClassVar[bool] = False
    """Whether weights depend on the sizes of clusters and their number alone: :meth:`tables` has them."""

    ewens: ClassVar[bool] = False
    """Whether cluster sizes follow Ewens's sampling formula, as those of the Chinese restaurant process."""

    all_or_none: ClassVar[bool] = False
    """Whether the likeliest way to go on is that all records join the largest cluster, or none joins any."""

    settings: ClassVar[Mapping[str, str]]
    """The settings that mean something to the prior, and the parameter that each of them is."""

    kind: ClassVar[Any]
    """The class of the terms, where they are numbers that the prior has under the same names."""

    drawn: ClassVar[tuple[str, ...]] = ("concentration",)
    """Parameters that samplers draw anew."""

    concentration: float

    def __post_init__(self) -> None:
        positive("concentration", self.concentration)

    @property
    def most_clusters(self) -> int | None:
        """How many clusters there can be; None where there is no limit."""
        return None

    @classmethod
    def automatic(cls, given: Mapping[str, Any], sparse: bool) -> Self:
        """The prior with these settings, the others as fit words (``sparse``) or vectors.

        Raises ValueError.
        """
        return cls(**{cls.settings[name]: value for name, value in given.items()})

    def terms(self) -> Any:
        """What kernels read: a named tuple, whose class says which kernels are meant."""
        return self.kind(*(float(getattr(self, name)) for name in self.kind._fields))

    @abstractmethod
    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """log p(z) of a whole clustering, in nats.

        ``labels[i]`` names the cluster of record i; ``times`` (seconds, non-decreasing) matter only to
        priors that depend on distance in event time.
        """

    def link_weights(self, distances: np.ndarray, n: int) -> np.ndarray:
        """What links between n records weigh at these distances; ``ValueError`` where there are none."""
        raise ValueError(f"distances are for the distance-dependent prior, not for {type(self).__name__}")

    def tables(self, n: int) -> Weights:
        """The weights of a prior by size, for N = ``n`` records.

        What they say of a whole clustering holds only where the prior is exchangeable.
        """
        terms, sizes = self.terms(), np.arange(n + 1, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            join = np.log(np.maximum(join_weight(terms, sizes) + 0.0 * sizes, 0.0))
            found = np.log(np.maximum(found_weight(terms, sizes) + 0.0 * sizes, 0.0))
        grown = np.zeros(n + 1)
        np.cumsum(join[1:n], out=grown[2:])
        # the sum of all weights: as exchangeable as the rest, it is the same for one cluster of all records
        total = np.array([found_weight(terms, 0.0)] + [0.0] * (n - 1))
        total[1:] = join_weight(terms, sizes[1:n]) + found_weight(terms, 1.0)
        return Weights(join, grown, found, np.array([np.log(total).sum()]))


class SizedPrior(Prior):
    """A prior whose weights depend on how many records a cluster has, and on how many clusters there are."""

    by_size = True


@dataclass(frozen=True, kw_only=True)
class Retiring(SizedPrior):
    """Limits that keep a stream's memory bounded under a prior that forgets nothing.

    Both are approximations made by the stream alone: neither enters
    :meth:`log_probability`, which speaks of the prior itself.

    Parameters
    ----------
    retire_after
        Retire a cluster once this many records and one more have come since its last member:
        an integer >= 1; None: never.
    max_clusters
        Most open clusters of the best hypothesis, the least recently joined retire first: an
        integer >= 1; None: no limit.
    """

    retire_after: int | None = None
    max_clusters: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_or_none("retire_after", self.retire_after)
        whole_or_none("max_clusters", self.max_clusters)


def cluster_sizes(labels: Sequence[int]) -> list[int]:
    """Sizes of the clusters, by first member."""
    return list(Counter(labels).values())
