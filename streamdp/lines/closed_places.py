"""Places that are closed: what stands there tells templates apart, whatever else is folded or a hole.

A token of a closed place is written as it is, behind a byte that is in no text, and is never a value of a
hole. A place is closed by what it is (a method of HTTP, a level, a status, up or down), or by a rule that
somebody has made of a template by hand: of lines that it has, as it read then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import new_rows, row_type
from streamdp.lines.scan import code_of, token_end
from streamdp.lines.words import DELIMITER, DIGIT, KINDS, SPACE

SHUT, ESCAPED = 0xC1, 0xC0
"""Bytes of no text: before a token that is closed; before a byte of it that would end it, upper bit set."""

STATUS, METHOD, LEVEL, STATE, VERB, MODAL, TRIAL, NOT, TOWARD = 1, 2, 4, 8, 16, 32, 64, 128, 256
CLASSES = {"status": STATUS, "method": METHOD, "level": LEVEL, "state": STATE}
"""What may be closed everywhere, by name."""

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE")
LEVELS = (
    *("TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "SEVERE", "CRIT", "CRITICAL"),
    *("ALERT", "EMERG", "FATAL", "PANIC"),
)
STATES = ("up", "down", "online", "offline", "enabled", "disabled", "active", "inactive")
VERBS = (
    *("began", "broke", "brought", "built", "came", "chose", "cut", "fell", "forgot", "found", "gave", "got"),
    *("grew", "held", "hung", "kept", "knew", "left", "lost", "made", "meant", "met", "paid", "put", "ran"),
    *(
        "read",
        "rose",
        "said",
        "sank",
        "saw",
        "sent",
        "set",
        "shut",
        "slept",
        "sold",
        "spent",
        "spoke",
        "split",
    ),
    *("stood", "stuck", "taken", "threw", "told", "took", "understood", "went", "woke", "won", "wrote"),
)
"""What was done, by verbs of English that do not end in ``ed``."""
MODALS = (
    *("can", "cannot", "could", "will", "would", "shall", "should", "must", "may", "might", "do", "does"),
    *("did", "couldn", "won", "wouldn", "shouldn", "mustn", "don", "doesn", "didn"),
)
"""What a verb follows, perhaps behind ``not`` or ``n't``."""
TRIALS = (
    *("able", "unable", "fail", "fails", "failed", "failing", "failure", "try", "tries", "tried", "trying"),
    *("attempt", "attempts", "attempted", "attempting", "need", "needs", "needed", "want", "wants", "wanted"),
    *("refused", "refuses", "refusing", "going", "ready"),
)
"""What ``to`` and a verb follow."""

_WORDS: dict[str, int] = {}
for _kind, _words in (
    (METHOD, METHODS),
    (LEVEL, (*LEVELS, *map(str.lower, LEVELS))),
    (STATE, (*STATES, *map(str.upper, STATES), *map(str.title, STATES))),
    (VERB, VERBS),
    (MODAL, (*MODALS, *map(str.title, MODALS))),
    (TRIAL, (*TRIALS, *map(str.title, TRIALS))),
    (NOT, ("not", "t")),
    (TOWARD, ("to",)),
):
    for _word in _words:
        _WORDS[_word] = _WORDS.get(_word, 0) | _kind
_LONGEST = max(map(len, _WORDS))
_SPELLED = np.zeros((len(_WORDS), _LONGEST), np.uint8)
for _row, _word in zip(_SPELLED, _WORDS, strict=True):
    _row[: len(_word)] = list(_word.encode())
_LENGTHS = np.array([len(word) for word in _WORDS])
_KINDS = np.array([*_WORDS.values()])
_BEHIND = np.frombuffer(b"statuscode", np.uint8)

RULE = row_type("length place begin value chars")
"""Of a rule by hand: tokens; the place that is closed; the first of its shapes; where in ``text`` its value
begins, and how long it is, below 0 for any."""


class Rule(NamedTuple):
    """A place that somebody has closed: of a template with these tokens, None for a hole; for one value."""

    shape: tuple[bytes | None, ...]
    place: int
    value: bytes | None


class Closing(NamedTuple):
    """What is closed."""

    classes: np.ndarray  # int64[1] a bit for each
    rules: np.ndarray  # RULE[...] in the order in which they were made
    shapes: np.ndarray  # int64[..., 2] where in ``text`` each token begins, how long it is; below 0: a hole
    text: np.ndarray  # uint8[...]

    @property
    def any(self) -> bool:
        """Whether anything is."""
        return bool(self.classes[0] or len(self.rules))


def closing_of(classes: Sequence[str], rules: Sequence[Rule]) -> Closing:
    """What classes of tokens, by name, and rules close."""
    made, shapes, text = new_rows(len(rules), RULE), list[tuple[int, int]](), bytearray()
    for row, rule in zip(made, rules, strict=True):
        value = rule.value or b""
        chars = -1 if rule.value is None else len(value)
        row["length"], row["place"], row["begin"] = len(rule.shape), rule.place, len(shapes)
        row["value"], row["chars"] = len(text), chars
        text += value
        for token in rule.shape:
            shapes.append((len(text), -1 if token is None else len(token)))
            text += token or b""
    return Closing(
        np.array([sum(CLASSES[name] for name in classes)]),
        made,
        np.array(shapes, np.int64).reshape(-1, 2),
        np.frombuffer(bytes(text) or b" ", np.uint8).copy(),
    )


FROM, TO, BEGIN, END, FIRST, LAST, HELD = range(7)
"""Of a token: where it is in the folded line, and in the line; the folded parts of it there; whether it is
closed."""


@kernel
def find_spans(
    data: np.ndarray, stop: int, folded: np.ndarray, size: int, marks: np.ndarray, spans: np.ndarray
) -> int:
    """The tokens of a folded line whose marks there are; how many."""
    n, at, m = 0, 0, 0
    while at < size and n < spans.shape[0]:
        if folded[at] == 32:
            at += 1
            continue
        end, known = token_end(folded, at, size), m < marks.shape[0] and marks[m, 0] >= 0
        begin = marks[m, 0] if known else stop
        first, last = -1, -1
        m += 1
        while m < marks.shape[0] and marks[m, 0] >= 0 and marks[m, 1] >= 0:
            first = marks[m, 0] if first < 0 else first
            last = marks[m, 1]
            m += 1
        after = marks[m, 0] if m < marks.shape[0] and marks[m, 0] >= 0 else stop
        while after > begin and KINDS[data[after - 1]] & SPACE:
            after -= 1
        spans[n, FROM], spans[n, TO], spans[n, BEGIN], spans[n, END] = at, end, begin, after
        spans[n, FIRST], spans[n, LAST], spans[n, HELD] = first, last, 0
        at = end
        n += 1
    return n


@kernel
def word_kinds(data: np.ndarray, begin: int, end: int) -> int:
    """Which classes have the word between two places."""
    if end - begin > _LONGEST:
        return 0
    for word in range(_LENGTHS.shape[0]):
        if _LENGTHS[word] == end - begin:
            k = 0
            while k < end - begin and data[begin + k] == _SPELLED[word, k]:
                k += 1
            if k == end - begin:
                return int(_KINDS[word])
    return 0


@kernel
def _ends_with(data: np.ndarray, begin: int, end: int, first: int, last: int) -> bool:
    """Whether what is between two places ends, in either case, with a part of _BEHIND."""
    if end - begin < last - first:
        return False
    k = 0
    while k < last - first and data[end - 1 - k] | 32 == _BEHIND[last - 1 - k]:
        k += 1
    return k == last - first


@kernel
def _is_status(data: np.ndarray, spans: np.ndarray, i: int) -> bool:
    """Whether token i is behind ``status``, ``code`` or ``HTTP/...``, signs aside."""
    j = i - 1
    while j >= 0 and spans[j, END] - spans[j, BEGIN] == 1 and KINDS[data[spans[j, BEGIN]]] & DELIMITER:
        j -= 1
    if j < 0:
        return False
    begin, end = spans[j, BEGIN], spans[j, END]
    if _ends_with(data, begin, end, 0, 6) or _ends_with(data, begin, end, 6, 10):
        return True
    return bool(
        end - begin > 5
        and data[begin] == 72
        and data[begin + 1] == 84
        and data[begin + 2] == 84
        and data[begin + 3] == 80
        and data[begin + 4] == 47
    )


@kernel
def _is_path(data: np.ndarray, begin: int, end: int) -> bool:
    """Whether a token begins as a path or an address of the web does: with a slash, or http."""
    if data[begin] == 47:
        return True
    return bool(end - begin > 3 and data[begin] == 104 and data[begin + 1] == 116 and data[begin + 3] == 112)


@kernel
def _is_three(data: np.ndarray, begin: int, end: int) -> bool:
    """Whether a token is a number from 100 to 599."""
    if end - begin != 3 or not 49 <= data[begin] <= 53:
        return False
    return bool(KINDS[data[begin + 1]] & KINDS[data[begin + 2]] & DIGIT)


@kernel
def _close_classes(classes: int, data: np.ndarray, spans: np.ndarray, n: int) -> bool:
    """Close the tokens of a line that are of some classes, with these as bits; whether any is."""
    some, asked = False, 0  # asked: 1 behind a method, 2 behind a path, 3 behind a status
    for i in range(n):
        begin, end = spans[i, BEGIN], spans[i, END]
        if begin >= end:
            continue
        kinds = word_kinds(data, begin, end)
        if asked == 0 and kinds & METHOD:
            asked = 1
        elif asked == 1 and _is_path(data, begin, end):
            asked = 2
        if _is_three(data, begin, end) and (asked == 2 or _is_status(data, spans, i)):
            kinds |= STATUS
            asked = 3 if asked == 2 else asked
        if kinds & classes:
            spans[i, HELD] = kinds & classes
            some = True
    return some


@entry
def _find_classes(data: np.ndarray, spans: np.ndarray) -> None:
    _close_classes(STATUS | METHOD | LEVEL | STATE, data, spans, spans.shape[0])


def classes_of(tokens: Sequence[str]) -> list[int]:
    """Of which classes each token of a line is, as bits; each has the blanks before it."""
    parts = [token.encode() for token in tokens]
    ends = np.cumsum([len(part) for part in parts])
    spans = np.zeros((len(parts), 1 + HELD), np.int64)
    spans[:, END] = ends
    spans[:, BEGIN] = ends - [len(part.lstrip()) for part in parts]
    _find_classes(np.frombuffer(b"".join(parts) or b" ", np.uint8), spans)
    return [int(bits) for bits in spans[:, HELD]]


@kernel
def _is_raw(data: np.ndarray, begin: int, end: int, text: np.ndarray, at: int, length: int) -> bool:
    """Whether what is between two places is a text."""
    if end - begin != length:
        return False
    k = 0
    while k < length and data[begin + k] == text[at + k]:
        k += 1
    return k == length


@kernel
def _follows(
    closing: Closing, rule: int, data: np.ndarray, folded: np.ndarray, spans: np.ndarray, n: int
) -> bool:
    """Whether a line is one whose place a rule closes: its tokens are, folded, those of the rule."""
    row, text = closing.rules[rule], closing.text
    if row.length != n:
        return False
    for i in range(n):
        at, length = closing.shapes[row.begin + i, 0], closing.shapes[row.begin + i, 1]
        if length < 0:
            if spans[i, HELD]:
                return False
        elif not _is_raw(folded, spans[i, FROM], spans[i, TO], text, at, length):
            return False
    begin, end = spans[row.place, BEGIN], spans[row.place, END]
    first, last = spans[row.place, FIRST], spans[row.place, LAST]
    if begin >= end:
        return False
    return bool(
        row.chars < 0
        or _is_raw(data, begin, end, text, row.value, row.chars)
        or (first >= 0 and _is_raw(data, first, last, text, row.value, row.chars))
    )


@kernel
def _write(data: np.ndarray, folded: np.ndarray, spans: np.ndarray, n: int, room: np.ndarray) -> int:
    """Write a folded line again, with the tokens that are closed as they are; its length."""
    size, before = 0, True
    for i in range(n):
        sign = spans[i, HELD] == 0 and KINDS[folded[spans[i, FROM]]] & DELIMITER != 0
        if not sign and not before:
            room[size] = 32
            size += 1
        before, start, written = sign, size, spans[i, HELD] == 0 or folded[spans[i, FROM]] == SHUT
        if written:
            for k in range(spans[i, FROM], spans[i, TO]):
                room[size] = folded[k]
                size += 1
        else:
            room[size] = SHUT
            size += 1
            for k in range(spans[i, BEGIN], spans[i, END]):
                byte = data[k]
                if KINDS[byte] & (SPACE | DELIMITER):
                    room[size] = ESCAPED
                    size += 1
                    byte |= np.uint8(128)
                room[size] = byte
                size += 1
        spans[i, FROM], spans[i, TO] = start, size
    for k in range(size):
        folded[k] = room[k]
    return size


@kernel
def close_places(
    closing: Closing,
    data: np.ndarray,
    stop: int,
    folded: np.ndarray,
    size: int,
    marks: np.ndarray,
    spans: np.ndarray,
    room: np.ndarray,
) -> tuple[int, int]:
    """Write the tokens that are closed as they are into a folded line.

    Its length, and its hash, or -1 where it is as it was.
    """
    n, some = find_spans(data, stop, folded, size, marks, spans), False
    if closing.classes[0] != 0 and _close_classes(closing.classes[0], data, spans, n):
        size, some = _write(data, folded, spans, n, room), True
    for rule in range(closing.rules.shape[0]):
        if _follows(closing, rule, data, folded, spans, n):
            spans[closing.rules[rule].place, HELD] = 1
            size, some = _write(data, folded, spans, n, room), True
    return size, code_of(folded, 0, size) if some else -1


def unshut(token: bytes) -> bytes:
    """What a closed token is of."""
    found, escaped = bytearray(), False
    for byte in token[1:]:
        if byte == ESCAPED:
            escaped = True
            continue
        found.append(byte & 127 if escaped else byte)
        escaped = False
    return bytes(found)
