"""All arrays of a running beam, and the buffers that its answers are written to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.beam.due import Due
from streamdp.beam.index import Index
from streamdp.beam.members import Members
from streamdp.beam.pool import Beam, Pool
from streamdp.beam.sizes import Sizes
from streamdp.beam.trellis import Lineages, Trellis

TOP_WORDS = 10
BORN, CLOSED_EVENT, RETIRED_EVENT, MERGED, SPLIT = range(5)
(
    DONE,
    REVISIONS,
    EVENTS,
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
) = range(16)
COMPLETE, FLUSH, GROW = range(3)


class Dense(NamedTuple):
    """Sufficient statistics of the dense families, one column per slot, and what is derived from them."""

    effective: np.ndarray  # float64[S] effective number of records (discounted by ``forget``)
    mean: np.ndarray  # float64[D, S]
    spread: np.ndarray  # float64[D, S] sum of squared deviations from the mean
    location: np.ndarray  # float64[D, S] posterior mean
    precision: np.ndarray  # float64[D, S] 1 / (degrees of freedom x scale^2) of the predictive
    constant: np.ndarray  # float64[S] of the log predictive
    power: np.ndarray  # float64[S] its exponent


class State(NamedTuple):
    """A running beam."""

    beam: Beam
    pool: Pool
    sizes: Sizes
    due: Due
    members: Members
    inverted: Index
    dense: Dense
    trellis: Trellis
    lineages: Lineages
    announced: np.ndarray  # int64[power of two] announced label of each undecided record, by seq
    announced_founder: np.ndarray  # int64[the same] the founder of the cluster that had the label then


class Output(NamedTuple):
    """What a run over some records produced; ``meta`` is read by the indices above."""

    meta: np.ndarray  # int64[16]
    label: np.ndarray  # int64[n]
    probability: np.ndarray  # float64[n]
    log_predictive: np.ndarray  # float64[n]
    founded: np.ndarray  # uint8[n]
    link: np.ndarray  # int64[n]
    decided: np.ndarray  # int64[n] the last decided record, after this one
    revision_by: np.ndarray  # int64[R] seq of the record that caused it
    revision_seq: np.ndarray  # int64[R] the record revised
    revision_label: np.ndarray  # int64[R]
    revision_probability: np.ndarray  # float64[R]
    revision_link: np.ndarray  # int64[R]
    revision_founded: np.ndarray  # uint8[R]
    event_by: np.ndarray  # int64[E] seq of the record that caused it
    event_kind: np.ndarray  # uint8[E]
    event_label: np.ndarray  # int64[E]
    event_other: np.ndarray  # int64[E] the other label of a merge or a split, else -1
    event_size: np.ndarray  # int64[E]
    event_first: np.ndarray  # float64[E]
    event_last: np.ndarray  # float64[E]
    event_words: np.ndarray  # int32[E, TOP_WORDS]
    event_counts: np.ndarray  # int32[E, TOP_WORDS]
    event_centre: np.ndarray  # float64[E, D]


def new_dense(slots: int, dimension: int, spread: bool) -> Dense:
    """No statistics; without ``spread`` the families with known variance are meant."""
    rows = dimension if spread else 0
    return Dense(
        np.zeros(slots),
        np.zeros((dimension, slots)),
        np.zeros((rows, slots)),
        np.zeros((dimension, slots)),
        np.zeros((rows, slots)),
        np.zeros(slots),
        np.zeros(slots),
    )


def new_output(records: int, revisions: int, events: int, dimension: int) -> Output:
    """Empty buffers."""
    return Output(
        np.zeros(16, np.int64),
        np.zeros(records, np.int64),
        np.zeros(records),
        np.zeros(records),
        np.zeros(records, np.uint8),
        np.zeros(records, np.int64),
        np.zeros(records, np.int64),
        np.zeros(revisions, np.int64),
        np.zeros(revisions, np.int64),
        np.zeros(revisions, np.int64),
        np.zeros(revisions),
        np.zeros(revisions, np.int64),
        np.zeros(revisions, np.uint8),
        np.zeros(events, np.int64),
        np.zeros(events, np.uint8),
        np.zeros(events, np.int64),
        np.zeros(events, np.int64),
        np.zeros(events, np.int64),
        np.zeros(events),
        np.zeros(events),
        np.zeros((events, TOP_WORDS), np.int32),
        np.zeros((events, TOP_WORDS), np.int32),
        np.zeros((events, dimension)),
    )
