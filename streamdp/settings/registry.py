"""Families, priors and decays by the names that users write, and where each is found.

A new one is a line here and a file of its own. What is not here can still be named, as MODULE:CLASS.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

CATEGORICAL = "categorical"
"""The likelihood of records whose fields are categories."""

LIKELIHOODS = {
    "dirichlet-multinomial": "streamdp.likelihoods:DirichletMultinomial",
    "hierarchical-dirichlet": "streamdp.likelihoods:HierarchicalDirichlet",
    "hierarchical-pitman-yor": "streamdp.likelihoods:HierarchicalPitmanYor",
    CATEGORICAL: "streamdp.likelihoods:Categorical",
    "gaussian": "streamdp.likelihoods:Gaussian",
    "normal-inverse-gamma": "streamdp.likelihoods:NormalInverseGamma",
    "normal-inverse-wishart": "streamdp.likelihoods:NormalInverseWishart",
    "beta-bernoulli": "streamdp.likelihoods:BetaBernoulli",
    "gamma-poisson": "streamdp.likelihoods:GammaPoisson",
    "von-mises-fisher": "streamdp.likelihoods:VonMisesFisher",
}
TEMPLATE = "template"
"""The likelihood of lines of a log, which has a search of its own (``streamdp.lines``)."""

PRIORS = {
    "crp": "streamdp.priors:CRP",
    "pitman-yor": "streamdp.priors:PitmanYor",
    "uniform": "streamdp.priors:Uniform",
    "distance-dependent": "streamdp.priors:DistanceDependent",
    "finite-mixture": "streamdp.priors:FiniteMixture",
}
DECAYS = {
    "window": "streamdp.priors:Window",
    "exponential": "streamdp.priors:Exponential",
    "logistic": "streamdp.priors:Logistic",
}


def find(known: Mapping[str, str], name: str) -> Any:
    """The class that a name means, maybe in the working folder. ValueError where it cannot be imported."""
    if name not in known and "" not in sys.path:
        sys.path.append("")  # last: no file there takes the place of a package
    module, _, attribute = known.get(name, name).partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name} cannot be imported: {error}") from error
