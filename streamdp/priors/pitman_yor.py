"""The Pitman-Yor process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamdp.kernels.checks import discount_in_range
from streamdp.priors.base import LIMITS, Retiring, cluster_sizes, found_weight, join_weight


class PitmanYorTerms(NamedTuple):
    """What kernels read, of the Chinese restaurant process, too."""

    concentration: float
    discount: float


@dataclass(frozen=True)
class PitmanYor(Retiring):
    """Cluster sizes follow a power law: every cluster gives a little of its weight to new ones.

    Parameters
    ----------
    concentration
        Weight of a new cluster before there is any, > 0.
    discount
        What each cluster gives away, in [0, 1): N records make about N^discount clusters; 0 is the
        Chinese restaurant process.
    retire_after, max_clusters
        See :class:`~streamdp.priors.base.Retiring`.

    Examples
    --------
    >>> round(PitmanYor(concentration=1.0, discount=0.5).log_probability([0, 0, 1]), 4)
    -2.0794

    Notes
    -----
    Pitman and Yor 1997; Pitman 2002, section 3.2, theorem 3.2.
    """

    concentration: float = 1.0
    discount: float = 0.25

    kind = PitmanYorTerms
    exchangeable = True
    all_or_none = True
    settings = {"concentration": "concentration", "discount": "discount", **LIMITS}  # noqa: RUF012
    drawn = ("concentration", "discount")

    def __post_init__(self) -> None:
        super().__post_init__()
        discount_in_range("discount", self.discount)

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """prod_{k<K} (a + k d) prod_k (1 - d)_{n_k - 1} / (a + 1)_{N-1}, in nats.

        (x)_m is the rising factorial, a the concentration, d the discount.
        """
        if len(labels) == 0:
            return 0.0
        alpha, d = self.concentration, self.discount
        sizes = cluster_sizes(labels)
        founding = math.fsum(math.log(alpha + k * d) for k in range(1, len(sizes)))
        joining = math.fsum(math.lgamma(n - d) for n in sizes) - len(sizes) * math.lgamma(1.0 - d)
        return founding + joining - (math.lgamma(alpha + len(labels)) - math.lgamma(alpha + 1.0))


@join_weight.of(PitmanYorTerms)
def _join(prior: PitmanYorTerms, size: float) -> float:
    return size - prior.discount


@found_weight.of(PitmanYorTerms)
def _found(prior: PitmanYorTerms, clusters: float) -> float:
    return prior.concentration + clusters * prior.discount
