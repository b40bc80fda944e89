"""Carrying out what was found of the announced clustering: records move, clusters are founded and end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self, TypeVar

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
    """Records that would go to other clusters, in order; labels from ``minted`` on are of new ones."""

    seqs: np.ndarray  # int64[M]
    was: np.ndarray  # int64[M]
    labels: np.ndarray  # int64[M]
    shares: np.ndarray  # float64[M] how sure each of them is
    minted: int

    def take(self, chosen: np.ndarray) -> Self:
        """Some of them."""
        seqs, was, labels, shares, _ = self
        return self._replace(seqs=seqs[chosen], was=was[chosen], labels=labels[chosen], shares=shares[chosen])


Changes = TypeVar("Changes", bound=Moves)


class Arrangement(NamedTuple):
    """Moves that can be made, and by how many nats they raise the log joint."""

    changes: Moves
    founders: np.ndarray  # int64[K] which record names each new cluster; their labels follow each other
    nats: float
    told: np.ndarray | None = None
    """int64[M] the labels before others moved, with the same record; None: as ``was``."""


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


def numbered(
    search: BeamSearch, changes: Changes, among: np.ndarray | None = None
) -> tuple[Changes, np.ndarray]:
    """The same with the labels that new clusters will have, and what records these are named after.

    A cluster is named after one of its records, after which no other is: one where that cannot be is left.
    Others are the open clusters in the slots ``among``; None: those of all hypotheses.
    """
    state = search.state
    others = state.pool.state == ALIVE
    if among is not None:
        others &= np.isin(np.arange(len(others)), among)
    taken = set(state.pool.founder[others].tolist())
    founders: list[int] = []
    labels, keep = changes.labels.copy(), np.ones(len(changes.labels), bool)
    minted = int(state.beam.counters.next_label)
    for label in np.unique(changes.labels[changes.labels >= changes.minted]).tolist():
        members = changes.labels == label
        founder = next((seq for seq in changes.seqs[members].tolist() if seq not in taken), None)
        keep &= ~members | (founder is not None)
        if founder is not None:
            labels[members] = minted + len(founders)
            founders.append(founder)
    found = changes._replace(labels=labels, minted=minted).take(keep)
    return found, np.array(founders, np.int64)


def carry_out(
    search: BeamSearch, held: Labelled, plan: Arrangement, *, with_events: bool
) -> Iterator[Output]:
    """Let the best hypothesis decide everything, and rearrange it.

    ``with_events`` says whether cluster events are wanted. Yields revisions and events; the buffers are used
    again when the iterator goes on.
    """
    changes = plan.changes
    times = np.zeros(held.batch.size) if held.batch.times is None else held.batch.times
    times = np.ascontiguousarray(times, np.float64)

    yield from decide(search, with_events=with_events)
    _found(search, plan, times[plan.founders - held.first])
    recent = gather_recent(search, held.first, held.batch, held.labels)
    labels, slots = head_by_label(search)
    into = slots[np.searchsorted(labels, changes.labels)]
    left = slots[np.searchsorted(labels, changes.was)]
    ended = _ended(search, changes, left, into)
    if with_events:
        yield from _report(search, [_end(changes, left, slot) for slot in ended])
    chosen = held.batch.take(changes.seqs - held.first)
    chosen_times = times[changes.seqs - held.first]
    concerned = np.unique(np.concatenate([left, into]))
    lasting = _recollect(search, held.batch, recent, concerned, forget=False)
    model, family = search.model, search.model.family
    if lasting is not None:
        model = model._replace(family=family._replace(vector=lasting))

    def move(out: Output) -> None:
        records = search.prepare(chosen)._replace(times=chosen_times)
        state, scores = search.state, search.scores
        move_records(model, state, scores, recent, out, records, changes.seqs, into, changes.shares)

    longest = int(np.diff(chosen.offsets).max(initial=1)) if chosen.sparse else 1
    yield from run_looks(search, move, len(changes.seqs), len(changes.seqs), longest, with_events)
    _recollect(search, held.batch, recent, concerned, forget=True)
    if with_events:
        minted = changes.minted + np.arange(len(plan.founders))
        born = slots[np.searchsorted(labels, minted)]
        told = changes.was if plan.told is None else plan.told
        yield from _report(search, [_birth(told, into, slot) for slot in born.tolist()])
    tidy(search.state, recent, concerned, plan.nats)


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


def _found(search: BeamSearch, plan: Arrangement, times: np.ndarray) -> None:
    new = np.zeros(len(plan.founders), np.int64)

    def found(out: Output) -> None:
        found_clusters(search.model, search.state, out, plan.founders, times, new)

    for _ in run_looks(search, found, len(new), 0, 1, with_events=False):
        pass


def _ended(search: BeamSearch, changes: Moves, left: np.ndarray, into: np.ndarray) -> list[int]:
    """The slots that will be empty."""
    slots, leaving = np.unique(left, return_counts=True)
    sizes = search.state.pool.slots["size"][slots]
    return list(slots[(leaving == sizes) & ~np.isin(slots, into)].tolist())


def _end(changes: Moves, left: np.ndarray, slot: int) -> Row:
    labels, records = np.unique(changes.labels[left == slot], return_counts=True)
    return (MERGED if len(labels) == 1 else VANISHED), slot, labels, records


def _birth(told: np.ndarray, into: np.ndarray, slot: int) -> Row:
    labels, records = np.unique(told[into == slot], return_counts=True)
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
