"""All arrays of a running beam, the buffers that its answers are written to, and what says how it goes on.

That is what a kernel needs to know of the prior, the likelihood and the search.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.beam.data.members import Expiry, Members
from streamdp.beam.data.pool import Beam, Pool
from streamdp.beam.data.sizes import Sizes
from streamdp.beam.data.trellis import Lineages, Trellis
from streamdp.kernels.rows import Counters, ints, one, reals, row_type, rows
from streamdp.likelihoods.base import Parts

FREQUENT_POSTINGS = 256
"""Postings from which a word counts as frequent, and may be left alone (see ``rare``)."""

MAX_SLACK = 600.0
"""Nats; further below the best, a linear weight would leave the range of a double."""

REVIEW_EVERY = 512
"""Records between two reviews of those that have come of age for a second look."""

TRIAL_NATS = 10.0
"""Nats of evidence that change the lead: by chance alone it changes once in exp(10) tries, at most."""


class Model(NamedTuple):
    """Kernels are compiled for the classes of ``prior`` and ``family``."""

    prior: Any  # terms of a prior
    family: Parts  # terms of a likelihood family
    beam: int  # most hypotheses
    max_undecided: int  # records
    retire_after: int  # records, 0 for never
    max_clusters: int  # 0 for no limit
    by_records: bool  # distance is counted in records; else in seconds
    frequent: int  # postings
    slack: float  # nats
    trial: float  # nats of evidence by which greedy search or the beam takes the lead


TOP_WORDS = 10
BORN, CLOSED_EVENT, RETIRED_EVENT, MERGED, SPLIT, VANISHED = range(6)
COMPLETE, FLUSH, GROW = range(3)


class Clusters(NamedTuple):
    """Statistics by slot, of the words of records and of their vectors; one may be ``ABSENT``."""

    bag: Any
    rows: Any


class State(NamedTuple):
    """A running beam."""

    beam: Beam
    pool: Pool
    clusters: Clusters
    sizes: Sizes
    expiry: Expiry
    members: Members
    trellis: Trellis
    lineages: Lineages
    announced: Annotated[np.ndarray, ints("announced")]  # label of each undecided record, by seq
    announced_founder: Annotated[np.ndarray, ints("announced")]  # founder of the cluster that had it then


class Incoming(NamedTuple):
    """The record at hand."""

    seq: int
    time: float
    words: np.ndarray  # int32[m], of no size where records have none
    counts: np.ndarray  # int32[m]
    x: np.ndarray  # float64[D], of no size where records have none; or a row of statistics
    founder: int  # the record that began its cluster, where that was decided elsewhere (``Records``); else -1


ANSWER = row_type("label founded link decided founder", "probability new_probability log_predictive")
"""Label, whether the cluster is new, its latest earlier member or -1, the last record decided after this, and
the record that began the cluster."""

REVISION = row_type("by seq label link founded", "probability")
"""The record that caused it, the record revised, and its new answer."""

EVENT = row_type("by kind label size moves", "first last")
"""The record that caused it, what happened, to which label; its records, how many moves there are, times."""

MOVE = row_type("label records")
"""From or to which label so many records of an event's cluster went."""


class Output(NamedTuple):
    """What a run over some records produced.

    By record its answer; then the revisions and, where ``counters.with_events`` asks for them, the cluster
    events that records caused, as many as ``counters`` says. An event comes with the most telling words of
    the cluster and their counts, or its row of statistics, and with its share of the moves, which stand in
    the same order. Where ``counters.status`` is GROW, ``needs`` says how long arrays of the state are to be;
    zero: as they are.
    """

    counters: Annotated[Counters, one("done revisions events moves with_events status")]
    needs: Annotated[
        Counters,
        one("slots columns nodes postings entries times heap classes announced revisions events lineages"),
    ]
    answers: Annotated[np.ndarray, rows(ANSWER, "records")]
    revisions: Annotated[np.ndarray, rows(REVISION, "revisions")]
    events: Annotated[np.ndarray, rows(EVENT, "events")]
    moves: Annotated[np.ndarray, rows(MOVE, "events")]
    event_words: Annotated[np.ndarray, ints("events", TOP_WORDS)]
    event_counts: Annotated[np.ndarray, ints("events", TOP_WORDS)]
    event_rows: Annotated[np.ndarray, reals("events", "width")]
