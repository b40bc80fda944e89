"""Vectors look back: the prior's scale follows the clusters found, which part and unite under it.

The clusters found tell better than near neighbours how wide clusters are, and how alike they are in that. So
the likelihood's parameters are chosen anew, then those clusters united that are one under them. Those that
have grown are cut up and put together anew, if that is likelier (:class:`~streamdp.beam.looks.draft.Draft`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np

from streamdp.beam.looks.draft import Draft
from streamdp.beam.looks.moves import Moves
from streamdp.beam.looks.rearrange import tidy
from streamdp.beam.looks.review import Due, gather_recent
from streamdp.beam.looks.uniting import rebase_slots
from streamdp.beam.search import NONE, BeamSearch
from streamdp.encode.batch import Labelled
from streamdp.kernels.rows import power_of_two
from streamdp.likelihoods import VectorFamily
from streamdp.likelihoods.base import MEMBERS

EVERY = 2048
"""Records between two looks; the first come sooner, each when the stream is twice as long."""

FREEDOM = 10
"""Degrees of freedom for each parameter of a dimension from which on clusters tell how wide clusters are."""


def due_at(seq: int) -> bool:
    """Whether a review after so many records looks at vectors."""
    return seq % min(EVERY, power_of_two(seq)) == 0


def are_shown(labels: np.ndarray, family: VectorFamily) -> bool:
    """Whether clusters of these labels tell how wide clusters are."""
    sizes = np.unique(labels, return_counts=True)[1]
    parameters = family.dimension if family.within.ndim == 2 else 1
    return bool((sizes[sizes >= MEMBERS] - 1).sum() >= FREEDOM * parameters)


def follow(search: BeamSearch, held: Labelled, due: Due, began: VectorFamily) -> Iterator[Moves]:
    """Choose the likelihood's parameters by the clusters found; unite and part them.

    What moves is to be made at once; then the likelihood of the search is replaced.

    Parameters
    ----------
    search
        The running beam, of which the best hypothesis has decided everything.
    held
        The latest records, with their newest labels.
    due
        From which record on clusters may change, and whether the stream has ended; of which records and of
        which age does not matter.
    began
        The likelihood as the first records suggested it.
    """
    recent = gather_recent(search, *held)
    draft = Draft(search, recent, held.batch, due, began)
    draft.unite()
    other = copy.deepcopy(draft)
    draft.take_strays()
    if other.rearrange(other.alive() if due.last else other.grown(_before(search.seq))):
        other.take_strays()
        limit, count = search.model.max_clusters, len(other.alive())
        if (limit == 0 or count <= max(limit, len(draft.alive()))) and other.joint > draft.joint:
            draft = other
    scratch = np.zeros(draft.family.width)
    log_h = -rebase_slots(search.model.family.vector, search.state, scratch)
    moves = draft.moves(search.labels_of(draft.slots), search.next_label)
    if len(moves.seqs):
        yield moves
    search.rebase(draft.family)
    log_h += rebase_slots(search.model.family.vector, search.state, scratch)
    tidy(search.state, recent, NONE, log_h)


def _before(seq: int) -> int:
    """After how many records the look before this one was."""
    return seq // 2 if seq <= EVERY else seq - EVERY
