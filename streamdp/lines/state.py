"""All that is known of templates, as flat arrays, and how they grow.

Hash tables of whole numbers are by open addressing, powers of two; nothing is ever taken out of one.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import (
    Counters,
    Field,
    fields_of,
    grown,
    ints,
    made,
    of,
    one,
    power_of_two,
    reals,
    row_type,
    rows,
)
from streamdp.lines.closed_places import Closing
from streamdp.lines.scan import MOST

FREE = -1
SPREAD = -7046029254386353131
"""2^64 over the golden ratio: products with it have well mixed upper bits."""


class Table(NamedTuple):
    """Values by key; at most half of the places are taken."""

    keys: Annotated[np.ndarray, ints("places", fill=FREE)]  # a power of two; FREE, or at least 0
    values: Annotated[np.ndarray, ints("places")]
    counters: Annotated[Counters, one("taken")]  # how many keys


def new_table(most: int) -> Table:
    """An empty table for so many keys."""
    return made(Table, {"places": power_of_two(2 * max(most, 8))})


def emptied(table: Table, most: int) -> Table:
    """An empty table as large as another, or large enough for so many keys."""
    return new_table(max(most, len(table.keys) // 2))


def with_room(table: Table, most: int) -> Table:
    """The table itself where it has room for so many keys, else a larger copy."""
    if 2 * most <= len(table.keys):
        return table
    held = table.keys != FREE
    return table_of(table.keys[held], table.values[held], 2 * most)


def table_of(keys: np.ndarray, values: np.ndarray, most: int) -> Table:
    """A table of these pairs, int64 each, with room for so many."""
    made = new_table(max(most, len(keys)))
    _fill(made, keys, values)
    return made


@kernel
def has_room(table: Table, more: int) -> bool:
    """Whether so many more keys find room."""
    return bool(2 * (table.counters.taken + more) <= table.keys.shape[0])


@kernel
def place_of(table: Table, key: int) -> int:
    """Where a key stands, or would stand."""
    mask = table.keys.shape[0] - 1
    at = ((key * SPREAD) >> 24) & mask
    while table.keys[at] != key and table.keys[at] != FREE:
        at = (at + 1) & mask
    return int(at)


@kernel
def look_up(table: Table, key: int) -> int:
    """The value of a key, or -1."""
    at = place_of(table, key)
    return table.values[at] if table.keys[at] == key else -1


@kernel
def put(table: Table, key: int, value: int) -> None:
    """Give a key a value."""
    at = place_of(table, key)
    if table.keys[at] == FREE:
        table.keys[at] = key
        table.counters.taken += 1
    table.values[at] = value


@entry
def _fill(table: Table, keys: np.ndarray, values: np.ndarray) -> None:
    for i in range(keys.shape[0]):
        put(table, keys[i], values[i])


CLASSES = 512
"""Classes of tokens: sets of nine categories of characters; none is empty, and 0 stands for what has none."""

NUMBER, IDENTIFIER, WORD = range(3)

TOKEN = row_type("code start length shown met held", "spelling")
"""Hash of its text, which stays where letters are erased; text, class; how often founding lines had it, how
often it was new to a hole; its spelling."""

SLOT = row_type("founder distinct first wordy forgotten glued", "law hole")
"""The founder's token; distinct values and, of a hole, the first of them; whether one is a word; distinct
lines whose value has been forgotten; whether the founding line had no blank before it; how likely it was a
hole when its template was founded, and is now."""

VALUE = row_type("token count next")
CLUSTER = row_type(
    "slot length size types alive into older first last",
    "founded repeats forgotten worth first_time last_time",
)
"""First slot, slots, lines, distinct lines; whether it lives, else what it went into; the older label that it
has become one with, or its own; numbers of its first and last line; log p0 of the first line, the log gammas
of how often lines came, the mass of lines forgotten, what its log marginal was when last asked for; times."""

LINE = row_type("code cluster count last")
LIST = row_type("first count")
POST = row_type("cluster next")
SHOWN = row_type("met_types again again_types held held_types")
"""Of a class: distinct tokens met; those met again, with repeats and distinct; values of holes likewise."""


class State(NamedTuple):
    """Templates; the number of a template is the label it was founded with.

    How much of an array is used says the counter of the size that it follows: ``records`` absorbed; distinct
    ``tokens``, and bytes of their ``text``; templates ever founded (``clusters``), and those ``alive``;
    ``slots``; ``values`` of holes; distinct ``lines``; ``lists`` of templates, and their entries
    (``posts``). Of the tables of words: tokens of founding lines (``met``), those with any
    (``met_types``), classes with any (``class_types``); distinct values of holes in all classes (``held``),
    classes with any (``held_types``). ``due``: the template that is to be looked at again, or -1;
    ``merged``, ``forgotten`` (distinct lines), ``retired`` (labels): so far; ``kept``: values of holes that
    were left when some were last forgotten; ``evidence``: the sum of log predictives.
    """

    counters: Annotated[
        Counters,
        one(
            "records tokens text clusters alive slots values lines lists posts met met_types class_types "
            "held held_types due merged forgotten retired kept",
            "evidence",
            due=-1,
        ),
    ]
    text: Annotated[np.ndarray, of(np.uint8, "text")]  # the tokens' bytes
    tokens: Annotated[np.ndarray, rows(TOKEN, "tokens")]
    clusters: Annotated[np.ndarray, rows(CLUSTER, "clusters")]
    slots: Annotated[np.ndarray, rows(SLOT, "slots")]
    values: Annotated[np.ndarray, rows(VALUE, "values")]
    lines: Annotated[np.ndarray, rows(LINE, "lines")]
    shown: Annotated[np.ndarray, rows(SHOWN, CLASSES)]  # this and what is below follows from those above
    alike: Annotated[np.ndarray, ints(MOST + 1)]  # templates that live, by length
    lists: Annotated[np.ndarray, rows(LIST, "lists")]
    posts: Annotated[np.ndarray, rows(POST, "posts")]
    by_text: Table  # a token's hash: its number
    by_value: Table  # slot and token: the value; slot and class: how many values
    by_line: Table  # a folded line's hash: its number
    by_place: Table  # length, place and constant, or what families share: a list


TABLES = ("by_text", "by_value", "by_line", "by_place")
USED: dict[str, str] = {
    name: field.dims[0]
    for name, field in fields_of(State).items()
    if isinstance(field, Field) and field.dims and isinstance(field.dims[0], str)
}
"""Which counter says how much of an array is used."""


class Lines(NamedTuple):
    """Lines at hand, and what became of them.

    ``counters``: how many are done; why the kernel stopped; how many changes; of a state that is to grow,
    for how many tokens or bytes.
    """

    data: np.ndarray  # uint8: bytes of all lines
    masked: np.ndarray  # uint8: the same, with what is masked
    offsets: np.ndarray  # int64[n + 1] where each begins
    times: np.ndarray  # float64[n] when each happened
    answers: np.ndarray  # ANSWER[n]
    sizes: np.ndarray  # int64[n] tokens of each
    levels: np.ndarray  # uint8: bytes of what they were, as their levels
    places: np.ndarray  # int64[n, 2] where that of each begins and ends, or none at all
    changes: np.ndarray  # int64[m, 2] labels that the last line made one with an older one, row by row
    counters: Annotated[Counters, one("done status changes need")]


class Scratch(NamedTuple):
    """Room for one line and for one search."""

    folded: Annotated[np.ndarray, of(np.uint8, "longest")]  # bytes of the longest line, and one
    glued: Annotated[np.ndarray, of(np.uint8, MOST)]  # tokens without a blank before them
    marks: Annotated[np.ndarray, ints("marks", 2)]  # none where no place is closed
    spans: Annotated[np.ndarray, ints(MOST, 7)]  # of tokens, as ``closing`` has them
    room: Annotated[np.ndarray, of(np.uint8, "longest")]
    closing: Closing
    line: Annotated[np.ndarray, ints(MOST)]  # tokens
    own: Annotated[np.ndarray, reals(MOST)]  # probability of each in a new line
    law: Annotated[np.ndarray, reals(MOST)]  # share of a hole in that
    classed: Annotated[np.ndarray, reals(MOST)]  # probability of its class among values of holes
    held: Annotated[np.ndarray, reals(MOST)]  # and of the token given its class
    weighed: Annotated[np.ndarray, reals(3)]  # what ``choose`` found
    places: Annotated[np.ndarray, ints(MOST)]  # lists of a line's constants
    sizes: Annotated[np.ndarray, ints(MOST)]  # and how long they are
    near: Annotated[np.ndarray, ints("clusters")]  # templates
    ways: Annotated[np.ndarray, reals("clusters")]  # log probability of each way to found a template
    joined: Annotated[np.ndarray, reals("clusters")]  # log weight of each where it joins that
    sign: Annotated[np.ndarray, ints("clusters")]  # in which slots each differs
    group: Annotated[np.ndarray, ints("clusters")]  # templates of one trial
    best: Annotated[np.ndarray, ints("clusters")]  # those of the best
    rest: Annotated[np.ndarray, ints("clusters")]
    stamps: Annotated[np.ndarray, ints("clusters")]  # the last search that found it
    token: Annotated[np.ndarray, ints("values")]  # values of a slot
    lines_of: Annotated[np.ndarray, ints("values")]  # and how many distinct lines have each
    classes: Annotated[np.ndarray, ints(CLASSES)]  # zeros
    stamp: Annotated[np.ndarray, ints(1)]  # the last search of all


def new_state() -> State:
    """Nothing seen."""
    sizes = {**dict.fromkeys(USED.values(), 8), "text": 64}
    return made(State, sizes, **{name: new_table(8) for name in TABLES})


def with_room_for(state: State, tokens: int) -> State:
    """The state with room for lines of so many more tokens or bytes in all, whatever they are."""
    for name, size in {size: name for name, size in USED.items()}.items():
        held, need = len(getattr(state, size)), int(getattr(state.counters, name)) + 4 * tokens
        if need > held:
            state = grown(state, name, max(need, 2 * held))
    tables = {name: getattr(state, name) for name in TABLES}
    more: dict[str, Any] = {
        name: with_room(table, int(table.counters.taken) + 4 * tokens) for name, table in tables.items()
    }
    return state._replace(**more)


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
