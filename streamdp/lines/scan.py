"""Bytes of a line to folded tokens: what changes from line to line, as numbers do, is written as 0.

A number is digits, with a sign where no letter is before it, joined by ``. : , / _ -``. A run of hexadecimal
digits counts as one where it begins with 0x, has four characters or more with a digit among them, or eight;
and so do four such runs or more with ``:`` or ``-`` between them, of any length. An address of IPv6 is one,
with its zone, the length of its prefix, or brackets and a port. ``lines/words.py`` says
which words are folded: in dates, units behind a number, and true, false and null. What a mask has matched
(``lines/masks.py``) is written as that mask's byte. A value of several words (``lines/enclosed.py``) is one
token: a number too where it has a digit, else its words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.kernels.hashing import EMPTY, mix
from streamdp.kernels.jit import entry, kernel
from streamdp.lines.enclosed import next_value, write_words
from streamdp.lines.masks import FILLED, MASKED
from streamdp.lines.words import (
    ALNUM,
    DELIMITER,
    DIGIT,
    HEX,
    JOINER,
    KINDS,
    LETTER,
    OPENS,
    SIGN,
    SPACE,
    date_end,
    ends,
    may_begin,
    run_end,
    unit_end,
    word_end,
)

_COLON, _DOT, _SLASH, _PERCENT, _OPEN, _SHUT = 58, 46, 47, 37, 91, 93

MOST = 512
"""Tokens of a line that are looked at."""


@kernel
def _hex_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where the hexadecimal run or address that begins with a run of letters and digits ends, else ``at``."""
    if at + 2 < stop and data[at] == 48 and (data[at + 1] | 32) == 120 and KINDS[data[at + 2]] & HEX:
        end = run_end(data, at + 2, stop, HEX)
        if ends(data, end, stop):
            return end
    groups, end, first, digits, begin = 0, at, at, False, at
    while True:
        own = False
        i = begin
        while i < stop and KINDS[data[i]] & HEX:
            if KINDS[data[i]] & DIGIT:
                own = True
            i += 1
        if i == begin or (i < stop and KINDS[data[i]] & ALNUM):
            break
        groups += 1
        digits = digits or own
        end = i
        if groups == 1 and (i - at >= 8 or (i - at >= 4 and own)):
            first = i
        if i < stop and (data[i] == 58 or data[i] == 45):
            begin = i + 1
        else:
            break
    return end if groups >= 4 and digits else first


@kernel
def _quad_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where four numbers with dots between them end; the place itself where there are none."""
    begin = at
    for part in range(4):
        end = run_end(data, begin, stop, DIGIT)
        if not 1 <= end - begin <= 3 or (part < 3 and (end == stop or data[end] != _DOT)):
            return at
        begin = end + 1
    return end


@kernel
def _groups_end(data: np.ndarray, i: int, stop: int) -> int:
    """Where the groups of an address of IPv6 end; the place itself where there are none.

    Names of C++ and the like have two colons, too: some group has a digit, and the first of two, if short.
    """
    groups, gap, digits, pairs, short, at = 0, False, False, True, False, i
    while True:
        begin, own = at, False
        at = run_end(data, begin, stop, HEX)
        quad = _quad_end(data, begin, stop) if at < stop and data[at] == _DOT else begin
        if quad > begin:
            groups, digits, pairs, at = groups + 2, True, False, quad
            break
        if at - begin > 4:
            return i
        for k in range(begin, at):
            own = own or bool(KINDS[data[k]] & DIGIT)
        short = short or (begin == i and not own and 0 < at - i < 4)
        digits, pairs, groups = digits or own, pairs and at - begin == 2, groups + (at > begin)
        if at + 1 >= stop or data[at] != _COLON:
            break
        if data[at + 1] == _COLON:
            if gap:
                return i
            gap, at = True, at + 2
        elif at > begin and KINDS[data[at + 1]] & HEX:
            at += 1
        else:
            break
    if (at < stop and data[at] == _COLON and data[at - 1] == _COLON) or not ends(data, at, stop):
        return i
    if gap:
        return at if groups < 8 and (digits or groups == 0) and (groups > 2 or not short) else i
    return at if groups == 8 and not pairs else i


@kernel
def _may_have_address(data: np.ndarray, start: int, stop: int) -> bool:
    """Whether a line has two colons side by side, or six: else no address of IPv6 is in it."""
    colons = pairs = 0
    line, after = data[start : stop - 1], data[start + 1 : stop]  # of indices from 0 on LLVM makes vectors
    for i in range(after.shape[0]):
        colons += line[i] == _COLON
        pairs += (line[i] == _COLON) & (after[i] == _COLON)
    return pairs > 0 or colons > 5


@kernel
def _count_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where a length of a prefix or a port ends; the place itself where none begins."""
    end = run_end(data, at, stop, DIGIT)
    return end if ends(data, end, stop) else at


@kernel
def _address_end(data: np.ndarray, start: int, i: int, stop: int) -> int:
    """Where an address of IPv6 ends, with zone and prefix length; the place itself where none begins."""
    behind = i > start and data[i - 1] == _COLON
    if behind and (data[i] == _COLON or (i - 1 > start and data[i - 2] == _COLON)):
        return i
    end = _groups_end(data, i, stop)
    if i < end < stop - 1 and data[end] == _PERCENT and KINDS[data[end + 1]] & ALNUM:
        k = end + 1
        while k < stop and (KINDS[data[k]] & ALNUM or data[k] in (_DOT, 45, 95)):
            k += 1
            end = k if KINDS[data[k - 1]] & ALNUM else end
    if i < end < stop and data[end] == _SLASH:
        prefix = _count_end(data, end + 1, stop)
        end = prefix if 1 <= prefix - end - 1 <= 3 else end
    return end


@kernel
def _next_address(data: np.ndarray, start: int, i: int, stop: int) -> tuple[int, int]:
    """Where the first address from a place on begins and ends; twice the end of the line where none does."""
    while i < stop:
        end = i
        if i == start or ends(data, i - 1, stop):
            at = i + (data[i] == _OPEN)
            end = _address_end(data, start, at, stop)
            if at > i:  # brackets, which are of an address with a port
                port = end + 2
                shut = at < end < stop - 1 and data[end] == _SHUT and data[end + 1] == _COLON
                end = _count_end(data, port, stop) if shut else port
                end = end if end > port else i
            if end > i:
                return i, end
            if KINDS[data[i]] & HEX:
                end = _hex_end(data, i, stop)
        i = max(end, i + 1)
    return stop, stop


@kernel
def _part_end(data: np.ndarray, start: int, at: int, stop: int) -> int:
    """Where the digits or the hexadecimal run at a place end; ``at`` where there are none."""
    if at >= stop or not KINDS[data[at]] & ALNUM:
        return at
    if at == start or not KINDS[data[at - 1]] & ALNUM:
        end = _hex_end(data, at, stop)
        if end > at:
            return end
    return run_end(data, at, stop, DIGIT)


@kernel
def _number_end(data: np.ndarray, start: int, at: int, stop: int) -> int:
    """Where the number that begins at a place ends; ``at`` where none does."""
    signed = KINDS[data[at]] & SIGN
    if signed and at > start and KINDS[data[at - 1]] & ALNUM:
        return at
    begin = at + 1 if signed else at
    end = _part_end(data, start, begin, stop)
    if end == begin:
        return at
    while True:
        i = run_end(data, end, stop, JOINER)
        further = _part_end(data, start, i, stop) if i > end else i
        if further == i:
            return end
        end = further


@kernel
def _folded_end(data: np.ndarray, start: int, i: int, stop: int) -> int:
    """Where what is folded at a place ends; the place itself where nothing is."""
    kind, end = KINDS[data[i]], i
    if data[i] >= MASKED:
        while end < stop and (end == i or data[end] == FILLED):
            end += 1
        return end
    fresh = i == start or not KINDS[data[i - 1]] & ALNUM
    if fresh and kind & ALNUM and may_begin(data, i, stop):
        end = date_end(data, start, i, stop)
        if end == i and kind & LETTER:
            end = word_end(data, start, i, stop)
    if end == i and (kind & (DIGIT | SIGN) or (kind & HEX and fresh)):
        end = _number_end(data, start, i, stop)
        if end > i:
            end = unit_end(data, end, stop)
    return end


@kernel
def fold_line(
    data: np.ndarray, start: int, stop: int, folded: np.ndarray, glued: np.ndarray, marks: np.ndarray
) -> tuple[int, int, int]:
    """Write the folded line, with a space between tokens that need one; its length, its hash, its tokens.

    Lines of the same tokens have the same folded line. No more than MOST tokens are written. ``glued`` is
    told which tokens have no blank before them; ``marks``, where there is room, where each token begins
    (and -1), and where each folded part begins and ends.
    """
    n, code, tokens, marked = 0, EMPTY, 0, 0
    begins = ends = stop  # of the next address
    if _may_have_address(data, start, stop):
        begins, ends = _next_address(data, start, start, stop)
    opens = closes = -1  # of the next value of several words
    i, before, blank = start, np.uint8(DELIMITER), True
    while i < stop:
        byte = data[i]
        kind = KINDS[byte]
        if kind & SPACE:
            i += 1
            blank = True
            if before != DELIMITER:
                before = np.uint8(SPACE)
            continue
        begin, several = i, False
        if kind & OPENS and i != opens:
            opens, closes = next_value(data, start, i, stop)
        if i == opens:
            end, opens, several = closes, -1, True
            if begins < end:
                begins, ends = _next_address(data, start, end, stop)
        elif i == begins:
            end = ends
            begins, ends = _next_address(data, start, ends, stop)
        else:
            end = _folded_end(data, start, i, begins)
        if end > i or several:
            byte, kind, i = byte if byte >= MASKED else np.uint8(48), np.uint8(DIGIT), end
        else:
            i += 1
        if kind & DELIMITER or before in (DELIMITER, SPACE):
            if tokens == MOST:
                break
            glued[tokens] = 0 if blank else 1
            tokens += 1
            if before == SPACE and not kind & DELIMITER:
                folded[n] = 32
                n += 1
                code = mix(code, np.uint8(32))
            if marked < marks.shape[0]:
                marks[marked, 0] = begin
                marks[marked, 1] = -1
                marked += 1
        words = write_words(data, begin, end, folded, n) if several else n
        if (end > begin or several) and words == n and marked < marks.shape[0]:
            marks[marked, 0] = begin
            marks[marked, 1] = end
            marked += 1
        blank = False
        before = np.uint8(DELIMITER) if kind & DELIMITER else np.uint8(0)
        if words == n:
            folded[n] = byte
            n += 1
            code = mix(code, byte)
        while n < words:
            code = mix(code, folded[n])
            n += 1
    if marked < marks.shape[0]:
        marks[marked, 0] = -1
    return n, closed(code), tokens


@kernel
def closed(code: Any) -> Any:
    """A hash of 63 bits, well mixed."""
    mixed = np.uint64(code)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed >> np.uint64(1))


@kernel
def token_end(folded: np.ndarray, at: int, stop: int) -> int:
    """Where the token that begins at a place of a folded line ends."""
    if KINDS[folded[at]] & DELIMITER:
        return at + 1
    while at < stop and folded[at] != 32 and not KINDS[folded[at]] & DELIMITER:
        at += 1
    return at


@kernel
def code_of(text: np.ndarray, start: int, stop: int) -> Any:
    """The hash of some bytes."""
    code = EMPTY
    for i in range(start, stop):
        code = mix(code, text[i])
    return closed(code)


@entry
def mark_line(data: np.ndarray, folded: np.ndarray, glued: np.ndarray, marks: np.ndarray) -> int:
    """Where the tokens of a line begin, and what of them is folded (see ``fold_line``): how many marks."""
    fold_line(data, 0, data.shape[0], folded, glued, marks)
    count = 0
    while count < marks.shape[0] and marks[count, 0] >= 0:
        count += 1
    return count
