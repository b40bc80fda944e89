"""Vectors look back: the prior's scale follows the clusters found, and whole clusters are united under it.

The scale that near neighbours suggest is rather too small on purpose, so that many clusters begin as several.
The clusters found tell better how wide clusters are, and how alike they are in that: so the likelihood's
parameters are chosen anew, then those clusters united that are one under them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamdp.beam.data.state import Output
from streamdp.beam.looks.rearrange import tidy
from streamdp.beam.looks.review import Due, decide, gather_recent, run_looks
from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.beam.looks.unions import Clusters
from streamdp.beam.looks.uniting import (
    rebase_slots,
    revise_moved,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.kernels.rows import power_of_two
from streamdp.likelihoods import VectorFamily
from streamdp.likelihoods.base import MEMBERS

EVERY = 2048
"""Records between two looks; the first come sooner, each when the stream is twice as long."""

AGED = 2
"""Multiple of the age of a second look from which on clusters are united while the stream goes on."""

FREEDOM = 10
"""Degrees of freedom in each dimension from which on clusters tell how wide clusters are."""

ROUNDS = 4
"""Times that parameters are chosen and clusters united, at most: until none are."""

NONE = np.zeros(0, np.int64)


def due_at(seq: int) -> bool:
    """Whether a review after so many records looks at vectors."""
    return seq % min(EVERY, power_of_two(seq)) == 0


def are_shown(labels: np.ndarray, dimension: int) -> bool:
    """Whether clusters of these labels tell how wide clusters are."""
    sizes = np.unique(labels, return_counts=True)[1]
    return bool((sizes[sizes >= MEMBERS] - 1).sum() >= FREEDOM * dimension)


def follow(
    search: BeamSearch,
    first: int,
    batch: Batch,
    labels: np.ndarray,
    due: Due,
    began: VectorFamily,
    *,
    with_events: bool,
) -> Iterator[Output]:
    """Choose the likelihood's parameters by the clusters found; unite those that are one.

    The best hypothesis decides everything before; the likelihood of the search is replaced. While the stream
    goes on, clusters are united that are of age and gain as much as a change of the lead takes: what has
    become one is never parted.

    Parameters
    ----------
    search
        The running beam.
    first, batch, labels
        The latest records, the number of the first of them, and the newest labels.
    due
        From which record on clusters may become part of others, and of which age they are to be; of which
        records does not matter.
    began
        The likelihood as the first records suggested it.
    with_events
        Whether cluster events are wanted.

    Yields
    ------
    Revisions and events; the buffers are used again when the iterator goes on.
    """

    yield from decide(search, with_events=with_events)
    recent = gather_recent(search, first, batch, labels)
    before, least = recent.slot.copy(), LEAST_GAIN if due.last else search.model.trial
    clusters = Clusters(search, recent, batch, due, with_events=with_events)
    log_h = -rebase_slots(search.model.family, search.state)
    for _ in range(ROUNDS):
        found = len(clusters)
        clusters.choose(began)
        yield from clusters.unite(least)
        if len(clusters) == found:
            break
    yield from clusters.take_strays(least)
    search.rebase(clusters.family)
    log_h += rebase_slots(search.model.family, search.state)
    tidy(search.state, recent, NONE, clusters.ratio + log_h)
    moved = np.flatnonzero(recent.slot != before)
    shares = clusters.share[recent.slot[moved]]

    def tell(out: Output) -> None:
        revise_moved(search.state, recent, out, moved, shares)

    yield from run_looks(search, tell, len(moved), len(moved), 1, with_events)
