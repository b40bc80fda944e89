"""All arrays of a running beam, the buffers that its answers are written to, and what says how it goes on.

That is what a kernel needs to know of the prior, the likelihood and the search; and the clock that a decay
measures distance on, and the weight of a new cluster, as both were over time.

Where a model adapts, the scale of its decay changes from review to review. The decay itself stays what the
settings say: distance is measured on a clock that runs the faster, the shorter the scale is. So weights that
are held stay right without the records that they are of, under every hypothesis, and p(z) is that of one
prior at all times. A model that does not adapt has a clock that shows positions as they are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from streamdp.beam.data.members import Expiry, Members
from streamdp.beam.data.pool import Beam, Pool
from streamdp.beam.data.trellis import Lineages, Trellis
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, new_rows, one, reals, row_type, rows

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
    family: Any  # terms of a likelihood family
    beam: int  # most hypotheses
    max_undecided: int  # records
    retire_after: int  # records, 0 for never
    max_clusters: int  # 0 for no limit
    frequent: int  # postings
    temper: float  # power of the prior in selection
    slack: float  # nats
    trial: float  # nats of evidence by which greedy search or the beam takes the lead


ROWS = 16
CLOCK = row_type(reals="since shown rate concentration")
"""The latest row first: the position from which on it holds, what the clock showed there, how fast it runs
since, and the concentration for the records after it. What is not used repeats the first."""


def new_clock(concentration: float) -> np.ndarray:
    """Positions as they are: CLOCK[ROWS]."""
    return new_rows(ROWS, CLOCK, rate=1.0, concentration=concentration)


@kernel
def clock_at(clock: np.ndarray, position: float) -> float:
    """What the clock shows at a position."""
    j = 0
    while j < clock.shape[0] - 1 and position < clock[j].since:
        j += 1
    shown: float = clock[j].shown + (position - clock[j].since) * clock[j].rate
    return shown


def clocks_at(clock: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """What the clock shows at each of these positions."""
    at = _rows_at(clock, positions, "right")  # field by field: taking whole rows takes ten times as long
    return np.asarray(clock["shown"][at] + (positions - clock["since"][at]) * clock["rate"][at])


def concentrations_at(clock: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The weight of a new cluster when a record came at each of these positions."""
    return np.asarray(clock["concentration"][_rows_at(clock, positions, "left")])


def prior_at(prior: Any, clock: np.ndarray) -> Any:
    """The terms of a prior with the concentration of now, where they have one."""
    now = float(clock["concentration"][0])
    return prior._replace(concentration=now) if getattr(prior, "concentration", now) != now else prior


def change_clock(
    clock: np.ndarray, last: float, rate: float, concentration: float, oldest: float
) -> np.ndarray:
    """Let there be another clock from now on.

    Parameters
    ----------
    clock
        As it was; it is changed, if there is room.
    last
        Position of the last record so far: what comes after it is at the new rate.
    rate, concentration
        The new ones.
    oldest
        Nothing before this position is asked about any more.

    Returns
    -------
    The same array, or a larger one.
    """
    now = clocks_at(clock, np.array([last]))[0]
    if clock["since"][-2] > max(oldest, clock["since"][-1]):
        clock = np.concatenate([clock, np.repeat(clock[-1:], len(clock))])
    clock[1:] = clock[:-1].copy()
    clock[0] = last, now, rate, concentration
    return clock


def _rows_at(clock: np.ndarray, positions: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
    """Which row holds at each position; where one ends and another begins, the latter for "right"."""
    begun = np.searchsorted(clock["since"][::-1], positions, side=side)
    return np.asarray(len(clock) - np.maximum(begun, 1))


TOP_WORDS = 10
BORN, CLOSED_EVENT, RETIRED_EVENT, MERGED, SPLIT, VANISHED = range(6)
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
    clock: Annotated[np.ndarray, rows(CLOCK, "clock")]  # the decay's clock over time, the latest row first
    announced: Annotated[np.ndarray, ints("announced")]  # label of each undecided record, by seq
    announced_founder: Annotated[np.ndarray, ints("announced")]  # founder of the cluster that had it then


class Incoming(NamedTuple):
    """The record at hand."""

    seq: int
    time: float
    words: np.ndarray  # int32[m], of no size for vectors
    counts: np.ndarray  # int32[m]
    x: np.ndarray  # float64[D], of no size for words
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
