"""A bound on templates: those of one label are retired for good, the least lately used first.

Those of one line come before all others, so that noise does not drive out what a log says again and again.
Their lines, slots and values go, and the base is learned anew from the founding lines of those that stay. Of
each that is gone a row remains, which says what its label became.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry
from streamdp.lines.base import SLOT_SHIFT, context_of, found_length, found_token
from streamdp.lines.forget import chain, forget_tokens, forget_values, keep_lines, living_slots, renumbered
from streamdp.lines.state import State, kept, roots
from streamdp.lines.tables import filled, new_table, pairs_of


def retire(state: State, most: int) -> tuple[State, np.ndarray]:
    """The state with three quarters of ``most`` templates, or fewer; and the labels that are gone."""
    counters = state.counters
    rows = state.clusters[: counters.clusters]
    label = roots(rows["older"])
    gone = _least_used(rows, label, int(counters.alive) - 3 * most // 4)
    ends = (rows["alive"] == 1) & np.isin(label, gone)
    rows["alive"][ends] = 0
    np.subtract.at(state.lengths["alive"], rows["length"][ends], 1)
    counters.alive -= np.count_nonzero(ends)
    counters.retired += len(gone)
    of_lines = roots(rows["into"])[state.lines["cluster"][: counters.lines]]
    state = keep_lines(state, rows["alive"][of_lines] == 1)
    state = _without_slots(forget_values(state, len(state.values)), rows)
    return forget_tokens(_founded_again(_without_posts(state))), gone


def _least_used(rows: np.ndarray, label: np.ndarray, many: int) -> np.ndarray:
    """Labels of so many templates at least, those of one line first, then those that came least lately."""
    living = rows["alive"] == 1
    last, lines = np.full(len(rows), -1), np.zeros(len(rows), np.int64)
    np.maximum.at(last, label[living], rows["last"][living])
    np.add.at(lines, label[living], rows["size"][living])
    members = np.bincount(label[living], minlength=len(rows))
    order = np.flatnonzero(members)
    order = order[np.lexsort((last[order], lines[order] > 1))]
    return np.sort(order[: int(np.searchsorted(np.cumsum(members[order]), many)) + 1])


def _without_slots(state: State, rows: np.ndarray) -> State:
    """Only the slots of templates that live, with numbers of their own; all values are of these."""
    lasting = living_slots(state)
    number = np.append(np.cumsum(lasting) - lasting, np.count_nonzero(lasting))
    state.counters.slots = number[-1]
    living = rows["alive"] == 1
    rows["slot"] = np.where(living, number[rows["slot"]], 0)
    rows["length"] = np.where(living, rows["length"], 0)
    keys, values = pairs_of(state.by_value)
    low = (1 << SLOT_SHIFT) - 1
    keys = (number[keys >> SLOT_SHIFT] << SLOT_SHIFT) | (keys & low)
    return state._replace(
        slots=kept(state.slots, lasting),
        laws=kept(state.laws, lasting),
        weights=kept(state.weights, lasting),
        by_value=filled(state.by_value, keys, values),
    )


def _without_posts(state: State) -> State:
    """Only the entries of lists that are of templates that live, and the lists that have any."""
    counters = state.counters
    owner = np.full(int(counters.posts), -1)
    _own(state, owner)
    lasting = owner >= 0
    held = np.bincount(owner[lasting], minlength=int(counters.lists))
    used = held > 0
    posts, lists = kept(state.posts, lasting), kept(state.lists, used)
    counters.posts, counters.lists = np.count_nonzero(lasting), np.count_nonzero(used)
    lists["count"][: counters.lists] = held[used]
    chain(posts, (np.cumsum(used) - 1)[owner[lasting]], lists)
    return state._replace(posts=posts, lists=lists, by_place=renumbered(state.by_place, used))


@entry
def _own(state: State, owner: np.ndarray) -> None:
    """The list that each entry of a template that lives is in."""
    for place in range(state.counters.lists):
        at = state.lists[place].first
        while at >= 0:
            if state.clusters[state.posts[at].cluster].alive:
                owner[at] = place
            at = state.posts[at].next


def _founded_again(state: State) -> State:
    """The base as the founding lines of templates that live teach it."""
    for name in ("met", "followers", "follower_types"):
        state.tokens[name] = 0
    for name in ("met_types", "again", "again_types", "followers", "follower_types"):
        state.shown[name] = 0
    state.lengths["founded"] = 0
    for name in ("met", "met_types", "class_types", "lengths", "length_types"):
        setattr(state.counters, name, 0)
    state = state._replace(by_pair=new_table(len(state.by_pair.keys) // 2))
    _found_again(state)
    return state


@entry
def _found_again(state: State) -> None:
    """Count the founding lines of templates that live, the oldest first."""
    for cluster in range(state.counters.clusters):
        row = state.clusters[cluster]
        if row.alive == 0:
            continue
        before = -1
        for slot in range(row.slot, row.slot + row.length):
            token = state.slots[slot].founder
            found_token(state, token, before)
            before = context_of(state, token)
        found_length(state, row.length)
