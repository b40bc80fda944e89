"""Running moves in rounds, in one chain or in several side by side."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from streamdp.kernels.compilation import working_time
from streamdp.likelihoods import Likelihood
from streamdp.offline.chain import Chain, Move, recount
from streamdp.offline.diagnostics import Diagnosis, diagnose
from streamdp.priors.base import Prior

REFRESH = 50
"""Rounds after which all statistics are computed anew, so that rounding never adds up."""


@dataclass
class Trace:
    """What a chain went through, one entry a round."""

    log_joint: list[float] = field(default_factory=list)
    clusters: list[int] = field(default_factory=list)
    largest: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    half: int = 0

    def note(self, chain: Chain, seconds: float) -> None:
        """Append the chain's present state."""
        self.log_joint.append(chain.log_joint)
        self.clusters.append(chain.clusters)
        self.largest.append(int(chain.sizes.max()))
        self.seconds.append(seconds)

    def followed_by(self, other: Trace) -> Trace:
        """Both, one after the other; ``half`` marks where the second begins."""
        since = self.seconds[-1] if self.seconds else 0.0
        return Trace(
            self.log_joint + other.log_joint,
            self.clusters + other.clusters,
            self.largest + other.largest,
            self.seconds + [since + s for s in other.seconds],
            len(self.seconds),
        )


@dataclass
class Best:
    """The clustering with the highest log joint met so far, and the model that it had it under."""

    log_joint: float
    labels: np.ndarray
    prior: Prior
    likelihood: Likelihood

    @classmethod
    def of(cls, chain: Chain) -> Best:
        """The present state of a chain."""
        return cls(chain.log_joint, chain.labels, chain.prior, chain.likelihood)

    def under(self, chain: Chain) -> Best:
        """The same clustering and model under the base measure that a chain has now."""
        there = Best.of(chain)
        self.put_into(chain)
        here = Best.of(chain)
        there.put_into(chain)
        return here

    def put_into(self, chain: Chain) -> None:
        """Let a chain go on from here."""
        if chain.prior is not self.prior or chain.likelihood is not self.likelihood:
            chain.replace(prior=self.prior, likelihood=self.likelihood)
        chain.set_labels(self.labels)


Watcher = Callable[[Chain, Trace], None]

FEWEST = 8
"""Rounds from which on chains can be judged."""


def mixing(traces: Sequence[Trace]) -> list[Diagnosis]:
    """How well the second halves of chains have mixed; nothing where they are too short to tell."""
    length = min((len(t.seconds) - t.half for t in traces), default=0)
    if length < FEWEST:
        return []
    return diagnose(
        {
            "log joint": np.array([t.log_joint[-length:] for t in traces]),
            "clusters": np.array([t.clusters[-length:] for t in traces], float),
            "largest cluster": np.array([t.largest[-length:] for t in traces], float),
        }
    )


class Hybrid:
    """Moves in turn: a round is every move once, and the result depends on the seed alone."""

    def __init__(self, moves: Sequence[Move]) -> None:
        if not moves:
            raise ValueError("there must be at least one move")
        self.moves = list(moves)

    def __call__(self, chain: Chain) -> None:
        """One round."""
        for move in self.moves:
            move(chain)


@dataclass(frozen=True)
class Budget:
    """When a chain stops: at the first of these, and after one round at the earliest.

    The time that kernels take to compile does not count.

    Parameters
    ----------
    rounds, seconds
        At least one of them is given; otherwise ValueError.
    stop
        Set from outside, it ends the chain after the round under way.
    """

    rounds: int | None = None
    seconds: float | None = None
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        if self.rounds is None and self.seconds is None:
            raise ValueError("say when to stop: rounds, seconds or both")

    def spent(self, rounds: int, seconds: float) -> bool:
        """Whether so many rounds in so many seconds are enough."""
        return (
            (self.rounds is not None and rounds >= self.rounds)
            or (self.seconds is not None and seconds >= self.seconds)
            or (self.stop is not None and self.stop.is_set())
        )

    def halves(self) -> tuple[Budget, Budget]:
        """Two budgets, each of at least one round, that come to this one."""
        seconds = None if self.seconds is None else self.seconds / 2
        if self.rounds is None:
            return (Budget(None, seconds, self.stop),) * 2
        first = max(self.rounds // 2, 1)
        return (Budget(first, seconds, self.stop), Budget(max(self.rounds - first, 1), seconds, self.stop))


def run(
    chain: Chain,
    move: Move,
    budget: Budget,
    draws: list[np.ndarray] | None = None,
    watch: Watcher | None = None,
    *,
    thin: int = 1,
    counting: bool = False,
) -> tuple[Trace, Best]:
    """Run a chain until the budget is spent.

    Parameters
    ----------
    chain
        Where it starts, and where it ends up.
    move
        Done in every round.
    budget
        When to stop.
    draws, thin
        Given labels after every so many rounds.
    watch
        Called after every round.
    counting
        Whether the base measure is counted anew after every round. The best clustering so far is then
        judged anew too, so that log joints are compared under one measure.
    """
    trace, best = Trace(), Best.of(chain)
    began = working_time()
    for number in itertools.count(1):
        move(chain)
        if number % REFRESH == 0:
            chain.refresh()
        if counting:
            recount([chain])
            best = best.under(chain)
        trace.note(chain, working_time() - began)
        if chain.log_joint > best.log_joint:
            best = Best.of(chain)
        if draws is not None and number % thin == 0:
            draws.append(chain.labels)
        if watch is not None:
            watch(chain, trace)
        if budget.spent(number, working_time() - began):
            break
    return trace, best


def run_chains(jobs: Sequence[Callable[[], tuple[Trace, Best]]]) -> list[tuple[Trace, Best]]:
    """Run chains side by side; the kernels let go of the interpreter's lock."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]
