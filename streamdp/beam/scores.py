"""What scoring one record leaves behind for choosing among its children.

``value`` is a linear predictive probability relative to ``exp(reference)``, so that sums over
clusters need no logarithm each; a logarithm is taken of the few that can matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

REFERENCE, NEW_VALUE, CLASS_SUM, CLASS_WEIGHT = range(4)
TOUCHED, TICK = range(2)


class Scores(NamedTuple):
    """Scratch space, rebuilt for every record; never part of a snapshot."""

    meta: np.ndarray  # int64[2]
    sums: np.ndarray  # float64[4]
    value: np.ndarray  # float64[S] of touched slots (dense families: of all)
    touched: np.ndarray  # int32[S] slots that share a word with the record
    stamp: np.ndarray  # int64[S] tick at which a slot was last touched
    gain: np.ndarray  # float64[S] numerator over shared words
    loss: np.ndarray  # float64[S] what the class's numerator has too much
    log_gain: np.ndarray  # float64[S]
    shared: np.ndarray  # int32[S] shared words met so far
    held: np.ndarray  # float64[S] n_kw of the repeated word at hand
    owner: np.ndarray  # int32[S] first child that joins the slot
    ratio: np.ndarray  # float64[C] value of a class
    partial: np.ndarray  # float64[C] the same before repeated words
    below: np.ndarray  # float64[C]
    log_ratio: np.ndarray  # float64[C]
    inverse: np.ndarray  # float64[m] 1 / p_w of the record's words
    here: np.ndarray  # int32[m] counts of the record's words in the cluster at hand
    fresh: np.ndarray  # uint8[m]
    base_fresh: np.ndarray  # uint8[m]
    position: np.ndarray  # int32[V] 1 + index of a word in the record; zero between records


def new_scores(slots: int, classes: int, words: int, vocabulary: int) -> Scores:
    """Scratch space for so many slots, size classes, and distinct words in a record."""
    slot = [np.zeros(slots) for _ in range(4)]
    size = [np.zeros(classes) for _ in range(4)]
    return Scores(
        np.zeros(2, np.int64),
        np.zeros(4),
        np.zeros(slots),
        np.zeros(slots, np.int32),
        np.zeros(slots, np.int64),
        slot[0],
        slot[1],
        slot[2],
        np.zeros(slots, np.int32),
        slot[3],
        np.zeros(slots, np.int32),
        size[0],
        size[1],
        size[2],
        size[3],
        np.zeros(words),
        np.zeros(words, np.int32),
        np.zeros(words, np.uint8),
        np.zeros(words, np.uint8),
        np.zeros(vocabulary, np.int32),
    )
