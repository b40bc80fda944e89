"""What scoring one record leaves behind for choosing among its children.

``value`` is a linear predictive probability relative to ``exp(reference)``, so that sums over
clusters need no logarithm each; a logarithm is taken of the few that can matter.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.rows import Counters, ints, of, one, reals


class Scores(NamedTuple):
    """Scratch space, rebuilt for every record; never part of a snapshot.

    ``counters``: log scale of all values; value of a new cluster; over the agreed clusters, the sum of
    stored weight times value, and of stored weights; of a vector what depends on no cluster.
    """

    counters: Annotated[Counters, one(reals="reference new_value agreed_sum agreed_weight own")]
    value: Annotated[np.ndarray, reals("slots")]  # of words: of the slots that share one with the record
    owner: Annotated[np.ndarray, ints("slots")]  # first child that joins the slot
    words: Any  # WordScores, or of vectors nothing
    single: Annotated[
        np.ndarray, of(np.float32, "coarse")
    ]  # a vector, for a family that looks coarsely first
    product: Annotated[np.ndarray, reals("looked")]  # its products with what is looked at


class WordScores(NamedTuple):
    """What scoring a record of words needs besides.

    ``counters``: slots touched, and the number of this scoring.
    """

    counters: Annotated[Counters, one("touched tick")]
    touched: Annotated[np.ndarray, ints("slots")]  # slots that share a word with the record
    stamp: Annotated[np.ndarray, ints("slots")]  # tick at which a slot was last touched
    gain: Annotated[np.ndarray, reals("slots")]  # numerator over shared words
    loss: Annotated[np.ndarray, reals("slots")]  # what the class's numerator has too much
    log_gain: Annotated[np.ndarray, reals("slots")]
    shared: Annotated[np.ndarray, ints("slots")]  # shared words that occur once
    rank: Annotated[np.ndarray, of(np.uintp, "slots")]  # which of the touched slots; what follows is by rank
    held: Annotated[np.ndarray, reals("slots")]  # n_kw of the repeated word at hand; zero between words
    tokens: Annotated[np.ndarray, reals("slots")]  # n_k
    types: Annotated[np.ndarray, reals("slots")]  # T_k, grown by the record's words so far
    rest: Annotated[np.ndarray, reals("slots")]  # b1 + d T_k after the word's first token
    product: Annotated[np.ndarray, reals("slots")]  # numerator over the repeated word
    gains: Annotated[np.ndarray, reals("slots")]  # numerator over all words so far
    ratio: Annotated[np.ndarray, reals("classes")]  # value of a class
    partial: Annotated[np.ndarray, reals("classes")]  # the same before repeated words
    denominator: Annotated[np.ndarray, reals("classes")]  # and scratch
    log_ratio: Annotated[np.ndarray, reals("classes")]
    inverse: Annotated[np.ndarray, reals("longest")]  # 1 / p_w of the record's words
    here: Annotated[np.ndarray, ints("longest")]  # counts of the record's words in the cluster at hand
    fresh: Annotated[np.ndarray, ints("longest")]  # whether a word is new to the cluster joined last
    announced_fresh: Annotated[np.ndarray, ints("longest")]  # whether it is new to the announced cluster
    position: Annotated[np.ndarray, ints("words")]  # 1 + index of a word in the record; zero between records
