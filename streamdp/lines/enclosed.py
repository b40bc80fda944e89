"""Values of several words, each of which is one token: texts in quotes, lists, objects, queries of paths."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.lines.masks import MASKED
from streamdp.lines.words import ALNUM, DELIMITER, DIGIT, KINDS, LETTER, SPACE, run_end

FAR = 4096
"""Bytes of a value at most."""

BETWEEN = 0x1F
"""Written where blanks and signs part the words of a value."""

MESSAGES = (b"msg", b"message", b"event")
"""Names whose text is the line's message, and no value of it."""

_PARTS = SPACE | DELIMITER
_QUOTE, _APOSTROPHE, _LIST, _OBJECT, _QUERY, _COMMA, _COLON, _EQUALS, _ESCAPE, _SLASH = b"\"'[{?,:=\\/"
_NO_QUERY = np.isin(np.arange(256), list(b" \t\n\v\f\r\"')]<>"))
_NAMES = np.array([list(name.rjust(8)) for name in MESSAGES], np.uint8)


@kernel
def is_message(data: np.ndarray, start: int, end: int) -> bool:
    """Whether what follows is a message: blanks and signs aside, a name of messages ends at a place."""
    while end > start and KINDS[data[end - 1]] & _PARTS:
        end -= 1
    for name in range(_NAMES.shape[0]):
        at, k = end, 7
        while at > start and _NAMES[name, k] != 32 and data[at - 1] | 32 == _NAMES[name, k]:
            at -= 1
            k -= 1
        if _NAMES[name, k] == 32 and (at == start or not KINDS[data[at - 1]] & ALNUM):
            return True
    return False


@kernel
def _text_end(data: np.ndarray, start: int, i: int, stop: int) -> int:
    """Where the text behind a quotation mark ends, if it has several words and is no message or request."""
    at, blank = i + 1, False
    while at < stop and (data[at] != data[i] or (at + 1 < stop and KINDS[data[at + 1]] & ALNUM)):
        if KINDS[data[at]] & SPACE and not blank:
            capital = KINDS[data[at - 1]] & LETTER and data[at - 1] & 32 == 0
            if capital and at + 1 < stop and data[at + 1] == _SLASH:
                return -1  # a method and a path
            blank = True
        at += 2 if data[at] == _ESCAPE else 1
    return -1 if at >= stop or not blank or is_message(data, start, i) else at


@kernel
def _list_end(data: np.ndarray, i: int, stop: int) -> int:
    """Where the list or object behind a bracket ends: with a comma, a quotation mark, a colon, or empty."""
    at, depth = i + 1, 1
    several = at < stop and (data[at] == _QUOTE or data[at] == _APOSTROPHE)
    while at < stop:
        depth += (data[at] | 32 == 123) - (data[at] | 32 == 125)  # [ or {, ] or }
        if depth == 0:
            break
        several = several or data[at] == _COMMA or (data[at] == _COLON and data[i] == _OBJECT)
        at += 1
    if at >= stop or (at > i + 1 and not several) or (at + 1 < stop and KINDS[data[at + 1]] & ALNUM):
        return -1
    return at + 1 if data[i] == _OBJECT else at


@kernel
def _query_end(data: np.ndarray, i: int, stop: int) -> int:
    """Where the query behind a question mark ends, if it has an equals sign."""
    at, equals = i + 1, False
    while at < stop and not _NO_QUERY[data[at]]:
        equals = equals or data[at] == _EQUALS
        at += 1
    while KINDS[data[at - 1]] & DELIMITER or data[at - 1] == 46:
        at -= 1
    return at if equals and KINDS[data[i + 1]] & ALNUM else -1


@kernel
def next_value(data: np.ndarray, start: int, i: int, stop: int) -> tuple[int, int]:
    """Where the value that the sign at a place opens begins and ends, blanks aside; -1 twice for none.

    A text or a list that is the first of a line is none, and what a mask has matched is in none.
    """
    end, stop = -1, min(stop, i + FAR)
    if data[i] == _QUERY:
        end = _query_end(data, i, stop)
    elif i > start and KINDS[data[i - 1]] & _PARTS:
        if data[i] == _QUOTE or data[i] == _APOSTROPHE:
            end = _text_end(data, start, i, stop)
        else:
            end = _list_end(data, i, stop)
    for k in range(i, end):
        if data[k] >= MASKED:
            end = -1
    if end < 0:
        return -1, -1
    begin = i if data[i] == _OBJECT else run_end(data, i + 1, end, SPACE)
    while end > begin and KINDS[data[end - 1]] & SPACE:
        end -= 1
    return begin, end


@kernel
def write_words(data: np.ndarray, begin: int, end: int, folded: np.ndarray, n: int) -> int:
    """Write the words of a text or a list behind the first ``n`` bytes; where they end.

    Nothing is written of what has a digit, of an object or a query, or of nothing.
    """
    at = n
    for k in range(begin, end):
        if KINDS[data[k]] & DIGIT or data[begin] == _OBJECT or data[begin - 1] == _QUERY:
            return n
        if not KINDS[data[k]] & _PARTS:
            if at > n and KINDS[data[k - 1]] & _PARTS:
                folded[at] = BETWEEN
                at += 1
            folded[at] = data[k]
            at += 1
    return at
