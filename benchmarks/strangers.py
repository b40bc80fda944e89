"""Data that no constant was chosen on: generated mixtures, scikit-learn's sets and texts, beside others.

Of each kind there are two halves, by the seeds that they come from: constants are chosen on the first, the
second is what the documentation quotes. Everything is standardised and shuffled. streamdp is a stream at its
defaults; its newest labels count. KMeans is told the true number of clusters; HDBSCAN's noise is one cluster;
the variational mixture is scikit-learn's Dirichlet process with full covariances and at most 30 clusters.
River's DBSTREAM is told half the square root of the number of dimensions as its radius, and is asked when it
has learned all records. Texts are in ``benchmarks.strange_texts``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.strange_texts import OF_TEXTS, Texts, text_sets
from benchmarks.workloads import CHUNK, show
from streamdp.engine import Engine
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

DIMENSIONS = (2, 4, 8, 16, 32)
KINDS = ("spherical", "imbalanced", "full", "t3")
"""Equal variances; weights from a Dirichlet of 1/2; a covariance for each cluster; Student's t, 3 degrees."""

HALVES = {"choose": 0, "table": len(DIMENSIONS)}
"""The first seed of each kind's five mixtures, and of the orders of other sets."""

SMALL = ("wine", "iris", "breast_cancer", "moons")
ORDERS = len(DIMENSIONS)
"""In which each of these comes."""

COMPONENTS = 30


class Data(NamedTuple):
    """Vectors, shape (n, D), and their true clusters."""

    vectors: np.ndarray
    truth: np.ndarray


def mixture(kind: str, seed: int) -> Data:
    """1,000 to 5,000 records of 3 to 12 clusters in 2 to 32 dimensions, of which some overlap."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    dimension = DIMENSIONS[seed % len(DIMENSIONS)]
    clusters, n = int(rng.integers(3, 13)), int(rng.integers(1000, 5001))
    # typical distances between centres grow less than their dimensions do, as overlaps do not vanish then
    centres = rng.normal(size=(clusters, dimension)) * rng.uniform(2.0, 3.5) * (2.0 / dimension) ** 0.25
    weights = rng.dirichlet(np.full(clusters, 0.5 if kind == "imbalanced" else 20.0))
    truth = rng.choice(clusters, n, p=weights)
    noise = rng.normal(size=(n, dimension))
    if kind == "full":
        turns = np.linalg.qr(rng.normal(size=(clusters, dimension, dimension)))[0]
        shapes = turns * np.exp(rng.uniform(-1.5, 1.0, size=(clusters, 1, dimension)))
        noise = np.einsum("nij,nj->ni", shapes[truth], noise)
    if kind == "t3":
        noise /= np.sqrt(rng.chisquare(3.0, size=(n, 1)) / 3.0)
    return standardised(centres[truth] + noise, truth)


def small(name: str, seed: int) -> Data:
    """A set that scikit-learn brings along, or makes, in a random order."""
    from sklearn import datasets

    if name == "moons":
        vectors, truth = datasets.make_moons(1000, noise=0.06, random_state=0)
    else:
        vectors, truth = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(truth))
    return standardised(vectors[order], truth[order])


def standardised(vectors: np.ndarray, truth: np.ndarray) -> Data:
    """Of mean 0 and variance 1 in every dimension."""
    unit = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    return Data(np.ascontiguousarray(unit), truth.astype(np.int64))


def ours(data: Data, **given: Any) -> np.ndarray:
    """What the stream says of each vector in the end."""
    rows, engine, labels = data.vectors.tolist(), Engine(Settings(**given)), np.full(len(data.truth), -1)
    answers = [engine.advance(rows[start : start + CHUNK]) for start in range(0, len(rows), CHUNK)]
    for each in [*answers, engine.finish()]:
        for line in each.assignments:
            labels[line.seq] = line.cluster
    return labels


def kmeans(data: Data) -> np.ndarray:
    """Told the number of clusters."""
    from sklearn.cluster import KMeans

    clusters = len(np.unique(data.truth))
    return np.asarray(KMeans(clusters, n_init=10, random_state=0).fit_predict(data.vectors))


def hdbscan(data: Data) -> np.ndarray:
    """At its defaults."""
    from sklearn.cluster import HDBSCAN

    return np.asarray(HDBSCAN(copy=True).fit_predict(data.vectors))


def variational(data: Data) -> np.ndarray:
    """A Dirichlet process mixture, truncated."""
    from sklearn.mixture import BayesianGaussianMixture

    return np.asarray(
        BayesianGaussianMixture(n_components=COMPONENTS, random_state=0).fit_predict(data.vectors)
    )


def dbstream(data: Data) -> np.ndarray:
    """By its last clusters."""
    from river.cluster import DBSTREAM

    model = DBSTREAM(clustering_threshold=0.5 * data.vectors.shape[1] ** 0.5)
    rows = [dict(enumerate(row)) for row in data.vectors.tolist()]
    for row in rows:
        model.learn_one(row)
    return np.array([model.predict_one(row) for row in rows])


Clusterer = Callable[[Any], np.ndarray]

ALL: dict[str, Clusterer] = {
    "streamdp": ours,
    "without looks": lambda data: ours(data, second_look=0),
    "KMeans, told k": kmeans,
    "HDBSCAN": hdbscan,
    "variational": variational,
    "DBSTREAM": dbstream,
}


class Score(NamedTuple):
    """Agreement with the truth, and the number of clusters as a multiple of the truth's."""

    nmi: float
    ari: float
    ratio: float


def score(data: Data | Texts, clusterer: Clusterer) -> Score:
    """How a clusterer does on a set."""
    labels = clusterer(data)
    clusters = len(np.unique(data.truth))
    found = agreement(labels, data.truth)
    return Score(found.nmi, found.ari, len(np.unique(labels)) / clusters)


def sets(half: str) -> dict[str, list[Data]]:
    """The sets by row of the table: those of scikit-learn, and the mixtures of one half by kind."""
    orders = range(HALVES[half], HALVES[half] + ORDERS)
    found = {name: [small(name, seed) for seed in orders] for name in SMALL}
    for kind in KINDS:
        first = HALVES[half]
        found[kind] = [mixture(kind, first + i) for i in range(len(DIMENSIONS))]
    return found


def row(name: str, data: Sequence[Data | Texts], clusterers: Mapping[str, Clusterer]) -> tuple[str, ...]:
    """Mean ARI (of texts NMI and ARI), and in brackets the median multiple of the true number of clusters."""
    cells = [name]
    for clusterer in clusterers.values():
        scores = [score(each, clusterer) for each in data]
        ratio = np.median([each.ratio for each in scores])
        means = np.mean(scores, axis=0)[1 if isinstance(data[0], Data) else 0 : 2]
        cells.append(f"{' / '.join(f'{mean:.3f}' for mean in means)} ({ratio:.1f})")
    print(*cells, sep="; ", file=sys.stderr, flush=True)
    return tuple(cells)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=list(HALVES), default="table", help="which seeds")
    parser.add_argument("--only", nargs="+", choices=list(ALL | OF_TEXTS), help="who takes part")
    parser.add_argument("--of", nargs="+", choices=("vectors", "texts"), default=("vectors", "texts"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    numba.set_num_threads(1)
    found: dict[str, tuple[Mapping[str, Sequence[Data | Texts]], Mapping[str, Clusterer]]] = {}
    if "vectors" in options.of:
        found["ARI (clusters found for each true one)"] = sets(options.half), ALL
    if "texts" in options.of:
        orders = range(HALVES[options.half], HALVES[options.half] + ORDERS)
        found["NMI / ARI (clusters found for each true one)"] = text_sets(orders), OF_TEXTS
    for title, (data, all_of_them) in found.items():
        clusterers = {
            name: each for name, each in all_of_them.items() if not options.only or name in options.only
        }
        with threadpool_limits(1):
            rows = [row(name, each, clusterers) for name, each in data.items()]
        show(title, ("", *clusterers), rows)


if __name__ == "__main__":
    main()
