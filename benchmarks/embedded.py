"""Peers for the benchmarks of words and meaning: what clusters embeddings of texts, and texts by a mixture.

Embeddings are those that streamdp has of the same model, at length one; a text without any is a vector of
zeros. Noise is one cluster. k-means and BERTopic's online mode are told the number of clusters. BERTopic is
not in the extra ``bench``, as it asks for torch: ``pip install --no-deps bertopic`` beside pandas and plotly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec.structs import replace
from numba import njit

from benchmarks.quality import answers_of, told_of
from benchmarks.workloads import CHUNK, Document, encode
from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings

COMPONENTS, ONLINE = 20, 5
"""Principal components for HDBSCAN, and those that BERTopic's documentation has for its online mode."""

MIXTURE, SWEEPS, ALPHA, BETA = 300, 30, 0.1, 0.1
"""Of GSDMM (Yin and Wang, 2014): clusters at most, sweeps, and its two priors."""

COLUMNS, FITTED = 4096, 10
"""Of hashed words: how many, and of which share of the texts weights are learned."""


@cache
def table(model: str) -> Callable[[Sequence[str]], np.ndarray]:
    """What makes rows of texts."""
    from streamdp.encode.embedding import load_embedding

    return load_embedding(model).rows


def embedded(texts: list[str], model: str) -> np.ndarray:
    """Embeddings at length one, zeros where there is none."""
    rows = np.nan_to_num(table(model)(texts))
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def ours(vectors: np.ndarray) -> np.ndarray:
    """What streamdp says of vectors alone in the end; -1 for those of zeros."""
    records = [Record(row, {"line": i}, None, None) for i, row in enumerate(vectors.tolist(), start=1)]
    return told_of(answers_of(Engine(Settings(normalise=True)), records), len(records))[1]


def hashed(texts: list[str]) -> Any:
    """TF-IDF of hashed words; the weights are those of the first texts."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    counts = HashingVectorizer(n_features=COLUMNS, alternate_sign=False, norm=None).transform(texts)
    return TfidfTransformer().fit(counts[: len(texts) // FITTED]).transform(counts)


def kmeans(vectors: np.ndarray, clusters: int) -> np.ndarray:
    """Told the number of clusters."""
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(clusters, n_init=3, random_state=0).fit_predict(vectors))


def components(vectors: np.ndarray) -> np.ndarray:
    """The first principal components of vectors."""
    from sklearn.decomposition import PCA

    return np.asarray(PCA(COMPONENTS, random_state=0).fit_transform(vectors))


def hdbscan(vectors: np.ndarray) -> np.ndarray:
    """scikit-learn's at its defaults, of the first principal components."""
    from sklearn.cluster import HDBSCAN

    return np.asarray(HDBSCAN(copy=True).fit_predict(components(vectors)))


def fast_hdbscan(vectors: np.ndarray) -> np.ndarray:
    """That of the package of this name, at its defaults, of the same."""
    from fast_hdbscan import HDBSCAN

    return np.asarray(HDBSCAN().fit_predict(components(vectors)))


def evoc(vectors: np.ndarray) -> np.ndarray:
    """At its defaults but for a seed; the layer that it says persists the longest."""
    from evoc import EVoC

    return np.asarray(EVoC(random_state=0).fit_predict(vectors.astype(np.float32)))


def bertopic(texts: list[str], vectors: np.ndarray, clusters: int) -> np.ndarray:
    """Its online mode as its documentation has it: a thousand at a time, told the number of clusters."""
    from bertopic import BERTopic
    from bertopic.backend import BaseEmbedder
    from bertopic.vectorizers import OnlineCountVectorizer
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import IncrementalPCA

    model = BERTopic(
        embedding_model=BaseEmbedder(),
        umap_model=IncrementalPCA(n_components=ONLINE),
        hdbscan_model=MiniBatchKMeans(n_clusters=clusters, random_state=0, n_init=3),
        vectorizer_model=OnlineCountVectorizer(decay=0.01),
    )
    rows, labels = vectors.astype(float), list[int]()
    for start in range(0, len(texts), CHUNK):
        part = slice(start, start + CHUNK)
        model.partial_fit(texts[part], rows[part])
        labels += model.topics_
    return np.array(labels)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _gsdmm(
    offsets: np.ndarray, words: np.ndarray, counts: np.ndarray, vocabulary: int, seed: int
) -> np.ndarray:
    """Collapsed Gibbs sampling of a Dirichlet multinomial mixture, Yin and Wang's equation 4."""
    np.random.seed(seed)
    n = len(offsets) - 1
    labels = np.random.randint(0, MIXTURE, n)
    sizes, totals = np.zeros(MIXTURE), np.zeros(MIXTURE)
    held = np.zeros((vocabulary, MIXTURE), np.float32)
    logs = np.empty(MIXTURE)
    for sweep in range(SWEEPS + 1):
        for i in range(n):
            begin, end = offsets[i], offsets[i + 1]
            if sweep > 0:
                k = labels[i]
                sizes[k] -= 1
                for j in range(begin, end):
                    held[words[j], k] -= counts[j]
                    totals[k] -= counts[j]
                for c in range(MIXTURE):
                    product, scale, log, length = 1.0, 1.0, np.log(sizes[c] + ALPHA), 0
                    for j in range(begin, end):
                        for more in range(counts[j]):
                            product *= held[words[j], c] + BETA + more
                            scale *= totals[c] + vocabulary * BETA + length
                            length += 1
                            if length % 16 == 0:
                                log += np.log(product / scale)
                                product, scale = 1.0, 1.0
                    logs[c] = log + np.log(product / scale)
                weights = np.cumsum(np.exp(logs - logs.max()))
                labels[i] = min(np.searchsorted(weights, np.random.random() * weights[-1]), MIXTURE - 1)
            k = labels[i]
            sizes[k] += 1
            for j in range(begin, end):
                held[words[j], k] += counts[j]
                totals[k] += counts[j]
    return labels


def gsdmm(corpus: Sequence[Document]) -> np.ndarray:
    """Of words as streamdp has them; -1 for a text without any."""
    seen = encode([replace(document, time=float(i)) for i, document in enumerate(corpus)])
    labels, batch = np.full(len(corpus), -1), seen.batch
    assert batch.times is not None
    labels[batch.times.astype(int)] = _gsdmm(batch.offsets, batch.words, batch.counts, seen.vocabulary, 0)
    return labels
