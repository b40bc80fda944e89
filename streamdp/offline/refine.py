"""Going back over the records that an engine holds: a better clustering under the stream's own model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from streamdp.beam.pool import NEXT_LABEL
from streamdp.encode.encoders import Encoded
from streamdp.engine import Engine
from streamdp.offline.frozen import frozen_of
from streamdp.offline.handover import base_of, engine_of, retained_of
from streamdp.offline.plan import Plan, check
from streamdp.offline.problem import Problem, Solution, problem_of, settled
from streamdp.offline.relabel import Change, changes, inherit
from streamdp.offline.sampling import Report
from streamdp.offline.solve import solve
from streamdp.settings.assemble import build_likelihood


@dataclass(frozen=True, eq=False)
class Task:
    """The records of an engine that can move, and the problem of clustering them better.

    Parameters
    ----------
    encoded
        All records that the engine holds.
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
        """The clustering of the engine as labels of a chain, shape (N,)."""
        places = {label: k for k, label in enumerate(self.names.tolist())}
        return np.array([places.get(label, len(places) + label) for label in self.before.tolist()])


@dataclass(frozen=True, eq=False)
class Refinement:
    """What a refinement has come to.

    ``started`` is the log joint of the engine's own clustering in nats, given where older records are;
    ``names`` are the labels of the clusters, by number, and ``minted`` is the first label that is free.
    """

    task: Task
    solution: Solution
    started: float
    improved: bool
    names: np.ndarray
    minted: int

    @property
    def labels(self) -> np.ndarray:
        """The label of every record that could move; clusters keep theirs by largest overlap."""
        return np.asarray(self.names[self.solution.labels])

    @property
    def log_joint(self) -> float:
        """log p(z, x), in nats, given where older records are."""
        return self.solution.chain.log_joint

    @property
    def changes(self) -> Sequence[Change]:
        """Records whose label is another one, in order."""
        return changes(self.task.seqs, self.task.before, self.labels)

    def to_engine(self) -> Engine:
        """An engine that goes on from here. ValueError where older records are held as statistics only."""
        need_all_records(self.task, "a new state")
        settings = settled(self.task.problem.settings, self.solution.chain)
        return engine_of(settings, self.task.encoded, self.solution.labels, self.names, self.minted)


def need_all_records(task: Task, what: str) -> None:
    """ValueError where the engine has let records go."""
    if task.problem.anchors is not None:
        raise ValueError(
            f"{what} needs all records, and the state has let older ones go: make it with a larger --retain"
        )


def task_of(engine: Engine, seed: int | None = None) -> Task:
    """What there is to refine. ValueError where there is nothing.

    ``seed`` is that of the samplers; None: the engine's.
    """
    settings = engine.settings
    if seed is not None:
        settings = msgspec.structs.replace(settings, seed=seed)
    encoded, held = retained_of(engine)
    notes = []
    if getattr(build_likelihood(settings, encoded.moments), "forget", 1.0) < 1.0:
        notes.append("old vectors of a cluster count in full here, while the stream forgot them (--forget)")
        settings = msgspec.structs.replace(settings, forget=1.0)
    if settings.prior == "auto":  # by its name: that of a finite set would be another
        settings = msgspec.structs.replace(settings, prior="distance-dependent")
    now = engine.adapted
    if now is not None:
        settings = msgspec.structs.replace(
            settings, concentration=now.concentration, decay_scale=now.decay_scale
        )
    problem = problem_of(settings, encoded, base=base_of(engine))
    state = engine.parts().beam
    assert state is not None
    seqs, labels, names = held.first + np.arange(len(held.labels)), held.labels, np.zeros(0, np.int64)
    if held.first > 0:
        frozen = frozen_of(engine, held, problem.prior, problem.likelihood)
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
    minted = int(state.beam.meta[NEXT_LABEL])
    return Task(encoded, seqs, labels, problem, names, minted, tuple(notes))


def refine_task(
    task: Task, plan: Plan, *, report: Report | None = None, stop: threading.Event | None = None
) -> Refinement:
    """As :func:`refine`, of what :func:`task_of` has found."""
    problem, start = task.problem, task.start
    started = problem.chain(problem.settings.seed, start).log_joint
    solution = solve(problem, plan, report, stop, start)
    improved = solution.chain.log_joint > started
    if not improved:
        solution.chain.set_labels(start)
        solution.labels = solution.chain.labels
    names, minted = inherit(task.before, solution.labels, task.names, task.minted)
    return Refinement(task, solution, started, improved, names, minted)


def refine(
    engine: Engine,
    plan: Plan | None = None,
    *,
    seed: int | None = None,
    report: Report | None = None,
    stop: threading.Event | None = None,
) -> Refinement:
    """Search on from an engine's clustering; it is kept where nothing better is found.

    Under the model of the stream, and the base measure that the stream has learned of words.

    Records that the engine has let go stay where they are. ValueError where it holds none, ConfigError where
    model and plan do not go together.

    Parameters
    ----------
    engine
        Whose records; it stays as it is.
    plan
        How to search; ``start`` is not read. None: ten rounds of a hybrid that leaves hyperparameters as
        they are.
    seed
        Of the samplers; None: the engine's.
    report
        Called with (number of the chain, chain, trace) after every round of a sampler.
    stop
        Set from outside to end samplers early.
    """
    plan = plan or Plan(rounds=10, seconds=None, hyper=False)
    check(plan)
    return refine_task(task_of(engine, seed), plan, report=report, stop=stop)
