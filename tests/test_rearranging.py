"""Clusters of vectors that are several: cut, united anew, and taken where the log joint is higher."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from algebra import add, empty
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracle import families as naive
from oracle import scales as oracle
from oracle import vector_families as va
from oracle.enumeration import founders_of, log_joints
from oracle.scales import log_joint
from test_scales import PRIORS, Case, Run, run_of

from streamdp.beam.looks import draft
from streamdp.beam.looks.pieces import pieces
from streamdp.encode.batch import Batch
from streamdp.likelihoods import Gaussian, NormalInverseGamma, NormalInverseWishart, VectorFamily
from streamdp.likelihoods.base import grain

FAMILIES = ("wishart", "gamma", "gaussian")
VARIANCE = 0.06
ALL = 1000
"""More clusters than there are: each is near all others."""

# ---------------------------------------------------------------- pieces

POINTS = arrays(
    np.float64,
    st.tuples(st.integers(1, 60), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 1.0, -2.5]) | st.floats(-1e3, 1e3, width=16),
)


@given(POINTS, st.integers(1, 12))
@example(np.zeros((40, 2)), 8)
@example(np.zeros((1, 1)), 1)
@settings(deadline=None)
def test_pieces_are_a_partition_into_small_parts(points: np.ndarray, most: int) -> None:
    found = pieces(points, most)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    for piece in range(found.max() + 1):
        own = points[found == piece]
        assert len(own) <= most or (own == own[0]).all()
    assert (pieces(np.asfortranarray(points), most) == found).all()


@given(POINTS, st.integers(1, 12))
@settings(deadline=None)
def test_equal_points_are_in_one_piece_or_fill_several(points: np.ndarray, most: int) -> None:
    """No cut goes between equal points, however they lie among the others."""
    found = pieces(points, most)
    for point in np.unique(points, axis=0):
        assert len(set(found[(points == point).all(axis=1)].tolist())) == 1


@pytest.mark.parametrize("n", [500, 513, 1000, 1024, 3000])
def test_values_that_come_by_the_thousand_are_told_apart(n: int) -> None:
    """Also where those by which a cut is found are all equal: in turn with others, or before rare ones."""
    values = np.array([[0.0, 1.0], [5.0, 1.0], [5.0, -3.0]])
    assert pieces(values[:1].repeat(n, axis=0), 8).max() == 0
    in_turn = np.arange(n) % 2
    assert len(set(zip(in_turn, pieces(values[in_turn], 8), strict=True))) == 2
    rare = np.zeros(n, np.int64)
    rare[-2:] = 1, 2
    assert len(set(pieces(values[rare], 1).tolist())) == 3


def test_groups_that_are_far_apart_share_no_piece() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 9, 2000)
    points = 40.0 * rng.permutation(9)[:, None] * [1.0, 0.3] + 1e6
    found = pieces(points[truth] + rng.normal(size=(2000, 2)), 20)
    assert len(set(zip(found.tolist(), truth.tolist(), strict=True))) == found.max() + 1


# ---------------------------------------------------------------- rounding, and gaps between means


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 3)),
        elements=st.integers(-5, 5).map(float) | st.floats(-10.0, 10.0, width=32),
    )
)
def test_rounding_adds_what_the_median_gap_says(vectors: np.ndarray) -> None:
    expected = np.diagonal(oracle.grain(vectors.tolist()))
    np.testing.assert_allclose(grain(vectors), expected, rtol=1e-12)


def test_rounding_is_all_of_a_column_of_two_values_and_nothing_of_a_constant_one() -> None:
    rng = np.random.default_rng(0)
    columns = [
        rng.integers(0, 2, 400),
        np.full(400, 3.0),
        np.round(rng.normal(size=400), 1),
        rng.normal(size=400),
    ]
    found = grain(np.column_stack(columns).astype(float))
    assert found[0] == pytest.approx(0.25, rel=0.01)
    assert found[1] == 0.0
    assert found[2] == pytest.approx(0.01 / 4.0)
    assert 0.0 < found[3] < 3e-4


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dimension", [1, 3])
def test_gaps_between_means_are_in_units_of_what_both_vary(family: str, dimension: int) -> None:
    case, rng = case_of(family, dimension), np.random.default_rng(2)
    groups = [rng.normal(size=(n, dimension)) + rng.normal(size=dimension) for n in (5, 12, 1, 40)]
    rows = np.array([row_of(case.family, group) for group in groups])
    one, other = np.array([*itertools.permutations(range(4), 2)]).T
    found = case.family.squared_gaps(rows[one], rows[other])
    kept = oracle.Records([], [], None, case.make, case.form)  # type: ignore[arg-type]
    drafted = oracle.Draft(kept, [], case.first, case.first, 20.0)
    expected = [drafted.squared_gap(groups[i], groups[j]) for i, j in zip(one, other, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def row_of(family: VectorFamily, vectors: np.ndarray) -> np.ndarray:
    """The statistics of a cluster of vectors."""
    row: Any = empty(family)
    for vector in vectors:
        add(family, row, vector)
    return np.array(row.row)


# ---------------------------------------------------------------- beside the twin


def case_of(family: str, dimension: int) -> Case:
    """A family that expects little of clusters, as if of 20 records, and the same by definition."""
    mean = (0.1, -0.2, 0.3)[:dimension]
    first = np.diag(VARIANCE * np.array([1.0, 0.8, 1.2])[:dimension])
    if family == "wishart":
        scale = tuple(map(tuple, (20.0 * first).tolist()))

        def wishart(scale: np.ndarray, r: float, share: float = 1.0) -> Any:
            return va.NormalInverseWishart(mean, 0.3 * share, dimension + 1.0 + r, r * scale)

        ours = NormalInverseWishart(dimension, mean=mean, kappa=0.3, degrees=dimension + 21.0, scale=scale)
        return Case(ours, first, wishart)
    if family == "gamma":
        variances = tuple((10.0 * np.diagonal(first)).tolist())

        def gamma(scale: np.ndarray, r: float, share: float = 1.0) -> Any:
            b = tuple(r / 2.0 * np.diagonal(scale))
            return naive.NormalInverseGamma(mean, 0.3 * share, 1.0 + r / 2.0, b, 1.0)

        of = NormalInverseGamma(dimension, mean=mean, kappa=0.3, shape=11.0, scale=variances)
        return Case(of, first, gamma, form="diagonal")

    def known(scale: np.ndarray, r: float, share: float = 1.0) -> Any:
        return naive.Gaussian(float(np.trace(scale)) / dimension, 2.0 / share, mean, 1.0)

    given_one = Gaussian(dimension, mean=mean, variance=VARIANCE, mean_variance=2.0)
    return Case(given_one, VARIANCE * np.eye(dimension), known, (20.0,), form="known")


def several(n: int, dimension: int, seed: int, clusters: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of clusters, and the founders of the two that are seen at first: each is several."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.permutation(clusters)[:, None] + 0.5 * rng.normal(size=(clusters, dimension))
    truth = rng.integers(0, clusters, n)
    parts = 2 * truth >= clusters
    founders = np.where(parts, np.argmax(parts), np.argmin(parts))
    return centres[truth] + 0.35 * rng.normal(size=(n, dimension)), founders


def expected_of(run: Run, case: Case, **how: Any) -> oracle.Found:
    """What the twin finds from the labels that a run has."""
    known = run.vectors.tolist(), run.labels.tolist(), run.times, run.prior, case.first, case.make
    return oracle.look(*known, case.strengths, form=case.form, counts=20.0, cut=pieces, **how)


def learned_by(run: Run) -> tuple[np.ndarray, float]:
    """The expected covariance of a run's clusters, and for how many records it counts."""
    family: Any = run.search.likelihood
    return (family.within if family.within.ndim == 2 else np.diag(family.within)), family.strength


def same_as_the_twin(run: Run, case: Case, **how: Any) -> oracle.Found:
    """Look, and compare clusters, parameters and the log joint."""
    before = log_joint(run.labels.tolist(), *recorded(run), case.make(case.first, 20.0))
    assert run.joint == pytest.approx(before, abs=1e-7)
    expected = expected_of(run, case, **how)
    found = run.look(case.family)
    assert founders_of(found.tolist()) == founders_of(expected.labels)
    scale, strength = learned_by(run)
    if case.form == "known":
        assert scale[0, 0] == pytest.approx(np.trace(expected.scale) / len(scale), rel=1e-9)
    else:
        assert strength == pytest.approx(expected.strength)
        shown = expected.scale if case.form == "full" else np.diag(np.diagonal(expected.scale))
        np.testing.assert_allclose(scale, shown, rtol=1e-9, atol=1e-15)
    assert run.joint == pytest.approx(joint_of(run, case, found), abs=1e-7)
    return expected


def recorded(run: Run) -> tuple[list[list[float]], list[float], Any]:
    return run.vectors.tolist(), run.times, run.prior


def joint_of(run: Run, case: Case, labels: np.ndarray) -> float:
    """The log joint of labels under what a run has learned."""
    return log_joint(labels.tolist(), *recorded(run), case.make(*learned_by(run)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("prior", PRIORS)
def test_parted_clusters_are_those_of_the_twin(
    monkeypatch: pytest.MonkeyPatch, prior: str, family: str
) -> None:
    """In one, two and three dimensions; above two the guard has a say."""
    monkeypatch.setattr(draft, "NEAR", ALL)
    found = []
    for dimension in (1, 2, 3):
        vectors, founders = several(24 + 3 * dimension, dimension, 5 + dimension)
        case = case_of(family, dimension)
        run = run_of(prior, case.family, vectors, founders=founders)
        found.append(same_as_the_twin(run, case, near=ALL).parted)
    assert any(found)
    # with the neighbours that there really are
    monkeypatch.undo()
    vectors, founders = several(44, 2, 3)
    case = case_of(family, 2)
    if family != "wishart":
        same_as_the_twin(run_of(prior, case.family, vectors, founders=founders), case, near=draft.NEAR)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("prior", PRIORS)
def test_few_records_are_cut_as_the_twin_cuts_them(
    monkeypatch: pytest.MonkeyPatch, prior: str, family: str
) -> None:
    """Clusters of three and more, so that parts of one record and of the first records of others come up."""
    monkeypatch.setattr(draft, "NEAR", ALL)
    monkeypatch.setattr(draft, "PIECE", 2)
    parted = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        n, dimension = int(rng.integers(5, 13)), 1 + seed % 3
        case = case_of(family, dimension)
        vectors = several(n, dimension, seed, clusters=5)[0]
        second = rng.random(n) < 0.3
        founders = np.where(second, np.argmax(second), np.argmin(second))
        run = run_of(prior, case.family, vectors, founders=founders)
        parted += same_as_the_twin(run, case, near=ALL, piece=2).parted
    assert parted


@pytest.mark.parametrize("family", FAMILIES)
def test_a_first_record_that_is_far_from_the_others_is_parted_from_them(family: str) -> None:
    rng = np.random.default_rng(0)
    others = np.array([[0.0, 0.0], [5.0, 0.0]]).repeat(15, axis=0) + 0.3 * rng.normal(size=(30, 2))
    vectors, case = np.vstack([[[-3.0, 5.0]], others]), case_of(family, 2)
    run = run_of("crp", case.family, vectors, founders=np.array([0] * 16 + [16] * 15))
    labels = same_as_the_twin(run, case).labels
    assert founders_of(labels) == (0, *[1] * 15, *[16] * 15)


def test_clusters_that_come_out_as_they_went_in_keep_their_names() -> None:
    """One of two is parted: in the other nothing changes, and the larger part keeps the name."""
    rng, case = np.random.default_rng(0), case_of("gamma", 2)
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    vectors = centres.repeat([40, 25, 15], axis=0) + 0.3 * rng.normal(size=(80, 2))
    run = run_of("crp", case.family, vectors, founders=np.array([0] * 40 + [40] * 25 + [0] * 15))
    labels = run.look(case.family)
    assert founders_of(labels.tolist()) == (*[0] * 40, *[40] * 25, *[65] * 15)
    assert labels[:65].tolist() == run.labels[:65].tolist()


@pytest.mark.parametrize("prior", PRIORS)
def test_the_joint_is_no_lower_than_without_a_rearrangement(
    monkeypatch: pytest.MonkeyPatch, prior: str
) -> None:
    """Each with its own parameters, and with the tail that suits it best."""
    gains = []
    for seed, family in itertools.product(range(3), FAMILIES):
        vectors, founders = several(40, 2, seed)
        case, found = case_of(family, 2), []
        for parts in (True, False):
            with monkeypatch.context() as patch:
                if not parts:
                    patch.setattr(draft.Draft, "rearrange", lambda *_: False)
                run = run_of(prior, case.family, vectors, founders=founders)
                labels = run.look(case.family).tolist()
            scale, strength = learned_by(run)
            records = oracle.Records(*recorded(run), case.make, case.form)
            found.append(oracle.Draft(records, labels, case.first, scale, strength).weight)
        gains.append(found[0] - found[1])
    assert min(gains) > -1e-6
    assert max(gains) > 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_one_cluster_that_is_cut_stays_as_it_is(family: str) -> None:
    rng, case = np.random.default_rng(3), case_of(family, 2)
    vectors = np.sqrt(VARIANCE) * rng.normal(size=(60, 2))
    run = run_of("crp", case.family, vectors, founders=np.zeros(60, np.int64))
    assert run.look(case.family).tolist() == [0] * 60


# ---------------------------------------------------------------- beside enumeration


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("prior", PRIORS)
def test_all_joints_after_a_parting_are_those_of_enumeration(
    monkeypatch: pytest.MonkeyPatch, prior: str, family: str
) -> None:
    """Of seven records, the first three are one cluster, which a look parts; two come after it.

    Every hypothesis that there can be has the log joint of its partition, under what the look has learned.
    """
    monkeypatch.setattr(draft, "PIECE", 2)
    rng = np.random.default_rng(8)
    vectors = np.array([0.0, 2.0, 0.0, 4.0, 4.0, 0.0, 3.0])[:, None] + 0.15 * rng.normal(size=(7, 2))
    case = case_of(family, 2)
    run = run_of(prior, case.family, vectors[:5], width=64, founders=np.array([0, 0, 0, 3, 3]))
    before = founders_of(run.look(case.family).tolist())
    assert before == (0, 1, 0, 3, 3)
    for _ in run.search.run(Batch.of_vectors(vectors[5:], np.arange(5.0, 7.0))):
        pass
    naive_family = case.make(*learned_by(run))
    joints = log_joints(vectors.tolist(), np.arange(7.0).tolist(), run.prior, naive_family, [None] * 7)
    expected = sorted((joint for z, joint in joints.items() if z[:5] == before), reverse=True)
    found = sorted(run.search.log_joints.tolist(), reverse=True)
    assert len(found) == len(expected) > 10
    np.testing.assert_allclose(found, expected, atol=1e-8)
