"""Scratch space of a step: scores of clusters, the children that are chosen by them, and what they change.

A value is a linear predictive probability relative to ``exp(reference)``, so that sums over clusters need no
logarithm each; a logarithm is taken of the few that can matter.

Where the best hypothesis changes, undecided records are gone through one by one, and what is of interest are
the distinct pairs of the label that was announced of a record and the lineage that it belongs to now, with
the number of records of each.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.beam.data.trellis import LINEAGE_BITS
from streamdp.kernels.heap import sort_ascending
from streamdp.kernels.jit import kernel, shared
from streamdp.kernels.rows import Counters, ints, of, one, reals, row_type, rows

LINEAGE_MASK = (1 << LINEAGE_BITS) - 1


class Walk(NamedTuple):
    """Scratch space for a walk over the undecided records, newest first."""

    node: Annotated[np.ndarray, ints("undecided")]  # the new head's node of a record, by how far it is back
    pair: Annotated[
        np.ndarray, ints("undecided")
    ]  # announced label and lineage of a record, packed; then the distinct ones
    overlap: Annotated[np.ndarray, ints("undecided")]  # records of each distinct pair
    affected: Annotated[np.ndarray, ints("undecided")]  # by founder: whether its cluster is another now
    kept: Annotated[
        np.ndarray, ints("undecided")
    ]  # by founder: whether a record of its former cluster keeps the label
    level_node: Annotated[np.ndarray, ints("beam")]
    level_mass: Annotated[np.ndarray, reals("beam")]


@kernel
def pack(label: int, lineage: int) -> int:
    """Both in one integer, that sorts by label; see ``LINEAGE_BITS``."""
    return (label << LINEAGE_BITS) | lineage


@kernel
def label_of(pair: int) -> int:
    """The label of a pair."""
    return pair >> LINEAGE_BITS


@kernel
def lineage_of(pair: int) -> int:
    """The lineage of a pair."""
    return pair & LINEAGE_MASK


@kernel
def distinct_pairs(walk: Walk, records: int) -> int:
    """Of the pairs of so many records, leave the distinct ones, in order of label, and count each.

    Returns how many there are.
    """
    sort_ascending(walk.pair, records)
    pairs, i = 0, 0
    while i < records:
        pair, j = walk.pair[i], i
        while j < records and walk.pair[j] == pair:
            j += 1
        walk.pair[pairs] = pair
        walk.overlap[pairs] = j - i
        pairs += 1
        i = j
    return pairs


class Scores(NamedTuple):
    """Scratch space, rebuilt for every record; never part of a snapshot.

    ``counters``: log scale of all values; value of a new cluster; over the agreed clusters, the sum of
    stored weight times value, and of stored weights.
    """

    counters: Annotated[Counters, one(reals="reference new_value agreed_sum agreed_weight")]
    value: Annotated[np.ndarray, reals("slots")]  # of words: of the slots that share one with the record
    owner: Annotated[np.ndarray, ints("slots")]  # first child that joins the slot
    words: Any  # WordScores; of no size where records have no words
    single: Annotated[
        np.ndarray, of(np.float32, "coarse")
    ]  # a vector, for a family that looks coarsely first
    product: Annotated[np.ndarray, reals("looked")]  # its products with what is looked at; or a union of rows


CELL = row_type("mark", "gain loss pull")
"""What a slot that shares words with a record has of them, in one line of a cache: when it was last touched
and how many of the words that occur once it shares (``marked``); the numerator over these; what its class's
numerator has too much; and b1 + d T_k."""

BLOCK = 64
"""Clusters that share a word with a record, passed over at once where none of them can survive."""

SHARED = 24
"""Bits of a mark that count words; those above are the number of the scoring."""


class WordScores(NamedTuple):
    """What scoring a record of words needs besides.

    ``counters``: slots touched, and the number of this scoring.
    """

    counters: Annotated[Counters, one("touched tick")]
    touched: Annotated[np.ndarray, ints("slots")]  # slots that share a word with the record
    cells: Annotated[np.ndarray, rows(CELL, "slots")]
    log_gain: Annotated[np.ndarray, reals("slots")]  # of gains over losses so far, where logarithms are taken
    most: Annotated[np.ndarray, reals("slots")]  # of each block of the touched: the most weight times value
    rank: Annotated[np.ndarray, of(np.uintp, "slots")]  # which of the touched slots; what follows is by rank
    held: Annotated[np.ndarray, reals("slots")]  # n_kw of the repeated word at hand; zero between words
    tokens: Annotated[np.ndarray, reals("slots")]  # n_k
    types: Annotated[np.ndarray, reals("slots")]  # T_k, grown by the record's words so far
    rest: Annotated[np.ndarray, reals("slots")]  # b1 + d T_k after the word's first token
    product: Annotated[np.ndarray, reals("slots")]  # numerator over the repeated word
    gains: Annotated[np.ndarray, reals("slots")]  # numerator over all words so far
    steps: Annotated[np.ndarray, reals("slots")]  # powers that these were divided by (see ``dense``)
    ratio: Annotated[np.ndarray, reals("classes")]  # value of a class
    partial: Annotated[np.ndarray, reals("classes")]  # the same before repeated words
    denominator: Annotated[np.ndarray, reals("classes")]  # and scratch
    bound: Annotated[np.ndarray, reals("classes")]  # what frequent words raise a value by at most
    log_ratio: Annotated[np.ndarray, reals("classes")]
    known_tokens: Annotated[np.ndarray, reals("classes")]  # where the rising factorials of a class begin,
    known_types: Annotated[np.ndarray, reals("classes")]  # as of which log Gamma is known:
    of_tokens: Annotated[np.ndarray, reals("classes")]
    of_types: Annotated[np.ndarray, reals("classes")]
    inverse: Annotated[np.ndarray, reals("longest")]  # 1 / p_w of the record's words
    here: Annotated[np.ndarray, ints("longest")]  # counts of the record's words in the cluster at hand
    fresh: Annotated[np.ndarray, ints("longest")]  # whether a word is new to the cluster joined last
    position: Annotated[np.ndarray, ints("words")]  # 1 + index of a word in the record; zero between records


@shared
def is_touched(mark: int, tick: int) -> bool:
    """Whether a slot of this mark shares a word with what was scored last."""
    return mark >> SHARED == tick


@shared
def words_shared(mark: int) -> int:
    """How many of the words that occur once a slot of this mark shares."""
    return mark & ((1 << SHARED) - 1)


UNIT_NATS = 1e9
GUARD = 1e-6
"""Nats by which early tests are laxer than the rounded comparison that decides."""
NEW = -1

CANDIDATE = row_type("slot rank", "score")
"""Slot; its weight and predictive in nats, rounded and not."""

CHILD = row_type("rank parent slot founder group group_size", "joint")
"""Rounded score, lowered for what comes last; parent; slot joined or NEW; its founder (later: its latest
member); the first child that joins the same slot, and of that how many do; its log joint."""


class Choice(NamedTuple):
    """Scratch space of a choice, and the children chosen, best first.

    Of ``counters``: ``top_parent`` and ``top_slot`` are of the child with the best score (-1 while it is not
    known), ``leaders`` how many hypotheses do not follow it (see ``branching``). In nats: the best child's
    score; what candidates are rounded against; below what none survives, as a score (``floor``) and as a
    linear threshold (``bar``); how far the worst parent of a full beam is behind the best (``reach``).
    """

    counters: Annotated[
        Counters,
        one(
            "candidates children best_child contenders parents alone lost reserved leading greedy_child "
            "top_parent top_slot leaders",
            "best anchor floor bar reach ceiling lead_now",
        ),
    ]
    candidates: Annotated[np.ndarray, rows(CANDIDATE, "beam")]  # agreed clusters
    contender: Annotated[np.ndarray, ints("columns")]  # columns that may come into the beam, best first
    offer: Annotated[np.ndarray, reals("columns")]  # their weight and predictive, in nats
    mass: Annotated[np.ndarray, reals("columns")]  # true weight x value of all contested columns
    weight: Annotated[np.ndarray, reals("columns")]  # their stored weights
    contested_sum: Annotated[np.ndarray, reals("beam")]  # per hypothesis
    contested_weight: Annotated[np.ndarray, reals("beam")]
    new_weight: Annotated[np.ndarray, reals("beam")]
    log_total: Annotated[np.ndarray, reals("beam")]  # log normaliser
    expect: Annotated[np.ndarray, reals("beam")]  # exp(log joint) / normaliser
    children: Annotated[np.ndarray, rows(CHILD, "beam")]
    base: Annotated[np.ndarray, reals("beam")]  # what a hypothesis brings to its children's scores, in nats
    founding: Annotated[
        np.ndarray, reals("beam")
    ]  # score of the child that founds a cluster; -inf: none may be
    order: Annotated[np.ndarray, ints("beam")]  # hypotheses by base, best first
    follows: Annotated[
        np.ndarray, ints("beam")
    ]  # whether what else one may do comes last (see ``branching``)
    leaders: Annotated[np.ndarray, ints("beam")]  # those of which it does not, in the same order
    held: Annotated[np.ndarray, ints("columns")]  # hypotheses that hold a column
    old_leaf: Annotated[np.ndarray, ints("beam")]  # of the parents
    old_founded: Annotated[np.ndarray, ints("beam")]  # of the parents
    dropped: Annotated[np.ndarray, ints("beam")]
    stack: Annotated[np.ndarray, ints(128)]  # heap positions still to be looked at


@kernel
def rounded(nats: float) -> int:
    """A score in units of 1e-9 nats; what is hopelessly far below stays comparable."""
    return math.floor(max(nats, -1e9) * UNIT_NATS + 0.5)
