"""All that is known of templates, as flat arrays, and how they grow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.rows import longer, longer_rows, new_rows, row_type, taller
from streamdp.lines.scan import MOST
from streamdp.lines.tables import Table, new_table, pairs_of, table_of, with_room

CLASSES = 512
"""Classes of tokens: sets of nine categories of characters; none is empty, and 0 stands for what has none."""

SLABS = 4
KINDS = 3
NUMBER, IDENTIFIER, WORD = range(KINDS)

(
    RECORDS,  # lines absorbed
    TOKENS,  # distinct tokens
    TEXT,  # bytes of their text
    CLUSTERS,  # templates ever founded
    ALIVE,  # templates now
    SLOTS,
    VALUES,  # of holes
    LINES,  # distinct lines
    LISTS,  # lists of templates
    POSTS,  # their entries
    MET,  # tables of words: contexts that a token was new to
    MET_TYPES,  # tokens with any
    CLASS_TYPES,  # classes with any
    HELD,  # distinct values of holes in all classes
    HELD_TYPES,  # classes with any
    LENGTHS,  # founding lines
    LENGTH_TYPES,  # lengths with any
    STAMP,  # of the last search for templates that are near
    DUE,  # the template that is to be looked at again, or -1
    MERGED,  # merges so far
    FORGOTTEN,  # distinct lines forgotten so far
    RETIRED,  # labels retired so far
    KEPT,  # values of holes that were left when some were last forgotten
    FREE,  # a token whose number is free, and 1; or 0: what is next stands in its place of a start
) = range(24)
COUNTS = 24

TOKEN = row_type("start length shown met held followers follower_types", "spelling")
"""Text, class, contexts it is new to, holes it is a value of; as a context, what follows; its spelling."""

SLOT = row_type("founder distinct first wordy forgotten")
"""The founder's token; distinct values and, of a hole, the first of them; whether one is a word; distinct
lines whose value has been forgotten."""

VALUE = row_type("token count next")
CLUSTER = row_type(
    "slot length size types alive into older first last",
    "founded repeats forgotten worth first_time last_time",
)
"""First slot, slots, lines, distinct lines; whether it lives, else what it went into; the older label that it
has become one with, or its own; numbers of its first and last line; log p0 of the first line, the
log gammas of how often lines came, the mass of lines forgotten, what its log marginal was when last asked
for; times."""

LINE = row_type("cluster count last", "log_q")
LIST = row_type("first count")
POST = row_type("cluster next")
SHOWN = row_type("met_types again again_types held held_types followers follower_types")
"""Of a class: distinct tokens met; those met again, with repeats and distinct; values of holes likewise; as a
context, what follows."""

LENGTH = row_type("founded alive")


class State(NamedTuple):
    """Templates; the number of a template is the label it was founded with."""

    counts: np.ndarray  # int64[COUNTS]
    evidence: np.ndarray  # float64[1] the sum of log predictives
    kinds: np.ndarray  # int64[KINDS, 2] distinct values of holes of each kind, and their classes
    text: np.ndarray  # uint8[B] the tokens' bytes
    tokens: np.ndarray  # TOKEN[T]
    shown: np.ndarray  # SHOWN[CLASSES]
    lengths: np.ndarray  # LENGTH[MOST + 1]
    clusters: np.ndarray  # CLUSTER[C]
    slots: np.ndarray  # SLOT[S]
    laws: np.ndarray  # float64[S, 1 + SLABS] what a slot may be, before its second value
    weights: np.ndarray  # float64[S, 1 + SLABS] and now
    values: np.ndarray  # VALUE[V]
    lines: np.ndarray  # LINE[N]
    lists: np.ndarray  # LIST[L]
    posts: np.ndarray  # POST[P]
    by_text: Table  # a token's hash: its number
    by_pair: Table  # context and token: how often founding lines had them
    by_value: Table  # slot and token: the value; slot and class: how many values
    by_line: Table  # a folded line's hash: its number
    by_place: Table  # length, place and constant, or what families share: a list


TABLES = ("by_text", "by_pair", "by_value", "by_line", "by_place")
USED = {
    "text": TEXT,
    "tokens": TOKENS,
    "clusters": CLUSTERS,
    "slots": SLOTS,
    "laws": SLOTS,
    "weights": SLOTS,
    "values": VALUES,
    "lines": LINES,
    "lists": LISTS,
    "posts": POSTS,
}
"""Which count says how much of an array is used."""


class Scratch(NamedTuple):
    """Room for one line and for one search."""

    folded: np.ndarray  # uint8[longest line + 1]
    marks: np.ndarray  # int64[0, 2] none
    line: np.ndarray  # int64[MOST] tokens
    before: np.ndarray  # int64[MOST] the context of each
    own: np.ndarray  # float64[MOST, 1 + SLABS] of a token of a new line
    law: np.ndarray  # float64[MOST, 1 + SLABS]
    terms: np.ndarray  # float64[1 + SLABS]
    weighed: np.ndarray  # float64[3] what ``choose`` found
    few: np.ndarray  # int64[3]
    places: np.ndarray  # int64[MOST] lists of a line's constants
    sizes: np.ndarray  # int64[MOST] and how long they are
    near: np.ndarray  # int64[C] templates
    ways: np.ndarray  # float64[C] log weight of each
    sign: np.ndarray  # int64[C] in which slots each differs
    group: np.ndarray  # int64[C] templates of one trial
    best: np.ndarray  # int64[C] those of the best
    rest: np.ndarray  # int64[C]
    stamps: np.ndarray  # int64[C] the last search that found it
    token: np.ndarray  # int64[V] values of a slot
    lines_of: np.ndarray  # int64[V] and how many distinct lines have each
    classes: np.ndarray  # int64[CLASSES] zeros


def new_state() -> State:
    """Nothing seen."""
    counts = np.zeros(COUNTS, np.int64)
    counts[DUE] = -1
    width = 1 + SLABS
    return State(
        counts,
        np.zeros(1),
        np.zeros((KINDS, 2), np.int64),
        np.zeros(64, np.uint8),
        new_rows(8, TOKEN),
        new_rows(CLASSES, SHOWN),
        new_rows(MOST + 1, LENGTH),
        new_rows(8, CLUSTER),
        new_rows(8, SLOT),
        np.zeros((8, width)),
        np.zeros((8, width)),
        new_rows(8, VALUE),
        new_rows(8, LINE),
        new_rows(8, LIST),
        new_rows(8, POST),
        *(new_table(8) for _ in TABLES),
    )


def new_scratch(longest: int, clusters: int, values: int) -> Scratch:
    """Room for lines of so many bytes among so many templates and values."""
    width = 1 + SLABS

    def of_clusters() -> np.ndarray:
        return np.zeros(clusters, np.int64)

    return Scratch(
        folded=np.zeros(longest + 1, np.uint8),
        marks=np.zeros((0, 2), np.int64),
        line=np.zeros(MOST, np.int64),
        before=np.zeros(MOST, np.int64),
        own=np.zeros((MOST, width)),
        law=np.zeros((MOST, width)),
        terms=np.zeros(width),
        weighed=np.zeros(3),
        few=np.zeros(3, np.int64),
        places=np.zeros(MOST, np.int64),
        sizes=np.zeros(MOST, np.int64),
        near=of_clusters(),
        ways=np.zeros(clusters),
        sign=of_clusters(),
        group=of_clusters(),
        best=of_clusters(),
        rest=of_clusters(),
        stamps=of_clusters(),
        token=np.zeros(values, np.int64),
        lines_of=np.zeros(values, np.int64),
        classes=np.zeros(CLASSES, np.int64),
    )


def grown(state: State, tokens: int) -> State:
    """The state with room for lines of so many more tokens or bytes in all, whatever they are."""
    made: dict[str, Any] = {}
    for name, used in USED.items():
        array, need = getattr(state, name), int(state.counts[used]) + 4 * tokens
        if need > len(array):
            grow = longer_rows if array.dtype.names else longer if array.ndim == 1 else taller
            made[name] = grow(array, max(need, 2 * len(array)))
    for name in TABLES:
        table = getattr(state, name)
        made[name] = with_room(table, int(table.taken[0]) + 4 * tokens)
    return state._replace(**made)


def roots(into: np.ndarray) -> np.ndarray:
    """Where each chain ends, int64[n], of what each goes into: itself at the end."""
    root = into.copy()
    while (root[root] != root).any():
        root = root[root]
    return root


def kept(array: np.ndarray, lasting: np.ndarray) -> np.ndarray:
    """An array of the same size that begins with those of the first that last, bool[n]."""
    made = np.zeros_like(array)
    made[: np.count_nonzero(lasting)] = array[: len(lasting)][lasting]
    return made


def dump(state: State) -> dict[str, np.ndarray]:
    """What is used, as arrays by name; the same however the lines came in batches."""
    found = {}
    for name, array in state._asdict().items():
        if name in TABLES:
            found[f"{name}_keys"], found[f"{name}_values"] = pairs_of(array)
        else:
            found[name] = array[: state.counts[USED[name]]] if name in USED else array
    return found


def load(stored: dict[str, np.ndarray]) -> State:
    """The inverse of :func:`dump`."""
    made: dict[str, Any] = {name: stored[name] for name in State._fields if name not in TABLES}
    for name in TABLES:
        keys = stored[f"{name}_keys"]
        made[name] = table_of(keys, stored[f"{name}_values"], len(keys))
    return State(**made)
