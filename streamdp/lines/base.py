"""What tokens are like: those of founding lines, and those of holes by class."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.closed_places import (
    LEVEL,
    METHOD,
    MODAL,
    NOT,
    SHUT,
    STATE,
    TOWARD,
    TRIAL,
    VERB,
    word_kinds,
)
from streamdp.lines.enclosed import is_message
from streamdp.lines.exceptions import ENDS
from streamdp.lines.masks import FILLED, MASKED
from streamdp.lines.scan import code_of
from streamdp.lines.state import CLASSES, IDENTIFIER, NUMBER, WORD, Scratch, State, look_up, put

STRENGTH, DISCOUNT = 1.0, 0.6
"""Of the values of a hole."""


class Bounds(NamedTuple):
    """What bounds memory.

    Distinct ``lines``, and values of holes, and ``templates`` beyond which those that came least lately, or
    are rarest, go. At least 2.
    """

    lines: int = 500_000
    templates: int = 200_000


USUAL = Bounds()


class Terms(NamedTuple):
    """Weights and strengths.

    ``copies`` is the share of new templates that are copies of one that is there, ``mutation`` that of their
    slots which are not copied, ``elsewhere`` that of values of holes which are known from other places; the
    ``rho`` say how readily each kind of token is a hole, and a word that is a value (``rho_value``);
    ``placed`` is the share of places of values, paths and identifiers with digits that are holes. Of
    ``masks`` there are so many names.
    """

    concentration: float = 1.0
    discount: float = 0.3
    copies: float = 0.5
    mutation: float = 0.05
    line_strength: float = 0.5
    line_discount: float = 0.5
    class_strength: float = 0.3
    base_strength: float = 1.0
    base_discount: float = 0.5
    elsewhere: float = 0.3
    rho: float = 0.1
    rho_word: float = 1e-11
    placed: float = 0.9
    masks: int = 0


CATEGORIES = (
    b"abcdefghijklmnopqrstuvwxyz",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    b"0123456789",
    b".",
    b"/\\",
    b":",
    b"-_",
)
"""Categories of characters; other ASCII is one more, and what is not ASCII the last. What was masked counts
as a digit."""

SIZES = (26, 26, 1, 1, 2, 1, 2, 24, 128)
"""How many characters each category has once digits are folded."""

LETTERS, DIGIT, CAPITALS = 0b100000011, 0b100, 0b10
_D, _E, _G, _I, _N, _S = b"degins"
QUOTE, APOSTROPHE, SLASH, COLON, EQUALS, ROUND, SQUARE, DOT = b"\"'/:=([."
AT = 64
NAMED = np.array([list(end.encode()) for end in ENDS])
"""What stands between an exception and its frame, and how the exception's name ends."""

LONGER = 7 / 8
"""Probability that a spelling goes on."""

SUFFIX = 3
"""Letters at the end of names of files and hosts at most."""

LEAST = -600.0
"""The least log probability of a spelling: what is less would vanish."""

NEXT_LENGTH = 15 / 16
"""Probability that a line goes on."""

SLOT_SHIFT = 32
NO_TOKEN = (1 << 31) - 1
"""In the place of a token, less the class: a class among keys."""


def _categories() -> np.ndarray:
    found = np.array([1 << (7 if byte < 128 else 8) for byte in range(256)])
    for number, characters in enumerate(CATEGORIES):
        for byte in characters:
            found[byte] = 1 << number
    found[MASKED:FILLED] = DIGIT
    return found


def _kind(shown: int) -> int:
    if shown & DIGIT and not shown & LETTERS:
        return NUMBER
    return IDENTIFIER if shown & LETTERS and shown & ~LETTERS else WORD


def _alphabets() -> tuple[np.ndarray, np.ndarray]:
    """Of each class: logs of how many characters it has, of how likely a spelling shows every category."""
    shown = np.arange(CLASSES)
    has = shown[:, None] >> np.arange(9) & 1
    size, count = has @ np.array(SIZES, float), has.sum(axis=1)
    part = size / np.maximum(size[:, None], 1.0)
    inside = shown & ~shown[:, None] == 0  # whether each class (column) is a subset of each (row)
    sign = np.where((count[:, None] - count) % 2, -1.0, 1.0)
    total = (inside * sign * part * (1 - LONGER) / (1 - np.minimum(part, 1.0) * LONGER)).sum(axis=1)
    return np.log(np.maximum(size, 1.0)), np.log(np.where(shown > 0, total, 1.0))


CATEGORY = _categories()
"""The category of each byte, as a bit."""

PARTED = np.isin(np.arange(256), list(b"./\\@"))
"""What parts of paths, names of hosts and addresses have between them."""

KIND_OF = np.array([_kind(shown) for shown in range(CLASSES)])
"""The kind of each class: numbers, identifiers (letters with digits or punctuation), or words."""

ALPHABET, SHOWING = _alphabets()


@kernel
def smoothed(seen: int, types: int, total: int, base: float, terms: Terms) -> float:
    """A Pitman-Yor process with one table a type: what is seen is discounted, and backs off."""
    d, b = terms.base_discount, terms.base_strength
    return (max(seen - d, 0.0) + (b + d * types) * base) / (total + b)


@kernel
def lettered(state: State, token: int) -> bool:
    """Whether a token has a letter."""
    return bool((state.tokens[token].shown & LETTERS) != 0)


@kernel
def wordy(state: State, token: int) -> bool:
    """Whether a token is a word: it has a letter and no digit, and is no path or address, file or host.

    Names of files and hosts have dots, and the last of their parts is short.
    """
    row = state.tokens[token]
    if row.shown & LETTERS == 0 or row.shown & DIGIT != 0:
        return False
    dots, since = False, 0
    for i in range(row.start, row.start + row.length):
        since += 1
        if PARTED[state.text[i]]:
            if state.text[i] != DOT:
                return False
            dots, since = True, 0
    return not dots or since == 0 or since > SUFFIX


@kernel
def _kinds(state: State, line: np.ndarray, i: int) -> int:
    """Which classes of words token i of a line is of: none where there is none, or a hole (-1)."""
    if i < 0 or line[i] < 0:
        return 0
    row = state.tokens[line[i]]
    return int(word_kinds(state.text, row.start, row.start + row.length))


@kernel
def _follows_lead(state: State, line: np.ndarray, i: int) -> bool:
    """Whether token i of a line is behind words that a verb follows."""
    before = _kinds(state, line, i - 1)
    if before & (NOT | TOWARD) == 0:
        return before & MODAL != 0
    ahead = _kinds(state, line, i - 2)
    if before & TOWARD:
        return ahead & TRIAL != 0
    return ahead & MODAL != 0 or (i > 1 and begins(state, line[i - 2], APOSTROPHE))


@kernel
def names_act(state: State, line: np.ndarray, i: int) -> bool:
    """Whether what is done stands where token i of a line (-1: a hole) does.

    It is the first with a letter, or of a message in quotes; or a verb behind words that one follows.
    """
    if (
        i > 2
        and begins(state, line[i - 1], QUOTE)
        and begins(state, line[i - 2], EQUALS)
        and line[i - 3] >= 0
    ):
        name = state.tokens[line[i - 3]]
        if is_message(state.text, name.start, name.start + name.length):
            return True
    k = 0
    while k < i and line[k] >= 0 and not lettered(state, line[k]):
        k += 1
    return k == i or _follows_lead(state, line, i)


@kernel
def is_verb(state: State, token: int) -> bool:
    """Whether a token is a verb of English, by its ending or as a word, or a method, level or state."""
    row = state.tokens[token]
    end = row.start + row.length
    if row.length > 4 and row.shown & ~LETTERS == 0:
        a, b, c = state.text[end - 3], state.text[end - 2], state.text[end - 1]
        if (b == _E and c == _D) or (a == _I and b == _N and c == _G) or (b != _S and c == _S):
            return True
    return word_kinds(state.text, row.start, end) & (METHOD | LEVEL | STATE | VERB) != 0


@kernel
def is_shut(state: State, token: int) -> bool:
    """Whether a token is of a closed place: never a value of a hole."""
    return bool(state.text[state.tokens[token].start] == SHUT)


@kernel
def is_fixed(state: State, token: int) -> bool:
    """Whether a token is never a value of a hole: it is of a closed place, or an exception with its frame."""
    row = state.tokens[token]
    if is_shut(state, token):
        return True
    for at in range(row.start + NAMED.shape[1], row.start + row.length):
        if state.text[at] == AT:
            for name in range(NAMED.shape[0]):
                k = 0
                while k < NAMED.shape[1] and state.text[at - 1 - k] == NAMED[name, NAMED.shape[1] - 1 - k]:
                    k += 1
                if k == NAMED.shape[1]:
                    return True
    return False


@kernel
def is_value(state: State, token: int) -> bool:
    """Whether a token is a value of some hole."""
    return bool(state.tokens[token].held > 0)


@kernel
def begins(state: State, token: int, sign: int) -> bool:
    """Whether a token (less than 0: none) begins with a sign."""
    return token >= 0 and state.text[state.tokens[token].start] == sign


@kernel
def valued(state: State, line: np.ndarray, i: int, n: int) -> bool:
    """Whether token i of a line of ``n`` is a value for where it stands.

    Behind ``=``; in brackets by itself; in quotes by itself, but as a key or the first of a line; behind a
    quotation mark, a word in capitals before a path, as a method of HTTP.
    """
    before, behind, row = (
        line[i - 1] if i > 0 else -1,
        line[i + 1] if i + 1 < n else -1,
        state.tokens[line[i]],
    )
    if begins(state, before, EQUALS):
        return True
    if (begins(state, before, ROUND) and begins(state, behind, ROUND + 1)) or (
        begins(state, before, SQUARE) and begins(state, behind, SQUARE + 2)
    ):
        return True
    if not begins(state, before, QUOTE) and not begins(state, before, APOSTROPHE):
        return False
    if (
        behind == before
        and i > 1
        and line[i - 2] >= 0
        and not (i + 2 < n and begins(state, line[i + 2], COLON))
    ):
        return True
    return bool(row.shown == CAPITALS and row.length > 2 and begins(state, behind, SLASH))


@kernel
def token_of(state: State, folded: np.ndarray, start: int, stop: int, learn: bool, terms: Terms) -> int:
    """The number of a token; one that is not known is given the next, for good where ``learn``."""
    key = code_of(folded, start, stop)
    found = look_up(state.by_text, key)
    if found >= 0:
        return found
    token, at, n = state.counters.tokens, state.counters.text, stop - start
    row, shown, digits = state.tokens[token], 0, 0
    for i in range(n):
        state.text[at + i] = folded[start + i]
        shown |= CATEGORY[folded[start + i]]
        digits += 1 if CATEGORY[folded[start + i]] == DIGIT else 0
    state.counters.tokens += 1  # a line that teaches nothing takes it back
    row.code = key
    row.start = at
    row.length = n
    row.shown = shown
    row.met = 0
    row.held = 0
    log = (n - 1) * math.log(LONGER) + math.log(1 - LONGER) - n * ALPHABET[shown] - SHOWING[shown]
    each = 10 if folded[start] == SHUT else 1 + terms.masks  # a digit is 0 else, or what a mask has matched
    log -= digits * math.log(each)
    row.spelling = math.exp(max(log, LEAST))
    state.counters.text += n
    if learn:
        put(state.by_text, key, token)
    return int(token)


@kernel
def constant(state: State, token: int, terms: Terms) -> float:
    """G_c: probability of a constant."""
    row, counters = state.tokens[token], state.counters
    spelled = row.spelling * smoothed(
        state.shown[row.shown].met_types, counters.class_types, counters.met_types, 1 / (CLASSES - 1), terms
    )
    return smoothed(row.met, counters.met_types, counters.met, spelled, terms)


@kernel
def hole_class(state: State, shown: int, terms: Terms) -> float:
    """R: probability that a value of a hole is of a class."""
    counters = state.counters
    held = state.shown[shown].held_types
    return smoothed(held, counters.held_types, counters.held, 1 / (CLASSES - 1), terms)


@kernel
def value_of(state: State, token: int, terms: Terms) -> float:
    """G_v: probability of a value of a hole given its class.

    Some are tokens that stand elsewhere as well: those that founding lines had twice or more.
    """
    row = state.tokens[token]
    shown = state.shown[row.shown]
    known = smoothed(row.met - 1, shown.again_types, shown.again, row.spelling, terms)
    base = (1.0 - terms.elsewhere) * row.spelling + terms.elsewhere * known
    return smoothed(row.held, shown.held_types, shown.held, base, terms)


@kernel
def length(n: int) -> float:
    """log probability of a length."""
    return (n - 1) * math.log(NEXT_LENGTH) + math.log(1.0 - NEXT_LENGTH)


@kernel
def own_terms(state: State, scratch: Scratch, i: int, n: int, terms: Terms) -> tuple[float, float]:
    """Probability that token i of a new line is a constant and this; that it is a hole's value."""
    token, assigned = scratch.line[i], valued(state, scratch.line, i, n)
    kind, held = KIND_OF[state.tokens[token].shown], scratch.held[i] * scratch.classed[i]
    own, varies = (1.0 - terms.rho) * constant(state, token, terms), terms.rho * held
    if kind == WORD and not assigned and not is_value(state, token):
        own, varies = own + (terms.rho - terms.rho_word) * held, terms.rho_word * held
    if kind != NUMBER and (assigned or (kind == IDENTIFIER and not wordy(state, token))):
        varies += terms.placed * own  # whatever it is, its place varies
        own *= 1.0 - terms.placed
    return own, varies


@kernel
def found_token(state: State, token: int) -> None:
    """Count a token of a founding line."""
    row = state.tokens[token]
    _meet(state, row.shown, row.met, 1)
    row.met += 1


@kernel
def _meet(state: State, shown: int, before: int, more: int) -> None:
    """Count a token of a class, which founding lines had so often ``before``, so often ``more``."""
    of_class, counters = state.shown[shown], state.counters
    counters.met += more
    of_class.again += more if before > 0 else more - 1
    of_class.again_types += 1 if before < 2 and before + more > 1 else 0
    if before == 0:
        counters.met_types += 1
        counters.class_types += 1 if of_class.met_types == 0 else 0
        of_class.met_types += 1


@kernel
def _know(state: State, shown: int) -> None:
    """Count a token of a class as a value of holes."""
    of_class = state.shown[shown]
    state.counters.held_types += 1 if of_class.held_types == 0 else 0
    of_class.held_types += 1
    state.counters.held += 1


@kernel
def recount(state: State, token: int) -> None:
    """Count a token again, among those of founding lines and of holes, as often as it came."""
    row = state.tokens[token]
    if row.met > 0:
        _meet(state, row.shown, 0, row.met)
    if row.held > 0:
        _know(state, row.shown)
        state.shown[row.shown].held += row.held


@kernel
def hold(state: State, token: int) -> None:
    """Count a value that is new to a hole."""
    row = state.tokens[token]
    if row.held == 0:
        _know(state, row.shown)
    row.held += 1
    state.shown[row.shown].held += 1


@kernel
def let_go(state: State, token: int) -> None:
    """Count a value once less: a hole that has it became part of one that has it too."""
    row = state.tokens[token]
    row.held -= 1
    state.shown[row.shown].held -= 1
