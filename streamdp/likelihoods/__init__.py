"""Likelihood families: what the records of one cluster have in common."""

from streamdp.likelihoods.base import Likelihood
from streamdp.likelihoods.dirichlet_multinomial import DirichletMultinomial
from streamdp.likelihoods.gaussian import Gaussian
from streamdp.likelihoods.hierarchical_dirichlet import HierarchicalDirichlet
from streamdp.likelihoods.hierarchical_pitman_yor import HierarchicalPitmanYor
from streamdp.likelihoods.normal_inverse_gamma import NormalInverseGamma
from streamdp.likelihoods.statistics import VectorStatistics, WordStatistics

__all__ = [
    "DirichletMultinomial",
    "Gaussian",
    "HierarchicalDirichlet",
    "HierarchicalPitmanYor",
    "Likelihood",
    "NormalInverseGamma",
    "VectorStatistics",
    "WordStatistics",
]
