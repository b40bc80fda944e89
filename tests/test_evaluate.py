"""Diagnostics of chains and point estimates of clusterings, against definitions written plainly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import NormalDist, mean, median, stdev, variance
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.offline.diagnostics import (
    Diagnosis,
    autocorrelation,
    diagnose,
    effective_sample_size,
    r_hat,
)
from streamdp.offline.similarity import (
    LIMIT,
    Loss,
    point_estimate,
    similarity_matrix,
)


def variation_of_information(a: Any, b: Any) -> float:
    """Variation of information between two clusterings, in nats: from 0 when equal up to log N."""
    both, in_a, in_b = cells(a, b)
    return float(np.sum(both * (np.log(in_a / both) + np.log(in_b / both))) / np.sum(both))


def binder_distance(a: Any, b: Any) -> int:
    """How many of the N (N - 1) / 2 pairs one clustering has together and the other apart."""
    both, in_a, in_b = cells(a, b)
    # A record is apart in one from those it is with only in the other; each pair is met from both sides.
    return int(np.sum(both * (in_a + in_b - 2 * both))) // 2


def cells(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records in each non-empty cell of the table of clusters by clusters, and in its two clusters."""
    left, right = (np.unique(labels, return_inverse=True)[1] for labels in (list(a), list(b)))
    if len(left) != len(right):
        raise ValueError(f"clusterings of {len(left)} and {len(right)} records")
    found, both = np.unique(left * len(left) + right, return_counts=True)
    of_left, of_right = np.divmod(found, len(left))
    return both, np.bincount(left)[of_left], np.bincount(right)[of_right]


LOSSES: tuple[Loss, ...] = ("vi", "binder")

# --- chains -------------------------------------------------------------------------------------


def autocovariance(trace: Sequence[float], lag: int) -> float:
    centre = mean(trace)
    return sum((a - centre) * (b - centre) for a, b in zip(trace, trace[lag:], strict=False)) / len(trace)


def split(chains: np.ndarray) -> list[list[float]]:
    half = chains.shape[1] // 2
    return [part for chain in chains.tolist() for part in (chain[:half], chain[-half:])]


def normal_scores(chains: list[list[float]]) -> list[list[float]]:
    pooled = sorted(value for chain in chains for value in chain)

    def score(value: float) -> float:
        rank = mean(place for place, other in enumerate(pooled, 1) if other == value)
        return NormalDist().inv_cdf((rank - 3 / 8) / (len(pooled) + 1 / 4))

    return [[score(value) for value in chain] for chain in chains]


def naive_r_hat(chains: list[list[float]]) -> float:
    n = len(chains[0])
    between, within = n * variance(map(mean, chains)), mean(map(variance, chains))
    return math.sqrt(((n - 1) / n * within + between / n) / within) if within else math.inf


def naive_ess(chains: list[list[float]]) -> float:
    """Section 3.2 of the paper, lag by lag; chains are split already."""
    n = len(chains[0])
    within = mean(map(variance, chains))
    whole = (n - 1) / n * within + variance(map(mean, chains))

    def rho(lag: int) -> float:
        return 1 - (within - mean(autocovariance(chain, lag) for chain in chains)) / whole if lag else 1.0

    total, smallest, lag = 0.0, math.inf, 0
    while lag + 1 < n and rho(lag) + rho(lag + 1) >= 0:
        smallest = min(smallest, rho(lag) + rho(lag + 1))
        total += smallest
        lag += 2
    tau = 2 * total - 1 + (max(0.0, rho(lag)) if lag + 1 < n else 0.0)
    draws = n * len(chains)
    return draws / max(tau, 1 / math.log10(draws))


def autoregressive(seed: int, phi: float, chains: int, draws: int) -> np.ndarray:
    """Stationary AR(1) of unit variance."""
    noise = np.random.default_rng(seed).normal(size=(chains, draws)) * math.sqrt(1 - phi * phi)
    noise[:, 0] /= math.sqrt(1 - phi * phi)
    for t in range(1, draws):
        noise[:, t] += phi * noise[:, t - 1]
    return noise


def short_chains() -> Iterator[np.ndarray]:
    rng = np.random.default_rng(5)
    for case in range(40):
        shape = int(rng.integers(1, 5)), int(rng.integers(4, 40))
        yield autoregressive(case, float(rng.uniform(-0.9, 0.95)), *shape)
        yield rng.integers(0, 4, shape).astype(float) * 1000 - 1e5
    yield np.tile([1.0, -1.0], (2, 10))
    yield np.arange(24.0).reshape(2, 12)


CHAINS = [chains for chains in short_chains() if np.ptp(chains)]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 31])
def test_autocorrelation_is_the_definition(n: int) -> None:
    trace = np.random.default_rng(n).normal(50, 2, n)
    if n == 1:
        assert np.isnan(autocorrelation(trace)).all()
        return
    expected = [autocovariance(trace.tolist(), lag) / autocovariance(trace.tolist(), 0) for lag in range(n)]
    np.testing.assert_allclose(autocorrelation(trace), expected, atol=1e-12)


@pytest.mark.parametrize("chains", CHAINS)
def test_ess_and_r_hat_are_the_definitions(chains: np.ndarray) -> None:
    halves = split(chains)
    scores = normal_scores(halves)
    middle = median(value for half in halves for value in half)
    folded = [[abs(value - middle) for value in half] for half in halves]

    assert effective_sample_size(chains) == pytest.approx(naive_ess(halves), rel=1e-9)
    assert effective_sample_size(chains, rank_normalised=True) == pytest.approx(naive_ess(scores), rel=1e-9)
    expected = naive_r_hat(scores)
    if len({value for half in folded for value in half}) > 1:
        expected = max(expected, naive_r_hat(normal_scores(folded)))
    assert r_hat(chains) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rank_normalised", [False, True])
@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_ess_of_an_autoregressive_chain(phi: float, rank_normalised: bool) -> None:
    chains = autoregressive(3, phi, chains=4, draws=20_000)
    share = effective_sample_size(chains, rank_normalised=rank_normalised) / chains.size
    assert share == pytest.approx((1 - phi) / (1 + phi), rel=0.1)


def test_ess_of_ranks_ignores_the_scale() -> None:
    chains = autoregressive(4, 0.6, chains=2, draws=300)
    by_rank = effective_sample_size(chains, rank_normalised=True)
    assert effective_sample_size(np.exp(9 * chains), rank_normalised=True) == by_rank
    assert effective_sample_size(5 - 3 * chains) == pytest.approx(effective_sample_size(chains))


def test_alternating_draws_are_worth_at_most_n_log_n() -> None:
    assert effective_sample_size(np.tile([1.0, -1.0], (1, 50))) == pytest.approx(100 * math.log10(100))


def test_r_hat_tells_what_has_mixed() -> None:
    iid = np.random.default_rng(6).normal(size=(4, 1000))
    offset, factor = np.array([[0], [0], [0], [1.0]]), np.array([[1], [1], [1], [4.0]])
    assert r_hat(iid) < 1.01
    assert r_hat(iid + offset) > 1.1
    assert r_hat(iid[:1] + np.linspace(0, 3, 1000)) > 1.1
    assert r_hat(iid * factor) > 1.1


def test_constant_chains_tell_nothing() -> None:
    same, apart = np.full((2, 9), 0.1), np.array([[0.1] * 9, [0.3] * 9])
    for rank_normalised in (False, True):
        assert math.isnan(effective_sample_size(same, rank_normalised=rank_normalised))
        assert effective_sample_size(apart, rank_normalised=rank_normalised) < 3
    assert math.isnan(r_hat(same))
    assert r_hat(apart) == math.inf
    assert np.isnan(autocorrelation(same[0])).all()


def test_numbers_that_are_not_finite() -> None:
    broken = np.random.default_rng(7).normal(size=(2, 10))
    broken[1, 3] = -math.inf
    for rank_normalised in (False, True):
        assert math.isnan(effective_sample_size(broken, rank_normalised=rank_normalised))
    assert math.isnan(r_hat(broken))
    (found,) = diagnose({"log joint": broken})
    assert found.mean == -math.inf
    assert math.isnan(found.sd)


def test_two_values_have_no_folded_r_hat() -> None:
    chains = np.array([[0, 1] * 6, [1, 0] * 6])
    assert r_hat(chains) == pytest.approx(naive_r_hat(normal_scores(split(chains))))


def test_diagnose() -> None:
    log_joint = autoregressive(8, 0.5, chains=3, draws=50) - 1e4
    clusters = np.random.default_rng(8).integers(3, 7, (3, 50))
    first, second = diagnose({"log joint": log_joint, "clusters": clusters})
    values = log_joint.ravel().tolist()
    assert first == Diagnosis(
        name="log joint",
        mean=pytest.approx(mean(values)),  # type: ignore[arg-type]
        sd=pytest.approx(stdev(values)),  # type: ignore[arg-type]
        ess=effective_sample_size(log_joint, rank_normalised=True),
        r_hat=r_hat(log_joint),
    )
    assert second.name == "clusters"
    assert second.mean == pytest.approx(clusters.mean())


@pytest.mark.parametrize("shape", [(10,), (0, 10), (2, 3), (1, 2, 8)])
def test_shapes_that_are_no_chains(shape: tuple[int, ...]) -> None:
    for judge in (effective_sample_size, r_hat):
        with pytest.raises(ValueError, match="chains must have shape"):
            judge(np.zeros(shape))
    with pytest.raises(ValueError, match="log joint must have shape"):
        diagnose({"log joint": np.zeros(shape)})
    if shape != (10,):
        with pytest.raises(ValueError, match="trace must have shape"):
            autocorrelation(np.zeros(shape))


# --- clusterings --------------------------------------------------------------------------------


def partitions(n: int, head: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All partitions of n records, numbered by first appearance."""
    if len(head) == n:
        yield head
        return
    for label in range(max(head, default=-1) + 2):
        yield from partitions(n, (*head, label))


def entropy(*labels: Sequence[int]) -> float:
    """Of the clusters, or of the cells where clusterings cross."""
    cells = list(zip(*labels, strict=True))
    return -sum(math.log(cells.count(cell) / len(cells)) for cell in cells) / len(cells)


def naive_similarity(draws: np.ndarray) -> np.ndarray:
    return np.array([[(a == b).mean() for b in draws.T] for a in draws.T])


def naive_expected(labels: Sequence[int], similarity: np.ndarray, loss: Loss) -> float:
    records = range(len(labels))
    if loss == "binder":
        return math.fsum(
            abs((labels[i] == labels[j]) - similarity[i, j]) for i, j in combinations(records, 2)
        )
    total = 0.0
    for i in records:
        friends = [j for j in records if labels[j] == labels[i]]
        total += math.log(len(friends)) + math.log(similarity[i].sum())
        total -= 2 * math.log(similarity[i, friends].sum())
    return total / len(labels)


def draws_around(rng: np.random.Generator, n: int, how_many: int, noise: float) -> np.ndarray:
    """Clusterings that share a truth, each with some records scattered: with noise 1, none shared."""
    truth = rng.integers(0, max(2, n // 4), n)
    scattered = rng.random((how_many, n)) < noise
    return np.where(scattered, rng.integers(0, n, (how_many, n)), truth)


@st.composite
def clusterings(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    n = draw(st.integers(1, 25))
    names = st.integers(0, 4) | st.integers(-(2**62), 2**62)
    a, b = (draw(st.lists(names, min_size=n, max_size=n)) for _ in range(2))
    return a, b


@given(clusterings())
def test_distances_are_the_definitions(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    pairs = list(combinations(range(len(a)), 2))
    assert binder_distance(a, b) == sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in pairs)
    vi = 2 * entropy(a, b) - entropy(a) - entropy(b)
    assert variation_of_information(a, b) == pytest.approx(vi, abs=1e-12)
    assert variation_of_information(a, b) == pytest.approx(variation_of_information(b, a), abs=1e-12)
    assert variation_of_information(a, a) == binder_distance(a, a) == 0
    assert variation_of_information([0] * len(a), range(len(a))) == pytest.approx(math.log(len(a)))


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
def test_similarity_is_the_definition(noise: float) -> None:
    rng = np.random.default_rng(11)
    for n in (1, 2, 9, 17):
        draws = draws_around(rng, n, 30, noise)
        similarity = similarity_matrix(draws)
        np.testing.assert_allclose(similarity, naive_similarity(draws), rtol=1e-14)
        assert (similarity == similarity.T).all()
        np.testing.assert_array_equal(similarity_matrix(7 - 3 * draws), similarity)


def test_losses_against_the_draws_themselves() -> None:
    rng = np.random.default_rng(12)
    for n in (5, 20):
        draws = draws_around(rng, n, 25, 0.4)
        similarity = similarity_matrix(draws)
        # H = log n - mean log n_i: the mean log size of the draws, and what stands for it
        sizes = mean(math.log(n) - entropy(draw) for draw in draws.tolist())
        stand_in = float(np.log(similarity.sum(axis=1)).mean())
        assert sizes <= stand_in
        for labels in (*draws[:5], rng.integers(0, 4, n)):
            to_draws = mean(binder_distance(labels, draw) for draw in draws)
            assert naive_expected(labels.tolist(), similarity, "binder") == pytest.approx(to_draws)
            bound = naive_expected(labels.tolist(), similarity, "vi") - stand_in + sizes
            assert bound <= mean(variation_of_information(labels, draw) for draw in draws) + 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_certainty_costs_nothing(loss: Loss) -> None:
    draws = np.tile([4, 4, 1, 9, 1, 4], (3, 1))
    labels = point_estimate(similarity_matrix(draws), draws, loss)
    assert labels.tolist() == [0, 0, 1, 2, 1, 0]


@pytest.mark.parametrize("loss", LOSSES)
def test_point_estimate_is_the_best_of_all_partitions(loss: Loss) -> None:
    """Over 600 matrices; descent does not promise it, but 95 % at the least."""
    rng = np.random.default_rng(13)
    exact = []
    for n in (2, 3, 4, 5, 6):
        every = np.array(list(partitions(n)))
        for case in range(120):
            how_many = int(rng.integers(2, 30))
            draws = every[rng.integers(0, len(every), how_many)]  # all partitions alike, or some preferred
            if case % 3:
                draws = draws_around(rng, n, how_many, (0.3, 0.7)[case % 2])
            similarity = similarity_matrix(draws)
            labels, losses = point_estimate(similarity, draws, loss), dict[tuple[int, ...], float]()
            for p in {*map(tuple, every.tolist())}:
                losses[p] = naive_expected(p, similarity, loss)
            expected = losses[tuple(labels.tolist())]
            assert expected <= min(naive_expected(d, similarity, loss) for d in draws.tolist()) + 1e-9
            exact.append(expected <= min(losses.values()) + 1e-9)
    assert mean(exact) >= 0.95


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("noise", [0.2, 0.6])
def test_no_single_move_improves_a_point_estimate(loss: Loss, noise: float) -> None:
    rng = np.random.default_rng(14)
    draws = draws_around(rng, 40, 60, noise)
    similarity = similarity_matrix(draws)
    labels = point_estimate(similarity, draws, loss)
    expected = naive_expected(labels.tolist(), similarity, loss)
    assert expected < min(naive_expected(draw, similarity, loss) for draw in draws.tolist())
    for i in range(40):
        for label in range(labels.max() + 2):
            moved = labels.copy()
            moved[i] = label
            assert naive_expected(moved.tolist(), similarity, loss) > expected - 1e-9

    again = point_estimate(similarity, 5 - 2 * draws[rng.permutation(60)], loss)
    np.testing.assert_array_equal(again, labels)


def test_what_is_refused() -> None:
    draws = np.array([[0, 1, 1], [0, 0, 1]])
    similarity = similarity_matrix(draws)
    with pytest.raises(ValueError, match=f"{LIMIT + 1} records are too many"):
        similarity_matrix(np.zeros((1, LIMIT + 1), int))
    for no_draws in (draws[0], draws.astype(float), draws[:0], draws[:, :0]):
        with pytest.raises(ValueError, match="2-dimensional array of integers"):
            similarity_matrix(no_draws)
    with pytest.raises(ValueError, match="clusterings of 2 records but a similarity matrix of shape"):
        point_estimate(similarity, draws[:, :2])
    with pytest.raises(ValueError, match="loss must be 'vi' or 'binder'"):
        point_estimate(similarity, draws, "rand")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="clusterings of 3 and 2 records"):
        variation_of_information([0, 1, 1], [0, 1])
