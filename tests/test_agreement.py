from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics  # type: ignore[import-untyped]

from streamdp.scoring.agreement import Agreement, agreement


def peer(labels: list[int], truth: list[int]) -> Agreement:
    homogeneity, completeness, v = metrics.homogeneity_completeness_v_measure(truth, labels)
    return Agreement(
        nmi=float(metrics.normalized_mutual_info_score(truth, labels)),
        ari=float(metrics.adjusted_rand_score(truth, labels)),
        homogeneity=float(homogeneity),
        completeness=float(completeness),
        v=float(v),
        found=len(set(labels)),
        larger=sum(labels.count(label) > 3 for label in set(labels)),
        true=len(set(truth)),
        n=len(labels),
    )


def assert_same(ours: Agreement, theirs: Agreement) -> None:
    for name in Agreement.__struct_fields__:
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-10), name


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    n = draw(st.integers(0, 60))
    names = [st.integers(0, draw(st.integers(0, 8))) | st.integers(-(2**62), 2**62) for _ in range(2)]
    return tuple(draw(st.lists(name, min_size=n, max_size=n)) for name in names)  # type: ignore[return-value]


@given(pairs())
def test_equals_scikit_learn(both: tuple[list[int], list[int]]) -> None:
    assert_same(agreement(*both), peer(*both))


@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.integers(1, 400), st.integers(1, 400))
def test_equals_scikit_learn_on_arrays(seed: int, n: int, clusters: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    labels = np.where(rng.random(n) < rng.random(), truth, rng.integers(0, clusters, n))
    assert_same(agreement(labels, truth), peer(labels.tolist(), truth.tolist()))


@pytest.mark.parametrize(
    ("labels", "truth", "nmi", "ari"),
    [
        ([], [], 1.0, 1.0),
        ([7], [3], 1.0, 1.0),
        ([1, 1, 1], [5, 5, 5], 1.0, 1.0),
        ([1, 2, 3], [5, 9, 7], 1.0, 1.0),
        ([1, 2, 3], [5, 5, 5], 0.0, 0.0),
        ([1, 1, 1], [1, 2, 3], 0.0, 0.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], 0.0, -0.5),
        ([1, 1, 2, 2], [8, 8, 3, 3], 1.0, 1.0),
    ],
)
def test_degenerate_cases(labels: list[int], truth: list[int], nmi: float, ari: float) -> None:
    ours = agreement(labels, truth)
    assert_same(ours, peer(labels, truth))
    assert ours.nmi == pytest.approx(nmi, abs=1e-12)
    assert ours.ari == pytest.approx(ari, abs=1e-12)


def test_homogeneity_and_completeness_are_not_swapped() -> None:
    split = agreement([0, 1, 2, 2], [0, 0, 1, 1])
    assert split.homogeneity == pytest.approx(1.0)
    assert (split.found, split.true) == (3, 2)
    assert split.completeness < 1.0
    assert split.v == split.nmi


@given(st.integers(0, 1000), st.permutations(range(5)))
def test_names_and_sides_do_not_matter(seed: int, names: list[int]) -> None:
    rng = np.random.default_rng(seed)
    labels, truth = rng.integers(0, 5, 50), rng.integers(0, 4, 50)
    ours = agreement(labels, truth)
    assert_same(ours, agreement(np.array(names)[labels], truth.astype(np.uint8)))
    other = agreement(truth, labels)
    assert other.ari == ours.ari
    assert other.homogeneity == pytest.approx(ours.completeness, abs=1e-12)


def test_no_overflow_where_products_leave_64_bits() -> None:
    n = 4_000_000
    labels = np.arange(n) % 2
    truth = (np.arange(n) < n // 4 * 3).astype(np.int32)
    ours = agreement(labels, truth)
    cells = [n // 8, n // 8, n * 3 // 8, n * 3 // 8]
    both = sum(size * (size - 1) // 2 for size in cells)
    a = 2 * (n // 2 * (n // 2 - 1) // 2)
    b = sum(size * (size - 1) // 2 for size in (n // 4, n * 3 // 4))
    expected = Fraction(a * b, n * (n - 1) // 2)
    assert ours.ari == pytest.approx(float((both - expected) / (Fraction(a + b, 2) - expected)), rel=1e-12)
    assert ours.nmi == 0.0


def test_refuses_what_is_not_two_clusterings() -> None:
    with pytest.raises(ValueError, match="3 labels but 2 truth values"):
        agreement([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="truth must be"):
        agreement([1, 2], np.array([0.5, 1.0]))
    with pytest.raises(ValueError, match="labels must be"):
        agreement(np.zeros((2, 2), dtype=int), [1, 2])
