"""The retained records of a stream as a problem: which can move, beside clusters of those that it let go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from streamdp.beam.clusters.index import WordClusters
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import State
from streamdp.beam.search import NONE, BeamSearch
from streamdp.encode.batch import Batch, Labelled
from streamdp.encode.encoders import Encoded
from streamdp.likelihoods import Gaussian, Likelihood, NormalInverseGamma, VectorFamily
from streamdp.likelihoods.vectors import clear_entry, remove_entry
from streamdp.offline.anchors import Anchors, Past
from streamdp.offline.kernels.links import Held
from streamdp.offline.problem import Problem
from streamdp.priors import DistanceDependent, Prior, by_distance, by_order
from streamdp.settings import Settings

ROUNDING = 1e-11
"""Share of a cluster's weight by which the running sums of a long stream may be off."""

FORGOTTEN = 1e-8
"""A discount at which older vectors can no longer be told from rounding."""


class _Slots(NamedTuple):
    """The open clusters of the announced hypothesis with frozen records."""

    slots: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray  # of the frozen records
    founders: np.ndarray
    members: list[np.ndarray]  # the retained ones, by place among those

    def where(self, chosen: np.ndarray) -> _Slots:
        """Some of them."""
        members = [m for m, taken in zip(self.members, chosen.tolist(), strict=True) if taken]
        slots, labels, sizes, founders = (each[chosen] for each in self[:4])
        return _Slots(slots, labels, sizes, founders, members)


def frozen_of(
    search: BeamSearch, held: Labelled, prior: Prior, likelihood: Likelihood, *, blurred: bool = False
) -> tuple[Anchors, np.ndarray, np.ndarray]:
    """What the clusters of a running beam hold of the records before those that are retained.

    Returns these clusters, their labels, shape (A,), and of each retained record whether it can move: those
    cannot whose cluster is closed and had older members, which have left memory with it.

    ``prior`` and ``likelihood`` are those of the samplers. Where clusters forget, and rows are ``blurred``
    (some are unions of others), older vectors of a cluster with retained ones count for nothing. ValueError
    where the statistics of older records cannot be told from those of the retained ones.
    """
    state = search.state
    found = _open(state, search.head_slots(), held)
    if (found.sizes < 0).any():
        raise ValueError("the labels of the state's records do not agree with its clusters")
    old = found.sizes > 0
    complete = _complete(held, found.labels, int(found.labels[old].max(initial=-1)))
    free = np.isin(held.labels, np.concatenate([found.labels, complete]))
    closed = int(state.beam.founded[search.head]) - len(found.labels) - len(complete)
    found = found.where(old)
    words, rows = Batch(), None
    if likelihood.sparse:
        words = _words(search.words, found, held.batch)
    family = likelihood.vector
    if family is not None:
        forget = getattr(search.likelihood, "forget", 1.0)
        rows = _rows(state, found, held.batch, family, 0.0 if blurred and forget < 1.0 else forget)
    positions = held.first + np.arange(len(held.labels), dtype=np.float64)
    if (linked := by_distance(prior)) is not None and linked.unit == "seconds":
        assert held.batch.times is not None
        positions = np.asarray(held.batch.times, np.float64)
    past = _past(state, found, prior, positions[0], closed)
    weighed = _held(state, found, prior, positions, past)
    anchors = Anchors(found.sizes, words, rows, weighed, positions[free], max(closed, 0), past)
    return anchors, found.labels, free


def _open(state: State, slots: np.ndarray, held: Labelled) -> _Slots:
    pool = state.pool
    slots = slots[pool.state[slots] == ALIVE]
    rows = pool.slots[slots]
    labels = state.lineages.rows["label"][rows["lineage"]]
    order = np.argsort(held.labels, kind="stable")
    edges = [np.searchsorted(held.labels[order], labels, side=side) for side in ("left", "right")]
    members = [order[a:b] for a, b in zip(*edges, strict=True)]
    sizes = rows["size"] - np.array([len(m) for m in members], np.int64)
    return _Slots(slots, labels, sizes, pool.founder[slots], members)


def beside_older(search: BeamSearch, held: Labelled) -> np.ndarray:
    """The retained records whose clusters are open and hold older ones, too, by place among the retained."""
    found = _open(search.state, search.head_slots(), held)
    return np.concatenate([NONE, *found.where(found.sizes > 0).members])


def _complete(held: Labelled, known: np.ndarray, old: int) -> np.ndarray:
    """Labels of closed clusters of which all records are retained.

    Labels are minted in order: one above all before it is new, one below is older than that; only before the
    first new one may an old one pass for it. ``old`` is older than the retained records.
    """
    labels, first = np.unique(held.labels, return_index=True)
    labels = np.asarray(labels[np.argsort(first)])
    highest = np.maximum(np.maximum.accumulate(np.append(-1, labels[:-1])), old)
    return np.asarray(labels[(labels > highest) & ~np.isin(labels, known)])


def _words(clusters: WordClusters, found: _Slots, batch: Batch) -> Batch:
    """The counts of the slots without those of their retained members."""
    index, records = clusters.inverted, []
    for slot, members in zip(found.slots.tolist(), found.members, strict=True):
        begin = int(index.own["start"][slot])
        entries = slice(begin, begin + int(index.types[slot]))
        words = index.word[entries]
        counts = index.occurrences[index.lists["start"][words] + index.where[entries]].astype(np.int64)
        order = np.argsort(words)
        words, counts = words[order], counts[order]
        taken = batch.take(members)
        np.subtract.at(counts, np.searchsorted(words, taken.words), taken.counts)
        if (counts < 0).any():
            raise ValueError("the words of the state's records do not agree with its clusters")
        records.append((words[counts > 0], counts[counts > 0]))
    return Batch.of_words(records)


def _rows(state: State, found: _Slots, batch: Batch, likelihood: VectorFamily, forget: float) -> np.ndarray:
    """The statistics of the slots without their retained members, the latest taken out first.

    Where the stream forgets, older ones count as much as they did before the retained ones joined: for
    nothing where ``forget`` is 0.
    """
    if 0.0 < forget < 1.0 and not isinstance(likelihood, Gaussian | NormalInverseGamma):
        raise ValueError(
            f"what {type(likelihood).__name__} has forgotten of older vectors cannot be told: make the state "
            "with a larger --retain, or with --forget 1"
        )
    assert batch.vectors is not None
    terms = likelihood.terms()
    rows: np.ndarray = state.clusters.rows.block[found.slots].copy()
    for row, members in zip(rows, found.members, strict=True):
        if forget ** len(members) < FORGOTTEN:
            clear_entry(terms, row)
            continue
        for i in members[::-1].tolist():
            if np.isnan(batch.vectors[i, 0]):
                continue
            remove_entry(terms, row, np.array(batch.vectors[i], np.float64))
            if forget < 1.0:
                for part in ("count", "spread"):
                    row[likelihood.parts[part]] /= forget
    return rows


def _past(state: State, found: _Slots, prior: Prior, horizon: float, closed: int) -> Past | None:
    """When the frozen records came; None where the prior does not ask, or clusters are gone that count."""
    if (linked := by_distance(prior)) is not None:
        clusters = range(len(found.slots))
        return Past.of([_frozen_places(state, found, linked, k, horizon) for k in clusters], linked.least)
    if by_order(prior) is not None and closed <= 0:
        return Past.of([np.array([min(founder, horizon - 1.0)]) for founder in found.founders.tolist()])
    return None


def _held(state: State, found: _Slots, prior: Prior, positions: np.ndarray, past: Past | None) -> Held:
    """Where the frozen records lie under the distance-dependent prior, as :class:`Anchors` has it."""
    places, shares = [np.zeros(0)] * len(found.slots), [np.zeros(0)] * len(found.slots)
    if (linked := by_distance(prior)) is not None:
        assert past is not None
        for k, slot in enumerate(found.slots.tolist()):
            here = past.of_cluster(k)
            weight = np.ones(len(here))
            if linked.decay.memoryless:
                weight = np.array([_frozen_weight(state, slot, linked, here, positions, found.members[k])])
                here = positions[:1]
            near = linked.decay(positions[0] - here) > 0.0
            places[k], shares[k] = here[near], weight[near]
    lie = Past.of(places)
    return Held(lie.starts, lie.places, Past.of(shares).places)


def _frozen_places(
    state: State, found: _Slots, prior: DistanceDependent, k: int, horizon: float
) -> np.ndarray:
    """Where the frozen records of a cluster lie; those that the stream no longer knows, evenly.

    It knows the first; under a window or a logistic decay those that had weight at its end; and the last,
    where none of the retained records has joined since.
    """
    slot, n = int(found.slots[k]), int(found.sizes[k])
    row = state.pool.slots[slot]
    queue = state.members.queues[slot]
    known = np.zeros(0)
    if queue["block"] >= 0:
        start = int(queue["start"])
        times = state.members.time[start + int(queue["head"]) : start + int(queue["length"])]
        known = times[: max(len(times) - len(found.members[k]), 0)][-n:]
    first, last, end = float(found.founders[k]), float(row["last"]), horizon - 1.0
    if prior.unit == "seconds":
        first, last, end = float(row["first_time"]), float(row["last_time"]), horizon
    end = end if len(found.members[k]) else min(last, end)
    unknown = n - len(known)
    end = float(known[0]) if len(known) else end
    spread = np.linspace(min(first, end), end, unknown) if unknown > 1 else np.full(unknown, first)
    return np.concatenate([spread, known])


def _frozen_weight(
    state: State,
    slot: int,
    prior: DistanceDependent,
    places: np.ndarray,
    positions: np.ndarray,
    members: np.ndarray,
) -> float:
    """What frozen records weighed together when the first retained one came, under an exponential decay.

    The weight of the cluster at the end without that of its retained members; or, where nothing is left of it
    but rounding, that of records at these places.
    """
    past = float(state.beam.counters.now) - positions
    weight = float(state.pool.weight[slot] * state.beam.counters.scale)
    left = weight - float(prior.decay(past[members]).sum())
    since = float(prior.decay(past[0]))
    if left > 100.0 * ROUNDING * weight and since > 0.0:
        return min(left / since, float(len(places)))
    return float(prior.decay(positions[0] - places).sum())


class Change(msgspec.Struct, frozen=True):
    """A record whose cluster is another one now."""

    seq: int
    cluster: int
    was: int


class Merged(msgspec.Struct, frozen=True, tag_field="event", tag="merged"):
    """A cluster all of whose records, those that are gone among them, belong to another one from now on.

    ``size`` is how many they are, ``nats`` by how much that raises the log joint.
    """

    cluster: int
    other: int
    size: int
    nats: float


def changes(seqs: np.ndarray, before: np.ndarray, after: np.ndarray) -> Sequence[Change]:
    """Records whose label is another one, in order; ``seqs`` are their numbers."""
    moved = np.flatnonzero(before != after)
    return [Change(int(seqs[i]), int(after[i]), int(before[i])) for i in moved]


class Stream(NamedTuple):
    """A running stream: its model, the records that it holds, with their newest labels, and the beam.

    What was answered of records before ``since`` is final, and those of these numbers are ``fixed`` by hand.
    ``looked_at`` says whether looks at vectors choose the family's parameters and which clusters are one.
    """

    settings: Settings
    prior: Prior
    encoded: Encoded
    held: Labelled
    search: BeamSearch
    since: int = 0
    fixed: np.ndarray = NONE
    looked_at: bool = False

    @property
    def base(self) -> np.ndarray | None:
        """p_w by word as the stream has learned it, shape (V,); None for vectors."""
        family = self.search.likelihood.bag
        return None if family is None else family.measure(self.search.words.learned)


@dataclass(frozen=True, eq=False)
class Task:
    """The records of a stream that can move, and the problem of clustering them better.

    Parameters
    ----------
    encoded
        All records that the stream holds.
    seqs, before
        Number and label of each that can move, shape (N,).
    problem
        Those under the stream's own model, beside what its clusters hold of older records.
    names
        Labels of the clusters that hold older records, shape (A,).
    minted
        Labels below it are taken.
    notes
        What a user should know.
    founds
        Whether records may found clusters.
    """

    encoded: Encoded
    seqs: np.ndarray
    before: np.ndarray
    problem: Problem
    names: np.ndarray
    minted: int
    notes: tuple[str, ...] = ()
    founds: bool = True

    @property
    def start(self) -> np.ndarray:
        """The clustering of the stream as labels of a chain, shape (N,)."""
        return self.numbered(self.before)

    def numbered(self, labels: np.ndarray) -> np.ndarray:
        """Labels of the records as those of a chain, in which clusters of older records come first."""
        places = {label: k for k, label in enumerate(self.names.tolist())}
        return np.array([places.get(label, len(places) + label) for label in labels.tolist()])

    def log_joint(self, labels: np.ndarray) -> float:
        """log p(z, x) of a clustering, in nats, given where older records are."""
        return self.problem.chain(self.problem.settings.seed, self.numbered(labels)).log_joint


WORDS = 1 << 26
"""Words of the records of a task at most: samplers have tables as long as their number."""


def task_over(stream: Stream, seed: int | None = None, *, blurred: bool = False) -> Task:
    """What there is to refine. ValueError where nothing can move.

    ``seed`` is of the samplers, None: the stream's; ``blurred``: see ``frozen_of``. A task stays as it is.
    """
    settings, prior, encoded, held, search, *_ = stream
    if (words := int(held.batch.counts.sum(dtype=np.int64))) > WORDS:
        raise ValueError(
            f"its records count {words:,} words, and {WORDS:,} is the most to be refined at once"
        )
    if seed is not None:
        settings = msgspec.structs.replace(settings, seed=seed)
    notes, likelihood = [], search.likelihood
    if getattr(likelihood, "forget", 1.0) < 1.0:
        notes.append("old vectors of a cluster count in full here, while the stream forgot them (--forget)")
        settings = msgspec.structs.replace(settings, forget=1.0)
        likelihood = replace(cast(Any, likelihood), forget=1.0)
    if settings.prior == "auto":  # by its name: that of a finite set would be another
        settings = msgspec.structs.replace(settings, prior="distance-dependent")
    problem = Problem(held.batch, likelihood, prior, settings, base=stream.base)
    seqs, names = held.first + np.arange(len(held.labels)), np.zeros(0, np.int64)
    labels = held.labels.copy()
    if held.first > 0 and likelihood.ordered:
        raise ValueError(
            "a document level needs all records, and older ones are gone: make it with more --retain"
        )
    if held.first > 0:
        of_model = problem.prior, problem.likelihood
        anchors, names, free = frozen_of(search, held, *of_model, blurred=blurred)
        chosen = np.flatnonzero(free)
        if len(chosen) == 0:
            raise ValueError("no record can move: all are in closed clusters whose older records are gone")
        problem = replace(problem, data=held.batch.take(chosen), anchors=anchors)
        seqs, labels = seqs[chosen], labels[chosen]
        stay = len(free) - len(chosen)
        notes.append(
            f"{len(chosen):,} records can move; older ones stay in {len(names):,} clusters"
            + (f", and so do {stay:,} of clusters that closed" if stay else "")
        )
        if not anchors.knows_unions(problem.prior):
            notes.append(
                "no clusters of older records are merged: what the prior says of that depends on when "
                f"{anchors.closed:,} clusters that have closed were founded"
            )
    if len(stays := np.flatnonzero(np.isin(seqs, stream.fixed))):
        notes.append(f"{len(stays):,} records stay together or apart as corrections by hand have them")
    problem = replace(problem, fixed=stays)
    minted = search.next_label
    return Task(encoded, seqs, labels, problem, names, minted, tuple(notes))
