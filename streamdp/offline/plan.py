"""How a finite set is searched: the method, where it starts, when it stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from streamdp.errors import ConfigError, Exit

Method = Literal["beam", "astar", "gibbs", "split-merge", "permutation", "hybrid"]
Start = Literal["auto", "sequential", "one", "singletons", "random", "beam"]
Estimate = Literal["best", "vi", "binder"]
Score = Literal["admissible", "trivial", "constant", "replica", "predictive", "inadmissible"]
Order = Literal["given", "random", "ascending", "descending"]
SEARCHES = ("beam", "astar")
SAMPLERS = tuple(method for method in get_args(Method) if method not in SEARCHES)


@dataclass(frozen=True)
class Plan:
    """How to search.

    Parameters
    ----------
    method
        "beam" and "astar" search; the others sample, from ``start``.
    start
        Where chains start. "auto": from the clustering that a stream would have where the base measure of
        words is counted from clusters (the sequential start knows none yet), else sequentially. ``fit`` tries
        a random start, too, where such a set has an exchangeable prior.
    rounds, seconds
        When a sampler stops, whichever comes first.
    chains
        How many run side by side.
    estimate
        Which clustering is the answer: the best met, or the point estimate of the draws.
    hyper
        Whether samplers draw the hyperparameters that are automatic.
    queue, score, order
        Of A*.

    Examples
    --------
    >>> Plan(method="gibbs", rounds=500, chains=4).seconds
    30.0
    """

    method: Method = "hybrid"
    start: Start = "auto"
    rounds: int | None = None
    seconds: float | None = 30.0
    chains: int = 1
    estimate: Estimate = "best"
    hyper: bool = True
    queue: int = 100
    score: str = "inadmissible"
    order: str = "given"


def check(plan: Plan) -> None:
    """Raise ConfigError (64) for a plan that cannot be."""
    for name, given, allowed in (
        ("method", plan.method, Method),
        ("start", plan.start, Start),
        ("estimate", plan.estimate, Estimate),
        ("look-ahead", plan.score, Score),
        ("order", plan.order, Order),
    ):
        if given not in get_args(allowed):
            raise ConfigError(f"--{name} must be one of {', '.join(get_args(allowed))}", Exit.USAGE)
    if plan.chains < 1:
        raise ConfigError("--chains must be at least 1", Exit.USAGE)
