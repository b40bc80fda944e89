"""scikit-learn's comparison of clusterers (500 points, six kinds), StreamDPClusterer and peers in one run.

The sets and their parameters are those of scikit-learn's example "Comparing different clustering algorithms
on toy datasets", drawn by other seeds, each column scaled to variance one. Where there is no structure, the
right answer is one cluster. Nothing is chosen by the truth, but for what KMeans is told.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn import cluster, datasets, mixture
from sklearn.preprocessing import StandardScaler

import streamdp
from benchmarks.tables import show
from streamdp.scoring.agreement import agreement

POINTS, SEEDS = 500, 6

Sample = tuple[np.ndarray, np.ndarray]


def blobs(seed: int, centres: int = 30, std: float | Sequence[float] = 1.0) -> Sample:
    """Three blobs around the centres that the example has."""
    drawn = np.random.RandomState(centres).uniform(-10.0, 10.0, (3, 2))
    rows, truth = datasets.make_blobs(POINTS, centers=drawn, cluster_std=std, random_state=seed)
    return rows, truth


def aniso(seed: int) -> Sample:
    """Blobs that are stretched, all in one direction."""
    rows, truth = blobs(seed, 170)
    return rows @ np.array([[0.6, -0.6], [-0.4, 0.8]]), truth


def no_structure(seed: int) -> Sample:
    """Points of a square, evenly distributed."""
    return np.random.default_rng(seed).random((POINTS, 2)), np.zeros(POINTS, np.int64)


def _made(make: Callable[..., Sample], **options: Any) -> Callable[[int], Sample]:
    return lambda seed: make(POINTS, random_state=seed, **options)


SETS: dict[str, Callable[[int], Sample]] = {
    "noisy_circles": _made(datasets.make_circles, factor=0.5, noise=0.05),
    "noisy_moons": _made(datasets.make_moons, noise=0.05),
    "varied": lambda seed: blobs(seed, 170, [1.0, 2.5, 0.5]),
    "aniso": aniso,
    "blobs": blobs,
    "no_structure": no_structure,
}


def one_by_one(rows: np.ndarray) -> np.ndarray:
    """StreamDP: each point is learned once; what it says of all in the end."""
    model = streamdp.StreamDP()
    model.learn_many(rows)
    return np.asarray(model.predict_many(rows))


def models(clusters: int, seed: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Who is compared."""
    bayesian = partial(mixture.BayesianGaussianMixture, n_components=10, max_iter=1000, random_state=seed)
    return {
        "StreamDPClusterer": lambda rows: streamdp.StreamDPClusterer().fit_predict(rows),
        "StreamDP, one by one": one_by_one,
        "BayesianGaussianMixture, 10": lambda rows: bayesian().fit_predict(rows),
        "HDBSCAN, 15": lambda rows: cluster.HDBSCAN(min_cluster_size=15, copy=True).fit_predict(rows),
        "KMeans, told k": lambda rows: cluster.KMeans(clusters, n_init=10, random_state=seed).fit_predict(
            rows
        ),
    }


def main() -> None:
    """Print the mean ARI of every model on every set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many samples of each set")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    table: dict[str, list[object]] = {}
    for make in SETS.values():
        found: dict[str, list[tuple[float, int]]] = {}
        for seed in range(options.first, options.first + options.seeds):
            rows, truth = make(seed)
            rows = StandardScaler().fit_transform(rows)
            for who, labels_of in models(len(np.unique(truth)), seed).items():
                labels = labels_of(rows)
                score = agreement(labels.tolist(), truth.tolist()).ari
                found.setdefault(who, []).append((score, len(np.unique(labels))))
        for who, each in found.items():
            score, clusters = np.mean(each, axis=0)
            table.setdefault(who, []).append(f"{score:.2f} ({clusters:.1f})")
    rows_shown = [(who, *cells) for who, cells in table.items()]
    show(f"mean ARI (clusters) of {options.seeds} samples", ("model", *SETS), rows_shown)


if __name__ == "__main__":
    main()
