"""The contract between the search and the clusters' statistics: words and vectors implement it.

The first argument is what a state holds of its clusters; its class says which implementation is meant. What
only clusters of words need (size classes, postings) does nothing for vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.data.choice import Choice, Scores
from streamdp.beam.data.pool import Pool
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.kernels.jit import generic


@generic
def score_record(clusters: Any, model: Model, state: State, scores: Scores, record: Incoming) -> None:
    """Fill ``scores``: the value of every open cluster, or of all that are alike, and of a new one."""


@generic
def value_of(clusters: Any, scores: Scores, slot: int) -> float:
    """The value of an open cluster, after the record has been scored."""
    raise NotImplementedError


@generic
def offer_agreed(clusters: Any, model: Model, state: State, scores: Scores, choice: Choice) -> None:
    """Offer the clusters that all hypotheses hold and that may be among the best."""


@generic
def clear_slot(clusters: Any, model: Model, slot: int) -> None:
    """Make a slot an empty cluster."""


@generic
def copy_slot(clusters: Any, source: int, target: int) -> None:
    """Give an empty slot the statistics of another."""


@generic
def join_slot(clusters: Any, model: Model, scores: Scores, slot: int, record: Incoming) -> None:
    """Let the record join the statistics of a slot that stands in no size class."""


@generic
def read_alone(clusters: Any, model: Model, scores: Scores, record: Incoming) -> None:
    """Note of a record that has not been scored what joining a slot takes."""


@generic
def leave_slot(clusters: Any, model: Model, slot: int, record: Incoming, last: bool) -> None:
    """Take a record, maybe the ``last`` one, out of the statistics of a slot that stands in no size class."""


@generic
def hide_slot(clusters: Any, slot: int) -> None:
    """Let a slot that stands in no size class be found by nothing: for good, or until it is shown again."""


@generic
def show_slot(clusters: Any, slot: int) -> None:
    """Undo :func:`hide_slot`."""


@generic
def bag_of_slot(clusters: Any, state: State, bag: Any, slot: int) -> Incoming:
    """All records of a slot as one, written into ``bag``."""
    raise NotImplementedError


@generic
def room_for_bag(clusters: Any, out: Output, slot: int, words: np.ndarray) -> None:
    """Note the arena space that these words may want in a slot."""


@generic
def learn_record(
    clusters: Any, model: Model, scores: Scores, record: Incoming, new_probability: float
) -> None:
    """Learn of the record what all clusters share; after the cluster that was announced has taken it in."""


@generic
def note_announced(clusters: Any, scores: Scores, record: Incoming) -> None:
    """Remember what was new to the cluster that has just taken the record in: it is the announced one."""


@generic
def describe_slot(clusters: Any, pool: Pool, slot: int, out: Output, event: int) -> None:
    """Write into an event what a cluster is about."""


@generic
def enter_class(clusters: Any, slot: int) -> None:
    """Put a slot, not counted as agreed yet, into the class of its size."""


@generic
def leave_class(clusters: Any, pool: Pool, slot: int) -> None:
    """Take a slot out of its size class altogether."""


@generic
def agree(clusters: Any, pool: Pool, slot: int) -> None:
    """Every hypothesis holds the slot from now on."""


@generic
def contest(clusters: Any, pool: Pool, slot: int) -> None:
    """Not every hypothesis holds the slot any more."""


@generic
def reweigh(clusters: Any, pool: Pool, slot: int, change: float) -> None:
    """A slot's stored weight has grown by ``change`` (which is in ``pool.weight`` already)."""


@generic
def rescale(clusters: Any, factor: float) -> None:
    """All stored weights are multiplied."""


@generic
def release_slot(clusters: Any, slot: int) -> None:
    """Give back what a closed slot holds."""


@generic
def room_for_classes(clusters: Any, pool: Pool, out: Output, limit: int) -> None:
    """Note the size classes that may be wanted by the next record, of at most ``limit`` children."""


@generic
def room_for_words(clusters: Any, out: Output, choice: Choice, words: np.ndarray) -> None:
    """Note the arena space that copies for the chosen children may want."""


for _each in (
    read_alone,
    room_for_bag,
    learn_record,
    note_announced,
    enter_class,
    leave_class,
    agree,
    contest,
    reweigh,
    rescale,
    hide_slot,
    release_slot,
    room_for_classes,
    room_for_words,
):

    @_each.otherwise
    def _nothing(*_: Any) -> None:
        pass
