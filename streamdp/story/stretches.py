"""Whether a stretch of a log is as its baseline is, by stretches of the baseline that are as long.

Each stretch of the baseline is compared with the others as the one in question is with all of them: how often
the commonest template came that no other stretch has, and how many nats speak for the template that surged
most, and for the one that is missing most. Had nothing changed, the one in question would be one more of
these, so the chance that it is the most extreme of n + 1 is 1 in n + 1. Beyond the most extreme, chances fall
with the count of a new template, and with a power of the likelihood of a change, not faster: real logs have
bursts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.story.changes import divergence

FEWEST, MOST = 4, 500
"""Stretches that a baseline is cut into at least, however short they are, and at most: its latest."""

ASSUMED, MEANS = 2, {"new": 1.0, "surged": 2.0, "gone": 2.0}
"""So many departures above the median are taken to be known of every log, and how far above it they are."""

CAUTION = 2.0
"""How many times as far off departures are taken to be as those of the baseline are."""


class Departures(NamedTuple):
    """How far templates are off, by template, float64[..., k]: one of these may be above 0 for each.

    ``new`` is the log of a count, the others are nats.
    """

    new: np.ndarray
    surged: np.ndarray
    gone: np.ndarray


def stretches(counts: np.ndarray, length: float) -> np.ndarray:
    """Counts by template and unit as counts by stretch, the latest first, each of whole units.

    They have ``length`` records or more; what is left over at the beginning is left out if it is short.
    """
    total = counts.sum(axis=0)
    behind = total.sum() - np.cumsum(total)
    names, which = np.unique(np.floor(behind[::-1] / length), return_inverse=True)
    made = np.zeros((len(names), len(counts)))
    np.add.at(made, which, counts.T[::-1])
    if len(made) > 1 and made[-1].sum() < length / 2:
        made = made[:-1]
    return made[:MOST].T


def chances(counts: np.ndarray, own: np.ndarray) -> tuple[Departures, int]:
    """The chance that a template of any stretch is as far off as each is: new, surged or gone.

    A stretch that is longer than a fourth of the baseline counts as one of that length.

    Parameters
    ----------
    counts
        The baseline, by template and unit: float64[k, u].
    own
        The stretch in question: float64[k].

    Returns
    -------
    Departures
        Chances, float64[k] each; 1 where a template is not that.
    int
        Stretches of the baseline.
    """
    length = max(min(own.sum(), counts.sum() / FEWEST), 1.0)
    made = stretches(counts, length)
    total, n = made.sum(axis=0), made.shape[1] if made.shape[1] > 1 else 0
    size = np.square(made) / np.maximum(total, 1e-9)
    whole = made.sum(axis=1), total.sum(), size.sum(axis=1), made.shape[1]
    mine = own * min(length / max(own.sum(), 1e-9), 1.0)
    off = _departures(mine[:, None], mine.sum(), *(np.asarray(each)[..., None] for each in whole))
    others = whole[0][:, None] - made, whole[1] - total, whole[2][:, None] - size, whole[3] - 1
    known = _departures(made, total, *others) if n else Departures(*np.zeros((3, 1, 0)))
    alone = whole[0][np.count_nonzero(made, axis=1) == 1]
    found = []
    for name in Departures._fields:
        usual = np.sort(getattr(known, name).max(axis=0, initial=0.0))
        middle = np.median(usual) if n else 0.0
        far, least = (np.log1p(alone), np.log(2.0)) if name == "new" else (usual, 0.0)
        above = far[far > middle] - max(middle, least)
        slope = (len(above) + ASSUMED) / (above.sum() + ASSUMED * MEANS[name]) / CAUTION
        found.append(_chance(getattr(off, name)[:, 0], usual, slope))
    return Departures(*found), made.shape[1]


def _chance(off: np.ndarray, usual: np.ndarray, slope: float) -> np.ndarray:
    """The chance of departures where the most extreme of each stretch are these, in order."""
    beyond = np.maximum(off - usual.max(initial=0.0), 0.0)
    as_far = 1 + len(usual) - np.searchsorted(usual, off)
    return np.where(
        off > 0.0, np.where(beyond > 0.0, np.exp(-slope * beyond), as_far) / (len(usual) + 1), 1.0
    )


def _departures(
    own: np.ndarray,
    total: np.ndarray,
    others: np.ndarray,
    of_all: np.ndarray,
    sizes: np.ndarray,
    n: np.ndarray,
) -> Departures:
    """How far templates of stretches are off, float64[k, n].

    ``sizes`` are sums of squared counts over what all templates have in a stretch: with them comes how much
    more the n other stretches vary than lines that come one by one.
    """
    both, seen = np.maximum(own + others, 1e-9), others > 0.0
    varies = (sizes * of_all / np.maximum(others, 1e-9) - others) / np.maximum(n - 1, 1)
    share, usual = own / both, np.clip(total / np.maximum(total + of_all, 1e-9), 1e-12, 1.0 - 1e-12)
    nats = both * divergence(share, usual) / np.maximum(varies, 1.0)
    new = np.where(seen, 0.0, np.log1p(own))
    return Departures(
        new, np.where(seen & (share > usual), nats, 0.0), np.where(seen & (own == 0.0), nats, 0.0)
    )
