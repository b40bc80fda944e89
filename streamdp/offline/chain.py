"""A clustering of a finite set of records that moves can change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from streamdp.kernels.rows import grown
from streamdp.likelihoods import Categorical, Likelihood
from streamdp.likelihoods.words import SharedBase
from streamdp.offline.anchors import Anchors
from streamdp.offline.kernels.allocation import clear_from, fill, grown_allocation, new_allocation, sweep
from streamdp.offline.kernels.rng import draw_uniform, new_random
from streamdp.offline.kernels.store import FIRST_SLOT, prepare
from streamdp.offline.plan import Order
from streamdp.offline.prepare import Data, counts_of, new_store, with_terms
from streamdp.priors import by_distance
from streamdp.priors.base import Prior, Weights

NONE = np.zeros(0, np.int64)


def canonical(labels: Sequence[int] | np.ndarray, held: int = 0) -> np.ndarray:
    """The same clustering, clusters numbered from ``held`` by their first members.

    Labels from 0 to below ``held`` stay.
    """
    values = np.asarray(labels).reshape(-1)
    moves = np.ones(len(values), bool) if held == 0 else values >= held
    _, first, inverse = np.unique(values[moves], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = held + np.arange(len(first))
    numbered = values.astype(np.int64)
    numbered[moves] = rank[inverse.reshape(-1)]
    return numbered


def in_order(order: Order, alone: np.ndarray, random: Callable[[], np.random.Generator]) -> np.ndarray:
    """Record numbers in an order, shape (N,): at random, or by log H of each ``alone``, shape (N,)."""
    if order == "random":
        return random().permutation(len(alone))
    if order == "given":
        return np.arange(len(alone))
    return np.argsort(alone if order == "ascending" else -alone, kind="stable")


class Chain:
    """Records, a model, and one clustering with its log joint.

    Parameters
    ----------
    data
        The records; their order matters to priors that are not exchangeable.
    likelihood, prior
        The model.
    labels
        Where to start, shape (N,): any integers, equal where records are together; None: one cluster.
    seed
        Of all random numbers that moves draw.
    base
        p_w by word, shape (V,), of the hierarchical families; None: that of the family, or else learned
        from the records as if each were a cluster of its own.
    distances
        Distance of record i from each earlier one in ``distances[i, j]``, shape (N, N), >= 0, for the
        distance-dependent prior; None: as the prior measures it.
    anchors
        Clusters with records that do not move; labels below their number A name them.
    """

    def __init__(
        self,
        data: Data,
        likelihood: Likelihood,
        prior: Prior,
        labels: Sequence[int] | np.ndarray | None = None,
        *,
        seed: int | np.random.SeedSequence = 0,
        base: np.ndarray | None = None,
        distances: np.ndarray | None = None,
        anchors: Anchors | None = None,
    ) -> None:
        if anchors is not None and distances is not None:
            raise ValueError("distances are between records that are all here")
        self.anchors = anchors
        self.data, self.likelihood, self.prior, self.base = data, likelihood, prior, base
        self.distances = distances
        self.random = new_random(seed)
        self.fixed: np.ndarray | None = None
        """Records that stay together or apart as they are; None: there are none, and none is out of reach."""
        self.lost: np.ndarray | None = None
        """1 for those that no earlier record of their cluster reached at the start, shape (N,)."""
        self._link_weights: tuple[Prior, np.ndarray] | None = None
        self.store: Any = new_store(data, likelihood, base, anchors=anchors)
        self.allocation = new_allocation(data.size, len(self.store.size))
        self.weights = self._tables(prior)
        self.set_labels(np.zeros(data.size, np.int64) if labels is None else labels)

    def _tables(self, prior: Prior) -> Weights | None:
        if not prior.exchangeable:
            return None
        return prior.tables(self.size) if self.anchors is None else self.anchors.weights(prior, self.size)

    @property
    def size(self) -> int:
        """N."""
        return self.data.size

    @property
    def bound(self) -> bool:
        """Whether records are fixed."""
        return self.fixed is not None and len(self.fixed) > 0

    @property
    def clusters(self) -> int:
        """K, with those of which only frozen records are members."""
        return int(self.allocation.counters.active)

    @property
    def labels(self) -> np.ndarray:
        """The cluster of every record, shape (N,): A and more by first members, below A with frozen ones."""
        return canonical(self.allocation.labels - FIRST_SLOT, self.held)

    @property
    def held(self) -> int:
        """A, the clusters with frozen records."""
        return 0 if self.anchors is None else self.anchors.count

    @property
    def sizes(self) -> np.ndarray:
        """Sizes of the clusters, shape (K,), in no order."""
        return np.asarray(self.store.size[self.allocation.active[: self.clusters]])

    @property
    def log_joint(self) -> float:
        """log p(z, x) in nats, as the moves have kept it."""
        return float(self.allocation.counters.joint)

    @property
    def log_likelihood(self) -> float:
        """log p(x | z) in nats, given frozen records: the sum of log H over the clusters, without theirs."""
        total = self.store.log_h[self.allocation.active[: self.clusters]].sum()
        return float(total - self.allocation.counters.frozen)

    @property
    def times(self) -> list[float] | None:
        """Event times in seconds, where the records have any."""
        return None if self.data.times is None else np.asarray(self.data.times, float).tolist()

    def log_prior(self) -> float:
        """log p(z) in nats, given frozen records, computed anew."""
        labels = self.allocation.labels if self.anchors is None else self.labels
        if self.distances is not None:
            link_weights, linked = self.link_weights(), by_distance(self.prior)
            assert linked is not None
            return linked.log_probability_by(link_weights, labels)
        return float(self.log_terms(labels, by_hand=self.bound).sum())

    def log_terms(self, labels: np.ndarray, *, by_hand: bool) -> np.ndarray:
        """What log p(z) of a clustering consists of: by record where distance counts, else one number.

        ``by_hand`` is as for :meth:`DistanceDependent.log_terms`.
        """
        if self.anchors is not None:
            return self.anchors.log_terms(self.prior, labels, by_hand=by_hand)
        if (linked := by_distance(self.prior)) is None:
            return np.array([self.prior.log_probability(labels.tolist(), self.times)])
        nothing, positions = np.zeros(self.size), linked.positions(self.size, self.times)
        return linked.log_terms(labels.tolist(), positions, nothing, nothing, 0, by_hand=by_hand)

    def link_weights(self) -> np.ndarray:
        """Weight of a link from record i to an earlier one, shape (N, N); empty without ``distances``."""
        if self.distances is None:
            return np.zeros((0, 0))
        if self._link_weights is None or self._link_weights[0] is not self.prior:
            self._link_weights = (self.prior, self.prior.link_weights(self.distances, self.size))
        return self._link_weights[1]

    def uniform(self) -> float:
        """A random number in [0, 1)."""
        return float(draw_uniform(self.random))

    def generator(self) -> np.random.Generator:
        """A generator for what is drawn outside the kernels, seeded by the chain's own."""
        return np.random.default_rng(int(self.uniform() * 2**53))

    def settle(self) -> None:
        """Compute the log joint anew from what the kernels keep of the clusters."""
        self.allocation.counters.joint = self.log_prior() + self.log_likelihood

    def set_labels(self, labels: Sequence[int] | np.ndarray) -> None:
        """Go on from another clustering; all statistics are computed anew."""
        values = canonical(labels, self.held)
        if values.shape != (self.size,):
            raise ValueError(f"{len(values)} labels for {self.size} records")
        clusters = max(int(values.max()) + 1, self.held)
        _check_clusters(self.prior, clusters)
        self.make_room(clusters)
        prepare(self.store)
        fill(self.store, self.allocation, values, NONE if self.anchors is None else self.anchors.sizes)
        self.settle()

    def need_all_records(self, what: str) -> None:
        """``ValueError`` where some records are frozen."""
        if self.anchors is not None:
            raise ValueError(f"{what} needs all records, and older ones are held as statistics only")

    def refresh(self) -> float:
        """Compute all statistics anew; returns how far the log joint had drifted, in nats."""
        kept = self.log_joint
        self.set_labels(self.labels)
        return kept - self.log_joint

    def replace(self, *, prior: Prior | None = None, likelihood: Likelihood | None = None) -> None:
        """Go on with other parameters, or with another family. ``ValueError`` leaves all as it was."""
        if prior is not None:
            _check_clusters(prior, self.clusters)
            weights = self._tables(prior)
            if self.distances is not None:
                self._link_weights = (prior, prior.link_weights(self.distances, self.size))
            self.prior, self.weights = prior, weights
            self.settle()
        if likelihood is not None:
            if _same_records(self.likelihood, likelihood):
                self.store = with_terms(self.store, likelihood, self.base)
            else:
                capacity = len(self.allocation.free)
                self.store = new_store(self.data, likelihood, self.base, capacity, anchors=self.anchors)
            self.likelihood = likelihood
            self.set_labels(self.labels)

    def rebase(self, base: np.ndarray) -> None:
        """Go on under another base measure: p_w by word, shape (V,)."""
        self.base = base
        self.store = with_terms(self.store, self.likelihood, base)
        self.set_labels(self.labels)

    def make_room(self, clusters: int) -> None:
        """See to slots for that many clusters, and a few to spare."""
        capacity = len(self.store.size)
        wanted = capacity
        while wanted < clusters + FIRST_SLOT + 8:
            wanted *= 2
        if wanted > capacity:
            self.store = grown(self.store, "slots", wanted)
            self.allocation = grown_allocation(self.allocation, wanted)
            clear_from(self.store, capacity)

    def sweep(self, order: np.ndarray, given: Callable[[], Any]) -> None:
        """Draw some records anew, in this order; kernels read what is ``given``, made anew with more room."""
        done = 0
        while done < len(order):
            self.more_room()
            done = sweep(given(), self.store, self.allocation, self.random, order, done)

    def more_room(self, spare: int = 1) -> None:
        """Double the slots until ``spare`` are free."""
        while self.allocation.counters.free < spare:
            self.make_room(len(self.store.size))


def _check_clusters(prior: Prior, clusters: int) -> None:
    """``ValueError`` where a prior does not know of so many clusters."""
    if (most := prior.most_clusters) is not None and clusters > most:
        raise ValueError(f"{clusters} clusters are impossible with {most} components")


def _same_records(a: Likelihood, b: Likelihood) -> bool:
    """Whether two likelihoods keep records and statistics in the same form."""
    form = [
        (type(x.main), x.ordered, *(getattr(x, n, None) for n in ("dimension", "forget"))) for x in (a, b)
    ]
    return form[0] == form[1]


Move: TypeAlias = Callable[[Chain], None]
"""A round of a Markov chain over clusterings that leaves p(z | x) invariant."""


class Sampler(ABC):
    """A move that changes the clustering, under the priors that it is for. Another raises ``ValueError``."""

    needs: ClassVar[str]
    """The priors, in words."""

    instead: ClassVar[str] = ""
    """What serves the others."""

    holds: ClassVar[bool] = False
    """Whether it leaves fixed records together or apart as they are."""

    @staticmethod
    @abstractmethod
    def serves(prior: Prior) -> bool:
        """Whether a prior is one of them."""

    @abstractmethod
    def round(self, chain: Chain) -> None:
        """Do one round."""

    def __call__(self, chain: Chain) -> None:
        """Do one round; ValueError where it is not for the prior."""
        if not self.serves(chain.prior):
            name = type(chain.prior).__name__
            raise ValueError(f"{type(self).__name__} is for {self.needs}, not for {name}{self.instead}")
        self.round(chain)


def recount(chains: Sequence[Chain]) -> None:
    """Give chains over the same records one base measure: that of the mean of their counts.

    A stream counts in how many clusters it has seen each word. A set does so of the clustering that its
    chains have come to, from time to time: a plug-in, that is held fixed while log joints are compared.
    """
    of_texts = SharedBase, Categorical
    families = [chain.likelihood.bag for chain in chains if isinstance(chain.likelihood.bag, of_texts)]
    counts = np.mean(
        [counts_of(chain.data, family, chain.labels) for chain, family in zip(chains, families, strict=True)],
        axis=0,
    )
    base = families[0].of_set(np.rint(counts))
    for chain in chains:
        if chain.base is None or not np.array_equal(chain.base, base):
            chain.rebase(base)
