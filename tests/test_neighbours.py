"""What neighbours tell of clusters not yet known, and the families of vectors that follow from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from algebra import empty, log_predictive
from feeds import feed, record
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.engine import Engine
from streamdp.likelihoods import NormalInverseGamma, NormalInverseWishart
from streamdp.likelihoods.base import (
    AMONG,
    ENOUGH,
    FULL,
    LEAST_WITHIN,
    PER,
    ROUNDS,
    SAMPLE,
    Moments,
    grain,
    within,
)
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood


def mixture(count: int, seed: int, dimension: int = 6, clusters: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Clusters that all lean the same way, each twice as long as they are apart."""
    rng = np.random.default_rng(seed)
    lean = np.eye(dimension)
    lean[0] = 8.0 / np.sqrt(dimension)
    centres = 3.0 * rng.normal(size=(clusters, dimension))
    truth = rng.integers(0, clusters, count)
    return centres[truth] + rng.normal(size=(count, dimension)) @ lean.T, truth


def by_hand(vectors: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The docstring, step by step, with an explicit inverse."""
    if len(vectors) > SAMPLE:
        vectors = np.array([vectors[i * len(vectors) // SAMPLE] for i in range(SAMPLE)])
    n, d = vectors.shape
    near = max(1, int(np.ceil(n / PER)))
    unit = vectors / np.sqrt(variance)
    least = np.maximum(grain(vectors) / variance, LEAST_WITHIN)
    metric = np.eye(d)
    scatter = np.eye(d)
    for _ in range(ROUNDS):
        gaps = []
        for i in range(n):
            far = [np.inf if i == j else (unit[i] - unit[j]) @ metric @ (unit[i] - unit[j]) for j in range(n)]
            gaps += [unit[i] - unit[j] for j in sorted(range(n), key=far.__getitem__)[:near]]
        raw = np.mean([np.outer(gap, gap) for gap in gaps], axis=0) / 2.0
        off = len(gaps) / (len(gaps) + d)
        scatter = np.where(np.eye(d) == 1.0, raw + np.diag(least), off * raw)
        metric = np.linalg.inv(scatter)
    root = np.diag(np.sqrt(variance))
    if d < ENOUGH:
        scatter *= gap_among_near(ENOUGH) / gap_among_near(d)
    return root @ scatter @ root


def gap_among_near(d: int) -> float:
    """Mean square by dimension of N(0, 2) in the ball that holds AMONG, were its density that of its peak."""
    volume = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
    radius = (AMONG / (volume * (4 * math.pi) ** (-d / 2))) ** (1 / d)
    r = np.linspace(0.0, radius, 100_001)
    return float(np.trapezoid(r ** (d + 1), r) / np.trapezoid(r ** (d - 1), r)) / (2 * d)


@pytest.mark.parametrize(("count", "dimension"), [(2, 3), (30, 1), (81, 4), (200, 7), (311, 2)])
def test_it_is_what_it_says(count: int, dimension: int) -> None:
    vectors, _ = mixture(count, seed=count, dimension=dimension)
    moments = Moments.of(vectors)
    np.testing.assert_allclose(moments.within, by_hand(vectors, moments.variance), rtol=1e-8)


def test_it_sees_how_clusters_lean_and_not_where_they_lie() -> None:
    vectors, truth = mixture(200, seed=3)
    found = Moments.of(vectors).within
    true = np.cov((vectors - [vectors[truth == k].mean(axis=0) for k in truth]).T)
    overall = np.cov(vectors.T)

    def gap(a: np.ndarray) -> float:
        """Affine-invariant distance to the truth (Förstner and Moonen 1999), sizes aside."""
        logs = np.log(np.linalg.eigvals(np.linalg.solve(true, a)).real)
        return float(np.std(logs))

    assert gap(found) < 0.5 * min(gap(overall), gap(np.diag(np.diagonal(overall))))
    assert 0.2 < np.exp(np.linalg.slogdet(np.linalg.solve(true, found))[1] / 6.0) < 1.2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 90), st.integers(1, 6), st.data())
def test_units_and_origins_do_not_matter(seed: int, count: int, dimension: int, data: Any) -> None:
    vectors, _ = mixture(count, seed, dimension)
    powers = data.draw(st.lists(st.integers(-20, 20), min_size=dimension, max_size=dimension))
    units = np.exp2(powers)
    variance = vectors.var(axis=0)
    before, after = within(vectors, variance), within(vectors * units, np.square(units) * variance)
    # powers of two change no digit, but numpy may sum in another order what lies elsewhere in memory
    np.testing.assert_allclose(after, np.outer(units, units) * before, rtol=1e-12)
    np.testing.assert_allclose(within(vectors + 64.0, variance), before, rtol=1e-6, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 45), st.integers(1, 5), st.integers(0, 10**6))
def test_whatever_comes_there_is_a_covariance(count: int, dimension: int, seed: int) -> None:
    """Of few vectors, equal ones, and dimensions in which nothing varies."""
    units = [0.0, 1.0, 1e3, 1e-3, 7.0][:dimension]
    vectors = np.random.default_rng(seed).integers(0, 2, (count, dimension)) * np.array(units)
    moments = Moments.of(vectors)
    np.testing.assert_array_equal(moments.within, moments.within.T)
    unit = moments.within / np.sqrt(np.outer(moments.variance, moments.variance))
    assert np.linalg.eigvalsh(unit).min() >= 0.5 * LEAST_WITHIN
    family = build_likelihood(Settings(), moments)
    assert np.isfinite(log_predictive(family, empty(family), vectors[0]))


def test_the_order_of_dimensions_does_not_matter_beyond_a_hundred() -> None:
    vectors = np.random.default_rng(0).normal(size=(60, FULL + 1))
    moments, turned = Moments.of(vectors), Moments.of(vectors[:, ::-1])
    assert moments.within.shape == (FULL + 1,)
    np.testing.assert_allclose(turned.within[::-1], moments.within, rtol=1e-9)


def test_what_vectors_mean_without_settings() -> None:
    vectors, _ = mixture(50, seed=1)
    moments = Moments.of(vectors)
    family = build_likelihood(Settings(), moments)
    assert isinstance(family, NormalInverseWishart)
    assert (family.kappa, family.nu, family.forget) == (0.2, 6 + 1 + 20, 0.99)
    expected = family.prior_scale / (family.nu - 6 - 1)
    np.testing.assert_allclose(expected, moments.within, rtol=1e-12)
    np.testing.assert_allclose(family.mean, vectors.mean(axis=0), rtol=1e-12)


def test_settings_that_choose_the_family_of_vectors() -> None:
    few = Moments.of(mixture(50, seed=1)[0])
    many = Moments.of(np.random.default_rng(0).normal(size=(60, FULL + 1)))
    assert isinstance(build_likelihood(Settings(), many), NormalInverseGamma)
    assert isinstance(build_likelihood(Settings(shape=3.0), few), NormalInverseGamma)
    assert isinstance(build_likelihood(Settings(forget=0.9, kappa=1.0), few), NormalInverseWishart)
    given_scale = build_likelihood(Settings(scale=3.0), few)
    assert isinstance(given_scale, NormalInverseWishart)
    assert (given_scale.nu, given_scale.scale) == (8.0, 3.0)
    asked = build_likelihood(Settings(likelihood="normal-inverse-wishart"), many)
    assert isinstance(asked, NormalInverseWishart)
    np.testing.assert_allclose(np.diagonal(asked.prior_scale) / 20.0, many.within)


def labels_of(vectors: np.ndarray, **given: Any) -> list[int]:
    engine = Engine(Settings(beam=2, **given))
    told = feed(engine, [record(row.tolist(), i + 1) for i, row in enumerate(vectors)])
    told.add(engine.finish())
    return [line.cluster for line in told.first()]


def test_an_engine_without_settings_finds_clusters_that_lean() -> None:
    vectors, truth = mixture(600, seed=3)
    found = labels_of(vectors)
    assert agreement(found, truth).ari > 0.9
    # in other units and from another origin
    assert agreement(labels_of(vectors * [3.0, 1.0, 0.5, 1000.0, 2.0, 1.0]), found).ari > 0.99
    assert agreement(labels_of(vectors + 100.0), found).ari > 0.99
