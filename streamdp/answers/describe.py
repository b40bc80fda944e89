"""Clusters for a reader: sizes and lives, top words or means, events, and where a record would go."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from streamdp.answers.listing import is_date
from streamdp.beam.data.pool import CLOSED
from streamdp.beam.data.state import Output
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.encode.phrases import joined
from streamdp.encode.vocabulary import is_nameless
from streamdp.ledger.samples import Samples
from streamdp.likelihoods.categorical import FIELD, FieldsLearned
from streamdp.records import RENAMED, TITLED, TURNS, ClusterSummary, Event
from streamdp.state.retained import Retained


class Census(NamedTuple):
    """Live clusters side by side, each of shape (K,).

    Times are in seconds, NaN where there are none.
    """

    label: np.ndarray
    size: np.ndarray
    first_time: np.ndarray
    last_time: np.ndarray
    first_seq: np.ndarray
    last_seq: np.ndarray

    def undated(self) -> Census:
        """The same without times."""
        nothing = np.full(len(self.label), np.nan)
        return self._replace(first_time=nothing, last_time=nothing)


def census_of(search: BeamSearch) -> Census:
    """The live clusters of the best hypothesis, in no order."""
    slots = search.head_slots()
    rows, lineages = search.state.pool.slots[slots], search.state.lineages.rows
    own = lineages[rows["lineage"]]
    return Census(
        own["label"].copy(),
        rows["size"].copy(),
        rows["first_time"].copy(),
        rows["last_time"].copy(),
        own["founder"].copy(),
        rows["last"].copy(),
    )


def base_of(search: BeamSearch, ids: Mapping[str, int], words: Iterable[str]) -> dict[str, float]:
    """Share of each word in the base measure that all clusters have learned, of words that have ids."""
    learned = search.words.learned
    total = float(learned.counters.total)
    known = {word: ids[word] for word in words if word in ids}
    return {word: float(learned.counts[i]) / total for word, i in known.items()} if total else {}


def tokens_of(search: BeamSearch, label: int, *, of_texts: bool) -> int:
    """Words, repetitions counted, of a live cluster of words; records of one of fields; 0 for any other."""
    if not search.sparse:
        return 0
    slots = search.head_slots()
    labels = search.labels_of(slots)
    index = search.words.inverted
    return int((index.tokens if of_texts else index.records)[slots[labels == label]].sum())


def census_of_all(clusters: Sequence[ClusterSummary]) -> Census:
    """The same of clusters that were described already."""

    def times(values: list[float | None]) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in values], float)

    return Census(
        np.array([c.cluster for c in clusters], np.int64),
        np.array([c.size for c in clusters], np.int64),
        times([c.first_time for c in clusters]),
        times([c.last_time for c in clusters]),
        np.array([c.first_seq for c in clusters], np.int64),
        np.array([c.last_seq for c in clusters], np.int64),
    )


KINDS = ("born", "closed", "retired", "merged", "split", "vanished", *TURNS, TITLED, RENAMED)
TOP = 10
LATELY = 1000
"""Records that are called recent."""


def known_time(value: float, last: float) -> float | None:
    """A time of a cluster, whose ``last`` is another; None where there is none.

    Arrays have NaN then, and 0 for what came before the first time; no stream of dates goes back to 1970.
    """
    return None if math.isnan(value) or (value == 0.0 and is_date(last)) else float(value)


def events_of(
    search: BeamSearch,
    out: Output,
    first: int,
    times: Sequence[float | None],
    words: Sequence[str | None] | None,
    samples: Samples | None = None,
) -> list[Event]:
    """The beam's events, which records from number ``first`` on have caused, and when those happened."""
    count = int(out.counters.events)
    causes, moves = out.events["by"][:count].tolist(), out.moves[: int(out.counters.moves)].tolist()
    ends = np.cumsum(out.events["moves"][:count]).tolist()
    found = []
    for e, (seq, start, end) in enumerate(zip(causes, [0, *ends], ends, strict=False)):
        row, time, moved = out.events[e], times[seq - first], moves[start:end]
        top = mean = None
        if not search.sparse:
            mean = search.likelihood.vector.centre(out.event_rows[e]).tolist()
        elif words is not None:
            pairs = zip(out.event_words[e].tolist(), out.event_counts[e].tolist(), strict=True)
            top = [(words[w] or "", n) for w, n in pairs if w >= 0 and not is_nameless(words[w])]
            top = joined(top, samples.of(int(row["label"]))) if samples else top
        found.append(
            Event(
                event=KINDS[int(row["kind"])],
                seq=seq,
                time=time,
                cluster=int(row["label"]),
                other=moved[0][0] if moved else None,
                size=int(row["size"]),
                moved=moved or None,
                first_time=known_time(row["first"], row["last"]) if time is not None else None,
                last_time=known_time(row["last"], row["last"]) if time is not None else None,
                words=top,
                mean=mean,
            )
        )
    return found


def top_words(search: BeamSearch, slot: int, words: Sequence[str | None]) -> list[tuple[str, int]]:
    """The most telling words of a slot: frequent in it, rare among the live clusters (tf-idf).

    Of categories its values that are more frequent than among all records.
    """
    index, pool, learned = search.words.inverted, search.state.pool, search.words.learned
    begin, n = int(index.own["start"][slot]), int(index.types[slot])
    own = index.word[begin : begin + n]
    lists, where = index.lists[own], index.where[begin : begin + n]
    counts = where if pool.state[slot] == CLOSED else index.occurrences[lists["start"] + where]
    if isinstance(learned, FieldsLearned):
        telling = learned.telling(np.zeros(n, np.int64), own.astype(np.int64), counts)
    else:
        telling = counts * np.log((1.0 + pool.counters.open) / np.maximum(lists["length"], 1))
    best = np.lexsort((np.arange(n), -telling))[: min(TOP, np.count_nonzero(telling > -np.inf))]
    return [(words[own[i]] or "", int(counts[i])) for i in best if not is_nameless(words[own[i]])]


def summarise(
    search: BeamSearch, words: Sequence[str | None] | None, among: Collection[int] | None = None
) -> list[ClusterSummary]:
    """The live clusters of the best hypothesis, largest first, the older first among equals.

    Those too that can never grow again while the hypotheses differ on their records: their weight is 0.
    ``among`` are the labels of those that are wanted; None: all.
    """
    pool, labels = search.state.pool, search.state.lineages.rows["label"]
    founders = search.state.lineages.rows["founder"]
    scale = float(search.state.beam.counters.scale)
    family, found = search.likelihood, []
    slots = search.head_slots()
    if among is not None:
        slots = slots[np.isin(labels[pool.slots["lineage"][slots]], sorted(among))]
    for slot in slots.tolist():
        row, mean = pool.slots[slot], None
        if not search.sparse:
            mean = family.vector.centre(search.state.clusters.rows.block[slot]).tolist()
        found.append(
            ClusterSummary(
                cluster=int(labels[row["lineage"]]),
                size=int(row["size"]),
                first_time=known_time(row["first_time"], row["last_time"]),
                last_time=known_time(row["last_time"], row["last_time"]),
                first_seq=int(founders[row["lineage"]]),
                last_seq=int(row["last"]),
                weight=float(pool.weight[slot]) * scale,
                words=None if words is None else top_words(search, slot, words),
                mean=mean,
            )
        )
    found.sort(key=lambda c: (-c.size, c.cluster))
    return found


def described(
    clusters: Sequence[ClusterSummary],
    retained: Retained,
    samples: Samples,
    names: list[str] | None,
    *,
    dated: bool,
) -> list[ClusterSummary]:
    """The same with what the latest records say of them, and the ``names`` of features.

    ``dated`` says whether any record had a time.
    """
    labels = retained.newest()[0][-2 * LATELY :].tolist()
    recent, before = Counter(labels[-LATELY:]), Counter(labels[:-LATELY])
    no_times: dict[str, Any] = {} if dated else {"first_time": None, "last_time": None}
    return [
        msgspec.structs.replace(
            each,
            recent=recent[each.cluster],
            before=before[each.cluster],
            samples=(said := samples.of(each.cluster)),
            words=each.words and joined(each.words, said),
            names=names or msgspec.UNSET,
            **no_times,
        )
        for each in clusters
    ]


def of_closed(event: Event, samples: Samples, names: list[str] | None) -> ClusterSummary:
    """A cluster as it was when it closed; ``last_seq`` is the record at which that was reported."""
    return ClusterSummary(
        cluster=event.cluster,
        size=event.size,
        first_time=event.first_time,
        last_time=event.last_time,
        first_seq=event.seq,
        last_seq=event.seq,
        weight=0.0,
        samples=samples.of(event.cluster),
        words=event.words,
        mean=event.mean,
        template=event.template,
        names=names or msgspec.UNSET,
    )


MOST_WORDS = 40
"""Distinct words of a record that are weighed one by one."""

TELLING = 5
"""Words that are given of each cluster."""

MEANING = "meaning"
"""What stands among the words of a candidate for the vector beside them."""


class Candidate(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A cluster that a record may belong to; ``cluster`` is -1 for a new one.

    ``probability`` is as in an assignment; ``words`` are those that speak for the cluster most, each with by
    how many nats it does: how much more it adds to the record's log predictive there than in a new cluster.
    A vector beside them is one of them, called ``meaning``.
    """

    cluster: int
    probability: float
    words: list[tuple[str, float]] = []


def candidates(
    search: BeamSearch, batch: Batch, words: Sequence[str | None] | None, most: int
) -> list[Candidate]:
    """The likeliest clusters of the best hypothesis, and a new one, for the one record of a batch."""
    slots = search.head_slots()
    labels = search.labels_of(slots)
    ((shares,), logs) = search.weigh(batch, slots)
    best = np.lexsort((np.append(labels, -1), -shares))[:most]
    best = best[shares[best] > 0.0]
    names, gains = list[str | None](), np.zeros((0, len(best)))
    if words is not None:
        names, gains = _gains(search, batch, words, slots, logs)
        gains = gains[:, best]
    found = []
    for column, j in enumerate(best.tolist()):
        new, speaking = j == len(slots), list[tuple[str, float]]()
        for i in [] if new else np.argsort(-gains[:, column], kind="stable")[:TELLING].tolist():
            name = names[i]
            if name is not None and not is_nameless(name) and gains[i, column] > 0.0:
                speaking.append((name, round(float(gains[i, column]), 2)))
        label = -1 if new else int(labels[j])
        found.append(Candidate(cluster=label, probability=round(float(shares[j]), 6), words=speaking))
    return found


def _gains(
    search: BeamSearch, batch: Batch, words: Sequence[str | None], slots: np.ndarray, logs: np.ndarray
) -> tuple[list[str | None], np.ndarray]:
    """By word and cluster: what the log predictive loses without the word, beside that of a new cluster.

    The last is the vector's, where the record has one. ``logs`` are the log predictives of the complete
    record, shape (1, slots + 1).
    """
    learned, places = search.words.learned, np.arange(len(batch.words))
    if isinstance(learned, FieldsLearned):  # the words of fields stand for no value
        places = places[learned.field[batch.words] != FIELD]
    numbers = batch.words[places[:MOST_WORDS]].tolist()
    names = [words[i] if i < len(words) else None for i in numbers]
    keep = [np.delete(np.arange(len(batch.words)), i) for i in places[:MOST_WORDS]]
    vectors = batch.vectors
    if len(batch.words) < 2 and vectors is None:
        return names, logs - logs[:, -1:]
    if vectors is not None:
        names, keep = [*names, MEANING], [*keep, np.arange(len(batch.words))]
        vectors = np.repeat(vectors, len(keep), axis=0)
        vectors[-1] = np.nan
    times = None if batch.times is None else np.repeat(batch.times, len(keep))
    without = Batch.of_words([(batch.words[k], batch.counts[k]) for k in keep], times)
    gain = logs - search.weigh(msgspec.structs.replace(without, vectors=vectors), slots)[1]
    return names, np.nan_to_num(gain - gain[:, -1:], nan=0.0, posinf=0.0, neginf=0.0)
