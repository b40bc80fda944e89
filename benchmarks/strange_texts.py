"""Texts for the bench of strangers: those at hand in random orders, and subjects joined end to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from benchmarks.peers import hashed, textclust
from benchmarks.quality import labels_of, truth_of
from benchmarks.textclust import of_the_paper
from benchmarks.workloads import Document, documents
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.settings import Settings

RECORDS = 2000
"""Of each order; half as many of each of two subjects."""

SECONDS = 10.0
"""That ``fit`` may take for each of them."""

SHUFFLED = ("news", "tweets", "reuters21578", "stackoverflow10k")
JOINED = {"news, then tweets": ("news_t", "tweets_t"), "tweets, then news": ("tweets_t", "news_t")}


class Texts(NamedTuple):
    """Texts of known clusters, in the order of a stream, and these clusters."""

    corpus: list[Document]
    truth: np.ndarray


def _numbered(corpus: list[Document]) -> Texts:
    """The same, each a unit of time after the one before it."""
    made = [replace(document, time=float(i)) for i, document in enumerate(corpus)]
    return Texts(made, truth_of(made))


def _known(name: str) -> list[Document]:
    return [document for document in documents(name) if document.cluster is not None]


def shuffled(name: str, seed: int) -> Texts:
    """Some of a corpus, drawn and ordered at random."""
    corpus = _known(name)
    order = np.random.default_rng(seed).permutation(len(corpus))[:RECORDS]
    return _numbered([corpus[i] for i in order.tolist()])


def joined(first: str, second: str, seed: int) -> Texts:
    """A stretch of one corpus in order of time, then one of another, each from where chance has it begin."""
    rng, found = np.random.default_rng(seed), list[Document]()
    for name in (first, second):
        corpus = _known(name)
        begin = int(rng.integers(len(corpus) - RECORDS // 2))
        part = corpus[begin : begin + RECORDS // 2]
        found += [replace(document, cluster=f"{name} {document.cluster}") for document in part]
    return _numbered(found)


def text_sets(orders: range) -> dict[str, list[Texts]]:
    """All of them by row of the table, each in these orders."""
    found = {f"{name}, shuffled": [shuffled(name, seed) for seed in orders] for name in SHUFFLED}
    return found | {name: [joined(*two, seed) for seed in orders] for name, two in JOINED.items()}


def ours(texts: Texts) -> np.ndarray:
    """What the stream says of each text in the end."""
    return labels_of(texts.corpus, Settings())[1]


def fitted(texts: Texts) -> np.ndarray:
    """What ``fit`` says of them, told no times and no options but how long it may take."""
    found = fit([document.text for document in texts.corpus], plan=Plan(seconds=SECONDS))
    assert not found.rejects
    return found.labels


def kmeans(texts: Texts) -> np.ndarray:
    """Told the number of clusters; of all texts as TF-IDF of hashed words."""
    from sklearn.cluster import KMeans

    clusters = len(np.unique(texts.truth))
    rows = hashed([document.text for document in texts.corpus])
    return np.asarray(KMeans(clusters, n_init=3, random_state=0).fit_predict(rows))


def of_textclust(texts: Texts) -> np.ndarray:
    """With its paper's settings, asked for each text once it has learned it."""
    return textclust(texts.corpus, of_the_paper, 1).newest


OF_TEXTS: dict[str, Callable[[Texts], np.ndarray]] = {
    "streamdp": ours,
    "fit": fitted,
    "KMeans, told k": kmeans,
    "TextClust": of_textclust,
}
