"""By how many nats moves raise the log joint: log p(z', x) - log p(z, x) under the stream's own model.

Exact for every family and prior, given where older records are, under the base measure of the moment.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.looks.moves import Moves, head_by_label
from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.offline.kernels.store import FIRST_SLOT
from streamdp.offline.task import Stream, Task, task_over
from streamdp.priors import by_distance


class Weigher:
    """Weighs parts of moves; those that are accepted stand while others are weighed.

    Parameters
    ----------
    task
        The records that can move, and under what model.
    moves
        Of such records.
    by_hand
        Whether a record that is in a cluster which has no weight for it, as hands and looks at vectors leave
        some, counts as one that founds a cluster.
    """

    def __init__(self, task: Task, moves: Moves, *, by_hand: bool) -> None:
        self.moves, self.nats = moves, 0.0
        self._task, self._by_hand, self._at = task, by_hand, np.searchsorted(task.seqs, moves.seqs)
        self._linked = by_distance(task.problem.prior)
        self._chain = task.problem.chain(task.problem.settings.seed, task.start)
        self._labels, self._after = task.before.copy(), task.before.copy()
        self._after[self._at] = moves.labels
        self._old, self._prior = self._worth(task.before)
        self._new, self._new_prior = self._worth(self._after)

    def _worth(self, labels: np.ndarray) -> tuple[dict[int, float], np.ndarray]:
        """What a clustering consists of: log H by label, and log p(z); by record, where distance counts."""
        task, chain = self._task, self._chain
        chain.set_labels(task.numbered(labels))
        values, first = np.unique(labels, return_index=True)
        slots = np.concatenate([chain.allocation.labels[first], FIRST_SLOT + np.arange(len(task.names))])
        log_h = chain.store.log_h[slots].tolist()
        names = [*values.tolist(), *task.names.tolist()]
        return dict(zip(names, log_h, strict=True)), self._log_prior(labels)

    def _log_prior(self, labels: np.ndarray) -> np.ndarray:
        return self._chain.log_terms(self._task.numbered(labels), by_hand=self._by_hand)

    def gain(self, part: np.ndarray) -> float:
        """What some of the moves gain, which have no cluster in common with others that are not accepted."""
        moves = self.moves
        concerned = np.union1d(moves.labels[part], moves.was[part])
        nats = sum(self._new.get(k, 0.0) - self._old.get(k, 0.0) for k in concerned.tolist())
        if self._linked is not None:  # the choice of a record depends on its own cluster alone
            records = np.isin(self._task.before, concerned) | np.isin(self._after, concerned)
            return nats + float((self._new_prior[records] - self._prior[records]).sum())
        labels = self._labels.copy()
        labels[self._at[part]] = moves.labels[part]
        return nats + float((self._log_prior(labels) - self._log_prior(self._labels))[0])

    def accept(self, part: np.ndarray) -> bool:
        """Let some of the moves be made if they gain; whether they do."""
        nats = self.gain(part)
        if not nats > LEAST_GAIN:
            return False
        self.nats += nats
        self._labels[self._at[part]] = self.moves.labels[part]
        return True


def nats_of(stream: Stream, moves: Moves) -> float:
    """By how many nats moves, all of them, raise the log joint; they may have been made by hand."""
    return Weigher(task_over(stream), moves, by_hand=True).gain(np.arange(len(moves.seqs)))


def weighed(stream: Stream, moves: Moves) -> Moves | None:
    """Moves with the nats that they gain; None where they gain none, or cannot be made."""
    moves = moves.numbered(stream.search)
    if len(moves.seqs) == 0 or not can_move(stream, moves).all():
        return None
    nats = nats_of(stream, moves) if moves.nats is None else moves.nats
    if not LEAST_GAIN < nats < np.inf:
        return None
    return moves._replace(nats=nats, shares=np.full(len(moves.seqs), 1.0 / (1.0 + math.exp(-nats))))


def can_move(stream: Stream, moves: Moves) -> np.ndarray:
    """Which of some moves are of records that are open, and of clusters that are as they were."""
    held, (known, slots) = stream.held, head_by_label(stream.search)
    pinned = known[stream.search.state.pool.pinned[slots] == 1]  # they weigh more than their records do
    at = moves.seqs - held.first
    can = (at >= 0) & (moves.seqs >= stream.since) & np.isin(moves.was, known)
    can &= held.labels[np.maximum(at, 0)] == moves.was
    can &= (moves.labels >= moves.minted) | np.isin(moves.labels, known)
    can &= ~np.isin(moves.seqs, stream.fixed)
    return np.asarray(can & ~np.isin(moves.was, pinned) & ~np.isin(moves.labels, pinned))
