"""A bound on templates: those told as one label are retired for good, the least lately used first.

Those of one line come before all others, so that noise does not drive out what a log says again and again.
Their lines, slots and values go, and the base is learned anew from the founding lines of those that stay. Of
each that is gone a row remains, which says what its label became.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry
from streamdp.lines.base import DIGIT, SLOT_SHIFT, found_token
from streamdp.lines.forget import forget_tokens, forget_values, living_slots, renumbered, roots
from streamdp.lines.state import (
    ALIVE,
    CLASS_TYPES,
    CLUSTERS,
    LENGTH_TYPES,
    LENGTHS,
    LINES,
    LISTS,
    MET,
    MET_TYPES,
    POSTS,
    RETIRED,
    SLOTS,
    State,
)
from streamdp.lines.tables import new_table, pairs_of, table_of


def retire(state: State, most: int) -> tuple[State, np.ndarray]:
    """The state with three quarters of ``most`` templates, or fewer; and the labels that are gone."""
    counts = state.counts
    rows = state.clusters[: counts[CLUSTERS]]
    label, living = roots(rows["older"]), rows["alive"] == 1
    last = np.full(len(rows), -1)
    np.maximum.at(last, label[living], rows["last"][living])
    members, lines = np.bincount(label[living], minlength=len(rows)), np.zeros(len(rows), np.int64)
    np.add.at(lines, label[living], rows["size"][living])
    order = np.flatnonzero(members)
    order = order[np.lexsort((last[order], lines[order] > 1))]
    left = counts[ALIVE] - np.cumsum(members[order])
    gone = np.sort(order[: int(np.argmax(left <= 3 * most // 4)) + 1])
    ends = living & np.isin(label, gone)
    rows["alive"][ends] = 0
    np.subtract.at(state.lengths["alive"], rows["length"][ends], 1)
    counts[ALIVE] -= np.count_nonzero(ends)
    counts[RETIRED] += len(gone)
    state = _without_lines(state, rows)
    state = _without_slots(forget_values(state, len(state.values)), rows)
    state = _without_posts(state)
    state = state._replace(by_pair=new_table(len(state.by_pair.keys) // 2))
    for name in ("met", "followers", "follower_types"):
        state.tokens[name] = 0
    for name in ("met_types", "again", "again_types", "followers", "follower_types"):
        state.shown[name] = 0
    state.lengths["founded"] = 0
    counts[[MET, MET_TYPES, CLASS_TYPES, LENGTHS, LENGTH_TYPES]] = 0
    _found_again(state)
    return forget_tokens(state), gone


def _without_lines(state: State, rows: np.ndarray) -> State:
    """Only the lines of templates that live."""
    known = state.lines[: state.counts[LINES]]
    lasting = rows["alive"][roots(rows["into"])[known["cluster"]]] == 1
    lines = np.zeros_like(state.lines)
    state.counts[LINES] = n = int(np.count_nonzero(lasting))
    lines[:n] = known[lasting]
    return state._replace(lines=lines, by_line=renumbered(state.by_line, lasting))


def _without_slots(state: State, rows: np.ndarray) -> State:
    """Only the slots of templates that live, with numbers of their own; all values are of these."""
    lasting = living_slots(state)
    number = np.append(np.cumsum(lasting) - lasting, np.count_nonzero(lasting))
    n = int(number[-1])
    made = {}
    for name in ("slots", "laws", "weights"):
        array = getattr(state, name)
        made[name] = np.zeros_like(array)
        made[name][:n] = array[: len(lasting)][lasting]
    state.counts[SLOTS] = n
    living = rows["alive"] == 1
    rows["slot"] = np.where(living, number[rows["slot"]], 0)
    rows["length"] = np.where(living, rows["length"], 0)
    keys, values = pairs_of(state.by_value)
    low = (1 << SLOT_SHIFT) - 1
    keys = (number[keys >> SLOT_SHIFT] << SLOT_SHIFT) | (keys & low)
    return state._replace(by_value=table_of(keys, values, len(state.by_value.keys) // 2), **made)


def _without_posts(state: State) -> State:
    """Only the entries of lists that are of templates that live, and the lists that have any."""
    counts = state.counts
    owner = np.full(int(counts[POSTS]), -1)
    _own(state, owner)
    posts, lists = np.zeros_like(state.posts), np.zeros_like(state.lists)
    lasting = owner >= 0
    counts[POSTS] = n = int(np.count_nonzero(lasting))
    posts[:n] = state.posts[: len(lasting)][lasting]
    used = np.bincount(owner[lasting], minlength=int(counts[LISTS])) > 0
    keys, values = pairs_of(state.by_place)
    held, number = used[values], np.cumsum(used) - 1
    by_place = table_of(keys[held], number[values[held]], len(state.by_place.keys) // 2)
    counts[LISTS] = np.count_nonzero(used)
    _list(posts, lists, number[owner[lasting]], int(counts[LISTS]))
    return state._replace(posts=posts, lists=lists, by_place=by_place)


@entry
def _own(state: State, owner: np.ndarray) -> None:
    """The list that each entry of a template that lives is in."""
    for place in range(state.counts[LISTS]):
        at = state.lists[place].first
        while at >= 0:
            if state.clusters[state.posts[at].cluster].alive:
                owner[at] = place
            at = state.posts[at].next


@entry
def _list(posts: np.ndarray, lists: np.ndarray, place_of: np.ndarray, n: int) -> None:
    """Chain the entries of each list, the newest first."""
    for place in range(n):
        lists[place].first = -1
    for at in range(place_of.shape[0]):
        place = place_of[at]
        posts[at].next = lists[place].first
        lists[place].first = at
        lists[place].count += 1


@entry
def _found_again(state: State) -> None:
    """Count the founding lines of templates that live, the oldest first."""
    counts = state.counts
    for cluster in range(counts[CLUSTERS]):
        row = state.clusters[cluster]
        if row.alive == 0:
            continue
        before = -1
        for slot in range(row.slot, row.slot + row.length):
            token = state.slots[slot].founder
            found_token(state, token, before)
            shown = state.tokens[token].shown
            before = -1 - shown if shown & DIGIT else token
        if state.lengths[row.length].founded == 0:
            counts[LENGTH_TYPES] += 1
        state.lengths[row.length].founded += 1
        counts[LENGTHS] += 1
