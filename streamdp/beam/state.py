"""All arrays of a running beam, and the buffers that its answers are written to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.expiry import Expiry
from streamdp.beam.members import Members
from streamdp.beam.pool import Beam, Pool
from streamdp.beam.trellis import Lineages, Trellis
from streamdp.kernels.rows import new_rows, row_type

TOP_WORDS = 10
BORN, CLOSED_EVENT, RETIRED_EVENT, MERGED, SPLIT, VANISHED = range(6)
(
    DONE,
    REVISIONS,
    EVENTS,
    MOVES,
    TELL,
    STATUS,
    NEED_SLOTS,
    NEED_COLUMNS,
    NEED_NODES,
    NEED_POSTINGS,
    NEED_ENTRIES,
    NEED_TIMES,
    NEED_HEAP,
    NEED_CLASSES,
    NEED_ANNOUNCED,
    NEED_REVISIONS,
    NEED_EVENTS,
    NEED_LINEAGES,
) = range(18)
COMPLETE, FLUSH, GROW = range(3)


class State(NamedTuple):
    """A running beam; the class of ``clusters`` says whether it is one of words or of vectors."""

    beam: Beam
    pool: Pool
    clusters: Any  # the clusters' statistics by slot
    expiry: Expiry
    members: Members
    trellis: Trellis
    lineages: Lineages
    pace: np.ndarray  # float64[P, 4] the decay's clock over time (see ``pace``), the latest row first
    announced: np.ndarray  # int64[power of two] announced label of each undecided record, by seq
    announced_founder: np.ndarray  # int64[the same] the founder of the cluster that had the label then


class Incoming(NamedTuple):
    """The record at hand."""

    seq: int
    time: float
    words: np.ndarray  # int32[m], of no size for vectors
    counts: np.ndarray  # int32[m]
    x: np.ndarray  # float64[D], of no size for words
    founder: int  # the record that began its cluster, where that was decided elsewhere (``Records``); else -1


class Output(NamedTuple):
    """What a run over some records produced; ``meta`` is read by the indices above.

    By record its answer; then the revisions and, where ``meta[TELL]`` asks for them, the cluster events that
    records caused, as many as ``meta`` says. An event comes with the most telling words of the cluster and
    their counts, or its row of statistics, and with its share of the moves, which stand in the same order.
    """

    meta: np.ndarray  # int64[18]
    answers: np.ndarray  # ANSWER[n]
    revisions: np.ndarray  # REVISION[R]
    events: np.ndarray  # EVENT[E]
    moves: np.ndarray  # MOVE[E]
    event_words: np.ndarray  # int64[E, TOP_WORDS]
    event_counts: np.ndarray  # int64[E, TOP_WORDS]
    event_rows: np.ndarray  # float64[E, width]


ANSWER = row_type("label founded link decided founder", "probability new_probability log_predictive")
"""Label, whether the cluster is new, its latest earlier member or -1, the last record decided after this, and
the record that began the cluster."""

REVISION = row_type("by seq label link founded", "probability")
"""The record that caused it, the record revised, and its new answer."""

EVENT = row_type("by kind label size moves", "first last")
"""The record that caused it, what happened, to which label; its records, how many moves there are, times."""

MOVE = row_type("label records")
"""From or to which label so many records of an event's cluster went."""


def new_output(records: int, revisions: int, events: int, width: int) -> Output:
    """Empty buffers; ``width`` of a row of statistics."""
    return Output(
        np.zeros(18, np.int64),
        new_rows(records, ANSWER),
        new_rows(revisions, REVISION),
        new_rows(events, EVENT),
        new_rows(events, MOVE),
        np.zeros((events, TOP_WORDS), np.int64),
        np.zeros((events, TOP_WORDS), np.int64),
        np.zeros((events, width)),
    )
