"""From a problem and a plan to one clustering."""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Sequence

import numpy as np

from streamdp.errors import ConfigError, Exit
from streamdp.kernels.compilation import working_time
from streamdp.offline.astar import astar
from streamdp.offline.chain import Chain, recount
from streamdp.offline.hyper import Hyper, default_names
from streamdp.offline.plan import SEARCHES, Plan
from streamdp.offline.problem import Problem, Solution, drawn
from streamdp.offline.samplers import METHODS
from streamdp.offline.schedule import Best, Budget, Hybrid, Trace, run, run_chains
from streamdp.offline.similarity import LIMIT, point_estimate, similarity_matrix
from streamdp.offline.starts import (
    beam_labels,
    looked_at,
    one_cluster,
    random_clusters,
    sequential,
    singletons,
)
from streamdp.settings import Settings
from streamdp.settings.assemble import build_prior

MOST_DRAWS = 200

PART = 6
"""Of a budget, what tells under which of several models, and from which start, records are likelier."""

STARTED = 4
"""Random starts that are tried: where they end differs by hundreds of nats."""

Report = Callable[[int, Chain, Trace], None]
"""Called with (number of the chain, chain, trace) after every round."""


STARTS: dict[str, Callable[[Chain], None]] = {
    "one": one_cluster,
    "singletons": singletons,
    "random": random_clusters,
}


def _begin(chain: Chain, problem: Problem, plan: Plan) -> None:
    if plan.start == "beam" or (plan.start == "auto" and problem.start is not None):
        chain.set_labels(beam_labels(problem))
    elif plan.start == "auto" and problem.counts_words and problem.distances is None:
        # under an exchangeable prior the clusters that are large already take in too much
        prior = build_prior(Settings(), sparse=True) if problem.prior.exchangeable else problem.prior
        chain.set_labels(beam_labels(dataclasses.replace(problem, prior=prior)))
    else:
        STARTS.get(plan.start, sequential)(chain)


def sample(
    problem: Problem,
    plan: Plan,
    report: Report | None,
    stop: threading.Event | None,
    labels: np.ndarray | None,
) -> Solution:
    """Chains side by side; the answer is the best of them, or the estimate that the plan wants.

    Parameters as for :func:`solve`.
    """
    counting = problem.counts_words
    seeds = np.random.SeedSequence(problem.settings.seed).spawn(plan.chains)
    chains = [problem.chain(seed, labels) for seed in seeds]
    kept: list[list[np.ndarray]] = [[] for _ in chains]

    passes = [_passes(problem, plan, chain) for chain in chains]
    burn_in, rest = Budget(plan.rounds, plan.seconds, stop).halves()
    watches = [None if report is None else functools.partial(report, c) for c in range(plan.chains)]

    def climb(c: int) -> tuple[Trace, Best]:
        if labels is None:
            _begin(chains[c], problem, plan)
        if counting:
            recount([chains[c]])
        return run(chains[c], passes[c][0], burn_in, watch=watches[c], counting=counting)

    def follow(c: int, begun: tuple[Trace, Best]) -> tuple[Trace, Best]:
        trace, best = begun
        if counting:
            best = best.under(chains[c])
        thin = max(len(trace.seconds) // MOST_DRAWS, 1)
        after, later = run(chains[c], passes[c][1], rest, kept[c], watches[c], thin=thin)
        return trace.followed_by(after), max(best, later, key=lambda b: b.log_joint)

    begun = run_chains([functools.partial(climb, c) for c in range(plan.chains)])
    if counting:
        recount(chains)  # the same for all from here on, so that they draw from one posterior
    results = run_chains([functools.partial(follow, c, begun[c]) for c in range(plan.chains)])
    top = max(range(plan.chains), key=lambda c: results[c][1].log_joint)
    chain, best = chains[top], results[top][1]
    if problem.settings.concentration is None or plan.hyper:
        chain.replace(prior=best.prior, likelihood=best.likelihood)
    answer, draws = best.labels, [labels for each in kept for labels in each]
    if plan.estimate != "best":
        if chain.size > LIMIT:
            raise ConfigError(f"a point estimate is for up to {LIMIT:,} records; use --estimate best")
        similarity = similarity_matrix(np.array(draws))
        answer = point_estimate(similarity, np.array(draws), plan.estimate)
    chain.set_labels(answer)
    return Solution(chain.labels, chain, [trace for trace, _ in results], draws)


def _passes(problem: Problem, plan: Plan, chain: Chain) -> tuple[Hybrid, Hybrid]:
    """What a chain does in the half of its budget that may climb, and in the half that samples."""
    method, prior = METHODS[plan.method], problem.prior
    moves = method.moves(prior, bound=problem.bound)
    # of long documents a hybrid does without permutations
    stays = problem.anchors or problem.bound or (problem.likelihood.ordered and plan.method == "hybrid")
    climbing = [] if stays else method.climbing(prior)
    if plan.hyper:
        names = default_names(chain) if problem.settings.concentration is None else ()
        names += tuple(drawn(problem.settings, problem.likelihood)) if plan.method == "hybrid" else ()
        if names:
            moves.append(Hyper(names))
    alone = climbing and method.climb_alone
    return Hybrid(climbing if alone else climbing + moves), Hybrid(moves)


def solve(
    problem: Problem,
    plan: Plan,
    report: Report | None = None,
    stop: threading.Event | None = None,
    labels: np.ndarray | None = None,
) -> Solution:
    """Cluster. Raises ConfigError where method and model do not go together.

    ``report`` and ``stop`` are as for :func:`streamdp.offline.fit.fit`; ``labels`` are where samplers start,
    instead of ``plan.start``.
    """
    if problem.anchors is not None and plan.method in SEARCHES:
        raise ConfigError(
            f"{plan.method} needs all records, and older ones are held as statistics only: sample instead",
            Exit.BAD_DATA,
        )
    if problem.bound and (plan.hyper or plan.method in SEARCHES or plan.estimate != "best"):
        raise ConfigError(
            "corrections by hand are held by sampling alone, without --hyper or another --estimate than best",
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


def _ways(problem: Problem, plan: Plan) -> list[Plan]:
    """How to try: what a stream makes of texts in no order is likelier at times, at times few clusters."""
    rounds = None if plan.rounds is None else max(plan.rounds // PART, 1)
    seconds = None if plan.seconds is None else plan.seconds / PART
    part = dataclasses.replace(plan, rounds=rounds, seconds=seconds, chains=1)
    automatic = plan.method == "hybrid" and plan.start == "auto"
    if not (automatic and problem.prior.exchangeable and problem.counts_words and problem.distances is None):
        return [part]
    # a random start is far from anything, and many cheap rounds come nearer than few thorough ones
    cheap = dataclasses.replace(part, method="gibbs", start="random", hyper=False, rounds=plan.rounds)
    return [part, dataclasses.replace(cheap, chains=STARTED)]


def solve_likelier(
    problems: Sequence[Problem],
    plan: Plan,
    report: Report | None = None,
    stop: threading.Event | None = None,
) -> tuple[Problem, Solution]:
    """Cluster under the model, and from the start, with the better log joint after a part of the budget.

    Parameters as for :func:`solve`; searches take the first.
    """
    problems = [looked_at(problem) for problem in problems]
    ways = [(problem, way) for problem in problems for way in _ways(problem, plan)]
    if len(ways) == 1 or plan.method in SEARCHES:
        return problems[0], solve(problems[0], plan, report, stop)
    began = working_time()
    limit = math.inf if plan.seconds is None else plan.seconds
    tried: list[Solution] = []
    for problem, way in ways:
        if not tried or working_time() - began < limit / 2:  # one round may take longer than all the budget
            tried.append(solve(problem, way, report, stop))
    best = max(range(len(tried)), key=lambda p: tried[p].chain.log_joint)
    left, found, rounds = limit - (working_time() - began), tried[best], ways[0][1].rounds
    if left > 0.0:
        rest = dataclasses.replace(
            plan,
            rounds=None if rounds is None else max((plan.rounds or 0) - len(tried) * rounds, 1),
            seconds=None if plan.seconds is None else left,
        )
        found = solve(ways[best][0], rest, report, stop, found.labels)
        if plan.estimate == "best" and tried[best].chain.log_joint > found.chain.log_joint:
            # each is judged by the words of its own clusters, as the ways were; draws are those of the rest
            found.labels, found.chain = tried[best].labels, tried[best].chain
    names = [
        f"{problem.settings.prior}{'' if way.start == plan.start else f' from a {way.start} start'}"
        for problem, way in ways
    ]
    joints = (f"{name} {each.chain.log_joint:,.2f} nats" for name, each in zip(names, tried, strict=False))
    found.notes.append(f"prior {names[best]}, by the log joint so far: {', '.join(joints)}")
    return ways[best][0], found


def _astar(problem: Problem, plan: Plan, stop: threading.Event | None) -> Solution:
    deadline = math.inf if plan.seconds is None else working_time() + plan.seconds
    found = astar(
        problem.data,
        problem.likelihood,
        problem.prior,
        queue=plan.queue,
        score=plan.score,
        order=plan.order,
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
