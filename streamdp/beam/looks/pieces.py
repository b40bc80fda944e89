"""Vectors of one cluster in pieces: each is cut along its principal axis, until all are small."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.likelihoods.rows import dot, squared_distance, squared_length

STEPS = 12
"""Times that an axis, or a cut, is made better."""

SAMPLE = 512
"""Records by which a cut is found, at most, evenly spaced; the others then go to the nearer side."""


class Cut(NamedTuple):
    """Room to cut n points."""

    axis: np.ndarray  # float64[D]
    mean: np.ndarray  # float64[D]
    centres: np.ndarray  # float64[2, D]
    side: np.ndarray  # int64[n] by point
    order: np.ndarray  # int64[n] points, those of a piece beside each other
    ends: np.ndarray  # int64[n] of each piece; the first begins at 0


def pieces(points: np.ndarray, most: int) -> np.ndarray:
    """The number of the piece, of ``most`` points or fewer, that each is in; shape (n,)."""
    n, dimension = points.shape
    spread = np.zeros(dimension), np.zeros(dimension), np.zeros((2, dimension))
    room = Cut(*spread, np.zeros(n, np.int64), np.arange(n), np.zeros(n, np.int64))
    found = np.empty(n, np.int64)
    cut_up(np.ascontiguousarray(points), most, room, found)
    return found


@kernel
def _find_axis(points: np.ndarray, a: int, b: int, step: int, room: Cut) -> None:
    """The principal axis of some points by the power method, begun at the farthest from their mean."""
    axis, mean, sums = room.axis, room.mean, room.centres[0]
    size, n, far, most = points.shape[1], 0, room.order[a], -1.0
    for d in range(size):
        mean[d] = 0.0
    for i in range(a, b, step):
        n += 1
        for d in range(size):
            mean[d] += points[room.order[i], d]
    for d in range(size):
        mean[d] /= n
    for i in range(a, b, step):
        square = squared_distance(mean, 0, points[room.order[i]])
        if square > most:
            far, most = room.order[i], square
    for d in range(size):
        axis[d] = points[far, d] - mean[d]
    for _ in range(STEPS):
        length = math.sqrt(max(squared_length(axis), 1e-300))
        for d in range(size):
            axis[d] /= length
            sums[d] = 0.0
        offset = dot(axis, 0, mean)
        for i in range(a, b, step):
            x = points[room.order[i]]
            product = dot(axis, 0, x) - offset
            for d in range(size):
                sums[d] += product * (x[d] - mean[d])
        for d in range(size):
            axis[d] = sums[d]


@kernel
def _centre(points: np.ndarray, a: int, b: int, step: int, room: Cut) -> bool:
    """Take the centres of both sides; False where one is empty."""
    n, centres = 0, room.centres
    for d in range(points.shape[1]):
        centres[0, d] = centres[1, d] = 0.0
    count = 0
    for i in range(a, b, step):
        p = room.order[i]
        count += 1
        n += room.side[p]
        for d in range(points.shape[1]):
            centres[room.side[p], d] += points[p, d]
    if n == 0 or n == count:
        return False
    for d in range(points.shape[1]):
        centres[0, d] /= count - n
        centres[1, d] /= n
    return True


@kernel
def _go_nearer(points: np.ndarray, a: int, b: int, step: int, room: Cut) -> bool:
    """Let each point be on the side of the nearer centre; whether any has changed sides."""
    changed, centres = False, room.centres
    for i in range(a, b, step):
        p = room.order[i]
        first = squared_distance(centres[0], 0, points[p])
        side = 1 if squared_distance(centres[1], 0, points[p]) < first else 0
        changed = changed or side != room.side[p]
        room.side[p] = side
    return changed


@kernel
def _cut(points: np.ndarray, a: int, b: int, step: int, room: Cut) -> int:
    """Cut a piece by two-means from its principal axis; where the second part begins, ``b`` for nowhere."""
    _find_axis(points, a, b, step, room)
    offset = dot(room.axis, 0, room.mean)
    for i in range(a, b, step):
        p = room.order[i]
        room.side[p] = 1 if dot(room.axis, 0, points[p]) > offset else 0
    for _ in range(STEPS):
        if not _centre(points, a, b, step, room):
            return b
        if not _go_nearer(points, a, b, step, room):
            break
    _go_nearer(points, a, b, 1, room)
    end = a
    for i in range(a, b):
        p = room.order[i]
        if room.side[p] == 0:
            room.order[i], room.order[end] = room.order[end], p
            end += 1
    return end if end > a else b


@entry
def cut_up(points: np.ndarray, most: int, room: Cut, found: np.ndarray) -> None:
    """Cut points into pieces of so many or fewer; ``found`` is the piece of each."""
    n, number, a = points.shape[0], 0, 0
    waiting, room.ends[0] = 1, n
    while waiting > 0:
        b = room.ends[waiting - 1]
        middle = b
        if b - a > most:
            step = (b - a + SAMPLE - 1) // SAMPLE
            middle = _cut(points, a, b, step, room)
            if middle == b and step > 1:  # those that were looked at are equal, which others need not be
                middle = _cut(points, a, b, 1, room)
        if middle < b:
            room.ends[waiting] = middle
            waiting += 1
            continue
        for i in range(a, b):
            found[room.order[i]] = number
        number += 1
        a = b
        waiting -= 1
