"""From settings to a model: which prior and likelihood are meant, and the defaults of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamdp.beam.model import (
    BEAM,
    FREQUENT,
    FREQUENT_POSTINGS,
    MAX_SLACK,
    MAX_UNDECIDED,
    SLACK,
    TEMPER,
    Model,
)
from streamdp.likelihoods import (
    BetaBernoulli,
    DirichletMultinomial,
    GammaPoisson,
    Gaussian,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
    NormalInverseGamma,
    NormalInverseWishart,
    VonMisesFisher,
)
from streamdp.likelihoods.base import Likelihood
from streamdp.priors import CRP, DistanceDependent, Exponential, Logistic, PitmanYor, Uniform, Window
from streamdp.priors.base import Prior
from streamdp.settings import Settings
from streamdp.settings.load import ConfigError

SPARSE_FAMILIES = ("dirichlet-multinomial", "hierarchical-dirichlet", "hierarchical-pitman-yor")
OFFLINE_FAMILIES = ("normal-inverse-wishart", "beta-bernoulli", "gamma-poisson", "von-mises-fisher")
"""Those that the stream's beam does not serve."""
SHARED_BASE = ("base_smoothing", "base_discount", "base_escape")
VECTOR_SETTINGS = ("variance", "mean_variance", "kappa", "shape", "scale", "forget", "warmup")
WORD_SETTINGS = (
    "base_concentration",
    "word_discount",
    "beta",
    "document_beta",
    "vocabulary_size",
    *SHARED_BASE,
)
SLACK_NATS = 10.0
WARMUP = 200
"""Vectors from which location and scale are learned where they are automatic."""
WITHIN = 0.2
"""Share of the variance seen in the warm-up that is expected inside a cluster."""


def is_sparse(settings: Settings) -> bool | None:
    """Whether records are word counts; None where the first record decides."""
    if settings.likelihood == "auto":
        if any(getattr(settings, name) is not None for name in VECTOR_SETTINGS):
            return False
        if any(getattr(settings, name) is not None for name in WORD_SETTINGS):
            return True
        return None
    return settings.likelihood in SPARSE_FAMILIES


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _refuse_unused(settings: Settings, names: Sequence[str], why: str) -> None:
    """A setting that would silently do nothing is an error."""
    for name in names:
        if getattr(settings, name) is not None:
            raise ConfigError(f"{name} has no meaning with {why}: leave it out, or choose another")


def build_prior(settings: Settings, sparse: bool) -> Prior:
    """The prior that the settings mean. Raises ConfigError."""
    kind = "distance-dependent" if settings.prior == "auto" else settings.prior
    retire = {"retire_after": settings.retire_after, "max_clusters": settings.max_clusters}
    if kind != "distance-dependent":
        _refuse_unused(settings, ("decay", "decay_scale"), f"the {kind} prior")
    else:
        _refuse_unused(settings, ("retire_after", "max_clusters"), "the distance-dependent prior")
    if kind != "pitman-yor":
        _refuse_unused(settings, ("discount",), f"the {kind} prior")
    if kind == "crp":
        return CRP(_or(settings.concentration, 1.0), **retire)
    if kind == "pitman-yor":
        return PitmanYor(_or(settings.concentration, 1.0), _or(settings.discount, 0.25), **retire)
    if kind == "uniform":
        return Uniform(_or(settings.concentration, 1.0), **retire)
    decays: dict[str, type[Window | Exponential | Logistic]] = {
        "window": Window,
        "exponential": Exponential,
        "logistic": Logistic,
    }
    scale = settings.decay_scale
    if scale is None:
        if settings.distance == "seconds":
            raise ConfigError(
                "decay_scale must be given when distance is seconds: only you know the pace of the stream"
            )
        scale = 400.0 if sparse else 2000.0
    decay = decays[_or(settings.decay, "exponential")](scale)
    concentration = _or(settings.concentration, 60.0 if sparse else 1.0)
    return DistanceDependent(concentration, decay, unit=settings.distance, close_below=settings.close_below)


def build_words(settings: Settings) -> Likelihood[Any, Any]:
    """The likelihood of word counts that the settings mean. Raises ConfigError."""
    kind = "hierarchical-pitman-yor" if settings.likelihood == "auto" else settings.likelihood
    _refuse_unused(settings, VECTOR_SETTINGS, f"the {kind} likelihood")
    base = {
        "smoothing": _or(settings.base_smoothing, 0.0),
        "discount": _or(settings.base_discount, 0.35),
        "escape": _or(settings.base_escape, 1000.0),
    }
    if kind == "dirichlet-multinomial":
        unused = ("base_concentration", "word_discount", "document_beta", *SHARED_BASE)
        _refuse_unused(settings, unused, f"the {kind} likelihood")
        return DirichletMultinomial(_or(settings.beta, 0.03), settings.vocabulary_size)
    _refuse_unused(settings, ("beta", "vocabulary_size"), f"the {kind} likelihood")
    if kind == "hierarchical-dirichlet":
        _refuse_unused(settings, ("word_discount",), f"the {kind} likelihood")
        return HierarchicalDirichlet(
            base_concentration=_or(settings.base_concentration, 100.0),
            document_beta=settings.document_beta,
            **base,
        )
    _refuse_unused(settings, ("document_beta",), f"the {kind} likelihood")
    return HierarchicalPitmanYor(
        base_concentration=_or(settings.base_concentration, 30.0),
        word_discount=_or(settings.word_discount, 0.6),
        **base,
    )


def warmup_length(settings: Settings) -> int:
    """How many vectors are held back at the start, to learn location and scale from."""
    if settings.likelihood == "gaussian" and settings.variance is not None:
        return _or(settings.warmup, 0)  # type: ignore[no-any-return]
    return _or(settings.warmup, WARMUP)  # type: ignore[no-any-return]


def build_vectors(settings: Settings, mean: np.ndarray, variance: np.ndarray) -> Likelihood[Any, Any]:
    """The likelihood of vectors; mean and variance are those of the warm-up, each of shape (D,)."""
    kind = "normal-inverse-gamma" if settings.likelihood == "auto" else settings.likelihood
    _refuse_unused(settings, WORD_SETTINGS, f"the {kind} likelihood")
    dimension = mean.shape[0]
    typical = float(variance.mean())
    if kind == "gaussian":
        _refuse_unused(settings, ("kappa", "shape", "scale"), f"the {kind} likelihood")
        s2 = _or(settings.variance, WITHIN * typical)
        return Gaussian(
            dimension=dimension,
            variance=s2,
            mean_variance=_or(settings.mean_variance, typical),
            mean=tuple(mean.tolist()),
            forget=_or(settings.forget, 1.0),
        )
    _refuse_unused(settings, ("variance", "mean_variance"), f"the {kind} likelihood")
    if kind in OFFLINE_FAMILIES:
        return _build_offline(settings, kind, mean, variance)
    shape = _or(settings.shape, 2.0)
    # b / (a - 1) is the prior mean of a cluster's variance
    learned = tuple((max(shape - 1.0, 0.5) * WITHIN * variance).tolist())
    scale = learned if settings.scale is None else settings.scale
    return NormalInverseGamma(
        dimension=dimension,
        mean=tuple(mean.tolist()),
        kappa=_or(settings.kappa, WITHIN),
        shape=shape,
        scale=scale,
        forget=_or(settings.forget, 0.99),
    )


def _build_offline(
    settings: Settings, kind: str, mean: np.ndarray, variance: np.ndarray
) -> Likelihood[Any, Any]:
    """A family of vectors that only finite sets are clustered with."""
    dimension = mean.shape[0]
    wishart = kind == "normal-inverse-wishart"
    unused = ("shape", "forget") if wishart else ("kappa", "shape", "scale", "forget")
    _refuse_unused(settings, unused, f"the {kind} likelihood")
    if wishart:
        # Psi / (nu - D - 1) is the prior mean of a cluster's covariance, and nu - D - 1 is 1
        scale = tuple((WITHIN * variance).tolist()) if settings.scale is None else settings.scale
        kappa = _or(settings.kappa, WITHIN)
        return NormalInverseWishart(dimension, mean=tuple(mean.tolist()), kappa=kappa, scale=scale)
    if kind == "beta-bernoulli":
        return BetaBernoulli(dimension)
    if kind == "gamma-poisson":
        return GammaPoisson(dimension, rate=tuple((1.0 / np.maximum(mean, 1e-3)).tolist()))
    return VonMisesFisher(dimension)


def build_model(settings: Settings, prior: Prior, likelihood: Likelihood[Any, Any]) -> Model:
    """What the kernels read."""
    ints, floats = np.zeros(11, np.int64), np.zeros(17)
    ints[BEAM] = settings.beam
    ints[MAX_UNDECIDED] = settings.max_undecided
    ints[FREQUENT] = FREQUENT_POSTINGS
    floats[TEMPER] = settings.temper
    floats[SLACK] = min(_or(settings.slack, SLACK_NATS), MAX_SLACK)
    prior.configure(ints, floats)
    arrays = likelihood.configure(ints, floats)
    empty = np.zeros(0)
    return Model(
        ints, floats, arrays.get("location", empty), arrays.get("scale", empty), arrays.get("base", empty)
    )
