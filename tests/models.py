"""Pairs of a kernel model and the oracle that means the same, for every prior and family."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oracle import families, priors
from oracle.beam import Beam

from streamdp.beam import model as m
from streamdp.beam.model import Model

PRIORS = (
    "crp",
    "crp_retire",
    "crp_max",
    "pitman_yor",
    "pitman_yor_max",
    "uniform",
    "window",
    "window_seconds",
    "exponential",
    "exponential_seconds",
    "logistic",
)
SPARSE = ("flat", "flat_growing", "dirichlet", "dirichlet_document", "pitman_yor", "pitman_yor_fixed")
DENSE = ("gaussian", "gaussian_forget", "normal_inverse_gamma", "normal_inverse_gamma_forget")
WORDS = 6


def _prior(name: str, ints: np.ndarray, floats: np.ndarray) -> Any:
    floats[m.CLOSE_BELOW] = 0.05
    kind = name.split("_")[0]
    seconds = name.endswith("_seconds")
    ints[m.UNIT] = m.SECONDS if seconds else m.RECORDS
    unit = "seconds" if seconds else "records"
    if kind == "crp":
        ints[m.PRIOR], floats[m.CONCENTRATION] = m.CRP, 0.8
        ints[m.RETIRE_AFTER] = 3 if name == "crp_retire" else 0
        ints[m.MAX_CLUSTERS] = 2 if name == "crp_max" else 0
        return priors.CRP(
            0.8, retire_after=ints[m.RETIRE_AFTER] or None, max_clusters=ints[m.MAX_CLUSTERS] or None
        )
    if kind == "pitman":
        ints[m.PRIOR], floats[m.CONCENTRATION], floats[m.DISCOUNT] = m.PITMAN_YOR, 0.5, 0.3
        ints[m.MAX_CLUSTERS] = 3 if name == "pitman_yor_max" else 0
        return priors.PitmanYor(0.5, 0.3, max_clusters=ints[m.MAX_CLUSTERS] or None)
    if kind == "uniform":
        ints[m.PRIOR], floats[m.CONCENTRATION] = m.UNIFORM, 0.7
        return priors.Uniform(0.7)
    ints[m.PRIOR], floats[m.CONCENTRATION] = m.DISTANCE_DEPENDENT, 0.9
    scale = {"window": 4.0, "exponential": 2.5, "logistic": 3.0}[kind]
    floats[m.DECAY_SCALE] = scale
    ints[m.DECAY] = {"window": m.WINDOW, "exponential": m.EXPONENTIAL, "logistic": m.LOGISTIC}[kind]
    decay = {"window": priors.Window, "exponential": priors.Exponential, "logistic": priors.Logistic}[kind](
        scale
    )
    return priors.DistanceDependent(0.9, decay, unit, close_below=0.05)


def _family(name: str, ints: np.ndarray, floats: np.ndarray) -> tuple[Any, Any, dict[str, np.ndarray]]:
    floats[m.FORGET] = 0.9 if name.endswith("forget") else 1.0
    floats[m.SMOOTHING], floats[m.ESCAPE], floats[m.BASE_DISCOUNT] = 0.3, 1.5, 0.2
    if name.startswith("flat"):
        ints[m.FAMILY], floats[m.BASE_CONCENTRATION] = m.FLAT, 0.4
        growing = name == "flat_growing"
        ints[m.VOCABULARY] = 0 if growing else WORDS
        base = families.VocabularySize() if growing else families.NoBase()
        return families.DirichletMultinomial(0.4, None if growing else WORDS), base, {}
    if name in ("gaussian", "gaussian_forget"):
        ints[m.FAMILY], floats[m.VARIANCE], floats[m.MEAN_VARIANCE] = m.GAUSSIAN, 0.5, 2.0
        family = families.Gaussian(0.5, 2.0, [0.1, -0.2], floats[m.FORGET])
        return family, families.NoBase(), {"location": np.array([0.1, -0.2])}
    if name.startswith("normal"):
        ints[m.FAMILY], floats[m.KAPPA], floats[m.SHAPE] = m.NORMAL_INVERSE_GAMMA, 0.3, 1.7
        family = families.NormalInverseGamma([0.1, -0.2], 0.3, 1.7, [0.6, 0.8], floats[m.FORGET])
        arrays = {"location": np.array([0.1, -0.2]), "scale": np.array([0.6, 0.8])}
        return family, families.NoBase(), arrays
    ints[m.FAMILY] = m.INTERPOLATED
    if name.startswith("dirichlet"):
        floats[m.BASE_CONCENTRATION], ints[m.BASE] = 2.0, m.TOKENS
        beta = 1.3 if name == "dirichlet_document" else None
        floats[m.INVERSE_DOCUMENT_BETA] = 0.0 if beta is None else 1.0 / beta
        return families.HierarchicalDirichlet(2.0, beta), families.LearnedBase("tokens", 0.3, 1.5, 0.2), {}
    floats[m.BASE_CONCENTRATION], floats[m.WORD_DISCOUNT] = 1.5, 0.4
    family = families.HierarchicalPitmanYor(1.5, 0.4)
    if name == "pitman_yor_fixed":
        p = np.arange(1.0, WORDS + 1.0)
        p /= p.sum()
        ints[m.BASE] = m.FIXED
        return family, families.FixedBase(p.tolist()), {"base": p}
    ints[m.BASE] = m.TABLES
    return family, families.LearnedBase("tables", 0.3, 1.5, 0.2), {}


def pair(
    prior: str,
    family: str,
    width: int,
    slack: float = math.inf,
    temper: float = 1.0,
    max_undecided: int = 10_000,
    frequent: int = m.FREQUENT_POSTINGS,
) -> tuple[Model, Beam]:
    """The kernel's model and the naive beam for one combination."""
    ints, floats = np.zeros(11, np.int64), np.zeros(17)
    ints[m.BEAM], ints[m.MAX_UNDECIDED], ints[m.FREQUENT] = width, max_undecided, frequent
    floats[m.TEMPER], floats[m.SLACK] = temper, min(slack, m.MAX_SLACK)
    naive_prior = _prior(prior, ints, floats)
    naive_family, base, arrays = _family(family, ints, floats)
    empty = np.zeros(0)
    kernel_model = Model(
        ints, floats, arrays.get("location", empty), arrays.get("scale", empty), arrays.get("base", empty)
    )
    return kernel_model, Beam(naive_prior, naive_family, base, width, slack, temper, max_undecided)
