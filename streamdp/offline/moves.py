"""Moves that change the clustering of a chain.

Which move serves which prior: Gibbs all exchangeable priors and the uniform process; links the
distance-dependent process, under which single records may not be free to move; splits, mergers and
permutations the exchangeable priors. Other pairs raise ``ValueError``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamdp.kernels.rows import made, new_counters
from streamdp.offline.chain import Chain
from streamdp.offline.kernels.gibbs import gibbs_sweep
from streamdp.offline.kernels.links import Held, Links, draw_links, link_sweep
from streamdp.offline.kernels.split_merge import COIN, SEQUENTIAL, Sides, split_merge_moves
from streamdp.offline.kernels.uniform import Founders, find_founders, uniform_sweep
from streamdp.priors import DistanceDependent, Uniform
from streamdp.priors.base import Prior
from streamdp.priors.decays import WindowTerms

NOBODY = Held(np.zeros(1, np.int64), np.zeros(0), np.zeros(0))
SIMPLE, RESTRICTED, MIXED = 1, 2, 3
"""Jain and Neal's variants: sides by coin; restricted Gibbs scans; those, and Gibbs sweeps in between."""


class Move(Protocol):
    """A step of a Markov chain over clusterings that leaves p(z | x) invariant."""

    def __call__(self, chain: Chain) -> int:
        """Do one round; returns how many records or proposals it went through."""


def refuse(move: object, prior: Prior, serves: str) -> None:
    """Say which priors a move is for."""
    raise ValueError(f"{type(move).__name__} is for {serves}, not for {type(prior).__name__}")


class Gibbs:
    """Draw the cluster of every record given all others, one by one (Neal 2000, algorithm 3).

    Under the uniform process given the order of the records (Wallach et al. 2010, eq. 18).

    Parameters
    ----------
    shuffled
        Visit the records in a new random order each time, rather than in theirs.
    """

    def __init__(self, *, shuffled: bool = False) -> None:
        self.shuffled = shuffled
        self._founders: Founders | None = None

    def __call__(self, chain: Chain) -> int:
        """One sweep over all records."""
        if not (chain.prior.exchangeable or isinstance(chain.prior, Uniform)):
            refuse(self, chain.prior, "exchangeable priors and the uniform process")
        order = np.arange(chain.size)
        if self.shuffled:
            order = chain.generator().permutation(order)
        done = 0
        while done < chain.size:
            chain.more_room()
            if chain.weights is not None:
                done = gibbs_sweep(
                    chain.store, chain.allocation, chain.weights, chain.random, order, done, chain.size
                )
            else:
                done = self._uniform(chain, order, done)
        return chain.size

    def _uniform(self, chain: Chain, order: np.ndarray, done: int) -> int:
        assert isinstance(chain.prior, Uniform)
        capacity = len(chain.allocation.free)
        closed = 0 if chain.anchors is None else chain.anchors.closed
        first, ascending = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
        founders = Founders(first, ascending, np.zeros(capacity), closed)
        find_founders(chain.allocation, founders)
        return uniform_sweep(
            chain.store,
            chain.allocation,
            founders,
            chain.prior.concentration,
            chain.random,
            order,
            done,
            chain.size,
        )


class LinkGibbs:
    """Draw the link of every record given all others; a link moves all that hangs on it.

    For the sequential distance-dependent CRP (Blei and Frazier 2011, section 3.1). The links are drawn
    from the clusters at the start of every round, which leaves their distribution as it is.
    """

    def __call__(self, chain: Chain) -> int:
        """One sweep over all records."""
        if not isinstance(chain.prior, DistanceDependent):
            refuse(self, chain.prior, "the distance-dependent prior")
        links = links_of(chain)
        done, order = 0, np.arange(chain.size)
        while done < chain.size:
            chain.more_room()
            capacity = len(chain.allocation.free)
            links = links._replace(total=np.zeros(capacity), slots=np.zeros(capacity, np.int64))
            if done == 0 and draw_links(links, chain.allocation, chain.random):
                raise ValueError("a record is too far from all earlier ones of its cluster to be in it")
            done = link_sweep(chain.store, chain.allocation, links, chain.random, order, done, chain.size)
        chain.settle()
        return chain.size


def links_of(chain: Chain) -> Links:
    """Scratch for a pass over the links of a chain; of no size under priors without links."""
    prior, n, weight = chain.prior, chain.size, chain.link_weights()
    decay, concentration = WindowTerms(1.0), 0.0
    position, reach = np.zeros(0), np.zeros(n, np.int64)
    if isinstance(prior, DistanceDependent):
        decay, concentration = prior.decay.terms(), float(prior.concentration)
    else:
        n = 0
    if isinstance(prior, DistanceDependent) and chain.distances is None:
        anchors = chain.anchors
        position = prior.positions(n, chain.times) if anchors is None else anchors.positions
        reach = np.searchsorted(position, position - prior.decay.reach)
    return Links(
        to=np.zeros(n, np.int64),
        child=np.zeros(n + chain.held, np.int64),
        next=np.zeros(n, np.int64),
        before=np.zeros(n, np.int64),
        position=position,
        reach=reach,
        weight=weight,
        decay=decay,
        concentration=concentration,
        held=NOBODY if chain.anchors is None else chain.anchors.held,
        group=np.zeros(n, np.int64),
        total=np.zeros(0),
        slots=np.zeros(0, np.int64),
    )


class SplitMerge:
    """Propose to split a cluster or to merge two (Jain and Neal 2004).

    Parameters
    ----------
    variant
        1: the sides of a split are thrown by coin. 2: they come out of a Gibbs scan restricted to the
        two sides, after ``scans`` of the kind. 3: as 2, with a Gibbs sweep after every round.
    scans
        Scans before the one that proposes, an integer >= 0.
    proposals
        Of one round.
    """

    def __init__(self, variant: int = RESTRICTED, *, scans: int = 5, proposals: int = 10) -> None:
        if variant not in (SIMPLE, RESTRICTED, MIXED):
            raise ValueError(f"variant must be 1, 2 or 3, not {variant!r}")
        if scans < 0 or proposals < 1:
            raise ValueError("scans must be at least 0, proposals at least 1")
        self.variant, self.proposals = variant, proposals
        self._scans = COIN if variant == SIMPLE else scans
        self._gibbs = Gibbs() if variant == MIXED else None
        self.counters = new_counters(Sides)

    def __call__(self, chain: Chain) -> int:
        """One round of proposals."""
        if chain.weights is None:
            refuse(self, chain.prior, "exchangeable priors")
        assert chain.weights is not None
        n = chain.size
        sides = made(Sides, {"records": n}, counters=self.counters)
        left = self.proposals
        while left:
            chain.more_room()
            left -= split_merge_moves(
                chain.store, chain.allocation, chain.weights, sides, chain.random, self._scans, left
            )
        if self._gibbs is not None:
            self._gibbs(chain)
        return self.proposals

    @property
    def acceptance(self) -> dict[str, float]:
        """Shares of the proposed splits and mergers that were accepted; nan before the first."""
        c = self.counters
        with np.errstate(invalid="ignore"):
            return {
                "split": float(np.float64(c.splits_taken) / c.splits),
                "merge": float(np.float64(c.merges_taken) / c.merges),
            }


class SequentiallyAllocated(SplitMerge):
    """Split and merge, the sides of a split filled one record after the other (SAMS: Dahl 2005).

    Parameters
    ----------
    proposals
        Of one round.
    """

    def __init__(self, *, proposals: int = 10) -> None:
        super().__init__(SIMPLE, proposals=proposals)
        self._scans = SEQUENTIAL
