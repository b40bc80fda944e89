"""Moves of retained records between clusters of the announced clustering, and how they are applied.

Whoever finds that records belong elsewhere proposes moves. They are applied in one way: the best hypothesis
decides everything, clusters are founded, records move one by one, and what became of clusters is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import MERGED, SPLIT, VANISHED, Output
from streamdp.beam.looks.rearrange import found_clusters, move_records, report_change, tidy
from streamdp.beam.looks.recent import Recent
from streamdp.beam.looks.review import by_label, decide, gather_recent, run_looks
from streamdp.beam.looks.uniting import collect_rows
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch, Labelled
from streamdp.likelihoods.vectors import NormalFamily, coarsen_rows
from streamdp.priors.base import found_weight


class Moves(NamedTuple):
    """Records that would go to other clusters, all of them or none, in order.

    ``nats`` is by how much they raise the log joint, where whoever proposes them knows it; None: they are
    weighed, and made if they raise it.
    """

    seqs: np.ndarray  # int64[M]
    was: np.ndarray  # int64[M]
    labels: np.ndarray  # int64[M] from ``minted`` on those of new clusters
    shares: np.ndarray  # float64[M] how sure each of them is
    minted: int
    nats: float | None = None
    before: np.ndarray | None = None
    """int64[M] the labels before others moved, with the same record, which events name; None: as ``was``."""

    @classmethod
    def to(cls, search: BeamSearch, held: Labelled, seqs: np.ndarray, into: int | None = None) -> Self:
        """Records, by number and in order, into one cluster; None: a new one."""
        minted, n = search.next_label, len(seqs)
        labels = np.full(n, minted if into is None else into)
        return cls(seqs, held.labels[seqs - held.first], labels, np.ones(n), minted)

    def take(self, chosen: np.ndarray) -> Self:
        """Some of those that a proposer has found."""
        seqs, was, labels, shares = (each[chosen] for each in self[:4])
        return self._replace(seqs=seqs, was=was, labels=labels, shares=shares)

    def numbered(self, search: BeamSearch) -> Self:
        """The same with the labels that new clusters will have."""
        labels, fresh = self.labels.copy(), self.labels >= self.minted
        labels[fresh] = search.next_label + np.unique(labels[fresh], return_inverse=True)[1]
        return self._replace(labels=labels, minted=search.next_label)


Row = tuple[int, int, np.ndarray, np.ndarray]
"""Kind of an event, slot, labels that records came from or went to, how many each."""


def head_by_label(search: BeamSearch) -> tuple[np.ndarray, np.ndarray]:
    """Labels, in order, and slots of the open clusters of the best hypothesis."""
    pool, slots = search.state.pool, search.head_slots()
    return by_label(search, slots[pool.state[slots] == ALIVE])


def is_full(search: BeamSearch) -> bool:
    """Whether the best hypothesis may found no more clusters."""
    founded = float(search.state.beam.founded[search.head])
    return not found_weight(search.model.prior, founded) > 0.0


def _founders(search: BeamSearch, moves: Moves) -> tuple[np.ndarray, np.ndarray]:
    """What record each new cluster is named after, and the first that it has.

    It is one of its own, after which no other cluster is named, or else any such.
    """
    taken = set(search.state.pool.founder[head_by_label(search)[1]].tolist())
    founders, first = list[int](), list[int]()
    for label in np.unique(moves.labels[moves.labels >= moves.minted]).tolist():
        seqs = moves.seqs[moves.labels == label].tolist()
        names = chain(seqs, range(seqs[0] - 1, -1, -1), range(seqs[0] + 1, search.seq))
        founders.append(next(name for name in names if name not in taken))
        first.append(seqs[0])
        taken.add(founders[-1])
    return np.array(founders, np.int64), np.array(first, np.int64)


def apply(search: BeamSearch, held: Labelled, moves: Moves, *, with_events: bool) -> Iterator[Output]:
    """Let the best hypothesis decide everything, and make moves in it.

    ``with_events`` says whether cluster events are wanted. Yields revisions and events; the buffers are used
    again when the iterator goes on. In the end ``held`` has the labels that came of it.
    """
    yield from decide(search, with_events=with_events)
    moves = moves.numbered(search)
    founders, first = _founders(search, moves)
    _found(search, founders, search.prepare(held.batch.take(first - held.first)).times)
    recent = gather_recent(search, held.first, held.batch, held.labels)
    labels, slots = head_by_label(search)
    into = slots[np.searchsorted(labels, moves.labels)]
    left = slots[np.searchsorted(labels, moves.was)]
    if with_events:
        yield from _report(search, [_end(moves, left, slot) for slot in _ended(search, left, into)])
    chosen = held.batch.take(moves.seqs - held.first)
    concerned = np.unique(np.concatenate([left, into]))
    lasting = _recollect(search, held.batch, recent, concerned, forget=False)
    model, family = search.model, search.model.family
    if lasting is not None:
        model = model._replace(family=family._replace(vector=lasting))

    def move(out: Output) -> None:
        records = search.prepare(chosen)
        state, scores = search.state, search.scores
        move_records(model, state, scores, recent, out, records, moves.seqs, into, moves.shares)

    longest = int(chosen.lengths.max(initial=1))
    yield from run_looks(search, move, len(moves.seqs), len(moves.seqs), longest, with_events)
    _recollect(search, held.batch, recent, concerned, forget=True)
    if with_events:
        born = slots[np.searchsorted(labels, moves.minted + np.arange(len(founders)))]
        before = moves.was if moves.before is None else moves.before
        yield from _report(search, [_birth(before, into, slot) for slot in born.tolist()])
    tidy(search.state, recent, concerned, moves.nats or 0.0)
    held.labels[moves.seqs - held.first] = moves.labels


def _recollect(
    search: BeamSearch, batch: Batch, recent: Recent, slots: np.ndarray, *, forget: bool
) -> Any | None:
    """Where a family forgets, take statistics of slots anew from their records, if all are retained.

    What has been forgotten of a record cannot be taken out: so records move while nothing is forgotten, and
    are forgotten again in their order. Returns the family's terms; None where it does not forget.
    """
    family, state = search.likelihood, search.state
    if not isinstance(family, NormalFamily) or family.forget == 1.0 or batch.vectors is None:
        return None
    terms = (family if forget else family.lasting).terms()
    slots = slots[(recent.held[slots] == state.pool.slots["size"][slots]) & (recent.held[slots] > 0)]
    place = np.full(len(recent.head) + 1, -1)
    place[slots] = np.arange(len(slots))
    block = np.zeros((len(slots), family.width))
    coarse = np.zeros((len(slots), family.coarse), np.float32)
    collect_rows(terms, np.ascontiguousarray(batch.vectors, np.float64), place[recent.slot], block)
    coarsen_rows(terms, block, coarse)
    rows = state.clusters.rows
    rows.block[slots], rows.coarse[slots] = block, coarse
    return terms


def _found(search: BeamSearch, founders: np.ndarray, times: np.ndarray) -> None:
    new = np.zeros(len(founders), np.int64)

    def found(out: Output) -> None:
        found_clusters(search.model, search.state, out, founders, times, new)

    for _ in run_looks(search, found, len(new), 0, 1, with_events=False):
        pass


def _ended(search: BeamSearch, left: np.ndarray, into: np.ndarray) -> list[int]:
    """The slots that will be empty."""
    slots, leaving = np.unique(left, return_counts=True)
    sizes = search.state.pool.slots["size"][slots]
    return list(slots[(leaving == sizes) & ~np.isin(slots, into)].tolist())


def _end(moves: Moves, left: np.ndarray, slot: int) -> Row:
    labels, records = np.unique(moves.labels[left == slot], return_counts=True)
    return (MERGED if len(labels) == 1 else VANISHED), slot, labels, records


def _birth(before: np.ndarray, into: np.ndarray, slot: int) -> Row:
    labels, records = np.unique(before[into == slot], return_counts=True)
    return SPLIT, slot, labels, records


def _report(search: BeamSearch, rows: list[Row]) -> Iterator[Output]:
    if not rows:
        return
    search.out.needs.events = max(len(rows), sum(len(row[2]) for row in rows))
    out = search.output_for(0, 1)
    out.counters.clear()
    out.needs.clear()
    out.counters.with_events = True
    for row in rows:
        report_change(search.state, out, *row)
    yield out
