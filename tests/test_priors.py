"""Every prior against the contract, the oracle and what is known of its clusterings."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from algebra import weights
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import enumeration as en
from oracle import priors as pr

from streamdp import priors
from streamdp.kernels.jit import entry
from streamdp.priors import (
    CRP,
    DistanceDependent,
    Exponential,
    FiniteMixture,
    Logistic,
    PitmanYor,
    Prior,
    Uniform,
    Window,
)
from streamdp.priors.base import SizedPrior, found_weight, join_weight
from streamdp.priors.decays import decay_weight
from streamdp.settings.registry import DECAYS, PRIORS, find

TIMES = [0.0, 0.7, 0.7, 1.9, 4.0, 4.2]
PARTITIONS = en.partitions(len(TIMES))
CASES: dict[str, tuple[Prior, Any]] = {
    "crp": (CRP(1.3), pr.CRP(1.3)),
    "crp default": (CRP(), pr.CRP(1.0)),
    "pitman-yor": (PitmanYor(0.7, 0.4), pr.PitmanYor(0.7, 0.4)),
    "pitman-yor without discount": (PitmanYor(0.7, 0.0), pr.PitmanYor(0.7, 0.0)),
    "uniform": (Uniform(0.9), pr.Uniform(0.9)),
    "finite": (FiniteMixture(3, 1.7), pr.FiniteMixture(3, 1.7)),
    "finite of many": (FiniteMixture(50, 2.5), pr.FiniteMixture(50, 2.5)),
}
for ours, theirs in [
    (Window(2.0), pr.Window(2.0)),
    (Exponential(1.5), pr.Exponential(1.5)),
    (Logistic(1.5), pr.Logistic(1.5)),
]:
    for unit in ("seconds", "records"):
        CASES[f"{type(ours).__name__} over {unit}"] = (
            DistanceDependent(0.8, ours, unit, close_below=0.0),
            pr.DistanceDependent(0.8, theirs, unit, close_below=0.0),
        )
every_prior = pytest.mark.parametrize(("prior", "oracle"), CASES.values(), ids=CASES.keys())

few = settings(max_examples=40, deadline=None)
labellings = st.lists(st.integers(0, 4), max_size=12)
gaps = st.lists(st.floats(0.0, 3.0), min_size=12, max_size=12)


def members_of(labels: list[int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    for i, label in enumerate(labels):
        members.setdefault(label, []).append(i)
    return members


@every_prior
def test_probabilities_equal_the_oracle(prior: Prior, oracle: Any) -> None:
    for z in PARTITIONS:
        expected = en.log_prior(z, TIMES, oracle)
        assert prior.log_probability(z, TIMES) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@every_prior
def test_weights_equal_the_oracle(prior: Prior, oracle: Any) -> None:
    for z in PARTITIONS[::7]:
        members = list(members_of(list(z[:-1])).values())
        now = len(z) - 1
        joins, new = weights(prior, members, now, TIMES)
        their_joins, their_new = oracle.weights(members, len(members), now, TIMES[now], TIMES)
        assert joins == pytest.approx(their_joins, rel=1e-14)
        assert new == their_new


@every_prior
def test_probabilities_sum_to_one(prior: Prior, oracle: Any) -> None:
    assert math.fsum(math.exp(prior.log_probability(z, TIMES)) for z in PARTITIONS) == pytest.approx(1.0)


@every_prior
@few
@given(labels=labellings, steps=gaps)
def test_probability_is_the_product_of_the_weights(
    prior: Prior, oracle: Any, labels: list[int], steps: list[float]
) -> None:
    times = np.cumsum(steps)[: len(labels)].tolist()
    expected = 0.0
    for i, label in enumerate(labels):
        members = members_of(labels[:i])
        joins, new = weights(prior, list(members.values()), i, times)
        weight = joins[list(members).index(label)] if label in members else new
        if not weight:
            expected = -math.inf
            break
        expected += math.log(weight / (math.fsum(joins) + new))
    assert prior.log_probability(labels, times) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_prior
@few
@given(labels=labellings)
def test_names_of_the_labels_mean_nothing(prior: Prior, oracle: Any, labels: list[int]) -> None:
    times = [float(i) for i in range(len(labels))]
    renamed = [97 - 3 * label for label in labels]
    assert prior.log_probability(labels, times) == prior.log_probability(renamed, times)
    assert prior.log_probability(np.array(labels, dtype=int), times) == prior.log_probability(labels, times)


@every_prior
def test_the_order_matters_just_when_said(prior: Prior, oracle: Any) -> None:
    times = [float(i) for i in range(5)]
    orders = {prior.log_probability(z, times) for z in ([0, 0, 0, 1, 2], [0, 1, 2, 0, 0])}
    assert (max(orders) - min(orders) < 1e-12) == prior.exchangeable


@every_prior
def test_is_a_value(prior: Prior, oracle: Any) -> None:
    assert pickle.loads(pickle.dumps(prior)) == prior
    assert hash(prior) == hash(pickle.loads(pickle.dumps(prior)))
    assert prior.log_probability([], []) == 0.0


def test_every_prior_and_decay_is_among_the_cases() -> None:
    assert {find(PRIORS, name) for name in PRIORS} == {type(prior) for prior, _ in CASES.values()}
    decays = {type(prior.decay) for prior, _ in CASES.values() if isinstance(prior, DistanceDependent)}
    assert {find(DECAYS, name) for name in DECAYS} == decays


@entry
def compiled_weights(prior: Any, size: float, clusters: float, out: np.ndarray) -> None:
    out[0] = join_weight(prior, size)
    out[1] = found_weight(prior, clusters)


@entry
def compiled_found(prior: Any, clusters: float) -> float:
    return found_weight(prior, clusters)


@entry
def compiled_weight(decay: Any, distance: float) -> float:
    return decay_weight(decay, distance)


@every_prior
def test_kernels_weigh_as_the_oracle_does(prior: Prior, oracle: Any) -> None:
    terms, out = prior.terms(), np.zeros(2)
    for clusters in range(1, 4):
        members = [list(range(k, 6, clusters)) for k in range(clusters)]
        joins, new = oracle.weights(members, clusters, 6, 6.0, [float(i) for i in range(7)])
        assert compiled_found(terms, float(clusters)) == pytest.approx(new, rel=1e-14)
        assert found_weight(terms, float(clusters)) == pytest.approx(new, rel=1e-14)
        if isinstance(prior, SizedPrior):
            for cluster, expected in zip(members, joins, strict=True):
                compiled_weights(terms, float(len(cluster)), float(clusters), out)
                assert out == pytest.approx([expected, new], rel=1e-14)
                assert join_weight(terms, float(len(cluster))) == pytest.approx(expected, rel=1e-14)


def test_a_kernel_of_another_prior_is_refused() -> None:
    with pytest.raises(TypeError, match="join_weight is not implemented for MemorylessTerms"):
        join_weight(DistanceDependent().terms(), 1.0)
    with pytest.raises(ValueError, match="join_weight is implemented for PitmanYorTerms already"):
        join_weight.of(type(CRP().terms()))(lambda prior, size: size)


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (CRP(2.0, retire_after=7), (2.0, 0.0)),
        (PitmanYor(2.0, 0.3, max_clusters=9), (2.0, 0.3)),
        (Uniform(2.0), (2.0,)),
        (FiniteMixture(4, 2.0), (0.5, 4.0)),
        (DistanceDependent(2.0, Logistic(3.0), "seconds", close_below=0.01), (2.0, (3.0,), 0.01)),
        (DistanceDependent(2.0, Window(3.0)), (2.0, (3.0,), 1e-3)),
    ],
)
def test_terms_hold_the_parameters(prior: Prior, expected: tuple[Any, ...]) -> None:
    assert prior.terms() == expected
    assert type(prior.terms()) is not tuple


DISTANCES = [0.0, 1e-9, 2.4, 2.5, 2.6, 40.0, 747.0, 1e6, 1e300]


@pytest.mark.parametrize("name", ["Window", "Exponential", "Logistic"])
def test_decays_equal_the_oracle_and_never_overflow(name: str) -> None:
    decay, oracle = getattr(priors, name)(2.5), getattr(pr, name)(2.5)
    expected = [oracle(d) for d in DISTANCES]
    with np.errstate(all="raise"):
        assert [decay(d) for d in DISTANCES] == pytest.approx(expected, rel=1e-14, abs=0.0)
        assert decay(np.array(DISTANCES)).tolist() == pytest.approx(expected, rel=1e-14, abs=0.0)
    assert [compiled_weight(decay.terms(), d) for d in DISTANCES] == decay(np.array(DISTANCES)).tolist()
    assert isinstance(decay(3.0), float)
    assert decay(np.zeros((2, 3))).shape == (2, 3)
    assert decay(decay.reach * 1.01) == 0.0


@pytest.mark.parametrize("decay", [Window(2.0), Exponential(0.1), Logistic(2.0)])
def test_earlier_weight_is_the_sum_over_all_earlier(decay: Window | Exponential | Logistic) -> None:
    rng = np.random.default_rng(4)
    positions = np.cumsum(rng.exponential(3.0, 400) * (rng.random(400) < 0.7))
    positions[200:] += 2000.0  # beyond the reach of any of them
    expected = [decay(p - positions[:i]).sum() for i, p in enumerate(positions)]
    assert decay.earlier(positions) == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert decay.earlier(positions[:0]).shape == (0,)


def test_joining_without_weight_is_impossible() -> None:
    assert DistanceDependent(1.0, Window(2.0)).log_probability([0, 1, 0]) == -math.inf
    assert DistanceDependent(1.0, Exponential(1.0), "seconds").log_probability([0, 0], [0, 800]) == -math.inf


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (None, "times are needed"),
        ([0.0], "1 times for 2 records"),
        ([1.0, 0.0], "decrease"),
        ([0.0, math.nan], "finite"),
    ],
)
def test_unusable_times_are_refused(times: list[float] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DistanceDependent(1.0, Window(1.0), "seconds").log_probability([0, 0], times)


@pytest.mark.parametrize("make", [CRP, Uniform, lambda **kw: PitmanYor(discount=0.2, **kw)])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"concentration": 0.0}, "concentration must be a positive number, not 0.0"),
        ({"concentration": -1.0}, "concentration"),
        ({"concentration": math.inf}, "concentration"),
        ({"concentration": math.nan}, "concentration"),
        ({"concentration": 1.0, "retire_after": 0}, "retire_after must be an integer of at least 1"),
        ({"concentration": 1.0, "retire_after": 2.5}, "retire_after"),
        ({"concentration": 1.0, "max_clusters": -3}, "max_clusters"),
        ({"concentration": 1.0, "max_clusters": True}, "max_clusters"),
    ],
)
def test_invalid_parameters_are_refused(make: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((0,), "components must be an integer of at least 1"),
        ((2.5,), "components"),
        ((3, 0.0), "concentration must be a positive number"),
    ],
)
def test_invalid_components_are_refused(parameters: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FiniteMixture(*parameters)


def test_more_clusters_than_components_are_impossible() -> None:
    assert FiniteMixture(2).log_probability([0, 1, 2]) == -math.inf
    assert weights(FiniteMixture(2), [[0], [1]], 2, ())[1] == 0.0
    assert FiniteMixture(1).log_probability([5, 5, 5]) == 0.0


@pytest.mark.parametrize("discount", [-0.1, 1.0, math.nan])
def test_invalid_discounts_are_refused(discount: float) -> None:
    with pytest.raises(ValueError, match="discount must be at least 0 and below 1"):
        PitmanYor(1.0, discount)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"concentration": 0.0}, "concentration"),
        ({"decay": 3.0}, "decay must be a Decay"),
        ({"unit": "days"}, "unit must be 'records' or 'seconds', not 'days'"),
        ({"close_below": 1.0}, "close_below"),
        ({"close_below": -1e-9}, "close_below"),
        ({"close_below": math.nan}, "close_below"),
    ],
)
def test_invalid_distance_dependence_is_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DistanceDependent(**{"concentration": 1.0, "decay": Window(1.0), **parameters})


@pytest.mark.parametrize("decay", [Window, Exponential, Logistic])
@pytest.mark.parametrize("scale", [0.0, -2.0, math.inf, math.nan])
def test_invalid_scales_are_refused(decay: Any, scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be a positive number"):
        decay(scale)


@few
@given(labels=labellings)
def test_distance_dependent_without_decay_is_the_crp(labels: list[int]) -> None:
    flat = DistanceDependent(1.7, Window(1e9))
    expected = CRP(1.7).log_probability(labels)
    assert flat.log_probability(labels) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def mean_clusters(prior: Prior, n: int, runs: int) -> tuple[float, float]:
    """Mean and standard error of the number of clusters of n records drawn by the prior's weights."""
    rng = random.Random(11)
    found = []
    for _ in range(runs):
        members: list[list[int]] = []
        for i in range(n):
            joins, new = weights(prior, members, i, ())
            (k,) = rng.choices(range(len(joins) + 1), [*joins, new])
            if k == len(members):
                members.append([])
            members[k].append(i)
        found.append(len(members))
    return float(np.mean(found)), float(np.std(found) / math.sqrt(runs))


def pitman_yor_mean(n: int, alpha: float, d: float) -> float:
    """E[K_N] = (alpha/d) ((alpha + d)_N / (alpha)_N - 1), Pitman 2002."""
    ratio = math.lgamma(alpha + d + n) - math.lgamma(alpha + d) - math.lgamma(alpha + n) + math.lgamma(alpha)
    return alpha / d * (math.exp(ratio) - 1.0)


def test_the_uniform_process_of_three_records_depends_on_their_order() -> None:
    shares = [math.exp(Uniform(1.0).log_probability(z)) for z in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0))]
    assert shares == pytest.approx([1 / 4, 1 / 4, 1 / 6, 1 / 6])
    assert math.exp(Uniform(1.0).log_probability((0, 1, 2))) == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (CRP(3.0), sum(3.0 / (3.0 + i) for i in range(1000))),
        (PitmanYor(1.0, 0.5), pitman_yor_mean(1000, 1.0, 0.5)),
        (Uniform(1.0), 43.8),
        (DistanceDependent(3.0, Window(1e9)), sum(3.0 / (3.0 + i) for i in range(1000))),
    ],
    ids=["crp", "pitman-yor", "uniform", "distance-dependent without decay"],
)
def test_expected_number_of_clusters(prior: Prior, expected: float) -> None:
    runs = 10 if isinstance(prior, DistanceDependent) else 60
    mean, error = mean_clusters(prior, 1000, runs)
    assert abs(mean - expected) < 3.0 * error + 0.1
