"""Apply the clustering of a refinement to a running beam, as far as it is still valid.

A refinement begins at one record and is adopted at a later one. What has changed in between is left alone:
records that have moved, and clusters that have closed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.beam.looks.carry import Arrangement, Moves, head_by_label, numbered
from streamdp.beam.looks.draft import LOOSE
from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.beam.looks.uniting import weigh_rows
from streamdp.beam.search import inherit
from streamdp.kernels.packed import pack, unpack
from streamdp.kernels.sound import finite, require, within
from streamdp.likelihoods import VectorFamily
from streamdp.offline.chain import Chain
from streamdp.offline.kernels.store import FIRST_SLOT
from streamdp.offline.problem import Solution
from streamdp.offline.samplers.gibbs import sweep
from streamdp.offline.task import Stream, Task, beside_older, task_over
from streamdp.priors import DistanceDependent, by_distance


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
        require(type(self.minted) is int and 0 <= self.minted <= minted, "a refinement is out of range")
        for array in self[:3]:
            require(array.dtype == np.int64 and array.ndim == 1, "a refinement of another type")
        require(len({array.shape for array in self[:4]}) == 1, "a refinement of several lengths")
        within(self.seqs, 0, seq, "a record of a refinement")
        require((np.diff(self.seqs) > 0).all(), "the records of a refinement are out of order")
        within(self.was, 0, minted, "a label of a refinement")
        within(self.labels, 0, minted + seq + 1, "a label of a refinement")
        finite(self.shares, "a share of a refinement")
        within(self.shares, 0.0, np.nextafter(1.0, 2.0), "a share of a refinement")

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
    assert isinstance(family, VectorFamily)
    family = family.loosened(LOOSE)
    if anchors is not None and anchors.rows is not None:
        rows = anchors.rows.copy()
        weigh_rows(family.terms(), rows, np.zeros(len(rows)))
        anchors = replace(anchors, rows=rows)
    return replace(task, problem=replace(task.problem, likelihood=family, anchors=anchors), founds=False)


def _labelled(task: Task, found: np.ndarray) -> np.ndarray:
    """Labels of clusters that a chain has found; where none may be founded, its records stay."""
    labels = inherit(task.before, found, task.names, task.minted)[0][found]
    return labels if task.founds else np.where(labels < task.minted, labels, task.before)


def arrangement_of(stream: Stream, proposal: Proposal, since: int) -> Arrangement | None:
    """What of a proposal still holds and is better than what the stream has by now; None where nothing is.

    Changes that have no cluster in common stand or fall alone. Under an exchangeable prior, where clusters
    are few and large, the records from number ``since`` on, which came after the proposal was begun, may
    follow.
    """
    stream = prepared(stream)
    changes, _ = numbered(stream.search, _valid(stream, proposal))
    if len(changes.seqs) == 0:
        return None
    task = task_of_pass(stream)
    changes = changes.take(np.isin(changes.seqs, task.seqs))
    chain = task.problem.chain(task.problem.settings.seed, task.start)
    began = chain.log_joint
    if (linked := by_distance(task.problem.prior)) is not None:
        labels, nats = _better_clusters(task, chain, changes, linked, by_hand=len(stream.fixed) > 0)
    else:
        labels, nats = _better_parts(task, chain, changes)
    if chain.weights is not None:
        late = (task.seqs >= since) & ~np.isin(task.seqs, stream.fixed)
        followed, more = _followed(task, chain, changes, late)
        if more - began > nats and _are_open(stream, task, followed, changes.minted):
            labels, nats = followed, more - began
    moved = np.flatnonzero(labels != task.before)
    shares = np.ones(len(task.seqs))
    shares[np.searchsorted(task.seqs, changes.seqs)] = changes.shares
    better = Proposal(task.seqs[moved], task.before[moved], labels[moved], shares[moved], changes.minted)
    changes, founders = numbered(stream.search, better)
    if len(changes.seqs) == 0:
        return None
    return Arrangement(changes, founders, nats_of(stream, changes) if stream.looked_at else nats)


def _are_open(stream: Stream, task: Task, labels: np.ndarray, minted: int) -> bool:
    """Whether no record would leave or join a cluster that has closed."""
    moved, known = labels != task.before, head_by_label(stream.search)[0]
    into = labels[moved]
    return bool(np.isin(task.before[moved], known).all() and (np.isin(into, known) | (into >= minted)).all())


def nats_of(stream: Stream, changes: Moves) -> float:
    """By how many nats changes raise the log joint.

    A record that is by hand in a cluster which has no weight for it counts as one that founds a cluster.
    """
    task = task_over(stream)
    chain = task.problem.chain(task.problem.settings.seed, task.start)
    linked, joints = by_distance(task.problem.prior), []
    after = task.before.copy()
    after[np.searchsorted(task.seqs, changes.seqs)] = changes.labels
    for labels in (task.before, after):
        chain.set_labels(task.numbered(labels))
        if linked is None:
            joints.append(chain.log_joint)
        else:
            terms = _prior_terms(task, chain, linked, labels, by_hand=True)
            joints.append(chain.log_likelihood + float(terms.sum()))
    return joints[1] - joints[0]


def _better_parts(task: Task, chain: Chain, changes: Proposal) -> tuple[np.ndarray, float]:
    """Labels of the records with the changes that are better, part by part, and the nats gained."""
    labels, at = task.before.copy(), np.searchsorted(task.seqs, changes.seqs)
    nats = 0.0
    for part in _parts(changes):
        before = chain.log_joint
        labels[at[part]] = changes.labels[part]
        chain.set_labels(task.numbered(labels))
        if chain.log_joint - before > LEAST_GAIN:
            nats += chain.log_joint - before
        else:
            labels[at[part]] = changes.was[part]
            chain.set_labels(task.numbered(labels))
    return labels, nats


class _Worth(NamedTuple):
    """What a clustering consists of: log p(z) by record, and log H by label, in nats."""

    prior: np.ndarray
    clusters: dict[int, float]

    @classmethod
    def of(
        cls, task: Task, chain: Chain, prior: DistanceDependent, labels: np.ndarray, by_hand: bool
    ) -> Self:
        """Of a chain that is put at these labels."""
        chain.set_labels(task.numbered(labels))
        log_h, (values, first) = chain.store.log_h, np.unique(labels, return_index=True)
        slots = np.concatenate([chain.allocation.labels[first], FIRST_SLOT + np.arange(len(task.names))])
        clusters = dict(zip([*values.tolist(), *task.names.tolist()], log_h[slots].tolist(), strict=True))
        return cls(_prior_terms(task, chain, prior, labels, by_hand=by_hand), clusters)


def _prior_terms(
    task: Task, chain: Chain, prior: DistanceDependent, labels: np.ndarray, *, by_hand: bool
) -> np.ndarray:
    """log p(z) of a clustering by record, in nats."""
    own, anchors = task.numbered(labels), task.problem.anchors
    if anchors is not None:
        return anchors.log_terms(prior, own, by_hand=by_hand)
    nothing, positions = np.zeros(len(labels)), prior.positions(len(labels), chain.times)
    return prior.log_terms(own.tolist(), positions, nothing, nothing, 0, by_hand=by_hand)


def _better_clusters(
    task: Task, chain: Chain, changes: Proposal, prior: DistanceDependent, *, by_hand: bool
) -> tuple[np.ndarray, float]:
    """As :func:`_better_parts`, where a part's nats are the sum over the clusters concerned."""
    labels, at, nats = task.before.copy(), np.searchsorted(task.seqs, changes.seqs), 0.0
    after = task.before.copy()
    after[at] = changes.labels
    new, old = (_Worth.of(task, chain, prior, each, by_hand) for each in (after, task.before))
    for part in _parts(changes):
        concerned = np.union1d(changes.labels[part], changes.was[part])
        records = np.isin(task.before, concerned) | np.isin(after, concerned)
        gain = float((new.prior[records] - old.prior[records]).sum())
        for label in concerned.tolist():
            gain += new.clusters.get(label, 0.0) - old.clusters.get(label, 0.0)
        if gain > LEAST_GAIN:
            labels[at[part]] = changes.labels[part]
            nats += gain
    return labels, nats


def _followed(task: Task, chain: Chain, changes: Proposal, late: np.ndarray) -> tuple[np.ndarray, float]:
    """Labels of the records with all changes, after the late ones were drawn anew, and the log joint."""
    labels, order = task.before.copy(), np.flatnonzero(late)
    labels[np.searchsorted(task.seqs, changes.seqs)] = changes.labels
    chain.set_labels(task.numbered(labels))
    sweep(chain, order)
    chain.settle()
    labels = _labelled(task, chain.labels)
    if not task.founds:
        chain.set_labels(task.numbered(labels))
    return labels, chain.log_joint


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


def _valid(stream: Stream, proposal: Proposal) -> Proposal:
    """The changes of records that are open, and of clusters that are as they were."""
    held, (known, slots) = stream.held, head_by_label(stream.search)
    pinned = known[stream.search.state.pool.pinned[slots] == 1]  # they weigh more than their records do
    at = proposal.seqs - held.first
    keep = (at >= 0) & (proposal.seqs >= stream.since) & np.isin(proposal.was, known)
    keep &= held.labels[np.maximum(at, 0)] == proposal.was
    keep &= (proposal.labels >= proposal.minted) | np.isin(proposal.labels, known)
    keep &= ~np.isin(proposal.seqs, stream.fixed)
    keep &= ~np.isin(proposal.was, pinned) & ~np.isin(proposal.labels, pinned)
    return proposal.take(keep)
