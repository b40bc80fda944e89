"""A mixture of a known number of components."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from streamdp.kernels.checks import whole
from streamdp.priors.base import SizedPrior, cluster_sizes, found_weight, join_weight


class FiniteMixtureTerms(NamedTuple):
    """What kernels read: alpha / K0, and K0."""

    share: float
    components: float


@dataclass(frozen=True)
class FiniteMixture(SizedPrior):
    """Component weights are Dirichlet(concentration / components); empty components do not count.

    Parameters
    ----------
    components
        K0, most clusters there can be, an integer >= 1.
    concentration
        alpha, prior records in all components together, > 0.

    Examples
    --------
    >>> round(FiniteMixture(components=2).log_probability([0, 0, 1]), 4)
    -2.0794

    Notes
    -----
    Green and Richardson 2001; the Chinese restaurant process is the limit of many components.
    """

    components: int
    concentration: float = 1.0

    kind = FiniteMixtureTerms
    exchangeable = True
    settings = {"components": "components", "concentration": "concentration"}  # noqa: RUF012

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("components", self.components)

    @classmethod
    def automatic(cls, given: Mapping[str, Any], sparse: bool) -> Self:
        """ValueError where the number of components is not given."""
        if "components" not in given:
            raise ValueError("components must be given with finite-mixture: how many clusters at most")
        return super().automatic(given, sparse)

    @property
    def most_clusters(self) -> int:
        """K0."""
        return self.components

    @property
    def share(self) -> float:
        """alpha / K0."""
        return self.concentration / self.components

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """K0! / (K0 - K)! prod_k (alpha / K0)_{n_k} / alpha^(N), in nats; (x)_m is the rising factorial."""
        sizes = cluster_sizes(labels)
        if len(sizes) > self.components:
            return -math.inf
        a, alpha = self.share, self.concentration
        named = math.lgamma(self.components + 1) - math.lgamma(self.components - len(sizes) + 1)
        rising = math.lgamma(alpha + len(labels)) - math.lgamma(alpha)
        return named + math.fsum(math.lgamma(a + n) - math.lgamma(a) for n in sizes) - rising


@join_weight.of(FiniteMixtureTerms)
def _join(prior: FiniteMixtureTerms, size: float) -> float:
    return size + prior.share


@found_weight.of(FiniteMixtureTerms)
def _found(prior: FiniteMixtureTerms, clusters: float) -> float:
    # each of the empty components
    return (prior.components - clusters) * prior.share
