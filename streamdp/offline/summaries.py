"""The clusters of a finite set in words that a reader understands."""

from __future__ import annotations

import numpy as np

from streamdp.answers.describe import TOP
from streamdp.answers.listing import ClusterList
from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.likelihoods.categorical import learned_from_records
from streamdp.offline.collection import Collection
from streamdp.records import ClusterSummary


def summaries(collection: Collection, labels: np.ndarray) -> ClusterList:
    """Clusters, the largest first, the older first among equals; their weight is 0, for the set has ended."""
    batch = collection.encoded.batch
    words = _telling_words(collection, labels)
    found = []
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        times = [t for t in (collection.records[i].time for i in members.tolist()) if t is not None]
        found.append(
            ClusterSummary(
                cluster=int(labels[members[0]]),
                size=len(members),
                first_time=min(times, default=None),
                last_time=max(times, default=None),
                first_seq=int(members[0]),
                last_seq=int(members[-1]),
                weight=0.0,
                words=words.get(int(labels[members[0]]), []) if batch.vectors is None else None,
                mean=None if batch.vectors is None else batch.vectors[members].mean(axis=0).tolist(),
            )
        )
    return ClusterList(sorted(found, key=lambda c: (-c.size, c.cluster)))


def _telling_words(collection: Collection, labels: np.ndarray) -> dict[int, list[tuple[str, int]]]:
    """By cluster, words that are frequent in it and rare among the clusters (tf-idf), or telling values."""
    batch, names = collection.encoded.batch, collection.encoded.encoder.words
    if batch.vectors is not None or names is None:
        return {}
    owner = np.repeat(labels, np.diff(batch.offsets)).astype(np.int64)
    cells, where = np.unique(owner * len(names) + batch.words, return_inverse=True)
    counts = np.bincount(where, weights=batch.counts)
    cluster, word = np.divmod(cells, len(names))
    if isinstance(collection.encoded.encoder, CategoryEncoder):
        texts = bool(collection.encoded.encoder.names.texts)
        of_values = learned_from_records(batch.offsets, batch.words, texts=texts)
        telling = of_values.telling(cluster, word, counts)
    else:
        spread = np.bincount(word, minlength=len(names))
        telling = counts * np.log((1.0 + len(np.unique(labels))) / spread[word])
    order = np.lexsort((word, -telling, cluster))
    order = order[telling[order] > -np.inf]
    found: dict[int, list[tuple[str, int]]] = {}
    for i in order.tolist():
        top = found.setdefault(int(cluster[i]), [])
        if len(top) < TOP:
            top.append((names[int(word[i])] or "", int(counts[i])))
    return found
