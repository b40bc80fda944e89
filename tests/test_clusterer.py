"""StreamDPClusterer as scikit-learn knows clusterers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from streamdp import StreamDP, StreamDPClusterer
from streamdp.scoring.agreement import agreement

UNSUITABLE = {
    "check_methods_subset_invariance": "rows that no cluster is near are -1",
    "check_methods_sample_order_invariance": "the order of the rows is part of the model",
    "check_estimator_sparse_array": "it asks of all that have predict_proba how many classes there are",
    "check_estimator_sparse_matrix": "it asks of all that have predict_proba how many classes there are",
}


@pytest.mark.filterwarnings("ignore:row .* cannot be clustered")
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


TEXTS = [
    "storm over the coast",
    "vote in the capital",
    "coast storm grows",
    "taxes: votes in parliament",
    "late goal wins the match",
    "storm hits coast again",
] * 6


@pytest.mark.parametrize("column", [list, tuple, np.array, pd.Series, pl.Series])
def test_texts_are_clustered_by_words_in_any_column(column: Any) -> None:
    model = StreamDPClusterer(beam=4)
    labels = model.fit_predict(column(TEXTS))
    assert labels.tolist() == StreamDPClusterer(beam=4).fit_predict(TEXTS).tolist()
    assert labels[0] == labels[2] == labels[5] != labels[4]
    assert model.predict(column(["a storm at the coast"])).tolist() == [labels[0]]
    assert not hasattr(model, "cluster_centers_")
    with pytest.warns(UserWarning, match="row 1 cannot be clustered: no words are left"):
        assert model.partial_fit([*TEXTS[:1], None]).labels_.tolist() == [labels[0], -1]
    assert model.probabilities_.tolist()[1] == 0.0


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_sparse_rows_are_counts_of_words(form: Any) -> None:
    counted = CountVectorizer().fit_transform(TEXTS)
    model = StreamDPClusterer(beam=4).fit(form(counted))
    truth = StreamDPClusterer(beam=4)
    truth._learn(
        None, [{str(k): float(row[k]) for k in np.flatnonzero(row)} for row in counted.toarray()], last=True
    )
    assert model.labels_.tolist() == truth.labels_.tolist()
    assert (model.predict(form(counted)) == model.labels_).all()
    weighed = make_pipeline(TfidfVectorizer(), StreamDPClusterer(beam=4)).fit_predict(TEXTS)
    assert agreement(model.labels_.tolist(), weighed.tolist()).nmi > 0.8
    with pytest.raises(ValueError, match="below 0: make it dense"):
        model.predict(-counted)
    river = StreamDP(beam=4)
    river.learn_many(form(counted))
    assert sum(river.sizes.values()) == len(TEXTS)
    assert list(river.sizes.values()) == sorted(river.sizes.values(), reverse=True)


@pytest.mark.parametrize("of", ["texts", "vectors"])
def test_probabilities_and_sizes_are_those_of_the_labels(of: str) -> None:
    rows, strange = (TEXTS, ["a new subject"]) if of == "texts" else (blobs(90)[0], [[300.0, 300.0]])
    model = StreamDPClusterer(beam=4).fit(rows)
    shares = model.predict_proba(rows)
    assert shares.shape == (len(rows), len(set(model.labels_.tolist())) + 1)
    assert shares.sum(axis=1) == pytest.approx(np.ones(len(rows)))
    names = np.append(np.arange(shares.shape[1] - 1), -1)
    assert (names[shares.argmax(axis=1)] == model.predict(rows)).mean() > 0.95
    assert model.predict_proba(strange)[0, -1] > 0.5
    assert ((model.probabilities_ > 0.0) & (model.probabilities_ <= 1.0)).all()
    counts = np.bincount(model.labels_)
    assert model.cluster_sizes_.tolist() == counts[model.cluster_labels_].tolist()
    assert model.cluster_sizes_.tolist() == sorted(counts.tolist(), reverse=True)


@pytest.mark.parametrize(
    ("likelihood", "learned", "asked", "said"),
    [
        ("auto", TEXTS, [[1.0, 2.0]], "row 0 .*holds a vector where this stream holds texts"),
        ("auto", [[1.0, 2.0], [2.0, 2.5]], TEXTS, "row 0 .*holds a text, and the settings are for vectors"),
        ("gaussian", None, TEXTS, "row 0 .*holds a text, and the settings are for vectors"),
    ],
)
def test_another_kind_of_rows_is_refused(likelihood: str, learned: Any, asked: Any, said: str) -> None:
    model = StreamDPClusterer(likelihood)
    with pytest.raises(ValueError, match=said):
        (model.fit if learned is None else model.fit(learned).predict)(asked)
