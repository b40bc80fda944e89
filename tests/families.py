"""Every likelihood family with its oracle, records for it, and ways to compare what was counted."""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import numpy as np
import pytest
from algebra import WordStatistics, add, empty, remove
from hypothesis import settings
from hypothesis import strategies as st
from oracle import families as fa
from oracle import vector_families as va

from streamdp.likelihoods import (
    BetaBernoulli,
    Categorical,
    DirichletMultinomial,
    GammaPoisson,
    Gaussian,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
    Likelihood,
    NormalInverseGamma,
    NormalInverseWishart,
    VonMisesFisher,
    WordFamily,
)
from streamdp.likelihoods.words import WORD_SPACE

Records = st.SearchStrategy[Any]

P = (0.4, 0.3, 0.15, 0.1, 0.05)
V = len(P)
BASE = dict(enumerate(P))
OF_FIELDS = (0.0, -2.0, 1.5, 0.5, -3.0, 0.6, 1.2, 1.2)
"""A base of categories: a field, word 1, with two values, and another, word 4, with three."""
ROWS = ((2.0, 0.7, -0.3), (0.7, 1.0, 0.2), (-0.3, 0.2, 0.5))
NORTH = (0.0, 0.6, 0.8)


class Case(NamedTuple):
    """A family, its oracle, and which records it takes.

    ``exchangeable``: whether the predictive is a ratio of marginals. ``reversible``: whether records can
    be removed. ``exact``: how close to its oracle it is to be. ``unseen``: how many words like word V there
    are, which no record holds, besides those of the records.
    """

    family: Likelihood
    oracle: fa.Family
    records: Records
    base: Any = None
    oracle_base: Any = None
    exchangeable: bool = True
    reversible: bool = True
    exact: float = 1e-9
    unseen: int = 0

    @property
    def by_token(self) -> bool:
        """Whether records are words, each of which has a probability."""
        return isinstance(self.family, WordFamily)

    @property
    def sparse(self) -> bool:
        """Whether records are word counts."""
        return self.family.sparse

    def encoded(self, record: Any) -> Any:
        """A drawn record as the family takes it."""
        if not self.sparse:
            return np.array(record)
        return np.array([w for w, _ in record], int), np.array([c for _, c in record], int)

    def of(self, records: Any) -> Any:
        """Statistics of these records."""
        return statistics_of(self.family, [self.encoded(record) for record in records])


def statistics_of(family: Likelihood, records: Any) -> Any:
    """Statistics of these records, as the family takes them."""
    statistics = empty(family)
    for x in records:
        add(family, statistics, x if isinstance(x, tuple) else np.array(x))
    return statistics


def _unit(values: list[float]) -> list[float]:
    return (np.array(values) / np.linalg.norm(values)).tolist()


def _vectors(size: int, element: st.SearchStrategy[Any]) -> Records:
    return st.lists(element, min_size=size, max_size=size)


_real = st.floats(-5.0, 5.0).map(lambda v: round(v, 3))
_words = st.dictionaries(st.integers(0, V - 1), st.integers(1, 3), max_size=V).map(lambda d: list(d.items()))
_values = st.tuples(st.sampled_from([(), (1, 2), (1, 3)]), st.sampled_from([(), (4, 5), (4, 6), (4, 7)]))
_categories = _values.filter(any).map(lambda pairs: [(w, 1) for w in (0, *pairs[0], *pairs[1])])
_points = _vectors(2, _real)
_circle = st.floats(0.0, 2.0 * math.pi).map(lambda u: [math.cos(u), math.sin(u)])
_sphere = _vectors(3, _real).filter(any).map(_unit)

CASES = {
    "dirichlet-multinomial": Case(DirichletMultinomial(0.3, V), fa.DirichletMultinomial(0.3, V), _words),
    "growing vocabulary": Case(
        DirichletMultinomial(0.3, escape=0.7),
        fa.DirichletMultinomial(0.3, None, 0.7),
        _words,
        {0, 1, 3},
        {0, 1, 3},
        unseen=WORD_SPACE - V,
    ),
    "hierarchical dirichlet": Case(
        HierarchicalDirichlet(4.0), fa.HierarchicalDirichlet(4.0), _words, np.array(P), BASE
    ),
    "fixed base": Case(
        HierarchicalDirichlet(4.0, base=P), fa.HierarchicalDirichlet(4.0), _words, oracle_base=BASE
    ),
    "document level": Case(
        HierarchicalDirichlet(4.0, 2.5), fa.HierarchicalDirichlet(4.0, 2.5), _words, BASE, BASE, False
    ),
    "hierarchical pitman-yor": Case(
        HierarchicalPitmanYor(3.0, 0.6), fa.HierarchicalPitmanYor(3.0, 0.6), _words, BASE, BASE, False
    ),
    "categorical": Case(Categorical(0.3), fa.Categorical(0.3), _categories, OF_FIELDS, OF_FIELDS),
    "gaussian": Case(
        Gaussian(2, variance=0.7, mean_variance=2.0, mean=(0.3, -1.0)),
        fa.Gaussian(0.7, 2.0, (0.3, -1.0)),
        _points,
    ),
    "gaussian forgetting": Case(
        Gaussian(2, variance=0.7, mean_variance=2.0, mean=0.3, forget=0.9),
        fa.Gaussian(0.7, 2.0, 0.3, 0.9),
        _points,
        exchangeable=False,
        reversible=False,
    ),
    "normal inverse gamma": Case(
        NormalInverseGamma(2, mean=0.3, kappa=0.2, shape=1.7, scale=(1.0, 0.5)),
        fa.NormalInverseGamma(0.3, 0.2, 1.7, (1.0, 0.5)),
        _points,
    ),
    "normal inverse gamma forgetting": Case(
        NormalInverseGamma(2, kappa=0.2, shape=1.7, forget=0.8),
        fa.NormalInverseGamma(0.0, 0.2, 1.7, 1.0, 0.8),
        _points,
        exchangeable=False,
        reversible=False,
    ),
    "wishart": Case(
        NormalInverseWishart(3, mean=(0.3, -1.0, 0.5), kappa=0.2, degrees=2.5, scale=ROWS),
        va.NormalInverseWishart((0.3, -1.0, 0.5), 0.2, 2.5, np.array(ROWS)),
        _vectors(3, _real),
        exact=1e-8,
    ),
    "wishart diagonal": Case(
        NormalInverseWishart(2, scale=(1.0, 0.5)),
        va.NormalInverseWishart(0.0, 0.1, 4.0, np.diag([1.0, 0.5])),
        _points,
        exact=1e-8,
    ),
    "wishart forgetting": Case(
        NormalInverseWishart(2, mean=0.3, kappa=0.2, scale=2.0, forget=0.8),
        va.NormalInverseWishart(0.3, 0.2, 4.0, 2.0 * np.eye(2), 0.8),
        _points,
        exchangeable=False,
        reversible=False,
        exact=1e-8,
    ),
    "bernoulli": Case(
        BetaBernoulli(3, (0.5, 1.0, 2.0), 0.7),
        va.BetaBernoulli((0.5, 1.0, 2.0), 0.7),
        _vectors(3, st.integers(0, 1)),
    ),
    "poisson": Case(
        GammaPoisson(2, 1.5, (0.2, 2.0)), va.GammaPoisson(1.5, (0.2, 2.0)), _vectors(2, st.integers(0, 9))
    ),
    "circle": Case(VonMisesFisher(2, 3.0), va.VonMisesFisher([3.0]), _circle, exact=1e-8),
    "sphere": Case(
        VonMisesFisher(3, (1.0, 6.0), NORTH, 1.7),
        va.VonMisesFisher([1.0, 6.0], NORTH, 1.7),
        _sphere,
        exact=1e-8,
    ),
    "powered-sphere": Case(
        VonMisesFisher(3, (1.0, 6.0), NORTH, 1.7, 0.3),
        va.VonMisesFisher([1.0, 6.0], NORTH, 1.7, 0.3),
        _sphere,
        exact=1e-8,
    ),
}

few = settings(max_examples=30, deadline=None)


def over(**wanted: bool) -> Any:
    """Run a check over every case, or over those of which this is true."""
    chosen = {
        name: case
        for name, case in CASES.items()
        if all(getattr(case, trait) == value for trait, value in wanted.items())
    }
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen.keys())


CLOSE = {"total": 1e-12, "scatter": 1e-8, "factor": 1e-8}
"""How close statistics of vectors must be; 1e-9 for the others."""


def assert_equal(found: Any, expected: Any) -> None:
    """Two clusters count the same."""
    if isinstance(expected, WordStatistics):
        assert found == expected
        return
    assert found.parts == expected.parts
    assert found.count == expected.count
    for part in expected.parts:
        assert found[part] == pytest.approx(expected[part], rel=1e-8, abs=CLOSE.get(part, 1e-9)), part


CHURN = [20_000, pytest.param(100_000, marks=pytest.mark.slow)]
"""Additions, and as many removals, after which nothing may have drifted: almost all leave 200 times."""


def churn(family: Likelihood, statistics: Any, records: list[Any], times: int) -> list[int]:
    """Make so many random additions and as many removals; return which records are left."""
    rng = random.Random(7)
    held: list[int] = []
    for _ in range(times):
        held.append(rng.randrange(len(records)))
        add(family, statistics, records[held[-1]])
        if rng.random() < 0.01:  # now and then almost all leave, so that a little is left of much
            while len(held) > 2:
                remove(family, statistics, records[held.pop(rng.randrange(len(held)))])
        assert held
    return held
