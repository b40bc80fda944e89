"""Partition priors as sequential weights (DESIGN 2.1, MATH 1).

The next record joins open cluster k with probability weight_k / norm and founds a cluster with
probability new / norm, where norm is the sum of the join weights of the open clusters plus `new`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Members = Sequence[int]
Weights = tuple[list[float], float]


def safe_log(p: float) -> float:
    """log p, with log 0 = -inf."""
    return math.log(p) if p > 0.0 else -math.inf


def log_shares(joins: Sequence[float], new: float) -> tuple[list[float], float]:
    """log(weight / norm) of every open cluster and of a new one; a sole option has log 1."""
    if not joins:
        return [], 0.0
    norm = math.fsum([*joins, new])
    return [safe_log(w / norm) for w in joins], safe_log(new / norm)


@dataclass(frozen=True, kw_only=True)
class Retiring:
    """Closing of the priors that forget nothing: by idle records, or by number of open clusters."""

    retire_after: int | None = None
    max_clusters: int | None = None

    def closes(self, members: Members, now_seq: int, now_t: float, times: Sequence[float]) -> bool:
        """Closed when now_seq - last member > retire_after."""
        return self.retire_after is not None and now_seq - members[-1] > self.retire_after

    def closing_gap(self, members: Members, now_seq: int, now_t: float, times: Sequence[float]) -> float:
        """Distance from the closing rule in nats; integers compare exactly."""
        return math.inf

    def anew(self, members: Members, now_seq: int) -> list[int]:
        """What a pinned cluster weighs as, that would close: the same."""
        return [*members]


@dataclass(frozen=True)
class CRP(Retiring):
    """Join n_k, new a (DESIGN 2.1)."""

    concentration: float

    def weights(
        self, clusters: Sequence[Members], n_founded: int, now_seq: int, now_t: float, times: Sequence[float]
    ) -> Weights:
        return [float(len(c)) for c in clusters], self.concentration


@dataclass(frozen=True)
class PitmanYor(Retiring):
    """Join n_k - d, new a + K d, K the clusters ever founded, closed ones included (DESIGN 2.1)."""

    concentration: float
    discount: float

    def weights(
        self, clusters: Sequence[Members], n_founded: int, now_seq: int, now_t: float, times: Sequence[float]
    ) -> Weights:
        return [len(c) - self.discount for c in clusters], self.concentration + n_founded * self.discount


@dataclass(frozen=True)
class Uniform(Retiring):
    """Join 1, new theta (DESIGN 2.1)."""

    concentration: float

    def weights(
        self, clusters: Sequence[Members], n_founded: int, now_seq: int, now_t: float, times: Sequence[float]
    ) -> Weights:
        return [1.0 for _ in clusters], self.concentration


@dataclass(frozen=True)
class FiniteMixture(Retiring):
    """Join n_k + a / K0, new a / K0 for each of the K0 - K empty components (Green and Richardson 2001)."""

    components: int
    concentration: float

    def weights(
        self, clusters: Sequence[Members], n_founded: int, now_seq: int, now_t: float, times: Sequence[float]
    ) -> Weights:
        share = self.concentration / self.components
        return [len(c) + share for c in clusters], (self.components - n_founded) * share


@dataclass(frozen=True)
class Window:
    """f(d) = 1 if d < scale else 0."""

    scale: float

    def __call__(self, d: float) -> float:
        return 1.0 if d < self.scale else 0.0


@dataclass(frozen=True)
class Exponential:
    """f(d) = exp(-d / scale)."""

    scale: float

    def __call__(self, d: float) -> float:
        return math.exp(-d / self.scale)


@dataclass(frozen=True)
class Logistic:
    """f(d) = 1 / (1 + exp(d - scale)), exponentiating only negative numbers."""

    scale: float

    def __call__(self, d: float) -> float:
        if d <= self.scale:
            return 1.0 / (1.0 + math.exp(d - self.scale))
        e = math.exp(self.scale - d)
        return e / (1.0 + e)


@dataclass(frozen=True)
class DistanceDependent:
    """Join W_k = sum_j f(distance to member j), new a: the sequential dd-CRP (DESIGN 2.1)."""

    concentration: float
    decay: Callable[[float], float]
    unit: str
    close_below: float = 1e-3
    max_clusters: int | None = None

    def __post_init__(self) -> None:
        if self.unit not in ("seconds", "records"):
            raise ValueError(f"unit is 'seconds' or 'records', not {self.unit!r}")
        if self.max_clusters is not None:
            raise ValueError("max_clusters belongs to the priors without decay")

    def link_weight(self, j: int, now_seq: int, now_t: float, times: Sequence[float]) -> float:
        """f(d), the distance in event time or in records."""
        return self.decay(now_t - times[j] if self.unit == "seconds" else float(now_seq - j))

    def cluster_weight(self, members: Members, now_seq: int, now_t: float, times: Sequence[float]) -> float:
        """W_k = sum over members j of f(distance)."""
        return math.fsum(self.link_weight(j, now_seq, now_t, times) for j in members)

    def weights(
        self, clusters: Sequence[Members], n_founded: int, now_seq: int, now_t: float, times: Sequence[float]
    ) -> Weights:
        return [self.cluster_weight(c, now_seq, now_t, times) for c in clusters], self.concentration

    def closes(self, members: Members, now_seq: int, now_t: float, times: Sequence[float]) -> bool:
        """Window: closed at weight 0. Smooth decays: closed when W_k < close_below."""
        weight = self.cluster_weight(members, now_seq, now_t, times)
        return weight == 0.0 if isinstance(self.decay, Window) else weight < self.close_below

    def closing_gap(self, members: Members, now_seq: int, now_t: float, times: Sequence[float]) -> float:
        """|log W_k - log close_below| for a smooth decay: how nearly the closing went the other way."""
        weight = self.cluster_weight(members, now_seq, now_t, times)
        if isinstance(self.decay, Window) or weight == 0.0 or self.close_below == 0.0:
            return math.inf
        return abs(math.log(weight / self.close_below))

    def anew(self, members: Members, now_seq: int) -> list[int]:
        """What a pinned cluster weighs as, that would close: one record of now."""
        return [now_seq]


Prior = CRP | PitmanYor | Uniform | FiniteMixture | DistanceDependent


def sizes(partition: Sequence[int]) -> list[int]:
    """Cluster sizes of a partition given as one cluster name per record."""
    return [list(partition).count(k) for k in dict.fromkeys(partition)]


def log_rising(x: float, m: int) -> float:
    """log of the rising factorial x (x + 1) ... (x + m - 1)."""
    return math.fsum(math.log(x + i) for i in range(m))


def crp_log_prior(partition: Sequence[int], a: float) -> float:
    """a^K prod_k (n_k - 1)! / a^(N) (MATH 1)."""
    ns = sizes(partition)
    return len(ns) * math.log(a) + sum(log_rising(1.0, n - 1) for n in ns) - log_rising(a, len(partition))


def pitman_yor_log_prior(partition: Sequence[int], a: float, d: float) -> float:
    """prod_{k=1}^{K-1} (a + k d) / (a + 1)_{N-1} * prod_k (1 - d)_{n_k - 1} (MATH 1)."""
    ns = sizes(partition)
    founded = sum(math.log(a + k * d) for k in range(1, len(ns)))
    return founded - log_rising(a + 1.0, len(partition) - 1) + sum(log_rising(1.0 - d, n - 1) for n in ns)


def uniform_log_prior(partition: Sequence[int], theta: float) -> float:
    """(K-1) log theta - sum_{k<K} (t_{k+1} - t_k) log(theta + k) - (N - t_K) log(theta + K) (MATH 1)."""
    names = list(partition)
    first = [names.index(k) + 1 for k in dict.fromkeys(names)]
    last = len(first)
    gaps = sum((first[k] - first[k - 1]) * math.log(theta + k) for k in range(1, last))
    return (last - 1) * math.log(theta) - gaps - (len(names) - first[-1]) * math.log(theta + last)
