"""Samplers, a file each: kernels, the move that runs them, and which priors it is for.

Gibbs sampling serves all exchangeable priors and the uniform process; links the distance-dependent process,
under which single records may not be free to move; splits, mergers and permutations the exchangeable priors.
Other pairs raise ``ValueError``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from streamdp.offline.chain import Move, Sampler
from streamdp.offline.samplers.gibbs import Gibbs
from streamdp.offline.samplers.links import LinkGibbs
from streamdp.offline.samplers.permutation import Permutation
from streamdp.offline.samplers.split_merge import SequentiallyAllocated, SplitMerge
from streamdp.priors.base import Prior

__all__ = ["METHODS", "Gibbs", "LinkGibbs", "Move", "Permutation", "SequentiallyAllocated", "SplitMerge"]

CLIMB = 1e-3
"""Share of each sum that permutations prune."""


class Method(NamedTuple):
    """What chains do under a method of a plan: all samplers of these, made anew, that serve the prior."""

    draw: Callable[[], list[Sampler]]
    climb: Callable[[], list[Sampler]] = list
    """Before them in the first half of a budget, where no record is frozen: p(z | x) may change."""
    climb_alone: bool = False
    """Whether the others wait for the second half."""

    def moves(self, prior: Prior, *, bound: bool = False) -> list[Move]:
        """Those that draw; where none serves the prior, the first, which says so.

        ``bound``: those that leave alone what is fixed by hand. ValueError where there are none.
        """
        made = self.draw()
        found = [move for move in made if move.serves(prior)] or [made[0]]
        if bound and not (found := [move for move in found if move.holds]):
            raise ValueError(f"{type(made[0]).__name__} moves what corrections hold: take hybrid or gibbs")
        return [*found]

    def climbing(self, prior: Prior) -> list[Move]:
        """Those that climb."""
        return [move for move in self.climb() if move.serves(prior)]


_climber = partial(Permutation, keep=CLIMB, order="projection-pair", width=50)

METHODS = {
    "gibbs": Method(lambda: [Gibbs(), LinkGibbs()]),
    "split-merge": Method(lambda: [SplitMerge(3)]),
    "permutation": Method(
        lambda: [Permutation(keep=CLIMB)],
        lambda: [_climber(), Permutation(keep=CLIMB, burn_in=math.inf)],
        True,
    ),
    "hybrid": Method(
        lambda: [Gibbs(), SplitMerge(2, scans=3), SequentiallyAllocated(), LinkGibbs()], lambda: [_climber()]
    ),
}
"""By the names of :data:`streamdp.offline.plan.Method`."""
