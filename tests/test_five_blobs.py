"""River's own test of DBSTREAM: five blobs on a diagonal, one record at a time."""

from __future__ import annotations

import numpy as np
import pytest

import streamdp
from streamdp.scoring.agreement import agreement


def five_blobs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points around (-10, -10), (-5, -5), ... (10, 10), with a standard deviation of 0.6."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)
    return 5.0 * (truth[:, np.newaxis] - 2.0) + 0.6 * rng.normal(size=(n, 2)), truth


@pytest.mark.parametrize("seed", range(4))
def test_five_blobs_are_five_clusters(seed: int) -> None:
    rows, truth = five_blobs(15_000 if seed == 0 else 3000, seed)
    model, given = streamdp.StreamDP(), []
    for x, y in rows.tolist():
        given.append(model.learn_predict_one({0: x, 1: y}))
    assert model.n_clusters == 5
    assert sorted(model.centers) == sorted({model.predict_one({0: c, 1: c}) for c in (-10, -5, 0, 5, 10)})
    assert agreement(given, truth.tolist()).v > 0.95
    assert agreement(given[1000:], truth[1000:].tolist()).v > 0.99


@pytest.mark.parametrize("seed", range(4))
def test_a_matrix_of_five_blobs_has_five_clusters(seed: int) -> None:
    rows, truth = five_blobs(3000, seed)
    model = streamdp.StreamDPClusterer().fit(rows)
    assert model.n_clusters_ == 5
    assert agreement(model.labels_.tolist(), truth.tolist()).ari > 0.99
