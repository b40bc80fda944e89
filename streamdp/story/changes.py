"""How surprising a change of counts is, between before and after a time.

Lines of a kind before and after, given how many there are in all, are binomial if nothing has changed. The
probability of what is as far off, or farther, has Chernoff's bound exp(-n KL), which is exact where all lines
are on one side. Bursts are taken for what they are: counts are divided by how much more they vary from unit
to unit than lines that come one by one would, before and after the time apart.
"""

from __future__ import annotations

import numpy as np

SURPRISING = float(np.log(1e2))
"""Nats from which a change is listed: one in a hundred comparisons of two stretches of a log, or fewer, lists
one that is none."""

BLOCKS = (1, 4, 16)
"""Units that are looked at together, to see how much counts vary."""

OTHERS = 50.0
"""Lines of other kinds that say how busy a log is."""

ENOUGH, LINES = 3, 8
"""Units, at least, that say how much counts vary (of longer blocks twice as many), and lines of a kind."""


BURSTY, LIKE_OTHERS = 0.9, 2.0
"""A kind that has hardly been seen varies as much as this share of the others at most: that counts as so many
units in which it was seen."""


def excess(counts: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    """How many times as much counts vary as ones that come one by one; at least 1.

    Parameters
    ----------
    counts
        By kind and unit: float64[k, u].
    exposure
        What is proportional to the counts that are expected: float64[u], or float64[k, u].
    """
    found = np.ones(len(counts))
    exposure = np.broadcast_to(exposure, counts.shape)
    for size in BLOCKS:
        blocks = counts.shape[1] // size
        if blocks < (ENOUGH if size == 1 else 2 * ENOUGH):
            continue
        shape = (len(counts), blocks, size)
        own = counts[:, : blocks * size].reshape(shape).sum(axis=2)
        room = exposure[:, : blocks * size].reshape(shape).sum(axis=2)
        share = own.sum(axis=1, keepdims=True) / np.maximum(room.sum(axis=1, keepdims=True), 1e-300)
        expected = share * room
        off = np.square(own - expected) / np.maximum(expected, 1e-9)
        used = np.maximum((room > 0.0).sum(axis=1) - 1, 1)
        found = np.maximum(found, np.where(expected > 0.0, off, 0.0).sum(axis=1) / used)
    return found


def divergence(share: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Nats by which a share of each line speaks against the usual one, which is neither 0 nor 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        apart: np.ndarray = np.where(share > 0.0, share * np.log(share / usual), 0.0)
        apart += np.where(share < 1.0, (1.0 - share) * np.log((1.0 - share) / (1.0 - usual)), 0.0)
    return apart


def log_tails(
    counts: np.ndarray, exposure: np.ndarray, after: np.ndarray, *, given: bool = False
) -> np.ndarray:
    """Log of the probability of what is as far off as the counts after, or farther: float64[k].

    Parameters
    ----------
    counts, exposure
        As of :func:`excess`.
    after
        Which units are after the time: bool[u].
    given
        Whether the exposure is a sum of the counts themselves; else it varies too.
    """
    exposure = np.broadcast_to(exposure, counts.shape)
    k1, k0 = counts[:, after].sum(axis=1), counts[:, ~after].sum(axis=1)
    e1, e0 = exposure[:, after].sum(axis=1), exposure[:, ~after].sum(axis=1)
    n = np.maximum(k0 + k1, 1e-9)
    own = np.maximum(
        excess(counts[:, ~after], exposure[:, ~after]), excess(counts[:, after], exposure[:, after])
    )
    q = np.clip(e1 / np.maximum(e0 + e1, 1e-9), 1e-12, 1.0 - 1e-12)
    share = k1 / n
    apart = divergence(share, q)
    loose = 0.0 if given else q * (1.0 - q) * (1.0 / np.maximum(e0, 0.5) + 1.0 / np.maximum(e1, 0.5))
    known = min(np.count_nonzero(after), np.count_nonzero(~after)) >= ENOUGH
    seen = np.count_nonzero(counts, axis=1) if known else np.zeros(len(counts))
    usual = np.quantile(own[n >= LINES], BURSTY) if (n >= LINES).any() else 1.0
    varies = np.exp(
        (seen * np.log(own) + LIKE_OTHERS * np.log(np.maximum(usual, own))) / (seen + LIKE_OTHERS)
    )
    found: np.ndarray = np.minimum(np.log(2.0) - apart / (varies / n + loose), 0.0)
    return found


def _is_more(counts: np.ndarray, exposure: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Whether there is more of each than before, for what there is of all: bool[k]."""
    exposure = np.broadcast_to(exposure, counts.shape)
    k1, k0, e1, e0 = (each[:, which].sum(axis=1) for each in (counts, exposure) for which in (after, ~after))
    found: np.ndarray = k1 * e0 > k0 * e1
    return found


def of_kinds(counts: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of kinds of lines, and whether there is more of each, bool[k].

    Something has changed where it has both as a share of the lines and by unit of time, in one direction.
    """
    others, units = counts.sum(axis=0) - counts, np.ones(counts.shape[1])
    more = _is_more(counts, units, after)
    by_time = log_tails(counts, units, after, given=True)
    by_share = log_tails(counts, others, after)
    by_share[more != _is_more(counts, others, after)] = 0.0
    by_share[others.sum(axis=1) < OTHERS] = -np.inf
    return np.maximum(by_share, by_time), more


def of_values(counts: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The same of what stands in a hole, as shares of its lines."""
    return log_tails(counts, counts.sum(axis=0), after, given=True)
