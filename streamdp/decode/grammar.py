"""Numbers and letters as kernels read them.

What is not ordinary is left to Python: numbers of many digits or with an exponent. Then the place is
``NOWHERE``.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel, shared
from streamdp.records.columns import LARGEST

NOWHERE = -1
QUOTE, ESCAPE, MINUS, ZERO, NINE = 0x22, 0x5C, 0x2D, 0x30, 0x39
COLON = 0x3A
EXACT = 1 << 53
INEXACT = -EXACT
_DIGITS = 18


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
