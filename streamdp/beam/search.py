"""The beam as an object: a pure function of what it was and the records it is given.

Daume III 2007, section 3, with a queue that holds clusterings of equally many records: they are compared as
they are, without a completion or a look-ahead.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from streamdp.beam.clusters.index import WordClusters
from streamdp.beam.data.choice import Choice, Scores, Walk, WordScores
from streamdp.beam.data.pool import ALIVE, VACANT
from streamdp.beam.data.state import COMPLETE, GROW, Model, Output, State
from streamdp.beam.growth import SLOTS, make_room, new_state
from streamdp.beam.step.advance import Records, advance, score_only, weigh
from streamdp.encode.batch import Batch
from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import grown, made, new_counters, power_of_two
from streamdp.likelihoods import Likelihood
from streamdp.likelihoods.base import ABSENT, is_absent
from streamdp.likelihoods.categorical import FieldsLearned, forget_values

NONE = np.zeros(0, np.int64)
NO_VECTORS = np.zeros((1, 0))
_NOTHING = [np.array(new_counters(Output, with_events=wanted)) for wanted in (False, True)]
"""Counters of empty buffers, without and with events: plain arrays, as others take far longer to copy."""


class BeamSearch:
    """A running bounded-beam search.

    Parameters
    ----------
    model
        Prior, likelihood and search settings, as kernels read them.
    likelihood
        That of the model.
    state
        A state to go on from; None starts anew.
    """

    def __init__(self, model: Model, likelihood: Likelihood, state: State | None = None) -> None:
        self.state = new_state(model, likelihood) if state is None else state
        self.model = model
        self.likelihood = likelihood
        self.scores: Scores
        """Scratch space of the last call."""
        self.choice: Choice
        """The same."""
        self._walk: Walk
        self._sizes: dict[str, int] = {}
        self._fitted: State | None = None  # what scratch space was made for last
        self._room = 0  # distinct words of a record
        width = 0 if likelihood.sparse else likelihood.vector.width
        sizes = {"records": 1, "revisions": SLOTS, "events": 16 * SLOTS, "width": width}
        self.out = made(Output, sizes)
        """The buffers of the last call."""
        self._advance, self._answer, self._weigh = Bound(advance), Bound(score_only), Bound(weigh)
        self._fit(0)

    @property
    def words(self) -> WordClusters:
        """The statistics of a beam over words; TypeError for vectors."""
        if not self.sparse:
            raise TypeError("this beam is over vectors")
        bag: WordClusters = self.state.clusters.bag
        return bag

    @property
    def sparse(self) -> bool:
        """Whether it is over words."""
        return self.likelihood.sparse

    def rebase(self, likelihood: Likelihood) -> None:
        """Go on with other parameters of the family; the rows of the clusters are as they were."""
        self.likelihood = likelihood
        self.model = self.model._replace(family=likelihood.part_terms)
        if likelihood.vector is not None:
            self.state.clusters.rows.empty[:] = likelihood.vector.empty_row()

    def ensure_words(self, count: int) -> None:
        """Make room for word ids below ``count``."""
        if count > len(self.state.clusters.bag.learned.counts):
            self.state = grown(self.state, "words", power_of_two(count))

    def held_words(self) -> np.ndarray:
        """Whether a cluster holds each word, by id."""
        return np.asarray(self.words.inverted.lists["length"] > 0)

    def forget_words(self, ids: np.ndarray) -> None:
        """Take words that no cluster holds out of the base measure; their ids may be given to others."""
        learned = self.words.learned
        of_texts = learned.among_texts(ids) if isinstance(learned, FieldsLearned) else ids
        learned.counters.seen -= np.count_nonzero(learned.counts[of_texts])
        learned.counters.repeats -= learned.repeats[of_texts].sum()
        learned.counters.total -= learned.counts[of_texts].sum()
        if isinstance(learned, FieldsLearned):
            forget_values(learned, ids)
        learned.repeats[ids] = 0
        learned.counts[ids] = 0
        self.words.inverted.lists["most"][ids] = 0

    def prepare(self, batch: Batch, founders: np.ndarray = NONE) -> Records:
        """Fit scratch space and buffers to the state and to a batch; the batch as the kernels read it."""
        offsets, words, counts = batch.bags
        vectors = NO_VECTORS
        if batch.vectors is not None:
            vectors = np.ascontiguousarray(batch.vectors, np.float64)
        n, longest = len(offsets) - 1, len(words)  # no record has more
        if longest > self._room:
            longest = int(batch.lengths.max())
        self._fit(longest)
        if n > len(self.out.answers):
            self._prepare_output(n)
        times = np.zeros(n) if batch.times is None else np.ascontiguousarray(batch.times, np.float64)
        return Records(times, offsets, words, counts, vectors, founders)

    def _fit(self, longest: int) -> None:
        """Fit scratch space to the state, and to records of so many distinct words."""
        state, (bag, rows) = self.state, self.state.clusters
        if state is self._fitted and longest <= self._room:
            return
        slots, coarse = len(state.pool.slots), 0 if is_absent(rows) else rows.coarse.shape[1]
        sizes = {"slots": slots, "columns": len(state.pool.slot_of), "undecided": len(state.announced)}
        sizes |= {"beam": self.model.beam, "coarse": coarse, "looked": slots if coarse else 0}
        if not is_absent(bag):
            self._room = max(self._room, power_of_two(max(longest, 16)))
            sizes |= {"classes": len(state.sizes.classes), "words": len(bag.learned.counts)}
            sizes |= {"longest": self._room, "looked": 0 if is_absent(rows) else len(rows.empty)}
        if sizes != self._sizes:
            words: Any = ABSENT if is_absent(bag) else made(WordScores, sizes)
            if not is_absent(words) and self._sizes:
                words.counters[...] = self.scores.words.counters
            self.scores, self.choice = made(Scores, sizes, words=words), made(Choice, sizes)
            self._walk, self._sizes = made(Walk, sizes), sizes
        self._fitted = state

    def output_for(self, revisions: int, longest: int) -> Output:
        """Buffers for at least so many revisions, scratch space for a record of so many distinct words."""
        self._fit(longest)
        self.out.needs.revisions = revisions
        self._prepare_output(1)
        return self.out

    def _prepare_output(self, records: int) -> None:
        out = self.out
        revisions, events = int(out.needs.revisions), int(out.needs.events)
        for name, wanted in (("answers", records), ("revisions", 2 * revisions), ("events", 2 * events)):
            held = len(getattr(out, name))
            if held < wanted // (1 if name == "answers" else 2):
                out = grown(out, "records" if name == "answers" else name, power_of_two(wanted))
        self.out = out

    def make_room(self) -> None:
        """Enlarge what a kernel that has stopped with status GROW says is too small."""
        self.state = make_room(self.state, self.out.needs)
        self._prepare_output(1)

    def clear(self, with_events: bool) -> None:
        """Empty the buffers; what is needed, kernels say anew."""
        self.out.counters[()] = _NOTHING[with_events]

    def _lasting(self) -> tuple[Any, ...]:
        """What kernels are given besides records."""
        return self.model, self.state, self.scores, self.choice, self._walk, self.out

    def calls(self, records: Records) -> tuple[Callable[[], None], Callable[[], None]]:
        """Absorb records of :meth:`prepare`, and answer them: while state and output stay the same."""
        lasting = self._lasting()
        return self._advance.once(lasting, records), self._answer.once(lasting, records)

    def run(
        self, batch: Batch, founders: np.ndarray = NONE, *, with_events: bool = False
    ) -> Iterator[tuple[int, int, Output]]:
        """Absorb records in order.

        Parameters
        ----------
        batch
            The records, words of count one first in each; without times all happen at 0.
        founders
            Decisions made elsewhere, shape (n,): the seq of the record that began the cluster of each,
            its own for a new cluster; -1 where the search decides. -2 - i follows record i of the batch, and
            -2 - n - f into the cluster that record f began, where that is open; else the search decides.
            Empty: it decides them all.
        with_events
            Whether cluster events are wanted.

        Yields
        ------
        ``(start, stop, output)``: the answers to records start .. stop - 1, and the revisions and events
        that they caused. The buffers are used again when the iterator goes on.
        """
        n, start = batch.size, 0
        self.clear(with_events)
        while start < n:
            records = self.prepare(batch, founders)
            out, counters = self.out, self.out.counters
            self._advance(self._lasting(), records)
            status = counters.status
            if status == GROW:
                self.make_room()
                continue
            stop = int(counters.done)
            if status == COMPLETE and stop < n:
                raise RuntimeError("the beam stopped early: this is a defect of streamdp")
            yield start, stop, out
            start = stop
            if start < n:
                counters.revisions = counters.events = counters.moves = 0

    def score(self, batch: Batch) -> Output:
        """Answer without learning; records as for :meth:`run`. Label -1 means a new cluster."""
        self.clear(False)
        records = self.prepare(batch)
        self._answer(self._lasting(), records)
        return self.out

    def weigh(self, batch: Batch, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probability and log predictive, each of shape (n, slots + 1), of joining clusters or a new one.

        Learns nothing, as :meth:`score`; the last column is that of a new cluster.
        """
        records = self.prepare(batch)
        shares, logs = np.zeros((2, batch.size, len(slots) + 1))
        lasting = self.model, self.state, self.scores, self.choice
        self._weigh(lasting, records, slots.astype(np.int64), shares, logs)
        return shares, logs

    def rename(self, announced: np.ndarray, names: np.ndarray, minted: int) -> np.ndarray:
        """Give the clusters of one hypothesis other labels, before any of them was announced.

        Parameters
        ----------
        announced, names
            Label of every record so far, and what it is to be, each of shape (n,). Where one label is to
            become several, or a name comes twice, the first has it and the others are minted.
        minted
            Labels below it are taken.

        Returns
        -------
        The new label of every record.
        """
        labels, first = np.unique(announced, return_index=True)
        new = names[first].copy()
        again = np.ones(len(new), bool)
        again[np.unique(new[np.argsort(first)], return_index=True)[1]] = False
        repeated = np.zeros(len(new), bool)
        repeated[np.argsort(first)] = again
        fresh = max(minted, int(new.max(initial=-1)) + 1)
        new[repeated] = fresh + np.arange(repeated.sum())
        self.state.beam.counters.next_label = fresh + int(repeated.sum())
        table = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
        table[labels] = new
        own = self.state.lineages.rows["label"]
        known = own < len(table)
        own[known] = table[own[known]]
        return table[announced]

    @property
    def seq(self) -> int:
        """Records absorbed so far."""
        return int(self.state.beam.counters.seq)

    @property
    def next_label(self) -> int:
        """What the next new cluster will be called."""
        return int(self.state.beam.counters.next_label)

    @property
    def decided(self) -> int:
        """The last record whose assignment all hypotheses share, -1 for none."""
        return int(self.state.beam.counters.decided)

    @property
    def log_evidence(self) -> float:
        """Prequential log evidence: sum of log p(x_t | past), nats."""
        counters = self.state.beam.counters
        return float(counters.evidence + counters.evidence_low)

    @property
    def log_joints(self) -> np.ndarray:
        """True log joint of every hypothesis, in rank order, nats."""
        beam = self.state.beam
        offset = beam.counters.joint + beam.counters.joint_low
        return np.asarray(beam.joint[: beam.counters.width] + offset)

    @property
    def head(self) -> int:
        """Rank of the hypothesis that is announced: of the largest true log joint, or the greedy
        hypothesis.
        """
        return int(self.state.beam.counters.head)

    def head_slots(self) -> np.ndarray:
        """Pool slots of the clusters of the best hypothesis whose end was not reported."""
        pool = self.state.pool
        slots = np.flatnonzero(pool.state != VACANT)
        columns = pool.column[slots]
        return slots[(columns < 0) | (pool.holds[pool.counters.half, self.head, np.maximum(columns, 0)] == 1)]

    def labels_of(self, slots: np.ndarray) -> np.ndarray:
        """The labels of clusters."""
        return np.asarray(self.state.lineages.rows["label"][self.state.pool.slots["lineage"][slots]])

    def pin(self, labels: Collection[int]) -> None:
        """Let the clusters of these labels, and no others, stay open for ever."""
        pool, rows = self.state.pool, self.state.lineages.rows
        found = np.isin(rows["label"][pool.slots["lineage"]], [*labels])
        pool.pinned[:] = found & (pool.state == ALIVE)

    def counters(self) -> dict[str, int]:
        """Counts for metrics."""
        counters = self.state.beam.counters
        return {
            "records": int(counters.seq),
            "hypotheses": int(counters.width),
            "clusters_live": len(self.head_slots()),
            "clusters_created": int(counters.next_label),
            "clusters_closed": int(counters.closings),
            "clusters_retired": int(counters.retired),
            "cluster_copies": int(counters.copies),
            "dissenters_dropped": int(counters.dropped),
            "switches": int(counters.switches),
            "second_looks": int(counters.looks),
            "records_moved": int(counters.moved),
            "clusters_merged": int(counters.mergers),
            "undecided": int(counters.seq - 1 - counters.decided),
            "trellis_nodes": int(self.state.trellis.counters.used),
        }


def inherit(
    before: np.ndarray, after: np.ndarray, kept: np.ndarray = NONE, minted: int = 0
) -> tuple[np.ndarray, int]:
    """The label of each new cluster: by largest overlap, one to one, the older label on ties.

    Parameters
    ----------
    before, after
        Labels, and numbers of clusters, of the same records.
    kept
        Labels of the first clusters, which keep them.
    minted
        Labels below it are taken, as are those of ``before``.

    Returns labels by the number of the cluster, and the first label that is free.
    """
    pairs, overlap = np.unique(np.stack([before, after], axis=1), axis=0, return_counts=True)
    minted = max(int(before.max(initial=-1)) + 1, minted)
    names = np.full(max(int(after.max(initial=-1)) + 1, len(kept)), -1)
    names[: len(kept)] = kept
    taken: set[int] = set(kept.tolist())
    for p in np.lexsort((pairs[:, 1], pairs[:, 0], -overlap)):
        label, cluster = int(pairs[p, 0]), int(pairs[p, 1])
        if names[cluster] < 0 and label not in taken:
            names[cluster] = label
            taken.add(label)
    for cluster in np.flatnonzero(names < 0).tolist():
        names[cluster] = minted
        minted += 1
    return names, minted
