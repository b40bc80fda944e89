"""Templates of unequal length that are one: they share a label.

They differ by the length of a list, one run of tokens with digits; or by one piece, such as an address where
others have the name of a host and a port.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.base import DIGIT, EQUALS, LETTERS, begins, is_fixed, is_value, lettered, wordy
from streamdp.lines.enclosed import is_message
from streamdp.lines.scan import closed
from streamdp.lines.search import next_living, place_key
from streamdp.lines.slots import is_constant, same
from streamdp.lines.state import Lines, State, look_up, put
from streamdp.lines.words import DELIMITER, KINDS

LOOKED_AT = 64
"""Templates of other lengths that one is compared with, of those that share two of its constants."""

FAMILY = 1 << 62
"""What sets the keys of families apart."""


@kernel
def label_of(state: State, cluster: int) -> int:
    """The label today of what was founded with this one."""
    while state.clusters[cluster].older != cluster:
        cluster = state.clusters[cluster].older
    return cluster


@kernel
def one_label(state: State, a: int, b: int, lines: Lines) -> None:
    """Two labels are one from now on, the older; the changes of ``lines`` name it, younger before older."""
    a, b = label_of(state, a), label_of(state, b)
    if a == b:
        return
    older, younger = min(a, b), max(a, b)
    state.clusters[younger].older = older
    at = lines.counters.changes
    lines.changes[at, 0] = younger
    lines.changes[at, 1] = older
    lines.counters.changes = at + 1


@kernel
def _covered(state: State, a: int, b: int) -> bool:
    """Whether two slots are one constant, or one of them is a hole, or both are likely to be one."""
    x, y = state.slots[a].founder, state.slots[b].founder
    if same(state, a, b) or is_fixed(state, x) or is_fixed(state, y):
        return same(state, a, b)
    return not (is_constant(state, a) and is_constant(state, b)) or (_varies(state, x) and _varies(state, y))


@kernel
def _is_name(state: State, a: int, b: int) -> bool:
    """Whether two slots are constants, and one is a name."""
    one = wordy(state, state.slots[a].founder) or wordy(state, state.slots[b].founder)
    return one and is_constant(state, a) and is_constant(state, b)


@kernel
def _varies(state: State, token: int) -> bool:
    """Whether a constant is likely to be a hole yet: no sign, and no word unless it is known as a value."""
    signs = state.tokens[token].shown & (LETTERS | DIGIT) == 0
    return not signs and (is_value(state, token) or not wordy(state, token))


@kernel
def _list_of(state: State, begin: int, stop: int, shown: int) -> int:
    """The one class of all tokens with a letter or digit of some slots, and ``shown`` where that is not 0.

    -1 where they have several, or none with a digit.
    """
    for slot in range(begin, stop):
        value, token = state.slots[slot].first, state.slots[slot].founder
        while True:
            if state.slots[slot].distinct > 1:
                token = state.values[value].token
                value = state.values[value].next
            of_token = state.tokens[token].shown
            if is_fixed(state, token):
                return -1
            if of_token & (LETTERS | DIGIT):
                if of_token & DIGIT == 0 or (shown != 0 and shown != of_token):
                    return -1
                shown = of_token
            if state.slots[slot].distinct == 1 or value < 0:
                break
    return shown


@kernel
def _piece(state: State, begin: int, stop: int) -> int:
    """What some slots are: 0 where a blank is between them or all are signs, else 1, or 2 without a word.

    A word is a constant with a letter.
    """
    words, others = 0, 0
    for slot in range(begin, stop):
        if slot > begin and state.slots[slot].glued == 0:
            return 0
        if is_fixed(state, state.slots[slot].founder):
            return 0
        if _lettered(state, slot):
            words += 1
        elif not is_constant(state, slot) or state.tokens[state.slots[slot].founder].shown & DIGIT:
            others += 1
    if words + others == 0:
        return 0
    return 2 if words == 0 else 1


@kernel
def _ends_alike(state: State, first: int, n: int, second: int, m: int, pieces: bool) -> tuple[int, int, int]:
    """How many slots at the head and the tail two templates share; how many words they have before any hole.

    From either end.

    With ``pieces`` a hole is shared with whatever it covers, and what blanks part is shared as a whole.
    """
    head, tail, equal, begun = 0, 0, 0, False
    while head < n:
        a, b = first + head, second + head
        if not _covered(state, a, b) or not (begun or same(state, a, b) or not _is_name(state, a, b)):
            break
        begun = begun or lettered(state, state.slots[a].founder)
        head += 1
    while (
        pieces
        and head > 0
        and (
            (head < n and state.slots[first + head].glued) or (head < m and state.slots[second + head].glued)
        )
    ):
        head -= 1
    while tail < n - head:
        a, b = first + n - 1 - tail, second + m - 1 - tail
        if not _covered(state, a, b):
            break
        tail += 1
    while (
        pieces and tail > 0 and (state.slots[first + n - tail].glued or state.slots[second + m - tail].glued)
    ):
        tail -= 1
    for i in range(head):
        if not same(state, first + i, second + i):
            break
        equal += 1 if _lettered(state, first + i) else 0
    for i in range(tail):
        if not same(state, first + n - 1 - i, second + m - 1 - i):
            break
        equal += 1 if _lettered(state, first + n - 1 - i) else 0
    return head, tail, equal


@kernel
def _related(state: State, a: int, b: int) -> bool:
    """Whether two templates of unequal length differ by one list, or by one piece.

    A list is of tokens of one class with digits. A piece has no blank inside; that of one has no word.
    """
    if state.clusters[a].length > state.clusters[b].length:
        a, b = b, a
    n, m = state.clusters[a].length, state.clusters[b].length
    if n == m:
        return False
    first, second = state.clusters[a].slot, state.clusters[b].slot
    head, tail, equal = _ends_alike(state, first, n, second, m, False)
    if equal >= 2:
        shown = _list_of(state, first + head, first + n - tail, 0)
        begins = shown > 0 or (shown == 0 and not _opens(state, second + head))
        if begins and _list_of(state, second + head, second + m - tail, shown) > 0:
            return True
        if _is_value_of(state, second, head, m - tail, m) and _is_value_of(state, first, head, n - tail, n):
            return True
    head, tail, equal = _ends_alike(state, first, n, second, m, True)
    one = _piece(state, first + head, first + n - tail)
    other = _piece(state, second + head, second + m - tail)
    return equal >= 2 and one > 0 and other > 0 and one + other > 2


@kernel
def _begins(state: State, slot: int, sign: int) -> bool:
    """Whether a slot begins with a sign."""
    return begins(state, state.slots[slot].founder, sign)


@kernel
def _is_value_of(state: State, slot: int, begin: int, stop: int, n: int) -> bool:
    """Whether slots of a template are words of a value: behind an equals sign, before the next name or sign.

    But of a message.
    """
    if begin > 1 and not _begins(state, slot + begin - 1, EQUALS):
        begin -= 1  # the first word may be shared, as a hole
    if begin < 2 or stop >= n or not _begins(state, slot + begin - 1, EQUALS):
        return False
    name = state.tokens[state.slots[slot + begin - 2].founder]
    if is_message(state.text, name.start, name.start + name.length):
        return False
    for i in range(begin, stop):
        if (i > begin and state.slots[slot + i].glued) or is_fixed(state, state.slots[slot + i].founder):
            return False
    sign = KINDS[state.text[state.tokens[state.slots[slot + stop].founder].start]] & DELIMITER != 0
    return sign or (
        stop + 1 < n and not state.slots[slot + stop].glued and _begins(state, slot + stop + 1, EQUALS)
    )


@kernel
def _opens(state: State, slot: int) -> bool:
    """Whether a slot is an opening bracket: what it encloses is no further part of a list."""
    sign = state.text[state.tokens[state.slots[slot].founder].start]
    return bool(sign == 40 or sign == 91)


@kernel
def _lettered(state: State, slot: int) -> bool:
    """Whether a slot is a constant with a letter."""
    return is_constant(state, slot) and lettered(state, state.slots[slot].founder)


@kernel
def _outer(state: State, cluster: int, backwards: bool, founding: bool) -> tuple[int, int]:
    """The first two constants with a letter before the first hole, from either end; -1 for none."""
    row, first, second = state.clusters[cluster], -1, -1
    for i in range(row.length):
        slot = state.slots[row.slot + (row.length - 1 - i if backwards else i)]
        if (slot.distinct > 1 and not founding) or second >= 0:
            break
        if lettered(state, slot.founder):
            if first < 0:
                first = slot.founder
            else:
                second = slot.founder
    return first, second


@kernel
def _family_keys(state: State, cluster: int, founding: bool) -> tuple[int, int, int]:
    """Keys that templates which are related share at least one of, or -1; ``founding``: of the first line.

    Of the constants with a letter before the first hole the first two, of those behind the last hole the last
    two, and the first and the last.
    """
    a, b = _outer(state, cluster, False, founding)
    z, y = _outer(state, cluster, True, founding)
    return _pair_key(0, a, b), _pair_key(1, a, z), _pair_key(2, y, z)


@kernel
def _pair_key(which: int, x: int, y: int) -> int:
    if x < 0 or y < 0:
        return -1
    code = (np.uint64(x) * np.uint64(3) + np.uint64(which)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(y)
    return int(FAMILY | (closed(code) >> 1))


@kernel
def enter(state: State, cluster: int) -> None:
    """Let a template be found by the constants of its first line, by lines and by those it is related to."""
    row = state.clusters[cluster]
    for i in range(row.length):
        token = state.slots[row.slot + i].founder
        if lettered(state, token):
            _post(state, place_key(row.length, i, token), cluster)
    for key in _family_keys(state, cluster, True):
        if key >= 0:
            _post(state, key, cluster)


@kernel
def _post(state: State, key: int, cluster: int) -> None:
    """Put a template in a list."""
    place = look_up(state.by_place, key)
    if place < 0:
        place = state.counters.lists
        state.counters.lists += 1
        put(state.by_place, key, place)
        state.lists[place].first = -1
        state.lists[place].count = 0
    entry = state.counters.posts
    state.counters.posts += 1
    state.posts[entry].cluster = cluster
    state.posts[entry].next = state.lists[place].first
    state.lists[place].first = entry
    state.lists[place].count += 1


@kernel
def relate(state: State, cluster: int, lines: Lines) -> None:
    """Give a template and those it is related to one label."""
    for key in _family_keys(state, cluster, False):
        place = look_up(state.by_place, key) if key >= 0 else -1
        if place < 0:
            continue
        entry, looked = next_living(state, place, -1), 0
        while entry >= 0 and looked < LOOKED_AT:
            other = state.posts[entry].cluster
            if other != cluster:
                looked += 1
                if _related(state, cluster, other):
                    one_label(state, cluster, other, lines)
            entry = next_living(state, place, entry)
