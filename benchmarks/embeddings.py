"""Vectors of length one by themselves: rates beside a matrix-vector product; what all have in common."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.workloads import chunks, feed, median_of, show, timed, vector_search
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.engine import Engine
from streamdp.likelihoods import VonMisesFisher
from streamdp.likelihoods.base import Moments
from streamdp.records import Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import WARMUP, build_likelihood, build_prior

PARTS = ("rate", "common")
DIMENSIONS = 100
"""Of the vectors of real texts, for ``benchmarks.peers``."""
FITTED = 10
"""One part in so many, the first, teaches the vectoriser its words and its directions."""


def directions(vectors: np.ndarray) -> np.ndarray:
    """The rows at length one."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def topics(
    n: int, dimension: int, clusters: int, common: float, seed: int = 20261122
) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around random directions that have a cosine of ``common`` to each other; and their topics.

    Those of a topic have a cosine of .6 to .8 to its direction; all topics are equally frequent.
    """
    rng = np.random.default_rng(seed)
    own = directions(rng.normal(size=(clusters, dimension)))
    shared = directions(rng.normal(size=(1, dimension)))
    centres = directions(np.sqrt(common) * shared + np.sqrt(1.0 - common) * own)
    truth = rng.integers(0, clusters, n)
    cosine = rng.uniform(0.6, 0.8, clusters)[truth, None]
    noise = directions(rng.normal(size=(n, dimension)))
    return directions(cosine * centres[truth] + np.sqrt(1.0 - cosine**2) * noise), truth


def lsa_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of texts by what the first of them teach, not scaled, and which have a word that is known."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    first = texts[: len(texts) // FITTED]
    counts = TfidfVectorizer().fit(first)
    svd = TruncatedSVD(DIMENSIONS, random_state=0).fit(counts.transform(first))
    vectors = svd.transform(counts.transform(texts))
    return vectors, np.square(vectors).sum(axis=1) > 0.0


def birch_at_once(vectors: np.ndarray, threshold: float, clusters: int) -> np.ndarray:
    """All vectors learned, then labelled: labels such as no stream can give, beside ours as announced."""
    from sklearn.cluster import Birch

    return np.asarray(Birch(threshold=threshold, n_clusters=clusters).fit(vectors).predict(vectors))


def new_search(vectors: np.ndarray, **given: Any) -> BeamSearch:
    """A beam with what the engine learns from the first vectors."""
    settings = Settings(**given)
    likelihood = build_likelihood(settings, Moments.of(vectors[:WARMUP]))
    return vector_search(settings, build_prior(settings, False), likelihood)


def stream(vectors: np.ndarray) -> list[Batch]:
    """What the beam is fed."""
    return chunks(Batch.of_vectors(vectors, np.arange(len(vectors), dtype=float)))


# ---------------------------------------------------------------- rate


def nearest_centroid(vectors: np.ndarray, centroids: np.ndarray) -> float:
    """CPU seconds of an argmax over the centroids for each vector."""
    return timed(lambda: [np.argmax(centroids @ x) for x in vectors])


def through_engine(vectors: np.ndarray, beam: int) -> float:
    """CPU seconds of records that are lists of numbers, to assignments."""
    records = [
        Record(value=row, position={"line": i}, time=None, id=None)
        for i, row in enumerate(vectors.tolist(), start=1)
    ]
    engine = Engine(Settings(beam=beam, normalise=True))
    return timed(lambda: engine.advance(records))


def rate(n: int, dimension: int, clusters: int, runs: int) -> None:
    """Measure the rate at so many live clusters, and print."""
    from threadpoolctl import threadpool_limits

    vectors, truth = topics(n, dimension, clusters, 0.2)
    batches, rows = stream(vectors), []
    centroids = np.array([vectors[truth == k].mean(axis=0) for k in range(clusters)])
    with threadpool_limits(1):
        for kind in (np.float32, np.float64):
            means, same = np.ascontiguousarray(centroids, kind), vectors.astype(kind)
            seconds = median_of(runs, lambda m=means, v=same: nearest_centroid(v, m))  # type: ignore[misc]
            rows.append((f"numpy argmax, {kind.__name__}", seconds, clusters, ""))
    for beam in (1, Settings().beam):
        feed(new_search(vectors, beam=beam, normalise=True), batches[:1])  # compiles, or loads what is
        spent, search, labels = [], None, truth
        for _ in range(runs):
            search = new_search(vectors, beam=beam, normalise=True)
            started = time.process_time()
            labels = feed(search, batches)
            spent.append(time.process_time() - started)
        assert search is not None
        live = search.counters()["clusters_live"]
        rows.append((f"beam {beam}", float(np.median(spent)), live, f"{agreement(labels, truth).ari:.3f}"))
    rows.append((f"engine, beam {Settings().beam}", through_engine(vectors, Settings().beam), "", ""))
    best = rows[0][1]
    show(
        f"{n:,} unit vectors of {dimension} dimensions, {clusters} topics",
        ("", "records / CPU s", "of numpy, float32", "clusters", "ARI"),
        [(name, f"{n / s:,.0f}", f"{best / s:.2f}", live, ari) for name, s, live, ari in rows],
    )


# ---------------------------------------------------------------- what all vectors have in common


def ari_under(family: VonMisesFisher, vectors: np.ndarray, truth: np.ndarray) -> str:
    """Of the labels as first announced, greedy."""
    settings = Settings(beam=1, normalise=True)
    search = vector_search(settings, build_prior(settings, False), family)
    return f"{agreement(feed(search, stream(vectors)), truth).ari:.3f}"


def common(dimensions: tuple[int, ...] = (100, 384), clusters: int = 100, n: int = 5_000) -> None:
    """Directions that are uniform on the sphere beside those around a mean, learned from two warm-ups."""
    rows = []
    for dimension in dimensions:
        for cosine in (0.0, 0.3, 0.6):
            vectors, truth = topics(n, dimension, clusters, cosine)
            few = np.flatnonzero(truth < 3)
            order = np.concatenate([few, np.flatnonzero(truth >= 3)])
            families = [
                build_likelihood(Settings(normalise=True), Moments.of(first))
                for first in (vectors[:WARMUP], vectors[few][:WARMUP])
            ]
            fair, narrow = (family for family in families if isinstance(family, VonMisesFisher))
            uniform = VonMisesFisher(dimension, fair.concentration)
            found = [ari_under(family, vectors, truth) for family in (uniform, fair)]
            found.append(ari_under(narrow, vectors[order], truth[order]))
            rows.append((f"{dimension} dimensions, {cosine}", *found))
    columns = ("cosine of two topics", "uniform", "around a mean", "learned from 3 topics, which come first")
    show(f"{n:,} vectors, {clusters} topics: ARI", columns, rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--records", type=int, default=20_000, help="generated vectors")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the median counts")
    options = parser.parse_args()
    if "rate" in options.parts:
        rate(options.records, options.dimension, options.clusters, options.runs)
    if "common" in options.parts:
        common()


if __name__ == "__main__":
    main()
