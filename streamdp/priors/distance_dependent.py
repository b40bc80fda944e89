"""The sequential distance-dependent Chinese restaurant process.

Blei and Frazier 2011, section 2; here links go back in time only, and p(z) is summed over them.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from streamdp.priors.base import Prior, found_weight
from streamdp.priors.decays import Decay, Exponential

MOST = 20_000
"""Records between which all distances may be given."""

Unit = Literal["records", "seconds"]


class DistanceDependentTerms(NamedTuple):
    """What kernels read; ``decay`` is the terms of a decay. Weights are summed anew for every record."""

    concentration: float
    decay: Any
    close_below: float


class SharpTerms(DistanceDependentTerms):
    """Of a decay that is 1 or 0: weights are counts."""

    __slots__ = ()


class MemorylessTerms(DistanceDependentTerms):
    """Of a decay under which all weights fade by one factor."""

    __slots__ = ()


@dataclass(frozen=True)
class DistanceDependent(Prior):
    """Recent company counts: a record links to one before it by their distance, or to itself.

    Parameters
    ----------
    concentration
        Weight of a new cluster, > 0, against f(distance) for each earlier record.
    decay
        f: :class:`~streamdp.priors.decays.Window`, ``Exponential`` or ``Logistic``.
    unit
        What distance is measured in: "records" or "seconds" of event time.
    close_below
        The stream closes a cluster when its weight falls below this, in [0, 1). An approximation that
        bounds memory under the smooth decays (a window closes clusters exactly, at weight 0); it
        does not enter :meth:`log_probability`.

    Examples
    --------
    >>> from streamdp.priors import Window
    >>> round(DistanceDependent(decay=Window(2.0), concentration=1.0).log_probability([0, 0, 1]), 4)
    -1.3863

    Notes
    -----
    Blei and Frazier 2011, section 2, restricted to links to earlier records. Summed over the links,
    cluster k is joined with weight W_k = sum of f over its members, so clusterings are searched, not
    links.
    """

    concentration: float = 1.0
    decay: Decay = Exponential(2000.0)  # noqa: RUF009
    unit: Unit = "records"
    close_below: float = 1e-3

    exchangeable = False
    settings = {  # noqa: RUF012
        "concentration": "concentration",
        "distance": "unit",
        "close_below": "close_below",
        "decay": "decay",
        "decay_scale": "decay",
    }
    drawn = ("concentration", "scale")

    @classmethod
    def automatic(cls, given: Mapping[str, Any], sparse: bool) -> Self:
        """An exponential decay over 400 texts or 2,000 vectors; ValueError for one over unknown seconds.

        ``given["decay"]`` is the class of another one.
        """
        scale = given.get("decay_scale")
        if scale is None:
            if given["distance"] == "seconds":
                raise ValueError(
                    "decay_scale must be given when distance is seconds: only you know the pace of the stream"
                )
            scale = 400.0 if sparse else 2000.0
        decay = given.get("decay", Exponential)(scale)
        concentration = given.get("concentration", 60.0 if sparse else 1.0)
        return cls(concentration, decay, unit=given["distance"], close_below=given["close_below"])

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.decay, Decay):
            raise ValueError(f"decay must be a Decay, such as Window or Exponential, not {self.decay!r}")
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit must be 'records' or 'seconds', not {self.unit!r}")
        if not 0.0 <= self.close_below < 1.0:
            raise ValueError(f"close_below must be at least 0 and below 1, not {self.close_below!r}")

    @property
    def least(self) -> float:
        """What an open cluster of a stream has weighed at all times, or it would have closed."""
        return 1.0 if self.decay.sharp else self.close_below

    def terms(self) -> DistanceDependentTerms:
        """What kernels read."""
        kind = DistanceDependentTerms
        if self.decay.sharp or self.decay.memoryless:
            kind = SharpTerms if self.decay.sharp else MemorylessTerms
        return kind(float(self.concentration), self.decay.terms(), float(self.close_below))

    def log_probability(
        self, labels: Sequence[int], times: Sequence[float] | None = None, *, by_hand: bool = False
    ) -> float:
        """Product over records of W_k, or the concentration, over their sum; in nats.

        -inf when a record joins a cluster that has no weight left. O(N) under a window or an exponential
        decay; under a logistic one O(N) times the records within its reach.

        Parameters
        ----------
        labels
            The cluster of every record.
        times
            Event times in seconds, non-decreasing; needed when the unit is "seconds".
        by_hand
            As for :meth:`log_terms`.
        """
        nothing, positions = np.zeros(len(labels)), self.positions(len(labels), times)
        return float(self.log_terms(labels, positions, nothing, nothing, 0, by_hand=by_hand).sum())

    def log_terms(
        self,
        labels: Sequence[int],
        positions: np.ndarray,
        own: np.ndarray,
        total: np.ndarray,
        held: int,
        *,
        by_hand: bool = False,
    ) -> np.ndarray:
        """log of the share that each record's choice had, in nats, shape (N,); -inf where it had none.

        A record's depends on its own cluster alone: that of a change is the sum over the clusters concerned.

        Parameters
        ----------
        labels
            The cluster of every record; those below ``held`` have earlier records.
        positions
            In the unit of distance, non-decreasing, shape (N,).
        own, total
            The weight of the earlier records in the cluster of each record, and in all clusters, (N,).
        held
            How many clusters have earlier records.
        by_hand
            Whether a record that no earlier one of its cluster reaches was put there by hand: it has the
            weight of a founder.
        """
        clusters: dict[int, list[int]] = {}
        for i, label in enumerate(labels):
            clusters.setdefault(label, []).append(i)
        chosen = own.copy()
        for label, cluster in clusters.items():
            chosen[cluster] += self.decay.earlier(positions[cluster])
            if label >= held:
                chosen[cluster[0]] = self.concentration
        if by_hand:
            chosen[chosen == 0.0] = self.concentration
        norm = self.concentration + total + self.decay.earlier(positions)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chosen) - np.log(norm))

    def link_weights(self, distances: np.ndarray, n: int) -> np.ndarray:
        """f(distance) of each record to each earlier one, shape (N, N), 0 above the diagonal and on it.

        For distances of any kind, d(i, j) where j < i (Feng, Blei and Frazier). ``ValueError`` where these
        are none.
        """
        if distances.shape != (n, n):
            raise ValueError(f"distances must have shape ({n}, {n}), not {distances.shape}")
        if n > MOST:
            raise ValueError(f"distances between more than {MOST:,} records take too much memory")
        lower = np.tril(np.asarray(distances, np.float64), -1)
        if not (np.isfinite(lower).all() and (lower >= 0.0).all()):
            raise ValueError("distances must be finite and at least 0")
        return np.tril(self.decay(lower), -1)

    def log_probability_by(self, link_weights: np.ndarray, labels: np.ndarray) -> float:
        """log p(z) under these weights of links, in nats, the links summed out."""
        together = labels[:, np.newaxis] == labels[np.newaxis, :]
        chosen = np.where(together, link_weights, 0.0).sum(axis=1)
        founds = np.tril(together, -1).sum(axis=1) == 0
        chosen[founds] = self.concentration
        if (chosen == 0.0).any():
            return -math.inf
        return float(np.log(chosen).sum() - np.log(self.concentration + link_weights.sum(axis=1)).sum())

    def positions(self, n: int, times: Sequence[float] | None) -> np.ndarray:
        """Where n records lie, in the unit of distance; ``times`` as for :meth:`log_probability`."""
        if self.unit == "records":
            return np.arange(n, dtype=np.float64)
        if times is None:
            raise ValueError("times are needed: the prior measures distance in seconds of event time")
        positions = np.asarray(times, dtype=np.float64)
        if positions.shape != (n,):
            raise ValueError(f"{len(times)} times for {n} records")
        if not (np.isfinite(positions).all() and (np.diff(positions) >= 0.0).all()):
            raise ValueError("times must be finite and must not decrease")
        return positions


@found_weight.of(DistanceDependentTerms)
def _found(prior: DistanceDependentTerms, clusters: float) -> float:
    return prior.concentration
