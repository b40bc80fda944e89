"""Partition priors: what is believed of a clustering before any record is read."""

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
]
