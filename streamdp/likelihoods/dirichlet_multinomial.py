"""Words under one symmetric Dirichlet per cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.checks import positive
from streamdp.kernels.checks import whole as whole_number
from streamdp.likelihoods.words import (
    WORD_SPACE,
    Learned,
    SetTerms,
    WordFamily,
    base_measure,
    count_word,
    learn,
    log_gamma_table,
)


class FlatTerms(NamedTuple):
    """What the stream's kernels read; a vocabulary of 0 grows with the stream, others have no escape."""

    beta: float
    vocabulary: int
    escape: float
    word_discount: float = 0.0
    inverse_document_beta: float = 0.0


@dataclass(frozen=True)
class DirichletMultinomial(WordFamily):
    """Every word has the same prior mass in every cluster; its probabilities are integrated out.

    Parameters
    ----------
    beta
        Prior mass per word, in tokens, > 0.
    vocabulary_size
        V, an integer >= 1. None: it grows.
    escape
        e, the prior mass of all words together that are not seen yet, in tokens, > 0; of no effect where
        the vocabulary is fixed.

    Examples
    --------
    >>> import numpy as np
    >>> family = DirichletMultinomial(beta=0.5, vocabulary_size=3)
    >>> x = np.array([0, 2]), np.array([1, 2])
    >>> round(family.log_marginal([x, x]), 4)
    -6.0615

    Notes
    -----
    A token has the probability (n_kw + b1 p_w) / (n_k + b1). In a fixed vocabulary b1 = V beta and
    p_w = 1 / V. In one that grows, V counts the words seen before the record, b1 = V beta + e, and

        p_w = beta / b1 for the words seen, e / (b1 (2^20 - V)) for all others,

    which sums to one over 2^20 words. The default of e is near the best by prequential evidence on streams of
    short texts. A set is closed: its own words are the vocabulary.

    The multinomial coefficients, which do not depend on the clustering, are left out (Yin and Wang
    2014 cluster short texts with it).
    """

    beta: float = 0.03
    vocabulary_size: int | None = None
    escape: float = 10.0

    settings = {"beta": "beta", "vocabulary_size": "vocabulary_size"}  # noqa: RUF012
    drawn = ("beta",)

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        positive("escape", self.escape)
        if self.vocabulary_size is not None:
            whole_number("vocabulary_size", self.vocabulary_size)

    def terms(self) -> FlatTerms:
        """What the stream's kernels read."""
        escape = float(self.escape) if self.vocabulary_size is None else 0.0
        return FlatTerms(float(self.beta), self.vocabulary_size or 0, escape)

    def set_terms(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> SetTerms:
        """What the kernels read of a set, with beta for 1 - d and V beta for b1.

        Its words are the vocabulary where that grows.
        """
        found = len(by_word)
        size = self.vocabulary_size or max(found, 1)
        if size < found:
            raise ValueError(f"the vocabulary has {size} words, the records have {found}")
        if base is not None and len(base):
            size = round(1.0 / float(np.max(base)))  # a word not seen yet would make it one more
        # a group is also weighed with itself, though nothing uses it
        most, tokens = 2 * int(by_word.max(initial=0)), int(by_word.sum())
        by_tokens = log_gamma_table(self.beta * size, tokens + 1)
        of_each, none = log_gamma_table(self.beta, most + 2), np.zeros(0)
        return SetTerms(of_each, by_tokens, np.zeros(found + 2), np.zeros(found), none, 0.0)


@base_measure.of(FlatTerms)
def _base_measure(
    family: FlatTerms,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    inverse: np.ndarray,
    length: int,
) -> tuple[float, float]:
    size, seen = family.vocabulary, learned.counters.seen
    if size > 0:
        total = 0
        for i in range(words.shape[0]):
            inverse[i] = size
            total += counts[i]
        return -total * math.log(size), family.beta * size
    mass = family.beta * seen + family.escape
    known, unseen = mass / family.beta, mass * max(WORD_SPACE - seen, 1) / family.escape
    known_tokens, unseen_tokens = 0, 0
    for i in range(words.shape[0]):
        if learned.counts[words[i]] > 0:
            inverse[i] = known
            known_tokens += counts[i]
        else:
            inverse[i] = unseen
            unseen_tokens += counts[i]
    return -known_tokens * math.log(known) - unseen_tokens * math.log(unseen), mass


@learn.of(FlatTerms)
def _learn(
    family: FlatTerms,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    fresh: np.ndarray,
    new_probability: float,
) -> None:
    if family.vocabulary > 0:
        return
    for i in range(words.shape[0]):
        count_word(learned, words[i], counts[i])
