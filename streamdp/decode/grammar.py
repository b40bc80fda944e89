"""The grammar of JSON as kernels read it: where a value ends, and what a string says.

What is not ordinary is left to Python: numbers of many digits or with an exponent, deep nesting, escapes that
are no characters. Then the place is ``NOWHERE``.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel, shared
from streamdp.records.columns import LARGEST

NOWHERE = -1
QUOTE, ESCAPE, MINUS, ZERO, NINE = 0x22, 0x5C, 0x2D, 0x30, 0x39
OPEN, CLOSE, FIRST, LAST, COMMA, COLON = 0x7B, 0x7D, 0x5B, 0x5D, 0x2C, 0x3A
_DEEPEST = 32
EXACT = 1 << 53
INEXACT = -EXACT
_DIGITS = 18


def _meanings() -> np.ndarray:
    """The character that one after a backslash means; 0 for none."""
    found = np.zeros(256, np.uint8)
    for escaped, meant in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
        found[escaped] = meant
    return found


_MEANT = _meanings()


@shared
def decimal(number: float) -> int:
    """The number in millionths; ``INEXACT`` where they are not all of it."""
    if not abs(number) < LARGEST:
        return INEXACT
    millionths = np.rint(number * 1e6)
    if millionths / 1e6 != number:
        return INEXACT
    return int(millionths)


@kernel
def is_utf8(data: np.ndarray, start: int, stop: int) -> bool:
    """Whether bytes are UTF-8: nothing overlong, no surrogates, nothing beyond the last code point."""
    high = np.uint8(0)
    for i in range(start, stop):
        high |= data[i]
    if high < 0x80:
        return True
    i = start
    while i < stop:
        byte = data[i]
        if byte < 0x80:
            i += 1
            continue
        low, top = 0x80, 0xBF
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            if byte == 0xE0:
                low = 0xA0
            elif byte == 0xED:
                top = 0x9F
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            if byte == 0xF0:
                low = 0x90
            elif byte == 0xF4:
                top = 0x8F
        else:
            return False
        if i + more >= stop:
            return False
        if data[i + 1] < low or data[i + 1] > top:
            return False
        for k in range(2, more + 1):
            if data[i + k] < 0x80 or data[i + k] > 0xBF:
                return False
        i += more + 1
    return True


@kernel
def after_space(data: np.ndarray, i: int, stop: int) -> int:
    """The place after white space, if there is any."""
    while i < stop and (data[i] == 0x20 or data[i] == 0x0A or data[i] == 0x0D or data[i] == 0x09):
        i += 1
    return i


@kernel
def after_plain(data: np.ndarray, i: int, stop: int) -> int:
    """The place after the quotation mark that ends a string without escapes."""
    while i < stop:
        byte = data[i]
        if byte == QUOTE:
            return i + 1
        if byte < 0x20 or byte == ESCAPE:
            return NOWHERE
        i += 1
    return NOWHERE


@kernel
def _after_escaped(data: np.ndarray, i: int, stop: int) -> int:
    """The place after a string, of which the beginning is behind; escaped surrogates are not ordinary."""
    while i < stop:
        byte = data[i]
        if byte == QUOTE:
            return i + 1
        if byte < 0x20:
            return NOWHERE
        i += 1
        if byte == ESCAPE:
            if i >= stop:
                return NOWHERE
            if data[i] == 0x75:
                code = _code(data, i + 1, stop)
                if code < 0 or 0xD800 <= code <= 0xDFFF:
                    return NOWHERE
                i += 5
            elif _MEANT[data[i]] == 0:
                return NOWHERE
            else:
                i += 1
    return NOWHERE


@kernel
def _code(data: np.ndarray, i: int, stop: int) -> int:
    """The number that four hexadecimal digits write."""
    if i + 4 > stop:
        return NOWHERE
    code = 0
    for k in range(4):
        byte = data[i + k]
        if ZERO <= byte <= NINE:
            digit = byte - ZERO
        elif 0x41 <= byte <= 0x46:
            digit = byte - 0x37
        elif 0x61 <= byte <= 0x66:
            digit = byte - 0x57
        else:
            return NOWHERE
        code = 16 * code + digit
    return code


@kernel
def _put_code(letters: np.ndarray, at: int, code: int) -> int:
    """Write a code point in UTF-8; where it ends."""
    if code < 0x80:
        letters[at] = code
        return at + 1
    if code < 0x800:
        letters[at] = 0xC0 | (code >> 6)
        letters[at + 1] = 0x80 | (code & 0x3F)
        return at + 2
    if code < 0x10000:
        letters[at] = 0xE0 | (code >> 12)
        letters[at + 1] = 0x80 | ((code >> 6) & 0x3F)
        letters[at + 2] = 0x80 | (code & 0x3F)
        return at + 3
    letters[at] = 0xF0 | (code >> 18)
    letters[at + 1] = 0x80 | ((code >> 12) & 0x3F)
    letters[at + 2] = 0x80 | ((code >> 6) & 0x3F)
    letters[at + 3] = 0x80 | (code & 0x3F)
    return at + 4


@kernel
def put_text(data: np.ndarray, i: int, stop: int, letters: np.ndarray, at: int) -> tuple[int, int]:
    """Write the characters of a string; the place after it, and where they end.

    A text is ordinary that has a character of ASCII which is seen.
    """
    seen = False
    while i < stop:
        byte = data[i]
        if byte == QUOTE:
            return (i + 1 if seen else NOWHERE), at
        if byte < 0x20:
            return NOWHERE, at
        i += 1
        if byte != ESCAPE:
            letters[at] = byte
            at += 1
            if 0x20 < byte < 0x7F:
                seen = True
            continue
        if i >= stop:
            return NOWHERE, at
        if data[i] != 0x75:
            code = _MEANT[data[i]]
            if code == 0:
                return NOWHERE, at
            i += 1
        else:
            code = _code(data, i + 1, stop)
            i += 5
            if 0xD800 <= code <= 0xDBFF and i + 1 < stop and data[i] == ESCAPE and data[i + 1] == 0x75:
                low = _code(data, i + 2, stop)
                if low < 0xDC00 or low > 0xDFFF:
                    return NOWHERE, at
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                i += 6
            if code < 0 or 0xD800 <= code <= 0xDFFF:
                return NOWHERE, at
        at = _put_code(letters, at, code)
        if 0x20 < code < 0x7F:
            seen = True
    return NOWHERE, at


@kernel
def _after_digits(data: np.ndarray, i: int, stop: int) -> int:
    """The place after the digits of a whole number, 0 at most once in front; none is ordinary with more."""
    begin = i
    while i < stop and ZERO <= data[i] <= NINE:
        i += 1
    digits = i - begin
    if digits == 0 or digits > _DIGITS or (digits > 1 and data[begin] == ZERO):
        return NOWHERE
    return i


@kernel
def after_number(data: np.ndarray, i: int, stop: int) -> int:
    """The place after a number without an exponent."""
    if data[i] == MINUS:
        i += 1
    i = _after_digits(data, i, stop)
    if i < 0 or i >= stop:
        return i
    if data[i] == 0x2E:
        i += 1
        begin = i
        while i < stop and ZERO <= data[i] <= NINE:
            i += 1
        if i == begin or i - begin > _DIGITS:
            return NOWHERE
    if i < stop and (data[i] == 0x65 or data[i] == 0x45):
        return NOWHERE
    return i


@kernel
def after_word(data: np.ndarray, i: int, stop: int) -> int:
    """The place after true, false or null."""
    if i + 4 <= stop and data[i] == 0x74 and data[i + 1] == 0x72 and data[i + 2] == 0x75:
        return i + 4 if data[i + 3] == 0x65 else NOWHERE
    if i + 4 <= stop and is_null(data, i, stop):
        return i + 4
    if i + 5 <= stop and data[i] == 0x66 and data[i + 1] == 0x61 and data[i + 2] == 0x6C:
        return i + 5 if data[i + 3] == 0x73 and data[i + 4] == 0x65 else NOWHERE
    return NOWHERE


@kernel
def is_null(data: np.ndarray, i: int, stop: int) -> bool:
    """Whether null stands there."""
    if i + 4 > stop or data[i] != 0x6E:
        return False
    is_null: bool = data[i + 1] == 0x75 and data[i + 2] == 0x6C and data[i + 3] == 0x6C
    return is_null


@kernel
def _after_scalar(data: np.ndarray, i: int, stop: int) -> int:
    """The place after a string, a number, true, false or null."""
    if i >= stop:
        return NOWHERE
    if data[i] == QUOTE:
        return _after_escaped(data, i + 1, stop)
    if data[i] == MINUS or ZERO <= data[i] <= NINE:
        return after_number(data, i, stop)
    return after_word(data, i, stop)


@kernel
def after_name(data: np.ndarray, i: int, stop: int) -> int:
    """The place where the value of a field begins."""
    if i >= stop or data[i] != QUOTE:
        return NOWHERE
    i = after_plain(data, i + 1, stop)
    if i < 0:
        return NOWHERE
    i = after_space(data, i, stop)
    if i >= stop or data[i] != COLON:
        return NOWHERE
    return after_space(data, i + 1, stop)


@kernel
def after_value(data: np.ndarray, i: int, stop: int) -> int:
    """The place after a value of any kind."""
    depth, objects = 0, np.uint64(0)  # a bit for each level: whether it is an object
    while True:
        if i < stop and (data[i] == OPEN or data[i] == FIRST):
            if depth == _DEEPEST:
                return NOWHERE
            is_object = data[i] == OPEN
            depth += 1
            objects = (objects << np.uint64(1)) | np.uint64(is_object)
            i = after_space(data, i + 1, stop)
            if i < stop and data[i] == (CLOSE if is_object else LAST):
                i += 1
                depth -= 1
                objects >>= np.uint64(1)
            else:
                if is_object:
                    i = after_name(data, i, stop)
                    if i < 0:
                        return NOWHERE
                continue
        else:
            i = _after_scalar(data, i, stop)
            if i < 0:
                return NOWHERE
        while depth:  # a value has ended: what holds it goes on, or ends too
            is_object = objects & np.uint64(1) == np.uint64(1)
            i = after_space(data, i, stop)
            if i >= stop:
                return NOWHERE
            if data[i] == COMMA:
                i = after_space(data, i + 1, stop)
                if is_object:
                    i = after_name(data, i, stop)
                    if i < 0:
                        return NOWHERE
                break
            if data[i] != (CLOSE if is_object else LAST):
                return NOWHERE
            i += 1
            depth -= 1
            objects >>= np.uint64(1)
        if depth == 0:
            return i


@kernel
def after_whole(data: np.ndarray, i: int, stop: int) -> int:
    """The place after a whole number, as it is always written."""
    begin = i
    if i < stop and data[i] == MINUS:
        i += 1
    after = _after_digits(data, i, stop)
    if after < 0 or (i > begin and data[i] == ZERO):
        return NOWHERE
    if after < stop and (data[after] == 0x2E or data[after] == 0x65 or data[after] == 0x45):
        return NOWHERE
    return after
