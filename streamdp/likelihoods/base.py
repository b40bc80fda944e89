"""The contract of a likelihood family.

A family is a value: parameters, their checks, and what follows from them. Its statistics and kernels
stand in the same file, and serve the stream and the offline side alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from streamdp.likelihoods.neighbours import common, within

WITHIN = 0.2
"""Share of the variance of all vectors that is expected inside a cluster, where scales are automatic."""


LEAST = 1e-6
"""Share of the mean variance that a dimension has at least: one that never varies must not divide by 0."""


class Moments(NamedTuple):
    """What automatic parameters of families of vectors follow from.

    ``mean`` and ``variance`` of the vectors are of shape (D,); ``within`` is the covariance to be expected
    inside a cluster, of :func:`~streamdp.likelihoods.neighbours.within`. ``common``, of shape (), is the
    cosine to be expected between different clusters, of :func:`~streamdp.likelihoods.neighbours.common`.
    """

    mean: np.ndarray
    variance: np.ndarray
    within: np.ndarray
    common: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> Moments:
        """The moments of the rows; the variance is 1 where nothing varies at all."""
        found = vectors.var(axis=0)
        typical = float(found.mean())
        variance = np.maximum(found, LEAST * typical if typical > 0.0 else 1.0)
        return cls(vectors.mean(axis=0), variance, within(vectors, variance), np.array(common(vectors)))


class Likelihood(ABC):
    """A family of distributions over records with the parameters of a cluster integrated out."""

    sparse: ClassVar[bool]
    """Whether records are word counts (else: vectors)."""

    of_texts: ClassVar[bool] = False
    """Whether records mostly stand for texts, so that what they are about comes and goes as that of texts."""

    settings: ClassVar[Mapping[str, str]]
    """The settings that mean something to the family, and the parameter that each of them is."""

    drawn: ClassVar[tuple[str, ...]] = ()
    """Parameters that samplers draw anew where they are automatic."""

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """The family with these parameters, the others as the records suggest; by default, as they are."""
        return cls(**given)

    @abstractmethod
    def terms(self) -> Any:
        """What the stream's kernels read: a named tuple, whose class says which kernels are meant."""

    @abstractmethod
    def log_marginal(self, records: Sequence[Any], base: Any = None) -> float:
        """log H of records as one cluster, in nats; ``base`` is p_w by word where the family needs it."""
