"""Who clusters vectors in the bench of strangers: streamdp and its peers, none of them tuned to a set.

Noise is one cluster. River's DBSTREAM is given half the root of the total variance as its radius, and is
asked when it has learned all records. Beyond 20 dimensions HDBSCAN is given as many principal components.
Beyond ``MANY`` the mixture has diagonal covariances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks import embedded
from benchmarks.strange_vectors import Data
from benchmarks.workloads import CHUNK
from streamdp.engine import Engine
from streamdp.settings import Settings

MANY, COMPONENTS = 50, 30
"""Dimensions that are many; clusters of the variational mixture at most."""


def ours(data: Data) -> np.ndarray:
    """What the stream says of each vector in the end."""
    rows, labels = data.vectors.tolist(), np.full(len(data.truth), -1)
    engine = Engine(Settings(normalise=data.normalise))
    answers = [engine.advance(rows[start : start + CHUNK]) for start in range(0, len(rows), CHUNK)]
    for each in [*answers, engine.finish()]:
        for line in each.assignments:
            labels[line.seq] = line.cluster
    return labels


def kmeans(data: Data) -> np.ndarray:
    """Told the number of clusters."""
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(data.clusters, n_init=10, random_state=0).fit_predict(points(data)))


def hdbscan(data: Data) -> np.ndarray:
    """scikit-learn's, at its defaults."""
    from sklearn.cluster import HDBSCAN

    return np.asarray(HDBSCAN(copy=True).fit_predict(few(data)))


def variational(data: Data) -> np.ndarray:
    """scikit-learn's Dirichlet process mixture, truncated."""
    from sklearn.mixture import BayesianGaussianMixture

    shape = "diag" if data.vectors.shape[1] > MANY else "full"
    model = BayesianGaussianMixture(n_components=COMPONENTS, covariance_type=shape, random_state=0)
    return np.asarray(model.fit_predict(points(data)))


def dbstream(data: Data) -> np.ndarray:
    """River's."""
    from river.cluster import DBSTREAM

    model = DBSTREAM(clustering_threshold=radius(data))
    rows = learned(model, data)
    return np.array([model.predict_one(row) for row in rows])


def points(data: Data) -> np.ndarray:
    """Vectors for peers; of embeddings those at length one."""
    if not data.normalise:
        return data.vectors
    return np.asarray(data.vectors / np.maximum(np.linalg.norm(data.vectors, axis=1, keepdims=True), 1e-9))


def few(data: Data) -> np.ndarray:
    """The same, or its first principal components."""
    found = points(data)
    return embedded.components(found) if found.shape[1] > embedded.COMPONENTS else found


def radius(data: Data) -> float:
    """Half the root of the total variance."""
    return 0.5 * math.sqrt(points(data).var(axis=0).sum())


def learned(model: Any, data: Data) -> list[dict[int, float]]:
    """Records for one of River's clusterers, which has learned each of them."""
    rows = [dict(enumerate(row)) for row in points(data).tolist()]
    for row in rows:
        model.learn_one(row)
    return rows


class Peer(NamedTuple):
    """Who takes part, and what must be installed."""

    labels: Callable[[Data], np.ndarray]
    package: str = "numpy"

    @property
    def installed(self) -> bool:
        """Whether it can take part."""
        return find_spec(self.package) is not None


OF_VECTORS: dict[str, Peer] = {
    "streamdp": Peer(ours),
    "KMeans, told k": Peer(kmeans, "sklearn"),
    "HDBSCAN": Peer(hdbscan, "sklearn"),
    "variational": Peer(variational, "sklearn"),
    "DBSTREAM": Peer(dbstream, "river"),
}
