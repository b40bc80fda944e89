"""Vectors of one cluster in pieces: each is cut along its principal axis, until all are small."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

STEPS = 12
"""Times that an axis, or a cut, is made better."""

SAMPLE = 512
"""Records by which a cut is found, at most, evenly spaced; the others then go to the nearer side."""


def pieces(points: np.ndarray, most: int) -> np.ndarray:
    """The number of the piece, of ``most`` points or fewer, that each is in; shape (n,)."""
    found, number, waiting = np.empty(len(points), np.int64), 0, [np.arange(len(points))]
    while waiting:
        members = waiting.pop()
        parts = _cut(points[members]) if len(members) > most else []
        if parts:
            waiting += [members[part] for part in reversed(parts)]
        else:  # as small as it is to be, or all alike
            found[members] = number
            number += 1
    return found


def _cut(points: np.ndarray) -> list[np.ndarray]:
    """The two sides of a piece, by place; nothing where points cannot be told apart."""
    step = -(-len(points) // SAMPLE)
    centres = _centres(points[::step])
    if centres is None and step > 1:  # those that were looked at are equal, which others need not be
        centres = _centres(points)
    if centres is None:
        return []
    first, second = list[int](), deque[int]()
    for place, side in enumerate(_nearer(points, centres).tolist()):
        if side:
            second.append(place)
        else:
            first.append(place)
            second.rotate(-1)  # so that of a part, too, every so manieth point is from all over the stream
    return [np.array(first), np.array(second)] if first and second else []


def _centres(points: np.ndarray) -> np.ndarray | None:
    """The centres of both sides by two-means from the principal axis, (2, D); None where one is empty."""
    mean = points.sum(axis=0) / len(points)
    side = _products(points - mean, _axis(points - mean)) > 0.0
    for _ in range(STEPS):
        if side.all() or not side.any():
            return None
        centres = np.stack([part.sum(axis=0) / len(part) for part in (points[~side], points[side])])
        before, side = side, _nearer(points, centres)
        if (before == side).all():
            break
    return centres


def _axis(gaps: np.ndarray) -> np.ndarray:
    """The principal axis of points around 0 by the power method, begun at the farthest."""
    axis = gaps[int(np.argmax(np.square(gaps).sum(axis=1)))]
    for _ in range(STEPS):
        axis = axis / math.sqrt(max(float(np.square(axis).sum()), 1e-300))
        axis = (_products(gaps, axis)[:, np.newaxis] * gaps).sum(axis=0)
    return axis


def _products(points: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Of each with an axis; without BLAS, whose sums may depend on the number of threads."""
    return np.asarray(np.einsum("nd,d->n", points, axis))


def _nearer(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Whether the second centre is the nearer one of each."""
    first, second = (np.square(points - centre).sum(axis=1) for centre in centres)
    return np.asarray(second < first)
