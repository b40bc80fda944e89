"""The records that a stream still holds, as a problem: which can move, and beside what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from streamdp.beam.search import BeamSearch
from streamdp.encode.encoders import Encoded
from streamdp.likelihoods import BagFamily
from streamdp.offline.frozen import frozen_of
from streamdp.offline.problem import Problem
from streamdp.priors.base import Prior
from streamdp.settings import Settings
from streamdp.state.retained import Labelled

NONE = np.zeros(0, np.int64)


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

    What was answered of records before ``since`` is final.
    """

    settings: Settings
    prior: Prior
    encoded: Encoded
    held: Labelled
    search: BeamSearch
    since: int = 0

    @property
    def base(self) -> np.ndarray | None:
        """p_w by word as the stream has learned it, shape (V,); None for vectors."""
        family = self.search.likelihood
        return family.measure(self.search.words.learned) if isinstance(family, BagFamily) else None


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
    """

    encoded: Encoded
    seqs: np.ndarray
    before: np.ndarray
    problem: Problem
    names: np.ndarray
    minted: int
    notes: tuple[str, ...] = ()

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


def task_over(stream: Stream, seed: int | None = None) -> Task:
    """What there is to refine. ValueError where nothing can move.

    ``seed`` is that of the samplers; None: the stream's. Nothing of the task changes as the stream goes on.
    """
    settings, prior, encoded, held, search, _ = stream
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
    if held.first > 0:
        frozen = frozen_of(search, held, problem.prior, problem.likelihood)
        chosen = np.flatnonzero(frozen.free)
        if len(chosen) == 0:
            raise ValueError("no record can move: all are in closed clusters whose older records are gone")
        times = None if held.batch.times is None else held.batch.times[chosen]
        data = replace(held.batch.take(chosen), times=times)
        problem = replace(problem, data=data, anchors=frozen.anchors)
        seqs, labels, names = seqs[chosen], labels[chosen], frozen.names
        stay = len(frozen.free) - len(chosen)
        notes.append(
            f"{len(chosen):,} records can move; older ones stay in {len(names):,} clusters"
            + (f", and so do {stay:,} of clusters that closed" if stay else "")
        )
        if not frozen.anchors.knows_unions(problem.prior):
            notes.append(
                "no clusters of older records are merged: what the prior says of that depends on when "
                f"{frozen.anchors.closed:,} clusters that have closed were founded"
            )
    minted = int(search.state.beam.counters.next_label)
    return Task(encoded, seqs, labels, problem, names, minted, tuple(notes))
