"""The beam as an object: a pure function of what it was and the records it is given."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamdp.beam.announce import new_walk
from streamdp.beam.choice import new_choice
from streamdp.beam.due import new_due
from streamdp.beam.index import new_index
from streamdp.beam.members import new_members
from streamdp.beam.model import BEAM, FAMILY, NORMAL_INVERSE_GAMMA, Model
from streamdp.beam.pool import (
    ALIVE,
    CLOSINGS,
    COPIES,
    DECIDED,
    DROPPED,
    EVIDENCE,
    EVIDENCE_LOW,
    HEAD,
    JOINT,
    JOINT_LOW,
    NEXT_LABEL,
    PLANE,
    RETIRED,
    SEQ,
    SWITCHES,
    WIDTH,
    new_beam,
    new_pool,
)
from streamdp.beam.room import make_room, more_words, power_of_two
from streamdp.beam.scores import new_scores
from streamdp.beam.sizes import new_sizes
from streamdp.beam.state import (
    COMPLETE,
    DONE,
    EVENTS,
    GROW,
    NEED_EVENTS,
    NEED_REVISIONS,
    REVISIONS,
    STATUS,
    Output,
    State,
    new_dense,
    new_output,
)
from streamdp.beam.step import advance, score_only
from streamdp.beam.trellis import NODE_USED, new_lineages, new_trellis
from streamdp.encode.batch import Batch

SLOTS = 64
NO_FOUNDERS = np.zeros(0, np.int64)
NO_VECTORS = np.zeros((1, 0))


def new_state(model: Model) -> State:
    """The state before the first record."""
    width = int(model.ints[BEAM])
    dimension = model.location.shape[0]
    return State(
        new_beam(width),
        new_pool(SLOTS, width, SLOTS),
        new_sizes(SLOTS, SLOTS, 16 * SLOTS),
        new_due(SLOTS),
        new_members(SLOTS, SLOTS),
        new_index(SLOTS, SLOTS, 16 * SLOTS, 16 * SLOTS),
        new_dense(SLOTS, dimension, model.ints[FAMILY] == NORMAL_INVERSE_GAMMA),
        new_trellis(16 * SLOTS),
        new_lineages(SLOTS),
        np.zeros(SLOTS, np.int64),
        np.zeros(SLOTS, np.int64),
    )


def _offsets(batch: Batch) -> tuple[np.ndarray, int]:
    """Offsets that exist for vectors too, and the most distinct words of a record."""
    offsets = np.zeros(batch.size + 1, np.int64) if batch.dense else batch.offsets
    return offsets, int(np.diff(offsets).max(initial=0))


class BeamSearch:
    """A running bounded-beam search.

    Parameters
    ----------
    model
        Prior, likelihood and search settings.
    state
        A state to go on from; None starts anew.
    """

    def __init__(self, model: Model, state: State | None = None) -> None:
        self.model = model
        self.state = state if state is not None else new_state(model)
        self._width = int(model.ints[BEAM])
        self._scores = new_scores(1, 1, 1, 1)
        self._choice = new_choice(self._width, 1)
        self._walk = new_walk(1, self._width)
        self._out = new_output(1, SLOTS, 16 * SLOTS, model.location.shape[0])

    def ensure_words(self, count: int) -> None:
        """Make room for word ids below ``count``."""
        if count > self.state.inverted.length.shape[0]:
            self.state = self.state._replace(inverted=more_words(self.state.inverted, power_of_two(count)))

    def forget_words(self, ids: np.ndarray) -> None:
        """Take words that no cluster holds out of the base measure; their ids may be given to others."""
        index = self.state.inverted
        index.totals[0] -= index.base[ids].sum()
        index.totals[1] -= np.count_nonzero(index.base[ids])
        index.base[ids] = 0
        index.most[ids] = 0

    def _prepare(self, records: int, longest: int) -> None:
        """Fit scratch space and buffers to the state and to a batch."""
        state = self.state
        slots, classes = state.pool.next.shape[0], state.sizes.next.shape[0]
        scores = self._scores
        if (
            scores.value.shape[0] != slots
            or scores.ratio.shape[0] != classes
            or scores.fresh.shape[0] < longest
            or scores.position.shape[0] != state.inverted.length.shape[0]
        ):
            tick = scores.meta.copy()
            self._scores = new_scores(
                slots, classes, power_of_two(max(longest, 16)), state.inverted.length.shape[0]
            )
            self._scores.meta[:] = tick
        if self._choice.offer.shape[0] != state.pool.slot_of.shape[0]:
            self._choice = new_choice(self._width, state.pool.slot_of.shape[0])
        if self._walk.node.shape[0] != state.announced.shape[0]:
            self._walk = new_walk(state.announced.shape[0], self._width)
        out = self._out
        revisions, events = out.revision_seq.shape[0], out.event_by.shape[0]
        need_revisions, need_events = int(out.meta[NEED_REVISIONS]), int(out.meta[NEED_EVENTS])
        if out.label.shape[0] < records or revisions < need_revisions or events < need_events:
            grown = new_output(
                max(out.label.shape[0], power_of_two(records)),
                max(revisions, power_of_two(2 * need_revisions)),
                max(events, power_of_two(2 * need_events)),
                self.model.location.shape[0],
            )
            for name in ("label", "probability", "log_predictive", "founded", "link", "decided"):
                getattr(grown, name)[: out.label.shape[0]] = getattr(out, name)
            for name in Output._fields:
                if name.startswith(("revision_", "event_")):
                    old = getattr(out, name)
                    getattr(grown, name)[: old.shape[0]] = old
            grown.meta[:] = out.meta
            self._out = grown

    def run(self, batch: Batch, founders: np.ndarray = NO_FOUNDERS) -> Iterator[tuple[int, int, Output]]:
        """Absorb records in order.

        Parameters
        ----------
        batch
            The records, words of count one first in each; without times all happen at 0.
        founders
            Decisions made elsewhere, shape (n,): the seq of the record that began the cluster of each,
            its own for a new cluster. Empty: the search decides.

        Yields
        ------
        ``(start, stop, output)``: the answers to records start .. stop - 1, and the revisions and events
        that they caused. The buffers are used again when the iterator goes on.
        """
        n = batch.size
        times = np.zeros(n) if batch.times is None else batch.times
        vectors = NO_VECTORS if batch.vectors is None else batch.vectors
        offsets, longest = _offsets(batch)
        start = 0
        self._out.meta[:] = 0
        while start < n:
            self._prepare(n, longest)
            out = self._out
            advance(
                self.model,
                self.state,
                self._scores,
                self._choice,
                self._walk,
                out,
                times,
                offsets,
                batch.words,
                batch.counts,
                vectors,
                founders,
            )
            status = int(out.meta[STATUS])
            if status == GROW:
                self.state = make_room(self.state, out.meta)
                continue
            stop = int(out.meta[DONE])
            yield start, stop, out
            start = stop
            out.meta[REVISIONS] = 0
            out.meta[EVENTS] = 0
            out.meta[NEED_REVISIONS:] = 0
            if status == COMPLETE and stop < n:
                raise RuntimeError("the beam stopped early: this is a defect of streamdp")

    def score(self, batch: Batch) -> Output:
        """Answer without learning; records as for :meth:`run`. Label -1 means a new cluster."""
        n = batch.size
        times = np.zeros(n) if batch.times is None else batch.times
        offsets, longest = _offsets(batch)
        self._out.meta[:] = 0
        self._prepare(n, longest)
        score_only(
            self.model,
            self.state,
            self._scores,
            self._choice,
            self._out,
            times,
            offsets,
            batch.words,
            batch.counts,
            NO_VECTORS if batch.vectors is None else batch.vectors,
        )
        return self._out

    def rename(self, told: np.ndarray, names: np.ndarray, minted: int) -> np.ndarray:
        """Give the clusters of one hypothesis other labels, before any of them was told.

        Parameters
        ----------
        told, names
            Label of every record so far, and what it is to be, each of shape (n,). Where one label is to
            become several, or a name comes twice, the first has it and the others are minted.
        minted
            Labels below it are taken.

        Returns
        -------
        The new label of every record.
        """
        labels, first = np.unique(told, return_index=True)
        new = names[first].copy()
        again = np.ones(len(new), bool)
        again[np.unique(new[np.argsort(first)], return_index=True)[1]] = False
        repeated = np.zeros(len(new), bool)
        repeated[np.argsort(first)] = again
        fresh = max(minted, int(new.max(initial=-1)) + 1)
        new[repeated] = fresh + np.arange(repeated.sum())
        self.state.beam.meta[NEXT_LABEL] = fresh + int(repeated.sum())
        table = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
        table[labels] = new
        own = self.state.lineages.label
        known = own < len(table)
        own[known] = table[own[known]]
        return table[told]

    @property
    def seq(self) -> int:
        """Records absorbed so far."""
        return int(self.state.beam.meta[SEQ])

    @property
    def decided(self) -> int:
        """The last record whose assignment all hypotheses share, -1 for none."""
        return int(self.state.beam.meta[DECIDED])

    @property
    def log_evidence(self) -> float:
        """Prequential log evidence: sum of log p(x_t | past), nats."""
        sums = self.state.beam.sums
        return float(sums[EVIDENCE] + sums[EVIDENCE_LOW])

    @property
    def log_joints(self) -> np.ndarray:
        """True log joint of every hypothesis, in rank order, nats."""
        beam = self.state.beam
        offset = beam.sums[JOINT] + beam.sums[JOINT_LOW]
        return np.asarray(beam.joint[: beam.meta[WIDTH]] + offset)

    @property
    def head(self) -> int:
        """Rank of the hypothesis with the largest true log joint."""
        return int(self.state.beam.meta[HEAD])

    def head_slots(self) -> np.ndarray:
        """Pool slots of the open clusters of the best hypothesis."""
        pool = self.state.pool
        slots = np.flatnonzero(pool.state == ALIVE)
        columns = pool.column[slots]
        return slots[(columns < 0) | (pool.holds[pool.meta[PLANE], self.head, np.maximum(columns, 0)] == 1)]

    def counters(self) -> dict[str, int]:
        """Counts for metrics."""
        meta = self.state.beam.meta
        return {
            "records": int(meta[SEQ]),
            "hypotheses": int(meta[WIDTH]),
            "clusters_live": len(self.head_slots()),
            "clusters_created": int(meta[NEXT_LABEL]),
            "clusters_closed": int(meta[CLOSINGS]),
            "clusters_retired": int(meta[RETIRED]),
            "cluster_copies": int(meta[COPIES]),
            "dissenters_dropped": int(meta[DROPPED]),
            "switches": int(meta[SWITCHES]),
            "undecided": int(meta[SEQ] - 1 - meta[DECIDED]),
            "trellis_nodes": int(self.state.trellis.meta[NODE_USED]),
        }

    def history(self, rank: int) -> dict[int, int]:
        """Founder of every undecided record under a hypothesis."""
        trellis, lineages = self.state.trellis, self.state.lineages
        node = int(self.state.beam.leaf[rank])
        founders: dict[int, int] = {}
        while trellis.seq[node] > self.decided:
            founders[int(trellis.seq[node])] = int(lineages.founder[trellis.lineage[node]])
            node = int(trellis.parent[node])
        return founders
