"""Refine the records that an engine holds: find a better clustering under the stream's own model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.beam.search import inherit
from streamdp.engine import Engine
from streamdp.offline.handover import engine_of, stream_of
from streamdp.offline.plan import Plan, check
from streamdp.offline.problem import Solution, settled
from streamdp.offline.solve import Report, solve
from streamdp.offline.task import Change, Merged, Task, changes, task_over
from streamdp.offline.unite import Union, unite


@dataclass(frozen=True, eq=False)
class Refinement:
    """What a refinement has come to.

    ``started`` is the log joint of the stream's own clustering in nats, given where older records are;
    ``names`` are the labels of the clusters, by number, and ``minted`` is the first label that is free.

    After the search, whole clusters were made one where one of them holds older records
    (:func:`~streamdp.offline.unite.unite`): ``clusters`` is how many there are then, ``united`` how many nats
    that has gained, and ``merged`` tells of those with older records whose label is gone, in the order in
    which they went.
    """

    task: Task
    solution: Solution
    started: float
    improved: bool
    names: np.ndarray
    minted: int
    clusters: int
    united: float
    merged: tuple[Merged, ...]

    @property
    def labels(self) -> np.ndarray:
        """The label of every record that could move; clusters keep theirs by largest overlap."""
        return np.asarray(self.names[self.solution.labels])

    @property
    def log_joint(self) -> float:
        """log p(z, x) of all records, in nats, less that of older ones as the stream has clustered them."""
        return self.solution.chain.log_joint + self.united

    @property
    def changes(self) -> Sequence[Change]:
        """Records whose label is another one, in order, but for those of which ``merged`` tells."""
        other = {line.cluster: line.other for line in self.merged}
        found = changes(self.task.seqs, self.task.before, self.labels)
        return [change for change in found if other.get(change.was) != change.cluster]

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
    return task_over(stream_of(engine), seed)


def refine_task(
    task: Task, plan: Plan, *, report: Report | None = None, stop: threading.Event | None = None
) -> Refinement:
    """As :func:`refine`, of what :func:`task_of` has found."""
    start, started = task.start, task.log_joint(task.before)
    solution = solve(task.problem, plan, report, stop, start)
    improved = solution.chain.log_joint > started
    if not improved:
        solution.chain.set_labels(start)
        solution.labels = solution.chain.labels
    before, minted = inherit(task.before, solution.labels, task.names, task.minted)
    names = before.copy()
    chain, unions = solution.chain, list[Union]()
    if not task.problem.bound:
        chain, unions = unite(solution.chain, names)
    for union in unions:
        names[names == names[union.gone]] = names[union.into]
    merged = tuple(
        Merged(int(before[union.gone]), int(names[union.gone]), union.size, union.nats)
        for union in unions
        if union.gone < len(task.names)
    )
    nats = sum(union.nats for union in unions)
    improved = improved or bool(unions)
    return Refinement(task, solution, started, improved, names, minted, chain.clusters, nats, merged)


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

    Records that the engine has let go stay where they are, unless their cluster as a whole becomes part of
    another one. ValueError where the engine holds no records, ConfigError where model and plan do not go
    together.

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
