"""The clock that a decay measures distance on, and the weight of a new cluster, as both were over time.

Where a model adapts, the scale of its decay changes from review to review. The decay itself stays what the
settings say: distance is measured on a clock that runs the faster, the shorter the scale is. So weights that
are held stay right without the records that they are of, under every hypothesis, and p(z) is that of one
prior at all times. A model that does not adapt has a clock that shows positions as they are.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import new_rows, row_type

ROWS = 16
CLOCK = row_type(reals="since shown rate concentration")
"""The latest row first: the position from which on it holds, what the clock showed there, how fast it runs
since, and the concentration for the records after it. What is not used repeats the first."""


def new_clock(concentration: float) -> np.ndarray:
    """Positions as they are: CLOCK[ROWS]."""
    return new_rows(ROWS, CLOCK, rate=1.0, concentration=concentration)


@kernel
def clock_at(clock: np.ndarray, position: float) -> float:
    """What the clock shows at a position."""
    j = 0
    while j < clock.shape[0] - 1 and position < clock[j].since:
        j += 1
    shown: float = clock[j].shown + (position - clock[j].since) * clock[j].rate
    return shown


def clocks_at(clock: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """What the clock shows at each of these positions."""
    at = _rows_at(
        clock, positions, "right"
    )  # of each field by itself: taking whole rows takes ten times as long
    return np.asarray(clock["shown"][at] + (positions - clock["since"][at]) * clock["rate"][at])


def concentrations_at(clock: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The weight of a new cluster when a record came at each of these positions."""
    return np.asarray(clock["concentration"][_rows_at(clock, positions, "left")])


def prior_at(prior: Any, clock: np.ndarray) -> Any:
    """The terms of a prior with the concentration of now, where they have one."""
    now = float(clock["concentration"][0])
    return prior._replace(concentration=now) if getattr(prior, "concentration", now) != now else prior


def change_clock(
    clock: np.ndarray, last: float, rate: float, concentration: float, oldest: float
) -> np.ndarray:
    """Let there be another clock from now on.

    Parameters
    ----------
    clock
        As it was; it is changed, if there is room.
    last
        Position of the last record so far: what comes after it is at the new rate.
    rate, concentration
        The new ones.
    oldest
        Nothing before this position is asked about any more.

    Returns
    -------
    The same array, or a larger one.
    """
    now = clocks_at(clock, np.array([last]))[0]
    if clock["since"][-2] > max(oldest, clock["since"][-1]):
        clock = np.concatenate([clock, np.repeat(clock[-1:], len(clock))])
    clock[1:] = clock[:-1].copy()
    clock[0] = last, now, rate, concentration
    return clock


def _rows_at(clock: np.ndarray, positions: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
    """Which row holds at each position; where one ends and another begins, the latter for "right"."""
    begun = np.searchsorted(clock["since"][::-1], positions, side=side)
    return np.asarray(len(clock) - np.maximum(begun, 1))
