"""Where a record would go, if it came next, and which of its words speak for that."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch

MOST_WORDS = 40
"""Distinct words of a record that are weighed one by one."""

TELLING = 5
"""Words that are told of each cluster."""


class Candidate(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A cluster that a record may belong to; ``cluster`` is -1 for a new one.

    ``probability`` is as in an assignment; ``words`` are those that speak for the cluster most, each with by
    how many nats it does: how much more it adds to the record's log predictive there than in a new cluster.
    """

    cluster: int
    probability: float
    words: list[tuple[str, float]] = []


def candidates(
    search: BeamSearch, batch: Batch, words: Sequence[str | None] | None, most: int
) -> list[Candidate]:
    """The likeliest clusters of the best hypothesis, and a new one, for the one record of a batch."""
    slots = search.head_slots()
    labels = search.state.lineages.rows["label"][search.state.pool.slots["lineage"][slots]]
    ((shares,), logs) = search.weigh(batch, slots)
    best = np.lexsort((np.append(labels, -1), -shares))[:most]
    best = best[shares[best] > 0.0]
    numbers, gains = np.zeros(0, np.int64), np.zeros((0, len(best)))
    if words is not None:
        numbers, gains = _gains(search, batch, slots, logs)
        gains = gains[:, best]
    found = []
    for column, j in enumerate(best.tolist()):
        new, said = j == len(slots), list[tuple[str, float]]()
        if words is not None and not new:
            for i in np.argsort(-gains[:, column], kind="stable")[:TELLING].tolist():
                word = words[numbers[i]] if numbers[i] < len(words) else None
                if word is not None and gains[i, column] > 0.0:
                    said.append((word, round(float(gains[i, column]), 2)))
        label = -1 if new else int(labels[j])
        found.append(Candidate(cluster=label, probability=round(float(shares[j]), 6), words=said))
    return found


def _gains(
    search: BeamSearch, batch: Batch, slots: np.ndarray, logs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """By word and cluster: what the log predictive loses without the word, beside that of a new cluster.

    ``logs`` are the log predictives of the whole record, shape (1, slots + 1).
    """
    numbers, counts = batch.words[:MOST_WORDS], batch.counts
    if len(batch.words) < 2:
        return numbers, logs - logs[:, -1:]
    keep = [np.arange(len(batch.words)) != i for i in range(len(numbers))]
    without = Batch.of_words([(batch.words[k], counts[k]) for k in keep], _repeated(batch, len(keep)))
    gain = logs - search.weigh(without, slots)[1]
    return numbers, np.nan_to_num(gain - gain[:, -1:], nan=0.0, posinf=0.0, neginf=0.0)


def _repeated(batch: Batch, times: int) -> np.ndarray | None:
    return None if batch.times is None else np.repeat(batch.times, times)
