"""Likelihood families: what the records of one cluster have in common.

A family is a dataclass of parameters, terms that kernels read, and kernels: a predictive, and how a cluster's
row changes. A family of records with several parts is their product.
"""

from streamdp.likelihoods.base import Likelihood
from streamdp.likelihoods.beta_bernoulli import BetaBernoulli
from streamdp.likelihoods.categorical import Categorical
from streamdp.likelihoods.dirichlet_multinomial import DirichletMultinomial
from streamdp.likelihoods.gamma_poisson import GammaPoisson
from streamdp.likelihoods.gaussian import Gaussian
from streamdp.likelihoods.hierarchical_dirichlet import HierarchicalDirichlet
from streamdp.likelihoods.hierarchical_pitman_yor import HierarchicalPitmanYor
from streamdp.likelihoods.normal_inverse_gamma import NormalInverseGamma
from streamdp.likelihoods.normal_inverse_wishart import NormalInverseWishart
from streamdp.likelihoods.product import Product
from streamdp.likelihoods.rows import Row
from streamdp.likelihoods.vectors import VectorFamily
from streamdp.likelihoods.von_mises_fisher import VonMisesFisher
from streamdp.likelihoods.words import BagFamily, WordFamily

__all__ = [
    "BagFamily",
    "BetaBernoulli",
    "Categorical",
    "DirichletMultinomial",
    "GammaPoisson",
    "Gaussian",
    "HierarchicalDirichlet",
    "HierarchicalPitmanYor",
    "Likelihood",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "Product",
    "Row",
    "VectorFamily",
    "VonMisesFisher",
    "WordFamily",
]
