"""Embeddings: rates beside a matrix-vector product; quality on vectors of texts, beside peers and texts."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.workloads import chunks, documents, feed, median_of, predicted, show, timed, vector_search
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.engine import Engine
from streamdp.likelihoods import VonMisesFisher
from streamdp.likelihoods.base import Moments
from streamdp.records import Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import WARMUP, build_likelihood, build_prior

PARTS = ("rate", "common", "quality", "beside")
CORPORA = ("tweets_t", "news_t")
BESIDE = ("tweets_t", "news_t", "tweets", "news")
"""Of texts with a vector beside them: its weight and concentration were chosen on the first two."""
BESIDE_DIMENSIONS = 50
DIMENSIONS = 100
"""Of the vectors of real texts."""
UNIT = DIMENSIONS**-0.5
"""Deviation at which the first centres of River's KMeans are as long as the vectors; by default they are
ten times as long, and one centre takes all."""
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


def lsa(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Vectors of a corpus, not scaled, its true clusters, and how many texts have no word that is known."""
    texts = documents(name)
    vectors, known = lsa_of([d.text for d in texts])
    truth = np.unique([str(d.cluster) for d in texts], return_inverse=True)[1]
    return vectors[known], truth[known].astype(np.int64), int((~known).sum())


def lsa_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of texts by what the first of them teach, not scaled, and which have a word that is known."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    first = texts[: len(texts) // FITTED]
    counts = TfidfVectorizer().fit(first)
    svd = TruncatedSVD(DIMENSIONS, random_state=0).fit(counts.transform(first))
    vectors = svd.transform(counts.transform(texts))
    return vectors, np.square(vectors).sum(axis=1) > 0.0


def lsa_of_all(texts: list[str]) -> list[list[float] | None]:
    """Vectors of texts by what all of them teach; None for a text that has no word."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer().fit_transform(texts)
    vectors = TruncatedSVD(BESIDE_DIMENSIONS, random_state=0).fit_transform(counts)
    return [row.tolist() if np.square(row).sum() > 0.0 else None for row in vectors]


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


# ---------------------------------------------------------------- quality


class Answer(NamedTuple):
    """A label for each record, and the CPU seconds that they took."""

    labels: np.ndarray
    seconds: float


def ours(vectors: np.ndarray, **given: Any) -> Answer:
    """First-announced labels of one pass."""
    batches = stream(vectors)
    feed(new_search(vectors, **given), batches[:1])
    search = new_search(vectors, **given)
    started = time.process_time()
    labels = feed(search, batches)
    return Answer(labels, time.process_time() - started)


def river(model: Any, vectors: np.ndarray) -> Answer:
    """Predicting, then learning, record by record."""
    return Answer(*predicted(model, vectors))


def birch_at_once(vectors: np.ndarray, threshold: float, clusters: int | None = None) -> Answer:
    """All vectors learned, then labelled: labels such as no stream can give, beside ours as announced.

    What the tree has found is joined to so many clusters in the end, unless that is None.
    """
    from sklearn.cluster import Birch

    model = Birch(threshold=threshold, n_clusters=clusters)
    started = time.process_time()
    labels = model.fit(vectors).predict(vectors)
    return Answer(np.asarray(labels), time.process_time() - started)


def contenders(truth: np.ndarray, slow: int) -> dict[str, tuple[int, Callable[[np.ndarray], Answer]]]:
    """Peers, and how many of the first records each is given; ``slow`` is for those that need minutes."""
    from river.cluster import DBSTREAM, KMeans

    clusters, n = len(np.unique(truth)), len(truth)
    return {
        "streamdp, beam 1": (n, lambda v: ours(v, beam=1, normalise=True)),
        "streamdp, no option at all": (n, lambda v: ours(v)),
        "River KMeans": (n, lambda v: river(KMeans(sigma=UNIT, seed=0), v)),
        "River KMeans, told k": (slow, lambda v: river(KMeans(clusters, 0.1, sigma=UNIT, seed=0), v)),
        "River DBSTREAM": (n, lambda v: river(DBSTREAM(), v)),
        "River DBSTREAM, radius .5": (n, lambda v: river(DBSTREAM(clustering_threshold=0.5), v)),
        "Birch at once": (n, lambda v: birch_at_once(v, 0.5)),
        "Birch at once, threshold .7": (n, lambda v: birch_at_once(v, 0.7)),
        "Birch at once, threshold .9": (n, lambda v: birch_at_once(v, 0.9)),
    }


def quality(name: str, slow: int) -> None:
    """Cluster a corpus with everyone, and print; behind each peer, streamdp on the same records."""
    raw, truth, unknown = lsa(name)
    vectors, rows = directions(raw), []
    own = ours(vectors, normalise=True)
    for who, (n, run) in {
        "streamdp, normalise": (len(vectors), lambda _: own),
        **contenders(truth, min(slow, len(vectors))),
    }.items():
        found = run(vectors[:n])
        scores, beside = agreement(found.labels, truth[:n]), agreement(own.labels[:n], truth[:n])
        k, pace = len(np.unique(found.labels)), n / found.seconds
        of_own = f"{beside.nmi:.3f}, {beside.ari:.3f}"
        rows.append((who, n, f"{scores.nmi:.3f}", f"{scores.ari:.3f}", k, f"{pace:,.0f}", of_own))
    title = (
        f"{name}, LSA of {DIMENSIONS} dimensions, {len(np.unique(truth))} topics; {unknown:,} texts are zero"
    )
    show(title, ("", "records", "NMI", "ARI", "clusters", "records / CPU s", "streamdp on these"), rows)


# ---------------------------------------------------------------- beside texts


class Newest(NamedTuple):
    """Agreement of the newest labels with the truth, how many clusters they are, and CPU seconds."""

    nmi: float
    ari: float
    clusters: int
    seconds: float


def newest_of(records: list[Record], truth: np.ndarray, settings: Settings) -> Newest:
    """The labels of records as they are at the end."""
    engine, labels = Engine(settings), np.full(len(records), -1)
    started = time.process_time()
    for start in range(0, len(records), 1000):
        for line in engine.advance(records[start : start + 1000]).assignments:
            labels[line.seq] = line.cluster
    for line in engine.finish().assignments:
        labels[line.seq] = line.cluster
    seconds = time.process_time() - started
    known = truth >= 0
    found = agreement(labels[known], truth[known])
    return Newest(found.nmi, found.ari, len(np.unique(labels[known])), seconds)


def beside(corpora: tuple[str, ...] = BESIDE) -> None:
    """Texts as a field, without and with a vector of LSA over the whole stream beside them; print."""
    alone, both = Settings(texts=("text",)), Settings(texts=("text",), vector_field="vector")
    rows = []
    for name in corpora:
        texts = documents(name)
        kinds = np.unique([str(d.cluster) for d in texts], return_inverse=True)[1]
        truth = np.where([d.cluster is None for d in texts], -1, kinds)
        vectors = lsa_of_all([d.text for d in texts])
        records = [
            Record({"text": d.text, **({} if x is None else {"vector": x})}, {"line": i}, d.time)
            for i, (d, x) in enumerate(zip(texts, vectors, strict=True))
        ]
        for settings in (alone, both):
            newest_of(records[:1200], truth[:1200], settings)  # compiles, or loads what is
        for what, settings in (("texts", alone), ("and vectors", both)):
            found = newest_of(records, truth, settings)
            pace = f"{len(records) / found.seconds:,.0f}"
            rows.append((name, what, f"{found.nmi:.3f}", f"{found.ari:.3f}", found.clusters, pace))
    title = f"LSA of {BESIDE_DIMENSIONS} dimensions over the whole stream beside the text: newest labels"
    show(title, ("", "", "NMI", "ARI", "clusters", "records / CPU s"), rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--records", type=int, default=20_000, help="generated vectors")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the median counts")
    parser.add_argument("--slow", type=int, default=2_000, help="records that slow peers are given")
    options = parser.parse_args()
    if "rate" in options.parts:
        rate(options.records, options.dimension, options.clusters, options.runs)
    if "common" in options.parts:
        common()
    if "beside" in options.parts:
        beside()
    if "quality" in options.parts:
        for name in options.corpora:
            quality(name, options.slow)


if __name__ == "__main__":
    main()
