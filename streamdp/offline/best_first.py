"""Best-first search through the clusterings of the first records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from streamdp.checks import whole_or_none
from streamdp.kernels.rows import grown
from streamdp.likelihoods import BagFamily, Likelihood
from streamdp.offline.bounds import upper_bounds
from streamdp.offline.heuristic import all_link_weights, from_each_on, new_heuristic, with_long_tables
from streamdp.offline.kernels.astar import (
    EMPTY_QUEUE,
    FOUND,
    LIMIT,
    NO_NODE,
    NO_SLOT,
    new_workspace,
    search,
    search_by_clusters,
)
from streamdp.offline.kernels.clusters import prepare
from streamdp.offline.kernels.completion import COUNTS, JOINT, PREDICTIVE, REPLICA, SUMS, SUPPORT
from streamdp.offline.kernels.heap import grown_tree, new_tree
from streamdp.offline.prepare import Data, log_coefficients, new_store
from streamdp.priors import CRP
from streamdp.priors.base import Prior

Score = Literal["admissible", "trivial", "constant", "replica", "predictive", "inadmissible"]
Mode = Literal["joint", "count_prior", "likelihood_only"]
Order = Literal["given", "random", "ascending", "descending"]

BUDGET = 10_000
"""States to expand before all statistics are computed anew, so that rounding errors do not add up."""

FIRST_STATES = 1024
ROUNDING = 1e-9
NO_LIMIT = int(np.iinfo(np.int64).max)

_MODES = {"joint": JOINT, "count_prior": COUNTS, "likelihood_only": SUPPORT}
_LOOKS = {"replica": REPLICA, "predictive": PREDICTIVE}


class Search:
    """A tree of clusterings of the first records, grown where most is expected of it.

    See :func:`streamdp.offline.astar.astar` for the parameters.
    """

    def __init__(
        self,
        data: Data,
        likelihood: Likelihood[Any, Any],
        prior: Prior,
        *,
        queue: int = 0,
        score: Score = "admissible",
        mode: Mode = "joint",
        order: Order = "given",
        seed: int = 0,
        base: np.ndarray | None = None,
        distances: np.ndarray | None = None,
        max_states: int | None = None,
        until: Callable[[], bool] | None = None,
    ) -> None:
        self.until = until
        _check(prior, queue, score, mode, order, max_states)
        self.bound, self.limit = queue, NO_LIMIT if max_states is None else max_states
        self.store = new_store(data, likelihood, base)
        if score == "replica" and likelihood.sparse:
            self.store = with_long_tables(self.store, likelihood, base)
        prepare(self.store)
        fresh = self.store.fresh
        self.order = _placed(fresh + log_coefficients(self.store, likelihood), order, seed)
        self.link_weights = all_link_weights(prior, data, distances)
        most = upper_bounds(self.store, self.order, likelihood)
        ahead = {"admissible": most, "inadmissible": fresh[self.order]}.get(score, np.zeros(data.size))
        look = _LOOKS.get(score, SUMS)
        self.heuristic, root = new_heuristic(
            prior, _MODES[mode], look, from_each_on(ahead), self.link_weights
        )
        self.workspace = new_workspace(self.order, len(self.store.size))
        self.tree = new_tree(root, FIRST_STATES)
        learned = isinstance(likelihood, BagFamily) and likelihood.learns_base and base is None
        bounded = score == "admissible" or (score in ("trivial", "constant") and bool(most.max() <= ROUNDING))
        self.exact = bounded and queue == 0 and mode == "joint" and not learned
        """Whether the next complete state is the best; not once ``max_states`` is reached."""

    def next_best(self) -> np.ndarray | None:
        """The clusters of all records in the next complete state, by record; None when there is no other.

        An exact search gives them in the order of their scores.
        """
        run = search if self.heuristic.look == SUMS else search_by_clusters
        while True:
            prepare(self.store)
            self.workspace.counters.here = self.workspace.counters.clusters = 0
            ended = run(self.store, self.heuristic, self.workspace, self.tree, self.bound, self.limit, BUDGET)
            if ended == FOUND:
                return self._labels(int(self.tree.counters.answer))
            if ended == EMPTY_QUEUE:
                return None
            if ended == LIMIT:
                self._hurry()
            elif ended == NO_NODE:
                self.tree = grown_tree(self.tree)
            elif ended == NO_SLOT:
                capacity = 2 * len(self.store.size)
                self.store, self.workspace = (
                    grown(self.store, "slots", capacity),
                    new_workspace(self.order, capacity),
                )
            if self.until is not None and self.until():
                self._hurry()

    def _hurry(self) -> None:
        """From now on only the best state goes on, greedily."""
        self.bound, self.limit, self.exact, self.until = 1, NO_LIMIT, False, None
        self.tree.counters.queued = 1

    def _labels(self, node: int) -> np.ndarray:
        labels = np.empty(len(self.order), np.int64)
        for i in self.order[::-1]:
            labels[i] = self.tree.label[node]
            node = self.tree.parent[node]
        return labels

    @property
    def enqueued(self) -> int:
        """States that have entered the queue."""
        return int(self.tree.counters.enqueued)

    @property
    def expanded(self) -> int:
        """States whose children have been looked at."""
        return int(self.tree.counters.expanded)


def _check(prior: Prior, queue: int, score: Score, mode: Mode, order: Order, max_states: int | None) -> None:
    for name, value, kind in (("score", score, Score), ("mode", mode, Mode), ("order", order, Order)):
        if value not in get_args(kind):
            raise ValueError(f"{name} must be one of {', '.join(get_args(kind))}, not {value!r}")
    if not isinstance(queue, int) or isinstance(queue, bool) or queue < 0:
        raise ValueError(f"queue must be an integer of at least 0, not {queue!r}")
    whole_or_none("max_states", max_states)
    name = type(prior).__name__
    if order != "given" and not prior.exchangeable:
        raise ValueError(f"order must be 'given' under {name}: it is part of the model")
    if mode == "count_prior" and not isinstance(prior, CRP):
        raise ValueError(f"mode 'count_prior' is for CRP, not for {name}")


def _placed(fresh: np.ndarray, order: Order, seed: int) -> np.ndarray:
    """The records in the order they are placed in."""
    if order == "random":
        return np.random.default_rng(seed).permutation(len(fresh))
    if order == "given":
        return np.arange(len(fresh))
    return np.argsort(fresh if order == "ascending" else -fresh, kind="stable")
