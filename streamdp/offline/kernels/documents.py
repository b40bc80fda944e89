"""What the order of a cluster's records adds to its log H, as a part beside their words.

It is what :func:`~streamdp.likelihoods.words.in_order` adds by each record given those before it: they are
gone through whenever a record comes or goes, or is scored. Wallach, Jensen, Dicker and Heller 2010, eqs.
13-17, who score each record as if it came last.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods.words import in_order
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels.store import GROUP, Documents

NOWHERE = -1


@kernel
def _in_order(documents: Documents, slot: int, group: bool) -> float:
    """What the order adds for the records of a slot, together with the group or without."""
    total, tokens, n = 0.0, 0, 0
    offsets, words, counts, held = documents.offsets, documents.words, documents.counts, documents.held
    for i in range(documents.slot.shape[0]):
        if documents.slot[i] == slot or (group and documents.grouped[i] == 1):
            first, last = offsets[i], offsets[i + 1]
            total += in_order(documents.terms, words, counts, first, last, tokens, held)
            for p in range(first, last):
                held[words[p]] += counts[p]
                tokens += counts[p]
            documents.members[n] = i
            n += 1
    for m in range(n):
        for p in range(offsets[documents.members[m]], offsets[documents.members[m] + 1]):
            held[words[p]] = 0
    return total


@kernel
def _move(documents: Documents, i: int, slot: int, concerned: int) -> float:
    """Let a record be in a slot, or nowhere; by how much log H of the slot concerned rises."""
    documents.slot[i] = slot
    before = documents.in_order[concerned]
    documents.in_order[concerned] = _in_order(documents, concerned, False)
    return documents.in_order[concerned] - before


@clusters.hold.of(Documents)
def _hold(documents: Documents, slot: int, i: int) -> float:
    return _move(documents, i, slot, slot)


@clusters.take_out.of(Documents)
def _take_out(documents: Documents, slot: int, i: int, last: bool) -> float:
    return _move(documents, i, NOWHERE, slot)


@clusters.add_scores.of(Documents)
def _add_scores(documents: Documents, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    for j in range(n):
        documents.slot[i] = slots[j]
        out[j] += _in_order(documents, slots[j], False) - documents.in_order[slots[j]]
    documents.slot[i] = NOWHERE


@clusters.empty_group.of(Documents)
def _empty_group(documents: Documents) -> None:
    for i in range(documents.grouped.shape[0]):
        documents.grouped[i] = 0


@clusters.add_to_group.of(Documents)
def _add_to_group(documents: Documents, i: int) -> None:
    documents.grouped[i] = 1


@clusters.group_of_slot.of(Documents)
def _group_of_slot(documents: Documents, slot: int, labels: np.ndarray) -> None:
    for i in range(labels.shape[0]):
        documents.grouped[i] = 1 if labels[i] == slot else 0


@clusters.add_group_scores.of(Documents)
def _add_group_scores(documents: Documents, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    for j in range(n):
        out[j] += _in_order(documents, slots[j], True) - documents.in_order[slots[j]]
    return _in_order(documents, GROUP, True)


@clusters.prepare_part.of(Documents)
def _prepare(documents: Documents, fresh: np.ndarray) -> None:
    for slot in range(documents.in_order.shape[0]):
        documents.in_order[slot] = 0.0
    for i in range(fresh.shape[0]):
        documents.slot[i] = NOWHERE
    for i in range(fresh.shape[0]):
        documents.slot[i] = GROUP
        fresh[i] += _in_order(documents, GROUP, False)
        documents.slot[i] = NOWHERE
