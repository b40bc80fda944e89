"""Numbers as kernels read them: to the double that is nearest to what is written, as Python's ``float`` does.

A number is left to Python where it has more than 18 digits that count, where a power of ten beyond
``POWERS`` is needed, and where twice the digits of a double do not say which double is nearest.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.decode.grammar import EXACT, MINUS, NINE, NOWHERE, ZERO
from streamdp.kernels.jit import kernel

POWERS = 64
"""The largest power of ten that numbers are multiplied with, or divided by."""

_DIGITS = 18
_SIMPLE = 22  # powers of ten up to this one are doubles
_SPLIT = float((1 << 27) + 1)
_DOUBT = 2.0**-98  # at least eight times the error of what is added to the nearest quotient, relative to it
_POINT, _PLUS = 0x2E, 0x2B
_TEN = np.array([float(10**k) for k in range(POWERS + 1)])
_REST = np.array([float(10**k - int(float(10**k))) for k in range(POWERS + 1)])


@kernel
def _product(a: float, b: float) -> tuple[float, float]:
    """A product, and what rounding has taken from it (Dekker)."""
    scaled = _SPLIT * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLIT * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def _nearest(whole: int, power: int) -> float:
    """The double nearest to ``whole`` (below 10^18) times a power of ten; not a number where in doubt."""
    high, size = float(whole), abs(power)
    if power == 0:
        return high
    if size > POWERS:
        return math.nan
    ten, rest = _TEN[size], _REST[size]
    if whole <= EXACT and size <= _SIMPLE:  # both are doubles: the result is rounded once
        simple: float = high / ten if power < 0 else high * ten
        return simple
    low = float(whole - int(high))
    if power < 0:
        near = high / ten
        product, lost = _product(near, ten)
        off = ((high - product) - lost + (low - near * rest)) / ten
    else:
        near, lost = _product(high, ten)
        off = lost + (high * rest + low * ten)
    doubt = _DOUBT * near
    found = near + (off - doubt)
    return found if found == near + (off + doubt) else math.nan


@kernel
def _digits(data: np.ndarray, i: int, stop: int, whole: int, digits: int) -> tuple[int, int, int]:
    """The place after digits, the number that they go on with, and how many of its digits count.

    The place is NOWHERE where too many count.
    """
    while i < stop and ZERO <= data[i] <= NINE:
        if digits or data[i] != ZERO:
            digits += 1
            if digits > _DIGITS:
                return NOWHERE, 0, 0
        whole = 10 * whole + (data[i] - ZERO)
        i += 1
    return i, whole, digits


@kernel
def after_double(data: np.ndarray, i: int, stop: int) -> tuple[int, float]:
    """The place after a number of JSON, and the double that it is."""
    begin, negative = i, i < stop and data[i] == MINUS
    if negative:
        i += 1
    first, power = i, 0
    i, whole, digits = _digits(data, i, stop, 0, 0)
    if i < 0 or i == first or (i > first + 1 and data[first] == ZERO):
        return NOWHERE, 0.0
    if i < stop and data[i] == _POINT:
        first = i + 1
        i, whole, digits = _digits(data, first, stop, whole, digits)
        power = first - i
        if i < 0 or power == 0:
            return NOWHERE, 0.0
    if i < stop and (data[i] == 0x65 or data[i] == 0x45):
        i += 1
        falls = i < stop and data[i] == MINUS
        if i < stop and (falls or data[i] == _PLUS):
            i += 1
        first = i
        i, exponent, _ = _digits(data, i, stop, 0, 0)
        if i <= first or i > first + 3:
            return NOWHERE, 0.0
        power += -exponent if falls else exponent
    number = _nearest(whole, power)
    if math.isnan(number) or (negative and whole == 0 and first == begin + 1):
        return NOWHERE, 0.0  # -0 is 0 in JSON, and -0.0 in Python
    return i, -number if negative else number
