"""Clustering a finite set of records: from records, settings and a plan to an answer for every record."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from streamdp.answers import listing
from streamdp.answers.listing import ClusterList
from streamdp.engine import Engine
from streamdp.offline.assignments import assignments_of
from streamdp.offline.collection import Collection
from streamdp.offline.diagnostics import Diagnosis
from streamdp.offline.handover import engine_of
from streamdp.offline.plan import Plan, check
from streamdp.offline.problem import Problem, Solution, problem_of, settled
from streamdp.offline.sampling import Report
from streamdp.offline.schedule import Trace, mixing
from streamdp.offline.similarity import similarity_matrix
from streamdp.offline.solve import solve
from streamdp.offline.summaries import summaries
from streamdp.records import Assignment, Record, Reject, Value
from streamdp.settings import Settings


@dataclass(frozen=True, eq=False)
class Fit:
    """A clustering of a collection, and how it was found."""

    collection: Collection
    problem: Problem
    solution: Solution

    @property
    def labels(self) -> np.ndarray:
        """The cluster of every record that was not refused, in time order, numbered by first members."""
        return self.solution.labels

    @property
    def log_joint(self) -> float:
        """log p(z, x), in nats."""
        return self.solution.chain.log_joint

    @property
    def draws(self) -> list[np.ndarray]:
        """Labels as samplers drew them in the second half of their budget."""
        return self.solution.draws

    @property
    def traces(self) -> list[Trace]:
        """What each chain went through."""
        return self.solution.traces

    @property
    def rejects(self) -> list[Reject]:
        """What could not be clustered."""
        return self.collection.rejects

    @cached_property
    def assignments(self) -> list[Assignment]:
        """The answer to every record, in time order, as a stream would give it."""
        return assignments_of(self.collection, self.solution)

    def clusters(self) -> ClusterList:
        """All clusters, largest first, as a stream would tell them."""
        return summaries(self.collection, self.labels)

    @cached_property
    def similarity(self) -> np.ndarray:
        """How often each two records were together in the draws, or else in the answer, shape (N, N)."""
        return similarity_matrix(self.draws or [self.labels])

    @property
    def diagnostics(self) -> list[Diagnosis]:
        """How well the second halves of the chains have mixed; [] where too few rounds were made."""
        return mixing(self.traces)

    def to_engine(self) -> Engine:
        """An engine that goes on from here; it retains all records, so that it can be refined."""
        settings = settled(self.problem.settings, self.solution.chain)
        retain = max(settings.retain, len(self.labels))
        settings = msgspec.structs.replace(settings, retain=retain)
        return engine_of(settings, self.collection.encoded, self.labels)

    def _repr_html_(self) -> str:
        clusters = self.clusters()
        found = f"{len(self.labels):,} records in {len(clusters):,} clusters"
        told = f"{found}; log joint {self.log_joint:,.2f} nats"
        judged = mixing(self.traces) if len(self.traces) > 1 else []
        chains = [(d.name, f"{d.mean:,.2f}", f"{d.ess:,.0f}", f"{d.r_hat:.3f}") for d in judged]
        columns = ("quantity", "mean", "effective draws", "R-hat")
        mixed = [listing.table(columns, chains, f"{len(self.traces)} chains")] if chains else []
        shown = listing.rows(clusters[:10])
        return "".join(
            [listing.paragraph(told), *mixed, listing.table(listing.COLUMNS, shown, "the largest")]
        )


def fit(
    records: Iterable[Record | Reject | Value],
    settings: Settings | None = None,
    plan: Plan | None = None,
    *,
    distances: np.ndarray | None = None,
    report: Report | None = None,
    stop: threading.Event | None = None,
) -> Fit:
    """Cluster. Raises ConfigError where records, settings and plan do not go together.

    Parameters
    ----------
    records
        Texts, vectors, features or records, in any order: they are sorted by time, stably. Rejects
        pass through.
    settings, plan
        The model, and how to search; None: the defaults.
    distances
        Distance of record i from each earlier one in ``distances[i, j]``, shape (N, N), for the
        distance-dependent prior; None: as the prior measures it.
    report
        Called with (number of the chain, chain, trace) after every round of a sampler.
    stop
        Set from outside to end samplers early.

    Examples
    --------
    >>> settings = Settings(likelihood="gaussian", variance=1.0)
    >>> found = fit([[0.0], [0.1], [9.0], [9.1]] * 5, settings, Plan(rounds=20))
    >>> found.labels[:4].tolist()
    [0, 0, 1, 1]
    """
    settings, plan = settings or Settings(), plan or Plan()
    check(plan)
    collection = Collection(settings, records)
    problem = problem_of(settings, collection.encoded, distances)
    return Fit(collection, problem, solve(problem, plan, report, stop))
