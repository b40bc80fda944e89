"""Going back over the records that an engine holds: a better clustering under the stream's own model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from streamdp.engine import Engine
from streamdp.offline.handover import engine_of, stream_of
from streamdp.offline.plan import Plan, check
from streamdp.offline.problem import settled
from streamdp.offline.solve import Report
from streamdp.offline.task import Change, Found, Merged, Task, search_on, task_over
from streamdp.offline.unite import unite


@dataclass(frozen=True, eq=False)
class Refinement(Found):
    """What a refinement has come to.

    After the search, whole clusters were made one where one of them holds older records
    (:func:`~streamdp.offline.unite.unite`): ``clusters`` is how many there are then, ``united`` how many nats
    that has won, and ``merged`` tells of those with older records whose label is gone, in the order in which
    they went.
    """

    clusters: int
    united: float
    merged: tuple[Merged, ...]

    @classmethod
    def of(cls, found: Found) -> Refinement:
        """What a search has found, with clusters united."""
        held, names = len(found.task.names), found.names.copy()
        chain, unions = unite(found.solution.chain, names)
        for union in unions:
            names[names == names[union.gone]] = names[union.into]
        merged = tuple(
            Merged(int(found.names[union.gone]), int(names[union.gone]), union.size, union.nats)
            for union in unions
            if union.gone < held
        )
        return cls(
            found.task,
            found.solution,
            found.started,
            found.improved or bool(unions),
            names,
            found.minted,
            chain.clusters,
            sum(union.nats for union in unions),
            merged,
        )

    @property
    def log_joint(self) -> float:
        """log p(z, x) of all records, in nats, less that of older ones as the stream has clustered them."""
        return super().log_joint + self.united

    @property
    def changes(self) -> Sequence[Change]:
        """Records whose label is another one, in order, but for those of which ``merged`` tells."""
        other = {line.cluster: line.other for line in self.merged}
        return [change for change in super().changes if other.get(change.was) != change.cluster]

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
    return Refinement.of(search_on(task, plan, report=report, stop=stop))


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
