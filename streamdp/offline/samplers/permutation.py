"""The permutation-augmented sampler (Liang, Jordan and Taskar 2007).

A permutation in which every cluster is a run is drawn given the clustering, then a clustering given the
permutation, all clusterings into runs being summed over by dynamic programming. All of the paper's forms are
here: the exact program, Metropolis-Hastings, the beam; uniform permutations, Markov Gibbs scans, random
projections. Ours are two more orders, a refusal where the beam has lost the present clustering, and that
draws along projections are taken only where the log joint rises. The paper's beta expands log K! at K, and is
exp psi(K + 1), not exp psi(K).

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np

from streamdp.kernels.rows import grown, made
from streamdp.likelihoods import Likelihood
from streamdp.offline.chain import NONE, Chain, Sampler
from streamdp.offline.kernels.allocation import fill, new_allocation
from streamdp.offline.kernels.permutation import (
    FULL,
    Program,
    backward,
    conditionals,
    draw_order,
    exact,
    forward,
)
from streamdp.offline.kernels.store import FIRST_SLOT, WordStore, prepare
from streamdp.offline.prepare import Data, new_store
from streamdp.priors.base import Prior

Form = Literal["exact", "metropolis"]
Order = Literal["uniform", "markov", "markov-ratio", "projection", "projection-pair"]
MOST_EXACT = 2_000
MOST_MARKOV = 5_000
MOST_RATIO = 30.0
"""Nats: the ratio's log weights are no larger and no smaller."""


class Permutation(Sampler):
    """Draw all clusters at once along a random permutation.

    Parameters
    ----------
    form
        "exact": the number of clusters is kept in the program, O(N^3) time and O(N^2) memory (N up to
        2,000). "metropolis": every run is given the same weight, and the draw is accepted or not; O(N^2),
        and with ``keep`` O(N) times the runs kept.
    order
        Of the records of a cluster. "uniform". "markov": b follows a with weight p(b | a), as in the paper;
        "markov-ratio": with weight p(b | a) / p(b), under which short texts do not come first for being
        short (both: N up to 5,000). "projection": along a random direction, as in the paper, that of texts
        in the space of their shares of words; "projection-pair": along the line through two of the records.
        Projections do not leave p(z | x) invariant: what they propose is taken only where the log joint
        rises, to climb during burn-in.
    keep
        Share of each sum that may be lost to pruning, in [0, 1); 0: nothing is pruned. The draw is then
        refused where the present clustering has itself been pruned, so that p(z | x) stays invariant.
    width
        Most runs under way at a time.
    sharpness
        Of Markov orders: the power of their weights.
    by_count
        log A(K), shape (N + 1,), in place of the prior's: how the concentration is integrated out, see
        :func:`integrated`.
    burn_in
        Rounds at whose mean number of clusters the weight of a run is taken, then to stay as it is; 0: at
        that of the first clustering; math.inf: never to stay. In these rounds p(z | x) is not invariant.

    Notes
    -----
    With pruning, and from a start far away, no draw may ever be accepted: mix it with Gibbs sweeps.
    """

    needs = "exchangeable priors"
    instead = ": take the method hybrid"

    def __init__(
        self,
        form: Form = "metropolis",
        *,
        order: Order = "uniform",
        keep: float = 0.0,
        width: int = 200,
        sharpness: float = 1.0,
        by_count: np.ndarray | None = None,
        burn_in: float = 0,
    ) -> None:
        if form not in get_args(Form) or order not in get_args(Order):
            raise ValueError(f"form must be one of {get_args(Form)}, order one of {get_args(Order)}")
        if not 0.0 <= keep < 1.0 or width < 2:
            raise ValueError("keep must be at least 0 and below 1, width at least 2")
        self.form, self.order, self.keep, self.width = form, order, keep, width
        self.sharpness, self.by_count, self.burn_in = sharpness, by_count, burn_in
        self.climbs, self.markov = order.startswith("projection"), order.startswith("markov")
        if form == "exact" and (keep > 0.0 or self.climbs):
            raise ValueError("the exact form neither prunes nor climbs: it is for uniform and Markov orders")
        self.proposed = self.accepted = self.lost = self._seen = 0
        self.expansion: float | None = None
        self._store: Any | None = None
        self.program: Program | None = None
        """The orders that were drawn last."""
        self._made_for: tuple[Data, Likelihood, np.ndarray | None] | None = None

    @staticmethod
    def serves(prior: Prior) -> bool:
        """Where the records may be taken in any order."""
        return prior.exchangeable

    def round(self, chain: Chain) -> None:
        """One draw of a permutation and of a clustering."""
        chain.need_all_records("Permutation")
        weights = chain.weights
        assert weights is not None
        program = self._set_up(chain)
        n, sizes = chain.size, np.arange(chain.size + 1)
        log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
        counts = np.concatenate([[0.0], np.cumsum(weights.found[:n])]) - log_factorial
        if self.by_count is not None:
            if self.by_count.shape != (n + 1,):
                raise ValueError(f"by_count must have shape ({n + 1},), not {self.by_count.shape}")
            counts = self.by_count
        per_run = 0.0
        draw_order(program, chain.labels, chain.clusters, chain.random)
        if self.climbs:
            self._project(chain, program)
            by_size, per_run = weights.grown, float(weights.found[chain.clusters])
        else:
            by_size = weights.grown if self.markov else weights.grown - log_factorial[sizes]
            if self.form == "metropolis":
                per_run = self._expand(counts, chain.clusters)
        program = self._forward(by_size, per_run)
        self.proposed += 1
        if self.form == "exact":
            exact(program, counts, chain.random)
            self._take(chain)
        elif not program.counters.current and not self.climbs:
            self.lost += 1
        else:
            self._draw(chain, program, counts, per_run)

    def _draw(self, chain: Chain, program: Program, counts: np.ndarray, per_run: float) -> None:
        """Draw a clustering by the sums; it may be refused."""
        before, clusters = chain.clusters, backward(program, chain.random)
        if self.climbs:
            if counts[clusters] > -math.inf:  # a finite mixture has no more components
                self._climb(chain)
            return
        change = counts[clusters] - counts[before] - per_run * (clusters - before)
        if math.log1p(-chain.uniform()) < change:
            self._take(chain)

    def _expand(self, counts: np.ndarray, clusters: int) -> float:
        """log weight of a run: the slope of log A at the mean K so far, of the CRP log alpha - psi(K + 1)."""
        if self.expansion is None or self.proposed < self.burn_in:
            self._seen += clusters
            possible = counts[1:][np.isfinite(counts[1:])]
            slopes = np.diff(possible) if len(possible) > 1 else np.zeros(1)
            mean = self._seen / (self.proposed + 1)
            self.expansion = float(np.interp(mean, 1.5 + np.arange(len(slopes)), slopes))
        return self.expansion

    def _take(self, chain: Chain) -> None:
        assert self.program is not None
        self.accepted += 1
        chain.set_labels(self.program.labels)

    def _climb(self, chain: Chain) -> None:
        assert self.program is not None
        before, kept = chain.log_joint, chain.labels
        chain.set_labels(self.program.labels)
        if chain.log_joint > before:
            self.accepted += 1
        else:
            chain.set_labels(kept)

    def _project(self, chain: Chain, program: Program) -> None:
        """Order each cluster along a direction: a random one, or that from one of its records to another."""
        random, store, data = chain.generator(), chain.store, chain.data
        order, bounds = program.order, program.bounds
        worded = isinstance(store, WordStore)
        for k in range(chain.clusters):
            members = order[bounds[k] : bounds[k + 1]].copy()
            if len(members) < 3:
                continue
            if self.order == "projection":
                direction = random.standard_normal(len(store.length) if worded else store.vectors.shape[1])
            else:
                direction = _from_one_to_another(store, data, *random.choice(members, 2, replace=False))
            if worded:
                heights = _mean_of_words(data.take(members), direction)
            else:
                heights = store.vectors[members] @ direction
            order[bounds[k] : bounds[k + 1]] = members[np.argsort(heights, kind="stable")]

    def _forward(self, by_size: np.ndarray, per_run: float) -> Program:
        program, log_keep = self.program, math.log(self.keep) if self.keep else -math.inf
        assert program is not None
        assert self._store is not None
        first = 0
        program.counters.current = 1
        while forward(self._store, program, by_size, per_run, log_keep, first) == FULL:
            first = int(program.counters.place)
            program = grown(program, "terms", 2 * len(program.term))
        self.program = program
        return program

    def _set_up(self, chain: Chain) -> Program:
        """A store for runs, and the program; made anew when the likelihood has changed."""
        n = chain.size
        made_for = (chain.data, chain.likelihood, chain.base)
        before = self._made_for or (None, None, None)
        if self.program is not None and all(a is b for a, b in zip(made_for, before, strict=True)):
            return self.program
        if self.form == "exact" and n > MOST_EXACT:
            raise ValueError(f"the exact form is for up to {MOST_EXACT} records, not {n}: take metropolis")
        width = n + 1 if self.keep == 0.0 else min(self.width, n + 1)
        similarity = np.zeros((0, 0))
        if self.markov:
            similarity = self._similarity(chain)
        self._store = new_store(
            chain.data, chain.likelihood, chain.base, capacity=width + FIRST_SLOT, places=width
        )
        prepare(self._store)
        self._made_for = made_for
        sizes = {
            "records": n,
            "bounds": n + 1,
            "runs": width,
            "offsets": n + 2,
            "terms": 16 * n + 64,
            "square": n + 1 if self.form == "exact" else 0,
            "most": max(n, width) + 1,
        }
        self.program = made(Program, sizes, similarity=similarity)
        self.program.bounds[:] = n + 1
        return self.program

    def _similarity(self, chain: Chain) -> np.ndarray:
        n = chain.size
        if n > MOST_MARKOV:
            raise ValueError(f"Markov orders are for up to {MOST_MARKOV} records, not {n}: take uniform")
        store = new_store(chain.data, chain.likelihood, chain.base, capacity=n + FIRST_SLOT, places=n)
        prepare(store)
        fill(store, new_allocation(n, n + FIRST_SLOT), np.arange(n), NONE)
        similarity = np.zeros((n, n))
        conditionals(store, FIRST_SLOT + np.arange(n), similarity)
        if self.order == "markov-ratio":
            similarity -= store.fresh[:n, np.newaxis]
        similarity *= self.sharpness
        return similarity if self.order == "markov" else np.clip(similarity, -MOST_RATIO, MOST_RATIO)


def _from_one_to_another(store: Any, data: Data, i: int, j: int) -> np.ndarray:
    """The difference of two records; of texts that of their shares of words."""
    if not isinstance(store, WordStore):
        return np.asarray(store.vectors[i] - store.vectors[j])
    difference, pair = np.zeros(len(store.length)), data.take(np.array([i, j]))
    shares = pair.counts / np.maximum(pair.sizes, 1)[pair.rows]
    np.add.at(difference, pair.words, np.where(pair.rows == 0, shares, -shares))
    return difference


def _mean_of_words(records: Data, direction: np.ndarray) -> np.ndarray:
    """A record's shares of words along a direction, shape (N,)."""
    heights = np.bincount(records.rows, records.counts * direction[records.words], records.size)
    return np.asarray(heights / np.maximum(records.sizes, 1.0))


def integrated(n: int, shape: float, rate: float) -> np.ndarray:
    """log A(K) of the Chinese restaurant process, its concentration integrated out, shape (N + 1,).

    A(K) = 1/K! times the integral of alpha^K / alpha^(N) under alpha ~ Gamma(shape, rate), by the
    trapezoid rule on a grid of log alpha.

    Parameters
    ----------
    n
        N, number of records.
    shape, rate
        Of the gamma prior of the concentration: at least 0.1, > 0.
    """
    if not (shape >= 0.1 and rate > 0.0):
        raise ValueError("shape must be at least 0.1, rate positive")
    mode = math.log(max(shape, 1.0) / rate)
    below = max(25.0, 30.0 / shape)  # the density of log alpha falls off like exp(shape log alpha)
    grid = np.linspace(mode - below, mode + 12.0, int(11 * (below + 12.0)))
    alpha = np.exp(grid)
    log_gamma = np.vectorize(math.lgamma, otypes=[float])
    density = shape * math.log(rate) - math.lgamma(shape) + shape * grid - rate * alpha
    density -= log_gamma(alpha + n) - log_gamma(alpha)
    k = np.arange(n + 1)
    values = k[:, np.newaxis] * grid + density
    peak = values.max(axis=1, keepdims=True)
    integral = np.log(np.exp(values - peak).sum(axis=1) * (grid[1] - grid[0])) + peak[:, 0]
    return np.asarray(integral - log_gamma(k + 1.0))
