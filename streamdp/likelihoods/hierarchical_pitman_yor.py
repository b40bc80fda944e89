"""Words under Pitman-Yor processes that share a base measure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamdp.kernels.checks import discount_in_range, positive
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.words import (
    SETTINGS,
    Learned,
    SetTerms,
    SharedBase,
    WordTerms,
    count_word,
    learn,
    log_gamma_table,
    weights_of_counts,
)

SHORT = (0.3, 2.4)
"""b1 of records of one word, of two and so on, where none is given."""

KEPT = 1.0 - 1.0 / 2000.0
"""What each record leaves of the evidence for counts of clusters: it counts for some 2,000 records."""


class PitmanYorWordTerms(WordTerms):
    """What the stream's kernels read: the base measure counts clusters and tokens."""

    __slots__ = ()


@dataclass(frozen=True)
class HierarchicalPitmanYor(SharedBase):
    """Words follow power laws, and the base measure is learned from clusters and from tokens.

    In a set, N_w is the number of clusters that a word was new to. In a stream,
    p_w = s p_T(w) + (1 - s) p_N(w): p_T counts the clusters that a word was new to, and p_N its tokens. The
    share s is 1 at first, nearly, and follows which of both has predicted the words of records better, as far
    as these came from the base measure.

    Parameters
    ----------
    base_concentration
        b1, the pull of clusters' words towards the base, in tokens, > 0.
    word_discount
        d, taken from the count of every word that a cluster holds, in [0, 1).
    short_concentrations
        b1 for texts of one word, of two and so on, where it is less; by default all have the same. An engine
        takes 0.3 and 2.4, unless it is given ``base_concentration``.
    smoothing, discount, escape, base
        See :class:`~streamdp.likelihoods.words.SharedBase`.

    Examples
    --------
    >>> import numpy as np
    >>> family = HierarchicalPitmanYor(base=(0.5, 0.3, 0.2))
    >>> x = np.array([0, 2]), np.array([1, 2])
    >>> round(family.log_marginal([x, x]), 4)
    -16.9802

    Notes
    -----
    Teh 2006, section 3, with one table per word and cluster, i.e. interpolated Kneser-Ney. Under that
    rule the product of the tokens' probabilities depends on their order, so the stream fixes one.
    :meth:`log_marginal`, and samplers, take the exchangeable form

        prod_{t<T}(b1 + d t) prod_w p_w (1 - d)_{n_w - 1} / (b1)_n

    with (x)_m the rising factorial: it omits the seatings with second tables, so that it is a lower bound
    of log H, and not the sum over a stream.

    With ``short_concentrations`` a text's own length says which b1 its cluster has for it: the probabilities
    of all texts of a length add up to one. The b1 of a set is that of a text of as many words as the set has
    distinct ones. Both agree for texts of the same different words. For others it is an approximation.
    """

    base_concentration: float = 30.0
    word_discount: float = 0.6
    short_concentrations: tuple[float, ...] = ()

    settings = {  # noqa: RUF012
        "base_concentration": "base_concentration",
        "word_discount": "word_discount",
        **SETTINGS,
    }
    drawn = ("base_concentration", "word_discount")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("base_concentration", self.base_concentration)
        for b1 in self.short_concentrations:
            positive("short_concentrations", b1)
        if list(self.short_concentrations) != sorted(self.short_concentrations):
            raise ValueError("short_concentrations must not fall: longer texts have a larger b1")
        discount_in_range("word_discount", self.word_discount)

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments | None = None) -> Self:
        """The family with these parameters; where no b1 is given, less for texts of a few words."""
        short = {} if "base_concentration" in given else {"short_concentrations": SHORT}
        return cls(**{**short, **given})

    def terms(self) -> PitmanYorWordTerms:
        """What the stream's kernels read."""
        concentration, discount = float(self.base_concentration), float(self.word_discount)
        short = np.minimum(np.array(self.short_concentrations, np.float64), concentration)
        return PitmanYorWordTerms(concentration, discount, 0.0, *self.base_terms(), short)

    def counted(self, by_word: np.ndarray, by_cluster: np.ndarray) -> np.ndarray:
        """Clusters."""
        return by_cluster

    def set_terms(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> SetTerms:
        """What the kernels read of a set."""
        b1, d = self.base_concentration, self.word_discount
        tokens = log_gamma_table(b1, int(by_word.sum()) + 1)
        p = self.base_of(by_word, by_record, base)
        most = 2 * int(by_word.max(initial=0))  # a group is also weighed with itself, though nothing uses it
        word = log_gamma_table(1.0 - d, most + 1)
        types = np.concatenate([[0.0], np.cumsum(np.log(b1 + d * np.arange(len(by_word) + 1)))])
        with np.errstate(divide="ignore"):
            return SetTerms(np.append(word[:1], word), tokens, types, np.log(p), self.terms().short, float(d))

    def mass_beyond_one(self, terms: SetTerms) -> float:
        """log of by how much the base measure sums to more than one, at least 0."""
        return math.log(max(float(np.exp(terms.mass).sum()), 1.0))

    @property
    def mass_by_length(self) -> float:
        """By how much log H of a cluster may rise, at most, as one more distinct word changes its b1.

        It rises most where every word has been there once.
        """
        d, most, highest = self.word_discount, self.base_concentration, 0.0
        for types, b1 in enumerate(self.terms().short.tolist(), start=1):
            ratios = ((most + d * t) / (most + t) * (b1 + t) / (b1 + d * t) for t in range(types))
            highest = max(highest, math.fsum(map(math.log, ratios)))
        return highest

    def upper_bounds(
        self, terms: Any, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """As of one b1, and what a change of it may add."""
        return super().upper_bounds(terms, offsets, words, counts) + self.mass_by_length


@learn.of(PitmanYorWordTerms)
def _learn(
    family: PitmanYorWordTerms,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    fresh: np.ndarray,
    new_probability: float,
) -> None:
    if family.base.shape[0] == 0:
        learn_words(family, learned, words, counts, fresh, new_probability)


@kernel
def learn_words(
    family: PitmanYorWordTerms,
    learned: Any,
    words: np.ndarray,
    counts: np.ndarray,
    fresh: np.ndarray,
    new_probability: float,
) -> None:
    """Count the words of a record into a base measure that is learned."""
    _weigh(family, learned, words, new_probability)
    for i in range(words.shape[0]):
        # T_w: once for each cluster that a word is new to
        step = 1 if fresh[i] else 0
        count_word(learned, words[i], step)
        learned.repeats[words[i]] += counts[i] - step
        learned.counters.repeats += counts[i] - step


@kernel
def _weigh(
    family: PitmanYorWordTerms,
    learned: Any,
    words: np.ndarray,
    new_probability: float,
) -> None:
    """Let the words of a record say which of both measures predicts better.

    Only a new cluster has all its words from p_w: each when it comes first, as the cluster has it after that.
    """
    by_cluster, by_token, share = weights_of_counts(family.smoothing, family.escape, learned)
    shift, of_clusters, of_tokens = family.smoothing - family.discount, 0.0, 0.0
    clusters = tokens = 1.0  # products whose logarithms are still to be added
    for i in range(words.shape[0]):
        count = learned.counts[words[i]]
        held = count + shift if count > 0 else 1.0  # what the unseen have in common cancels
        p_cluster, p_token = by_cluster * held, by_token * (held + learned.repeats[words[i]])
        inverse = 1.0 / (share * p_cluster + (1.0 - share) * p_token)
        clusters *= p_cluster * inverse
        tokens *= p_token * inverse
        if min(clusters, tokens) < 1e-200 or max(clusters, tokens) > 1e200:
            of_clusters += math.log(clusters)
            of_tokens += math.log(tokens)
            clusters = tokens = 1.0
    of_clusters += math.log(clusters)
    of_tokens += math.log(tokens)
    counters = learned.counters
    counters.evidence *= KEPT
    counters.evidence += _change(new_probability, of_clusters) - _change(new_probability, of_tokens)


@kernel
def _change(new_probability: float, change: float) -> float:
    """By how much the log probability of a record changes with that of a new cluster's words."""
    if new_probability <= 0.0:
        return 0.0
    if new_probability >= 1.0:
        return change
    if change < 1.0:
        return math.log1p(new_probability * math.expm1(change))
    return change + math.log(new_probability + (1.0 - new_probability) * math.exp(-change))
