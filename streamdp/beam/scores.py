"""What scoring one record leaves behind for choosing among its children.

``value`` is a linear predictive probability relative to ``exp(reference)``, so that sums over
clusters need no logarithm each; a logarithm is taken of the few that can matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

REFERENCE, NEW_VALUE, AGREED_SUM, AGREED_WEIGHT, OWN = range(5)
"""Of ``sums``: log scale of all values; value of a new cluster; over the agreed clusters, the sum of stored
weight times value, and of stored weights; of a vector what depends on no cluster."""

TOUCHED, TICK = range(2)


class Scores(NamedTuple):
    """Scratch space, rebuilt for every record; never part of a snapshot."""

    sums: np.ndarray  # float64[5]
    value: np.ndarray  # float64[S] of words: of the slots that share one with the record
    owner: np.ndarray  # int64[S] first child that joins the slot
    words: Any  # WordScores, or of vectors nothing
    single: np.ndarray  # float32[coarse width] a vector, for a family that looks at clusters coarsely
    product: np.ndarray  # float64[S] its products with what is looked at


class WordScores(NamedTuple):
    """What scoring a record of words needs besides."""

    meta: np.ndarray  # int64[2]
    touched: np.ndarray  # int64[S] slots that share a word with the record
    stamp: np.ndarray  # int64[S] tick at which a slot was last touched
    gain: np.ndarray  # float64[S] numerator over shared words
    loss: np.ndarray  # float64[S] what the class's numerator has too much
    log_gain: np.ndarray  # float64[S]
    shared: np.ndarray  # int64[S] shared words that occur once
    rank: np.ndarray  # uintp[S] which of the touched slots it is; what follows is by rank
    held: np.ndarray  # float64[S] n_kw of the repeated word at hand; zero between words
    tokens: np.ndarray  # float64[S] n_k
    types: np.ndarray  # float64[S] T_k, grown by the record's words so far
    rest: np.ndarray  # float64[S] b1 + d T_k after the word's first token
    product: np.ndarray  # float64[S] numerator over the repeated word
    gains: np.ndarray  # float64[S] numerator over all words so far
    ratio: np.ndarray  # float64[C] value of a class
    partial: np.ndarray  # float64[C] the same before repeated words
    denominator: np.ndarray  # float64[C] and scratch
    log_ratio: np.ndarray  # float64[C]
    inverse: np.ndarray  # float64[m] 1 / p_w of the record's words
    here: np.ndarray  # int64[m] counts of the record's words in the cluster at hand
    fresh: np.ndarray  # int64[m] whether a word is new to the cluster joined last
    announced_fresh: np.ndarray  # int64[m] whether it is new to the announced cluster
    position: np.ndarray  # int64[V] 1 + index of a word in the record; zero between records


def new_scores(slots: int, words: Any, coarse: int = 0) -> Scores:
    """Scratch space for so many slots; ``coarse`` of the family of vectors."""
    owner, single = np.zeros(slots, np.int64), np.zeros(coarse, np.float32)
    return Scores(np.zeros(5), np.zeros(slots), owner, words, single, np.zeros(slots if coarse else 0))


def new_word_scores(slots: int, classes: int, words: int, vocabulary: int) -> WordScores:
    """Scratch space for so many slots, size classes, and distinct words in a record."""
    return WordScores(
        np.zeros(2, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.uintp),
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(classes),
        np.zeros(classes),
        np.zeros(classes),
        np.zeros(classes),
        np.zeros(words),
        np.zeros(words, np.int64),
        np.zeros(words, np.int64),
        np.zeros(words, np.int64),
        np.zeros(vocabulary, np.int64),
    )
