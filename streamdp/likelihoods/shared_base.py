"""The families over word counts whose clusters share a base measure."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamdp.kernels.checks import discount_in_range, not_negative, positive
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.words import WORD_SPACE, Learned, WordFamily, learned_from

SETTINGS = {"base_smoothing": "smoothing", "base_discount": "discount", "base_escape": "escape"}


@dataclass(frozen=True, kw_only=True)
class SharedBase(WordFamily):
    """A base measure learned from the stream, or fixed.

    For the V words seen, p_w = (N_w + smoothing - discount) / (N + smoothing V + escape), N the sum of all
    N_w; the mass that is left is spread evenly over the rest of 2^20 words. What N_w counts depends on the
    family. Without smoothing this is a Pitman-Yor process over words (Teh 2006): its discount lets the
    mass of the unseen grow with the vocabulary.

    Parameters
    ----------
    smoothing
        Added to the count of every word seen, >= 0.
    discount
        Taken from the count of every word seen, 0 <= discount < 1.
    escape
        Concentration: mass of all words not yet seen, in counts, > 0.
    base
        p_w by word id where it is fixed: positive and summing to one. None: learned.
    """

    smoothing: float = 0.0
    discount: float = 0.35
    escape: float = 1000.0
    base: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        not_negative("smoothing", self.smoothing)
        discount_in_range("discount", self.discount)
        positive("escape", self.escape)
        if self.base is not None:
            object.__setattr__(self, "base", _probabilities(self.base))

    @property
    def learns_base(self) -> bool:
        """Whether it is not fixed."""
        return self.base is None

    def base_terms(self) -> tuple[float, float, float, np.ndarray]:
        """What kernels read of it: three numbers, and p_w where it is fixed; else of no size."""
        fixed = np.array(() if self.base is None else self.base, dtype=np.float64)
        return float(self.smoothing), float(self.discount), float(self.escape), fixed

    @abstractmethod
    def counted(self, by_word: np.ndarray, by_cluster: np.ndarray) -> np.ndarray:
        """N_w from the tokens of every word and from how many clusters it is in, each of shape (V,)."""

    def base_of(self, by_word: np.ndarray, by_record: np.ndarray, base: Any = None) -> np.ndarray:
        """p_w of the words of a set, shape (V,): as given, or the family's, or learned from them.

        Learned as by a stream that gave every record a cluster of its own.
        """
        found = self.base if base is None else base
        if found is None:
            return self.of_set(self.counted(by_word, by_record))
        p = np.asarray(found, np.float64)
        if len(p) < len(by_word) or not (p[np.flatnonzero(by_word)] > 0.0).all():
            raise ValueError("the base measure must give every word of the records a probability above 0")
        return p[: len(by_word)]

    def of_set(self, counts: np.ndarray) -> np.ndarray:
        """p_w of the words of a set by N_w, each of shape (V,): as a stream has it that has counted so."""
        return self.measure(learned_from(counts))


def _probabilities(base: Sequence[float]) -> tuple[float, ...]:
    values = tuple(float(p) for p in base)
    if not values or not all(p > 0.0 for p in values) or abs(math.fsum(values) - 1.0) > 1e-6:
        raise ValueError("base must be positive probabilities that sum to one")
    return values


@kernel
def _fixed(base: np.ndarray, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray) -> float:
    total = 0.0
    for i in range(words.shape[0]):
        p = base[words[i]]
        inverse[i] = 1.0 / p
        total += counts[i] * math.log(p)
    return total


@kernel
def _learned(
    smoothing: float,
    discount: float,
    escape: float,
    learned: Learned,
    words: np.ndarray,
    counts: np.ndarray,
    inverse: np.ndarray,
) -> float:
    seen = learned.counters.seen
    mass = learned.counters.total + smoothing * seen + escape
    unseen = mass * max(WORD_SPACE - seen, 1) / (escape + discount * seen)
    shift = smoothing - discount
    total, product = 0.0, 1.0
    for i in range(words.shape[0]):
        count = learned.counts[words[i]]
        inverse[i] = mass / (count + shift) if count > 0 else unseen
        if counts[i] == 1:
            product *= inverse[i]
            if product > 1e200:
                total -= math.log(product)
                product = 1.0
        else:
            total -= counts[i] * math.log(inverse[i])
    return total - math.log(product)


def shared_measure(
    family: Any, learned: Learned, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray
) -> tuple[float, float]:
    """``base_measure`` of every family here, registered for its terms."""
    if family.base.shape[0] > 0:
        return _fixed(family.base, words, counts, inverse), family.concentration
    smoothing, discount, escape = family.smoothing, family.discount, family.escape
    return _learned(smoothing, discount, escape, learned, words, counts, inverse), family.concentration
