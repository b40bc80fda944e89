"""Likelihood families as sequential predictives, and the base measures they share (DESIGN 2.2, MATH 3).

A base measure gives a *view* for a record, frozen while the record is scored: word probabilities for the
hierarchical families, the words seen for a growing DirichletMultinomial, None for dense vectors.
"""

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from .priors import safe_log

Sparse = Sequence[tuple[int, int]]
Dense = Sequence[float]
Scalars = float | Sequence[float]
UNIVERSE = 2**20


def tokens(x: Sparse) -> list[int]:
    """Tokens in scoring order: the words of count 1 as given, then the others, repeats together."""
    once = [w for w, c in x if c == 1]
    return once + [w for w, c in x if c > 1 for _ in range(c)]


def word_counts(members: Sequence[Sparse]) -> Counter[int]:
    """n_kw, the number of tokens of every word in a cluster."""
    counts: Counter[int] = Counter()
    for x in members:
        counts.update(tokens(x))
    return counts


def per_dimension(value: Scalars, size: int) -> list[float]:
    """A scalar repeated, or the given vector."""
    return [float(value)] * size if isinstance(value, int | float) else [float(v) for v in value]


class Family:
    """H(x | S) of one record given the members of a cluster in the order they joined."""

    def log_predictive(self, members: Sequence[Any], x: Any, base: Any) -> float:
        raise NotImplementedError

    def log_marginal(self, records: Sequence[Any], views: Sequence[Any] | None = None) -> float:
        """log H(S) = sum_i log H(x_i | x_1 .. x_{i-1}), with one base view per record."""
        views = [None] * len(records) if views is None else views
        return sum(self.log_predictive(records[:i], x, views[i]) for i, x in enumerate(records))


@dataclass(frozen=True)
class DirichletMultinomial(Family):
    """Token by token (n_kw + beta) / (n_k + V beta).

    V = None takes the base view as the words seen: they have beta each, the rest of 2^20 share the escape.
    """

    beta: float
    V: int | None = None
    escape: float = 10.0

    def prior_mass(self, w: int, seen: Set[int]) -> float:
        """Of a word, before the cluster has any token."""
        return self.beta if self.V or w in seen else self.escape / (UNIVERSE - len(seen))

    def log_predictive(self, members: Sequence[Sparse], x: Sparse, base: Set[int] | None) -> float:
        seen = base or frozenset()
        mass = self.V * self.beta if self.V else len(seen) * self.beta + self.escape
        counts, total = word_counts(members), 0.0
        for w in tokens(x):
            total += safe_log((counts[w] + self.prior_mass(w, seen)) / (counts.total() + mass))
            counts[w] += 1
        return total


@dataclass(frozen=True)
class HierarchicalDirichlet(Family):
    """Cluster level (n_kw + b1 p_w) / (n_k + b1); document level (r + beta p) / (N_d + beta) (MATH 3)."""

    b1: float
    document_beta: float | None = None

    def log_predictive(self, members: Sequence[Sparse], x: Sparse, base: dict[int, float]) -> float:
        counts, total = word_counts(members), 0.0
        here: Counter[int] = Counter()
        for w in tokens(x):
            p = (counts[w] + self.b1 * base[w]) / (counts.total() + self.b1)
            if self.document_beta is not None:
                p = (here[w] + self.document_beta * p) / (here.total() + self.document_beta)
            total += safe_log(p)
            counts[w] += 1
            here[w] += 1
        return total


@dataclass(frozen=True)
class HierarchicalPitmanYor(Family):
    """(n_kw - d [n_kw > 0] + (b1 + d T_k) p_w) / (n_k + b1), one table per word and cluster (MATH 3).

    Records of one word, of two and so on have a b1 of their own, as far as ``short`` goes.
    """

    b1: float
    d: float
    short: tuple[float, ...] = ()

    def log_predictive(self, members: Sequence[Sparse], x: Sparse, base: dict[int, float]) -> float:
        counts, total, length = word_counts(members), 0.0, len(tokens(x))
        b1 = self.short[length - 1] if 0 < length <= len(self.short) else self.b1
        for w in tokens(x):
            own = counts[w] - self.d if counts[w] > 0 else 0.0
            tables = sum(1 for n in counts.values() if n > 0)
            total += safe_log((own + (b1 + self.d * tables) * base[w]) / (counts.total() + b1))
            counts[w] += 1
        return total


def fields(x: Sparse) -> dict[int, int]:
    """The value of every field that a record has: after the word of all records come pairs of such words."""
    words = [w for w, _ in x][1:]
    return dict(zip(words[::2], words[1::2], strict=True))


@dataclass(frozen=True)
class Categorical(Family):
    """(n_fv + V_f beta p_fv) / (n_f + V_f beta) for each field f that the record has, v being its value.

    The base view holds V_f p_fv by value, and V_f, of whatever sign, by field.
    """

    beta: float

    def log_predictive(self, members: Sequence[Sparse], x: Sparse, base: dict[int, float]) -> float:
        total = 0.0
        for f, v in fields(x).items():
            values = [fields(y)[f] for y in members if f in fields(y)]
            numerator = values.count(v) + self.beta * base[v]
            total += safe_log(numerator / (len(values) + self.beta * abs(base[f])))
        return total


def apart(x: Sparse) -> tuple[Sparse, Sparse]:
    """The categories of a record, and the words of its text: those behind the word 1."""
    at = next((i for i, (w, _) in enumerate(x) if w == 1), len(x))
    return x[:at], x[at + 1 :]


@dataclass(frozen=True)
class Mixed(Family):
    """Categories, and a text as it would be by itself.

    The base view holds p_w by word, and of categories what they want.
    """

    beta: float
    text: HierarchicalPitmanYor

    def log_predictive(self, members: Sequence[Sparse], x: Sparse, base: dict[int, float]) -> float:
        named, words = apart(x)
        total = Categorical(self.beta).log_predictive([apart(y)[0] for y in members], named, base)
        return total + self.text.log_predictive([apart(y)[1] for y in members], words, base)


@dataclass(frozen=True)
class Beside(Family):
    """Records that are a pair: of parts, and of a vector, None where there is none, whose H has a power."""

    parts: Family
    vector: Family
    weight: float

    def log_predictive(self, members: Sequence[Any], x: Any, base: dict[int, float]) -> float:
        total = self.parts.log_predictive([y for y, _ in members], x[0], base)
        if x[1] is None:
            return total
        others = [v for _, v in members if v is not None]
        return total + self.weight * self.vector.log_predictive(others, x[1])


@dataclass(frozen=True)
class Gaussian(Family):
    """Variance s2 I known, mean ~ N(m0, v0 I): predictive N(v (m0/v0 + S/s2), (v + s2) I).

    v = 1/(1/v0 + n/s2) (MATH 3); with forget f every joining record makes n <- f n + 1, S <- f S + x.
    """

    s2: float
    v0: float
    m0: Scalars = 0.0
    forget: float = 1.0

    def log_predictive(self, members: Sequence[Dense], x: Dense, base: Any = None) -> float:
        total = 0.0
        for i, m0 in enumerate(per_dimension(self.m0, len(x))):
            n = s = 0.0
            for y in members:
                n, s = self.forget * n + 1.0, self.forget * s + y[i]
            v = 1.0 / (1.0 / self.v0 + n / self.s2)
            mean, var = v * (m0 / self.v0 + s / self.s2), v + self.s2
            total += -0.5 * math.log(2.0 * math.pi * var) - (x[i] - mean) ** 2 / (2.0 * var)
        return total


def student_t_log_density(x: float, dof: float, location: float, scale2: float) -> float:
    """log density of Student's t with the given degrees of freedom, location and squared scale."""
    z2 = (x - location) ** 2 / scale2
    peak = math.lgamma((dof + 1.0) / 2.0) - math.lgamma(dof / 2.0) - 0.5 * math.log(dof * math.pi * scale2)
    return peak - (dof + 1.0) / 2.0 * math.log1p(z2 / dof)


@dataclass(frozen=True)
class NormalInverseGamma(Family):
    """Mean and variance unknown in every dimension: predictive Student-t (DESIGN 2.2).

    2 a_n degrees of freedom, location m_n, squared scale b_n (kappa_n + 1)/(a_n kappa_n), with
    kappa_n = kappa + n, m_n = (kappa m0 + S1)/kappa_n, a_n = a + n/2,
    b_n = b + (S2 + kappa m0^2 - kappa_n m_n^2)/2; n, S1 and S2 decay by `forget` per joining record.
    """

    m0: Scalars
    kappa: float
    a: float
    b: Scalars
    forget: float = 1.0

    def log_predictive(self, members: Sequence[Dense], x: Dense, base: Any = None) -> float:
        m0s, bs, total = per_dimension(self.m0, len(x)), per_dimension(self.b, len(x)), 0.0
        for i, (m0, b) in enumerate(zip(m0s, bs, strict=True)):
            n = s1 = s2 = 0.0
            for y in members:
                n = self.forget * n + 1.0
                s1 = self.forget * s1 + y[i]
                s2 = self.forget * s2 + y[i] ** 2
            kappa_n, a_n = self.kappa + n, self.a + n / 2.0
            m_n = (self.kappa * m0 + s1) / kappa_n
            b_n = b + (s2 + self.kappa * m0**2 - kappa_n * m_n**2) / 2.0
            scale2 = b_n * (kappa_n + 1.0) / (a_n * kappa_n)
            total += student_t_log_density(x[i], 2.0 * a_n, m_n, scale2)
        return total


class NoBase:
    """Families without a shared base measure."""

    def view(self, x: Any) -> Any:
        """What the family is given for this record."""
        return None

    def absorb(self, x: Any, cluster: Sequence[Any], new_probability: float = 0.0) -> None:
        """Learn from a record announced in a cluster with these earlier records.

        `new_probability` is the probability that it founds a cluster.
        """


class FixedBase(NoBase):
    """p_w given, learns nothing."""

    def __init__(self, p: Sequence[float]) -> None:
        self.p = list(p)

    def view(self, x: Sparse) -> dict[int, float]:
        return {w: self.p[w] for w, _ in x}


class FieldsSeen(NoBase):
    """p_fv = N_fv / (N_f + e) of the values seen of a field, e / (N_f + e) of all others; V_f is one more."""

    def __init__(self, escape: float) -> None:
        self.e = escape
        self.N: dict[int, Counter[int]] = {}

    def view(self, x: Sparse) -> dict[int, float]:
        found = {}
        for f, v in fields(x).items():
            seen = self.N.get(f, Counter())
            found[f] = len(seen) + 1.0
            found[v] = found[f] * (seen[v] or self.e) / (seen.total() + self.e)
        return found

    def absorb(self, x: Sparse, cluster: Sequence[Sparse], new_probability: float = 0.0) -> None:
        for f, v in fields(x).items():
            self.N.setdefault(f, Counter())[v] += 1


class WordsSeen(NoBase):
    """The distinct words of the stream before the present record."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def view(self, x: Sparse) -> frozenset[int]:
        return frozenset(self.seen)

    def absorb(self, x: Sparse, cluster: Sequence[Sparse], new_probability: float = 0.0) -> None:
        self.seen |= {w for w, _ in x}


class LearnedBase(NoBase):
    """p_w = (T_w + c - d)/(T + c V + e) for the V words seen; the rest of 2^20 share what is left.

    DESIGN 2.2. T_w grows by one when w is new to the announced cluster ("tables"), or by count ("tokens").
    "mixed" is s times the one and 1 - s times the other, s = 1 / (1 + exp(-evidence) / 1000).
    """

    def __init__(self, kind: str, smoothing: float, escape: float, discount: float = 0.0) -> None:
        if kind not in ("tables", "tokens", "mixed"):
            raise ValueError(f"kind is 'tables', 'tokens' or 'mixed', not {kind!r}")
        self.kind, self.c, self.e, self.d = kind, smoothing, escape, discount
        self.T: Counter[int] = Counter()
        self.N: Counter[int] = Counter()
        self.evidence = 0.0

    def by(self, counts: Counter[int], w: int) -> float:
        """p_w by counts of one kind."""
        seen = len(counts)
        norm = counts.total() + self.c * seen + self.e
        if w in counts:
            return (counts[w] + self.c - self.d) / norm
        return (self.e + self.d * seen) / norm / (UNIVERSE - seen)

    def probability(self, w: int) -> float:
        """p_w under the present state."""
        if self.kind != "mixed":
            return self.by(self.T if self.kind == "tables" else self.N, w)
        s = 1.0 / (1.0 + math.exp(-self.evidence) / 1000.0)
        return s * self.by(self.T, w) + (1.0 - s) * self.by(self.N, w)

    def view(self, x: Sparse) -> dict[int, float]:
        return {w: self.probability(w) for w, _ in x}

    def absorb(self, x: Sparse, cluster: Sequence[Sparse], new_probability: float = 0.0) -> None:
        if self.kind == "mixed":
            of_tables, of_tokens = (self.says(counts, x, new_probability) for counts in (self.T, self.N))
            self.evidence = (1.0 - 1.0 / 2000.0) * self.evidence + of_tables - of_tokens
        known = {w for y in cluster for w, _ in y}
        for w, count in x:
            self.N[w] += count
            if w not in known:
                self.T[w] += 1

    def says(self, counts: Counter[int], x: Sparse, new_probability: float) -> float:
        """The change of the record's log probability if a new cluster had its words by these counts alone."""
        change = math.fsum(math.log(self.by(counts, w) / self.probability(w)) for w, _ in x)
        return math.log(1.0 - new_probability + new_probability * math.exp(change))


class PartsSeen(FieldsSeen):
    """The words of texts teach what they would by themselves."""

    def __init__(self, escape: float, text: LearnedBase) -> None:
        super().__init__(escape)
        self.text = text

    def view(self, x: Sparse) -> dict[int, float]:
        named, words = apart(x)
        return {**super().view(named), **self.text.view(words)}

    def absorb(self, x: Sparse, cluster: Sequence[Sparse], new_probability: float = 0.0) -> None:
        named, words = apart(x)
        super().absorb(named, [])
        if words:
            self.text.absorb(words, [apart(y)[1] for y in cluster], new_probability)


class BesideSeen(PartsSeen):
    """Vectors teach nothing."""

    def view(self, x: Any) -> dict[int, float]:
        return super().view(x[0])

    def absorb(self, x: Any, cluster: Sequence[Any], new_probability: float = 0.0) -> None:
        super().absorb(x[0], [parts for parts, _ in cluster], new_probability)
