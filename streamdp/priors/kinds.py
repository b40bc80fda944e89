"""Priors whose weights depend on more than sizes: by distance, or by the order of clusters."""

from __future__ import annotations

from streamdp.priors.base import Prior
from streamdp.priors.distance_dependent import DistanceDependent
from streamdp.priors.uniform import Uniform


def by_distance(prior: Prior) -> DistanceDependent | None:
    """The prior itself where records link to earlier ones by their distance, else None."""
    return prior if isinstance(prior, DistanceDependent) else None


def by_order(prior: Prior) -> Uniform | None:
    """The prior itself where nothing but the places of the clusters' first members matters, else None."""
    return prior if isinstance(prior, Uniform) else None
