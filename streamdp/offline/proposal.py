"""What a refinement would change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.labels import inherit
from streamdp.kernels.sound import finite, require, within
from streamdp.offline.problem import Solution
from streamdp.offline.task import Task
from streamdp.priors.kinds import by_distance
from streamdp.state.retained import pack, unpack


class Proposal(NamedTuple):
    """Records that a refinement would move, in order; labels from ``minted`` on are of new clusters."""

    seqs: np.ndarray  # int64[M]
    was: np.ndarray  # int64[M]
    labels: np.ndarray  # int64[M]
    shares: np.ndarray  # float64[M] of the draws in which the record is with the same others
    minted: int

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
        names, _ = inherit(task.before, found, task.names, task.minted)
        labels = names[found]
        moved = np.flatnonzero(labels != task.before)
        shares = _shares([*solution.draws, found], found, moved)
        return Proposal(task.seqs[moved], task.before[moved], labels[moved], shares, task.minted)

    def take(self, chosen: np.ndarray) -> Proposal:
        """Some of them."""
        seqs, was, labels, shares, minted = self
        return Proposal(seqs[chosen], was[chosen], labels[chosen], shares[chosen], minted)

    def check(self, seq: int, minted: int) -> None:
        """See that it is one of a stream of so many records and labels. Raises UnsoundError."""
        require(type(self.minted) is int and 0 <= self.minted <= minted, "a refinement is out of range")
        for array in self[:3]:
            require(array.dtype == np.int64 and array.ndim == 1, "a refinement of another type")
        require(len({array.shape for array in self[:4]}) == 1, "a refinement of several lengths")
        within(self.seqs, 0, seq, "a record of a refinement")
        require((np.diff(self.seqs) > 0).all(), "the records of a refinement are out of order")
        within(self.was, 0, minted, "a label of a refinement")
        within(self.labels, 0, minted + seq + 1, "a label of a refinement")
        finite(self.shares, "a share of a refinement")

    def dump(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {k: v if isinstance(v, int) else pack(v) for k, v in self._asdict().items()}

    @staticmethod
    def load(stored: dict[str, Any]) -> Proposal:
        """The inverse of :meth:`dump`."""
        parts: dict[str, Any] = {k: v if isinstance(v, int) else unpack(v) for k, v in stored.items()}
        return Proposal(**parts)


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
