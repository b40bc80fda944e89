"""Partition priors: what is believed of a clustering before any record is read.

A prior is a dataclass, terms that kernels read, and the weights of joining and founding. What it can do it
says by attributes, so that nobody asks for its class.
"""

from streamdp.priors.base import Prior
from streamdp.priors.crp import CRP
from streamdp.priors.decays import Exponential, Logistic, Window
from streamdp.priors.distance_dependent import DistanceDependent
from streamdp.priors.finite_mixture import FiniteMixture
from streamdp.priors.pitman_yor import PitmanYor
from streamdp.priors.uniform import Uniform

__all__ = [
    "CRP",
    "DistanceDependent",
    "Exponential",
    "FiniteMixture",
    "Logistic",
    "PitmanYor",
    "Prior",
    "Uniform",
    "Window",
    "by_distance",
    "by_order",
]


def by_distance(prior: Prior) -> DistanceDependent | None:
    """The prior itself where records link to earlier ones by their distance, else None.

    Examples
    --------
    >>> by_distance(DistanceDependent()).unit, by_distance(CRP())
    ('records', None)
    """
    return prior if isinstance(prior, DistanceDependent) else None


def by_order(prior: Prior) -> Uniform | None:
    """The prior itself where nothing but the places of the clusters' first members matters, else None.

    Examples
    --------
    >>> by_order(Uniform(2.0)).concentration, by_order(CRP())
    (2.0, None)
    """
    return prior if isinstance(prior, Uniform) else None
