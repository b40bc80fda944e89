"""Pairs of a kernel model and the oracle that means the same, for priors and families."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from covering import in_turn, marked
from oracle import families, priors
from oracle import vector_families as va
from oracle.beam import Beam

from streamdp import likelihoods as lk
from streamdp import priors as pr
from streamdp.beam.data.state import FREQUENT_POSTINGS, MAX_SLACK, TRIAL_NATS, Model
from streamdp.beam.search import BeamSearch

PRIORS = (
    "crp",
    "crp_retire",
    "crp_max",
    "pitman_yor",
    "pitman_yor_max",
    "uniform",
    "finite",
    "window",
    "window_seconds",
    "exponential",
    "exponential_seconds",
    "logistic",
)
SPARSE = (
    "flat",
    "flat_growing",
    "dirichlet",
    "dirichlet_document",
    "pitman_yor",
    "pitman_yor_fixed",
    "categorical",
)
DENSE = (
    "gaussian",
    "gaussian_forget",
    "gamma",
    "gamma_forget",
    "wishart",
    "wishart_forget",
    "bernoulli",
    "poisson",
    "sphere",
    "sphere_wide",
)
MIXED = ("mixed", "beside")
"""Categories and a text, alone or with a vector beside them. The kernels are those of categories."""
WORDS = 6
NORTH = (0.0, 1.0)
WIDE = 40
"""Dimensions in which most clusters are too far from a record to have a say."""


SHORT = 0.2, 0.6
"""b1 of texts of one word, and of two, under Pitman-Yor processes."""


class Problem(NamedTuple):
    """One model, for the kernels and as a naive beam."""

    model: Model
    likelihood: Any
    naive: Beam

    def search(self) -> BeamSearch:
        """A beam that has seen nothing."""
        beam = BeamSearch(self.model, self.likelihood)
        if self.likelihood.sparse:
            beam.ensure_words(WORDS + 10)
        return beam


TOGETHER = {
    "crp": ("pitman", "flat", "categorical", "mixed", "wishart"),
    "pitman": ("pitman", "wishart"),
    "uniform": ("dirichlet", "gamma"),
    "finite": ("pitman", "poisson"),
    "window": ("pitman", "wishart"),
    "exponential": ("pitman", "categorical", "beside", "gaussian", "sphere"),
    "logistic": ("pitman", "bernoulli"),
}
"""Priors and families, by the first words of their names, whose kernels stand for those of all pairs.

Those are chosen that tests of the engine compile as well.
"""


def prior_of(family: str) -> str:
    """A prior that a family is tested with."""
    return next(prior for prior, families in TOGETHER.items() if family.split("_")[0] in families)


def pairs(
    families: tuple[str, ...] = SPARSE + DENSE + MIXED, among: tuple[str, ...] = tuple(PRIORS)
) -> list[Any]:
    """All pairs of a prior and a family, as parameters of a test."""
    chosen: set[tuple[Any, ...]] = set()
    for prior, others in TOGETHER.items():
        for family in others:
            alike = [name for name in SPARSE + DENSE + MIXED if name.split("_")[0] == family]
            chosen |= set(in_turn([name for name in among if name.startswith(prior)], alike))
    return marked(itertools.product(among, families), chosen)


def shaped(family: str, record: Any) -> Any:
    """A record of the kind that a family is for, made from words or from two numbers."""
    if family == "categorical":
        return categories([w for w, _ in record])
    if family == "mixed":
        return mixed(record)
    if family == "beside":
        return mixed(record), beside(record)
    if family in SPARSE:
        return record
    x, y = record
    if family == "bernoulli":
        return [float(x > 0.0), float(y > 0.0)]
    if family == "poisson":
        return [float(math.floor(abs(4.0 * x))), float(math.floor(abs(2.0 * y)))]
    if family == "sphere":
        return [math.cos(x), math.sin(x)]
    if family == "sphere_wide":
        return wide([x, y])
    return record


def categories(words: list[int]) -> list[tuple[int, int]]:
    """A record of one or two fields, 1 with the values 2 and 3, and 4 with the values 5 to 7."""
    found = [0]
    for field, values in ((1, (2, 2, 3)), (4, (5, 6, 7))):
        own = [w - 3 * (field > 1) for w in words if (w < 3) == (field == 1)]
        found += [field, values[min(own)]] if own else []
    return [(w, 1) for w in found]


def mixed(record: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Categories made of a record's words, and, but where it begins with word 5, a text of all of them.

    The text is word 1; the fields are 2, with the values 3 and 4, and 5, with 6 to 8; words are 9 and more.
    """
    named = [(w + (w > 0), n) for w, n in categories([w for w, _ in record])]
    text = [(9 + w, n) for w, n in record]
    return named if record[0][0] == 5 else [*named, (1, sum(n for _, n in text)), *text]


def beside(record: list[tuple[int, int]]) -> list[float] | None:
    """A direction that follows from a record's words, near that of others like it; none for some."""
    angle = sum(w * n for w, n in record) / sum(n for _, n in record)
    return None if record[-1][0] == 2 else [math.cos(angle), math.sin(angle)]


def wide(point: list[float]) -> list[float]:
    """A unit vector that is near that of another point where the points are near."""
    rng = np.random.default_rng(40)
    waves = np.cos(rng.normal(size=(WIDE, 2)) @ np.array(point) + rng.uniform(0.0, 2.0 * math.pi, WIDE))
    found: list[float] = (waves / np.linalg.norm(waves)).tolist()
    return found


def _prior(name: str) -> tuple[pr.Prior, Any]:
    kind = name.split("_")[0]
    limits: dict[str, Any] = {}
    if name.endswith(("_retire", "_max")):
        limits = {"retire_after": 3} if name.endswith("_retire") else {"max_clusters": 2}
    if kind == "crp":
        return pr.CRP(0.8, **limits), priors.CRP(0.8, **limits)
    if kind == "pitman":
        return pr.PitmanYor(0.5, 0.3, **limits), priors.PitmanYor(0.5, 0.3, **limits)
    if kind == "uniform":
        return pr.Uniform(0.7), priors.Uniform(0.7)
    if kind == "finite":
        return pr.FiniteMixture(3, 1.2), priors.FiniteMixture(3, 1.2)
    unit: Any = "seconds" if name.endswith("_seconds") else "records"
    scale = {"window": 4.0, "exponential": 2.5, "logistic": 3.0}[kind]
    decay = {"window": pr.Window, "exponential": pr.Exponential, "logistic": pr.Logistic}[kind]
    naive = {"window": priors.Window, "exponential": priors.Exponential, "logistic": priors.Logistic}[kind]
    return (
        pr.DistanceDependent(0.9, decay(scale), unit, close_below=0.05),
        priors.DistanceDependent(0.9, naive(scale), unit, close_below=0.05),
    )


def _words(name: str) -> tuple[Any, Any, Any]:
    base = {"smoothing": 0.3, "discount": 0.2, "escape": 1.5}
    if name == "flat":
        naive = families.DirichletMultinomial(0.4, WORDS)
        return lk.DirichletMultinomial(0.4, WORDS), naive, families.NoBase()
    if name == "flat_growing":
        naive = families.DirichletMultinomial(0.4, None, 1.5)
        return lk.DirichletMultinomial(0.4, escape=1.5), naive, families.WordsSeen()
    if name.startswith("dirichlet"):
        beta = 1.3 if name == "dirichlet_document" else None
        family = lk.HierarchicalDirichlet(base_concentration=2.0, document_beta=beta, **base)
        learned = families.LearnedBase("tokens", 0.3, 1.5, 0.2)
        return family, families.HierarchicalDirichlet(2.0, beta), learned
    if name == "categorical":
        return lk.Categorical(0.4, 1.5), families.Categorical(0.4), families.FieldsSeen(1.5)
    if name in MIXED:
        text = lk.HierarchicalPitmanYor(1.5, 0.4, SHORT, **base)
        naive_text = families.HierarchicalPitmanYor(1.5, 0.4, SHORT)
        learned = families.LearnedBase("mixed", 0.3, 1.5, 0.2)
        naive_parts = families.Mixed(0.4, naive_text)
        if name == "mixed":
            return lk.Categorical(0.4, 1.5, text), naive_parts, families.PartsSeen(1.5, learned)
        sphere, naive_sphere = _vectors("sphere")
        return (
            lk.Product(lk.Categorical(0.4, 1.5, text), replace(sphere, power=0.6)),
            families.Beside(naive_parts, naive_sphere, 0.6),
            families.BesideSeen(1.5, learned),
        )
    p = np.arange(1.0, WORDS + 1.0)
    fixed = tuple((p / p.sum()).tolist()) if name == "pitman_yor_fixed" else None
    pitman_yor = lk.HierarchicalPitmanYor(1.5, 0.4, SHORT, base=fixed, **base)
    learned = families.LearnedBase("mixed", 0.3, 1.5, 0.2)
    return (
        pitman_yor,
        families.HierarchicalPitmanYor(1.5, 0.4, SHORT),
        learned if fixed is None else (families.FixedBase(list(fixed))),
    )


def _vectors(name: str) -> tuple[Any, Any]:
    kind, forget = name.split("_")[0], 0.9 if name.endswith("forget") else 1.0
    mean = (0.1, -0.2)
    if kind == "gaussian":
        family: Any = lk.Gaussian(2, variance=0.5, mean_variance=2.0, mean=mean, forget=forget)
        return family, families.Gaussian(0.5, 2.0, mean, forget)
    if kind == "gamma":
        family = lk.NormalInverseGamma(2, mean=mean, kappa=0.3, shape=1.7, scale=(0.6, 0.8), forget=forget)
        return family, families.NormalInverseGamma(mean, 0.3, 1.7, (0.6, 0.8), forget)
    if kind == "wishart":
        rows = ((0.8, 0.2), (0.2, 0.6))
        family = lk.NormalInverseWishart(2, mean=mean, kappa=0.3, degrees=3.5, scale=rows, forget=forget)
        return family, va.NormalInverseWishart(mean, 0.3, 3.5, np.array(rows), forget)
    if kind == "bernoulli":
        return lk.BetaBernoulli(2, 0.6, (0.7, 1.4)), va.BetaBernoulli(0.6, (0.7, 1.4))
    if kind == "poisson":
        return lk.GammaPoisson(2, (0.8, 1.3), 0.4), va.GammaPoisson((0.8, 1.3), 0.4)
    if name == "sphere_wide":
        common = wide([0.5, 0.5])
        family = lk.VonMisesFisher(WIDE, (30.0, 300.0, 1500.0), tuple(common), 12.0)
        return family, va.Directions([30.0, 300.0, 1500.0], tuple(common), 12.0)
    sphere = lk.VonMisesFisher(2, (2.0, 9.0), NORTH, 0.7)
    return sphere, va.VonMisesFisher([2.0, 9.0], NORTH, 0.7)


def pair(
    prior: str,
    family: str,
    width: int,
    slack: float = math.inf,
    max_undecided: int = 10_000,
    frequent: int = FREQUENT_POSTINGS,
    trial: float = TRIAL_NATS,
) -> Problem:
    """The kernels' model and the naive beam for one combination."""
    ours, naive_prior = _prior(prior)
    base: Any = families.NoBase()
    if family in SPARSE + MIXED:
        likelihood, naive_family, base = _words(family)
    else:
        likelihood, naive_family = _vectors(family)
    model = Model(
        prior=ours.terms(),
        family=likelihood.part_terms,
        beam=width,
        max_undecided=max_undecided,
        retire_after=getattr(ours, "retire_after", None) or 0,
        max_clusters=getattr(ours, "max_clusters", None) or 0,
        by_records=getattr(ours, "unit", "records") == "records",
        frequent=frequent,
        slack=min(slack, MAX_SLACK),
        trial=trial,
    )
    naive = Beam(naive_prior, naive_family, base, width, slack, max_undecided, trial)
    return Problem(model, likelihood, naive)
