"""Random numbers for kernels: xoshiro256** (Blackman and Vigna 2021) on an array of four integers.

The same seed gives the same draws on every machine, and the state is a plain array.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import entry, kernel


def new_random(seed: int | np.random.SeedSequence) -> np.ndarray:
    """A generator's state, uint64[4]."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return sequence.generate_state(4, np.uint64)


@kernel
def _rotate(x: np.uint64, k: int) -> np.uint64:
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@kernel
def uniform(random: np.ndarray) -> float:
    """A number in [0, 1), of 53 random bits."""
    bits = _rotate(random[1] * np.uint64(5), 7) * np.uint64(9)
    t = random[1] << np.uint64(17)
    random[2] ^= random[0]
    random[3] ^= random[1]
    random[1] ^= random[2]
    random[0] ^= random[3]
    random[2] ^= t
    random[3] = _rotate(random[3], 45)
    return (bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def below(random: np.ndarray, n: int) -> int:
    """An integer in [0, n)."""
    return min(int(uniform(random) * n), n - 1)


@kernel
def shuffle(random: np.ndarray, values: np.ndarray, n: int) -> None:
    """Put the first n values into a random order (Fisher and Yates)."""
    for i in range(n - 1, 0, -1):
        j = below(random, i + 1)
        values[i], values[j] = values[j], values[i]


@kernel
def draw_log(random: np.ndarray, weights: np.ndarray, n: int, totals: np.ndarray) -> int:
    """An index below n by its log weight; ``totals`` is scratch."""
    peak = weights[0]
    for j in range(1, n):
        peak = max(peak, weights[j])
    total = 0.0
    for j in range(n):
        gap = weights[j] - peak
        # less than e^-40 of the total is never drawn with 53 random bits
        if gap > -40.0:
            total += math.exp(gap)
        totals[j] = total
    u = uniform(random) * total
    for j in range(n):
        if u < totals[j]:
            return j
    last = n - 1
    while last > 0 and totals[last - 1] == totals[last]:
        last -= 1
    return last


@entry
def draw_uniform(random: np.ndarray) -> float:
    """A number in [0, 1), for those outside the kernels."""
    return uniform(random)
