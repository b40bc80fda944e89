"""Apply the clustering of a refinement to a running beam, as far as it is still valid.

A refinement begins at one record and is adopted at a later one. What has changed in between is left alone:
records that have moved, and clusters that have closed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamdp.beam.looks.draft import LOOSE
from streamdp.beam.looks.moves import Moves
from streamdp.beam.looks.uniting import weigh_rows
from streamdp.beam.search import inherit
from streamdp.kernels.sound import finite, require, within
from streamdp.offline.problem import Solution
from streamdp.offline.task import Stream, Task, beside_older, task_over
from streamdp.offline.weigh import Weigher, can_move, nats_of
from streamdp.priors import by_distance


class Proposal(Moves):
    """Moves of a refinement; ``shares`` are those of the draws that have a record with the same others."""

    @staticmethod
    def of(task: Task, solution: Solution) -> Proposal:
        """The changes of the last draw: part of it may be better, though the whole is not.

        But where clusters are few and large there may be one part alone: the best draw is taken there, if it
        is better than the start. That is so under all priors but the distance-dependent.
        """
        found = solution.draws[-1]
        few = by_distance(task.problem.prior) is None
        if few and solution.chain.log_joint > task.log_joint(task.before):
            found = solution.labels
        labels = _labelled(task, found)
        moved = np.flatnonzero(labels != task.before)
        shares = _shares([*solution.draws, found], found, moved)
        return Proposal(task.seqs[moved], task.before[moved], labels[moved], shares, task.minted)

    def check(self, seq: int, minted: int) -> None:
        """See that it is one of a stream of so many records and labels. Raises UnsoundError."""
        require(0 <= self.minted <= minted, "a refinement is out of range")
        for array in self[:3]:
            require(array.dtype == np.int64 and array.ndim == 1, "a refinement of another type")
        require(len({array.shape for array in self[:4]}) == 1, "a refinement of several lengths")
        within(self.seqs, 0, seq, "a record of a refinement")
        require((np.diff(self.seqs) > 0).all(), "the records of a refinement are out of order")
        within(self.was, 0, minted, "a label of a refinement")
        within(self.labels, 0, minted + seq + 1, "a label of a refinement")
        finite(self.shares, "a share of a refinement")
        within(self.shares, 0.0, np.nextafter(1.0, 2.0), "a share of a refinement")


def _shares(draws: list[np.ndarray], answer: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """In which share of the draws each record is with its neighbour in the answer, or is alone."""
    order = np.argsort(answer, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    before, after = order[place[moved] - 1], order[np.minimum(place[moved] + 1, len(order) - 1)]
    near = np.where(answer[before] == answer[moved], before, after)
    alone = answer[near] != answer[moved]
    together = np.zeros(len(moved))
    for labels in draws:
        sizes = np.bincount(labels)
        together += np.where(alone, sizes[labels[moved]] == 1, labels[near] == labels[moved])
    return together / len(draws)


def prepared(stream: Stream) -> Stream:
    """A stream as passes refine it: of vectors that are forgotten, none leaves a cluster that has older ones.

    What it adds to the cluster's statistics is not known then.
    """
    held = stream.held
    if not stream.looked_at or held.first == 0 or getattr(stream.search.likelihood, "forget", 1.0) == 1.0:
        return stream
    stays = held.first + beside_older(stream.search, held)
    return stream._replace(fixed=np.union1d(stream.fixed, stays))


def task_of_pass(stream: Stream, seed: int | None = None) -> Task:
    """What a pass refines of a stream that is ``prepared``. ValueError where nothing can move.

    ``seed`` is that of the samplers.

    Where looks at vectors say how many clusters there are, a pass weighs as they do, and founds none: the
    family alone would take for clusters what the looks have made strays, or parts of a skewed one.
    """
    task = task_over(stream, seed, blurred=stream.looked_at)
    if not stream.looked_at:
        return task
    family, anchors = task.problem.likelihood, task.problem.anchors
    family = family.vector.loosened(LOOSE)
    if anchors is not None and anchors.rows is not None:
        rows = anchors.rows.copy()
        weigh_rows(family.terms(), rows, np.zeros(family.width), np.zeros(len(rows)))
        anchors = replace(anchors, rows=rows)
    return replace(task, problem=replace(task.problem, likelihood=family, anchors=anchors), founds=False)


def _labelled(task: Task, found: np.ndarray) -> np.ndarray:
    """Labels of clusters that a chain has found; where none may be founded, its records stay."""
    labels = inherit(task.before, found, task.names, task.minted)[0][found]
    return labels if task.founds else np.where(labels < task.minted, labels, task.before)


def better(stream: Stream, proposal: Proposal) -> Moves | None:
    """What of a proposal still holds and is better than what the stream has by now; None where nothing is.

    Changes that have no cluster in common stand or fall alone.
    """
    stream = prepared(stream)
    moves = proposal.take(can_move(stream, proposal)).numbered(stream.search)
    if len(moves.seqs) == 0:
        return None
    task = task_of_pass(stream)
    moves = moves.take(np.isin(moves.seqs, task.seqs))
    weigher = Weigher(task, moves, by_hand=stream.looked_at or len(stream.fixed) > 0)
    kept = np.zeros(len(moves.seqs), bool)
    for part in _parts(moves):
        kept[part] = weigher.accept(part)
    moves = moves.take(kept)
    if len(moves.seqs) == 0:
        return None
    return moves._replace(nats=nats_of(stream, moves) if stream.looked_at else weigher.nats)


def _parts(changes: Proposal) -> list[np.ndarray]:
    """The changes by what they have clusters in common with, the earliest first."""
    parent: dict[int, int] = {}

    def root(label: int) -> int:
        while parent.setdefault(label, label) != label:
            label = parent[label]
        return label

    for was, label in zip(changes.was.tolist(), changes.labels.tolist(), strict=True):
        parent[root(label)] = root(was)
    roots = np.array([root(label) for label in changes.was.tolist()], np.int64)
    kinds, first = np.unique(roots, return_index=True)
    return [np.flatnonzero(roots == kind) for kind in kinds[np.argsort(first)]]
