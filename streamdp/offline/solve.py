"""From a problem and a plan to one clustering."""

from __future__ import annotations

import math
import threading

import numpy as np

from streamdp.errors import Exit
from streamdp.kernels.compilation import working_time
from streamdp.offline.astar import astar
from streamdp.offline.beam import beam_labels
from streamdp.offline.plan import SEARCHES, Plan
from streamdp.offline.problem import Problem, Solution
from streamdp.offline.recount import recount
from streamdp.offline.sampling import Report, sample
from streamdp.settings.load import ConfigError


def solve(
    problem: Problem,
    plan: Plan,
    report: Report | None = None,
    stop: threading.Event | None = None,
    labels: np.ndarray | None = None,
) -> Solution:
    """Cluster. Raises ConfigError where method and model do not go together.

    Parameters
    ----------
    problem, plan
        What and how.
    report
        Called with (number of the chain, chain, trace) after every round of a sampler.
    stop
        Set from outside to end samplers early.
    labels
        Where samplers start, instead of ``plan.start``.
    """
    if problem.anchors is not None and plan.method in SEARCHES:
        raise ConfigError(
            f"{plan.method} needs all records, and older ones are held as statistics only: sample instead",
            Exit.BAD_DATA,
        )
    try:
        if plan.method == "beam":
            found = Solution.of_labels(problem, beam_labels(problem))
            if problem.counts_words:
                recount([found.chain])
            return found
        if plan.method == "astar":
            return _astar(problem, plan, stop)
        return sample(problem, plan, report, stop, labels)
    except ValueError as error:
        raise ConfigError(str(error), Exit.BAD_DATA) from error


def _astar(problem: Problem, plan: Plan, stop: threading.Event | None) -> Solution:
    deadline = math.inf if plan.seconds is None else working_time() + plan.seconds
    found = astar(
        problem.data,
        problem.likelihood,
        problem.prior,
        queue=plan.queue,
        score=plan.score,  # type: ignore[arg-type]
        order=plan.order,  # type: ignore[arg-type]
        seed=problem.settings.seed,
        base=problem.base,
        distances=problem.distances,
        until=lambda: working_time() > deadline or (stop is not None and stop.is_set()),
    )
    result = Solution.of_labels(problem, found.labels)
    proved = "proved" if found.proved and not problem.learned else "not proved"
    result.notes.append(
        f"{found.expanded:,} states expanded, {found.enqueued:,} enqueued; "
        f"{proved} to be the most probable clustering"
    )
    return result
