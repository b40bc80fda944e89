"""Words under Dirichlets that share a base measure.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.checks import positive
from streamdp.likelihoods.words import (
    SETTINGS,
    Learned,
    SharedBase,
    WordTerms,
    count_word,
    gain,
    in_order,
    learn,
    log_gamma_table,
    whole,
)


class DirichletTerms(WordTerms):
    """What the stream's kernels read: the base measure counts tokens."""

    __slots__ = ()


class DirichletSetTerms(NamedTuple):
    """Tables for a set."""

    tokens: np.ndarray  # float64[tokens + 1] log Gamma(b1 + n)
    mass: np.ndarray  # float64[V] b1 p_w
    concentration: float
    inverse_document_beta: float  # 0 without a document level
    length: np.ndarray  # float64[tokens + 1] sum of log(1 + t / beta) for t below


@dataclass(frozen=True)
class HierarchicalDirichlet(SharedBase):
    """A word's prior mass follows how common it is: b1 p_w, with N_w its tokens so far.

    Parameters
    ----------
    base_concentration
        b1, the pull of clusters' words towards the base, in tokens, > 0.
    document_beta
        Concentration of a document level below the clusters, > 0: small when a word tends to be
        repeated within a record. None: no such level.
    smoothing, discount, escape, base
        See :class:`~streamdp.likelihoods.words.SharedBase`.

    Examples
    --------
    >>> import numpy as np
    >>> family = HierarchicalDirichlet(base=(0.5, 0.3, 0.2))
    >>> x = np.array([0, 2]), np.array([1, 2])
    >>> round(family.log_marginal([x, x]), 4)
    -7.6677

    Notes
    -----
    Wallach, Jensen, Dicker and Heller 2010, eqs. 13-17, the base measure being learned from tokens and
    the same for all clusterings. Of N_w|d tokens of the word w among the N_d before it in the record, one has

        (N_w|d + beta (N_w|c + b1 p_w) / (N_c + b1)) / (N_d + beta)

    with beta = ``document_beta``. They count in the cluster, too (the paper's maximal paths), so that log H
    depends on the order of a cluster's records: it is that of a set in which they come. A record's words
    that occur once come first. The paper draws each record as if it came last, under no fixed p(x | z).
    """

    base_concentration: float = 100.0
    document_beta: float | None = None

    settings = {  # noqa: RUF012
        "base_concentration": "base_concentration",
        "document_beta": "document_beta",
        **SETTINGS,
    }
    drawn = ("base_concentration", "document_beta")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("base_concentration", self.base_concentration)
        if self.document_beta is not None:
            positive("document_beta", self.document_beta)

    def terms(self) -> DirichletTerms:
        """What the stream's kernels read."""
        inverse = 0.0 if self.document_beta is None else 1.0 / self.document_beta
        return DirichletTerms(float(self.base_concentration), 0.0, inverse, *self.base_terms(), np.zeros(0))

    def of_set(self, counts: np.ndarray) -> np.ndarray:
        """The same, but the words of a set are all there are: mass for others would be a price of every word.

        (A base that counts clusters keeps that mass: without it every further cluster would raise p_w.)
        """
        p = super().of_set(counts)
        return np.asarray(p / p.sum())

    def counted(self, by_word: np.ndarray, by_cluster: np.ndarray) -> np.ndarray:
        """Tokens."""
        return by_word

    @property
    def ordered(self) -> bool:
        """Whether there is a document level."""
        return self.document_beta is not None

    def set_terms(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> DirichletSetTerms:
        """What the kernels read of a set."""
        b1, most = self.base_concentration, int(by_word.sum()) + 1
        tokens, mass = log_gamma_table(b1, most), b1 * self.base_of(by_word, by_record, base)
        inverse = self.terms().inverse_document_beta
        length = np.append(0.0, np.cumsum(np.log1p(inverse * np.arange(most - 1))))
        return DirichletSetTerms(tokens, mass, float(b1), inverse, length)

    def upper_bounds(
        self, terms: Any, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """With a document level, 0: that of any record after those of S."""
        if self.ordered:
            return np.diff(offsets) * self.mass_beyond_one(terms)
        return super().upper_bounds(terms, offsets, words, counts)

    def mass_beyond_one(self, terms: DirichletSetTerms) -> float:
        """log of by how much the base measure sums to more than one, at least 0."""
        return math.log(max(float(terms.mass.sum()) / self.base_concentration, 1.0))


@learn.of(DirichletTerms)
def _learn(
    family: DirichletTerms,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    fresh: np.ndarray,
    new_probability: float,
) -> None:
    if family.base.shape[0] == 0:
        for i in range(words.shape[0]):
            count_word(learned, words[i], counts[i])


@whole.of(DirichletSetTerms)
def _whole(terms: DirichletSetTerms, tokens: int, types: int) -> float:
    return terms.tokens[0] - terms.tokens[tokens]


@gain.of(DirichletSetTerms)
def _gain(terms: DirichletSetTerms, word: int, count: int, held: int) -> float:
    total = 0.0
    for j in range(count):
        total += math.log(terms.mass[word] + (held + j))
    return total


@in_order.of(DirichletSetTerms)
def _in_order(
    terms: DirichletSetTerms,
    words: np.ndarray,
    counts: np.ndarray,
    first: int,
    last: int,
    tokens: int,
    held: np.ndarray,
) -> float:
    # p = (n_kw + b1 p_w) / (n_k + b1) becomes p (1 + r / (beta p)) / (1 + t / beta) at the r-th repetition
    # of a word, after t tokens of the record
    length, total = 0, 0.0
    for p in range(first, last):
        length += counts[p] == 1
    for p in range(first, last):
        for r in range(1, counts[p]):
            mass = tokens + length + r + terms.concentration
            total += math.log1p(
                terms.inverse_document_beta * r * mass / (held[words[p]] + r + terms.mass[words[p]])
            )
        length += counts[p] if counts[p] > 1 else 0
    return total - terms.length[length]
