"""The contract between the search and the clusters' statistics, which each part of a record implements.

A part is what clusters keep of words, or of vectors; its class says which implementation is meant. A part
that is absent, or has no use for it, does nothing. What only words need (size classes, postings) is asked of
them alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.data.choice import Choice, Scores
from streamdp.beam.data.pool import Pool
from streamdp.beam.data.sizes import Sizes
from streamdp.beam.data.state import Clusters, Incoming, Model, Output, State
from streamdp.kernels.jit import generic, kernel

# ---------------------------------------------------------------- what each part does


@generic
def clear(part: Any, terms: Any, slot: int) -> None:
    """Make a slot an empty cluster."""


@generic
def copy(part: Any, source: int, target: int) -> None:
    """Give an empty slot the statistics of another."""


@generic
def join(part: Any, terms: Any, scores: Scores, slot: int, record: Incoming) -> None:
    """Let the record join the statistics of a slot that stands in no size class."""


@generic
def leave(part: Any, terms: Any, slot: int, record: Incoming, last: bool) -> None:
    """Take a record, maybe the ``last`` one, out of the statistics of a slot that stands in no size class."""


@generic
def whole(part: Any, slot: int, bag: Incoming) -> Incoming:
    """All records of a slot as one, written into ``bag``."""
    return bag


@generic
def describe(part: Any, pool: Pool, slot: int, out: Output, event: int) -> None:
    """Write into an event what a cluster is about."""


@kernel
def clear_slot(clusters: Clusters, model: Model, slot: int) -> None:
    """Make a slot an empty cluster."""
    clear(clusters.bag, model.family.bag, slot)
    clear(clusters.rows, model.family.vector, slot)


@kernel
def copy_slot(clusters: Clusters, source: int, target: int) -> None:
    """Give an empty slot the statistics of another."""
    copy(clusters.bag, source, target)
    copy(clusters.rows, source, target)


@kernel
def join_slot(clusters: Clusters, model: Model, scores: Scores, slot: int, record: Incoming) -> None:
    """Let the record join the statistics of a slot that stands in no size class."""
    join(clusters.bag, model.family.bag, scores, slot, record)
    join(clusters.rows, model.family.vector, scores, slot, record)


@kernel
def leave_slot(clusters: Clusters, model: Model, slot: int, record: Incoming, last: bool) -> None:
    """Take a record, maybe the ``last`` one, out of the statistics of a slot that stands in no size class."""
    leave(clusters.bag, model.family.bag, slot, record, last)
    leave(clusters.rows, model.family.vector, slot, record, last)


@kernel
def bag_of_slot(clusters: Clusters, bag: Any, slot: int) -> Incoming:
    """All records of a slot as one, written into ``bag``."""
    return whole(clusters.rows, slot, whole(clusters.bag, slot, bag))


@kernel
def describe_slot(clusters: Clusters, pool: Pool, slot: int, out: Output, event: int) -> None:
    """Write into an event what a cluster is about."""
    describe(clusters.bag, pool, slot, out, event)
    describe(clusters.rows, pool, slot, out, event)


# ---------------------------------------------------------------- scoring


@generic
def score(bag: Any, rows: Any, model: Model, state: State, scores: Scores, record: Incoming) -> None:
    """Fill ``scores`` by what a record's words say, and its vector, if there are ``rows``."""
    raise NotImplementedError


@generic
def sum_up(
    rows: Any, bag: Any, model: Model, state: State, scores: Scores, record: Incoming, log_base: float
) -> None:
    """Fill ``scores``, where a record has a vector, too; what its words say is known, as logarithms."""
    raise NotImplementedError


@kernel
def score_record(clusters: Clusters, model: Model, state: State, scores: Scores, record: Incoming) -> None:
    """Fill ``scores``: the value of every open cluster, or of all that are alike, and of a new one."""
    score(clusters.bag, clusters.rows, model, state, scores, record)


@generic
def value_of(bag: Any, state: State, scores: Scores, slot: int) -> float:
    """The value of an open cluster, after the record has been scored."""
    raise NotImplementedError


@generic
def offer_agreed(bag: Any, model: Model, state: State, scores: Scores, choice: Choice) -> None:
    """Offer the clusters that all hypotheses hold and that may be among the best."""
    raise NotImplementedError


# ---------------------------------------------------------------- what only words need


@generic
def hide_slot(bag: Any, slot: int) -> None:
    """Let a slot that stands in no size class be found by nothing, for good."""


@generic
def release_slot(bag: Any, slot: int) -> None:
    """Give back what a closed slot holds."""


@generic
def learn_record(bag: Any, terms: Any, scores: Scores, record: Incoming, new_probability: float) -> None:
    """Learn of the record what all clusters share; just after the cluster that is announced took it in."""


@generic
def enter_class(bag: Any, sizes: Sizes, slot: int) -> None:
    """Put a slot, not counted as agreed yet, into the class of its size."""


@generic
def room_for_bag(bag: Any, out: Output, slot: int, words: np.ndarray) -> None:
    """Note the arena space that these words may want in a slot."""


@generic
def room_for_classes(bag: Any, state: State, out: Output, limit: int) -> None:
    """Note the size classes that may be wanted by the next record, of at most ``limit`` children."""


@generic
def room_for_words(bag: Any, out: Output, choice: Choice, words: np.ndarray) -> None:
    """Note the arena space that copies for the chosen children may want."""
