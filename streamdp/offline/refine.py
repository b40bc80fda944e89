"""Going back over the records that an engine holds: a better clustering under the stream's own model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from streamdp.encode.encoders import Encoded
from streamdp.engine import Engine
from streamdp.offline.handover import engine_of, retained_of
from streamdp.offline.plan import Plan, check
from streamdp.offline.problem import Problem, Solution, problem_of, settled
from streamdp.offline.relabel import Change, changes, inherit
from streamdp.offline.sampling import Report
from streamdp.offline.solve import solve
from streamdp.settings.assemble import build_likelihood


@dataclass(frozen=True, eq=False)
class Task:
    """The records that an engine holds, the label of each, and the problem of clustering them better."""

    encoded: Encoded
    before: np.ndarray
    problem: Problem
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Refinement:
    """What a refinement has come to.

    ``started`` is the log joint of the engine's own clustering in nats; ``names`` are the labels of the
    clusters, by number, and ``minted`` is the first label that is free.
    """

    task: Task
    solution: Solution
    started: float
    improved: bool
    names: np.ndarray
    minted: int

    @property
    def labels(self) -> np.ndarray:
        """The label of every record; clusters keep theirs by largest overlap."""
        return np.asarray(self.names[self.solution.labels])

    @property
    def log_joint(self) -> float:
        """log p(z, x), in nats."""
        return self.solution.chain.log_joint

    @property
    def changes(self) -> Sequence[Change]:
        """Records whose label is another one, in order."""
        return changes(self.task.before, self.labels)

    def engine(self) -> Engine:
        """An engine that goes on from here."""
        settings = settled(self.task.problem.settings, self.solution.chain)
        return engine_of(settings, self.task.encoded, self.solution.labels, self.names, self.minted)


def task_of(engine: Engine, seed: int | None = None) -> Task:
    """What there is to refine. ValueError where the engine no longer holds all its records.

    ``seed`` is that of the samplers; None: the engine's.
    """
    settings = engine.settings
    if seed is not None:
        settings = msgspec.structs.replace(settings, seed=seed)
    encoded, before = retained_of(engine)
    notes = []
    streamed = build_likelihood(settings, encoded.moments)
    if settings.forget is None and getattr(streamed, "forget", 1.0) < 1.0:
        notes.append("old vectors of a cluster count in full here, while the stream forgot them (--forget)")
    if settings.prior == "auto":  # by its name: that of a finite set would be another
        settings = msgspec.structs.replace(settings, prior="distance-dependent")
    return Task(encoded, before, problem_of(settings, encoded), tuple(notes))


def refine_task(
    task: Task, plan: Plan, *, report: Report | None = None, stop: threading.Event | None = None
) -> Refinement:
    """As :func:`refine`, of what :func:`task_of` has found."""
    problem, before = task.problem, task.before
    started = problem.chain(problem.settings.seed, before).log_joint
    solution = solve(problem, plan, report, stop, before)
    improved = solution.chain.log_joint > started
    if not improved:
        solution.chain.set_labels(before)
        solution.labels = solution.chain.labels
    names, minted = inherit(before, solution.labels)
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

    ValueError where the engine no longer holds all its records, ConfigError where model and plan do not
    go together.

    Parameters
    ----------
    engine
        Whose records; it stays as it is.
    plan
        How to search; ``start`` is not read. None: a hybrid that leaves hyperparameters as they are.
    seed
        Of the samplers; None: the engine's.
    report
        Called with (number of the chain, chain, trace) after every round of a sampler.
    stop
        Set from outside to end samplers early.
    """
    plan = plan or Plan(hyper=False)
    check(plan)
    return refine_task(task_of(engine, seed), plan, report=report, stop=stop)
