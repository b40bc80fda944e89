"""StreamDPClusterer as scikit-learn knows clusterers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from streamdp import StreamDPClusterer
from streamdp.scoring.agreement import agreement

UNSUITABLE = {
    "check_methods_subset_invariance": "rows that no cluster is near are -1",
    "check_methods_sample_order_invariance": "the order of the rows is part of the model",
}


def test_scikit_learns_own_checks() -> None:
    check_estimator(StreamDPClusterer(beam=1), expected_failed_checks=UNSUITABLE)


def blobs(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 9.0 * np.array([[0, 0], [0, 1], [1, 0]])[truth], truth


def test_three_blobs() -> None:
    rows, truth = blobs()
    model = make_pipeline(StandardScaler(), StreamDPClusterer())
    assert agreement(truth.tolist(), model.fit_predict(rows).tolist()).nmi > 0.99
    last = model[-1]
    assert last.n_clusters_ == 3
    assert last.cluster_centers_.shape == (3, 2)
    assert (model.predict(rows) == last.labels_).mean() > 0.99  # one row lies far out


def test_part_by_part() -> None:
    rows, _ = blobs()
    whole = StreamDPClusterer(beam=4).fit(rows)
    parts = StreamDPClusterer(beam=4).partial_fit(rows[:200])
    labels = [parts.labels_, parts.partial_fit(rows[200:]).labels_]
    assert (np.concatenate(labels) == whole.labels_).all()


def test_wide_clusters_are_one() -> None:
    from sklearn.datasets import load_wine

    rows, truth = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(truth))
    rows, truth = StandardScaler().fit_transform(rows[order]), truth[order]
    fitted, streamed = StreamDPClusterer().fit(rows), StreamDPClusterer().partial_fit(rows)
    assert agreement(fitted.labels_.tolist(), truth.tolist()).ari > 0.7
    assert agreement(streamed.labels_.tolist(), truth.tolist()).ari > 0.7
    assert max(fitted.n_clusters_, streamed.n_clusters_) < 12


def test_more_rows_join_what_was_fitted() -> None:
    rows, truth = blobs()
    model = StreamDPClusterer().fit(rows[:250])
    before = model.labels_
    labels = np.concatenate([before, model.partial_fit(rows[250:]).labels_])
    assert agreement(truth.tolist(), labels.tolist()).nmi > 0.99


def directions(n: int = 300, dimension: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Rows around five directions, of many lengths."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 5, n)
    centres = rng.normal(size=(5, dimension))
    units = centres[truth] / np.linalg.norm(centres, axis=1)[truth, np.newaxis]
    rows = units + 0.03 * rng.normal(size=(n, dimension))
    return rows * np.exp(rng.normal(size=(n, 1))), truth


def test_directions_whatever_the_length() -> None:
    rows, truth = directions()
    model = clone(StreamDPClusterer(normalise=True))
    assert model.get_params()["normalise"] is True
    assert agreement(truth.tolist(), model.fit_predict(rows).tolist()).ari > 0.99
    assert (model.predict(7.0 * rows) == model.labels_).mean() > 0.99


@pytest.mark.parametrize(
    ("normalise", "row", "why"),
    [(False, [1e300, 0.0], r"row 40 .*beyond 1e\+100"), (True, [0.0, 0.0], "row 40 .*no direction")],
)
def test_a_row_that_cannot_be_clustered_is_named_and_left_out(
    normalise: bool, row: list[float], why: str
) -> None:
    rows, _ = blobs()
    rows = rows + 20.0
    model = StreamDPClusterer(beam=1, normalise=normalise)
    expected, wrong = model.fit_predict(rows), np.insert(rows, 40, row, axis=0)
    predicted = model.predict(rows)
    with pytest.warns(UserWarning, match=why):
        assert (model.predict(wrong) == np.insert(predicted, 40, -1)).all()
    with pytest.warns(UserWarning, match=why):
        assert (model.fit_predict(wrong) == np.insert(expected, 40, -1)).all()
    with pytest.raises(ValueError, match="row 0"):
        model.fit([row])
    assert (model.predict(rows) == predicted).all()
