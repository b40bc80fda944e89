"""Vectors of one cluster are cut into small pieces, each of points that are near each other."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.beam.looks.pieces import pieces


@pytest.mark.parametrize("dimension", [1, 3, 20])
@pytest.mark.parametrize("most", [4, 50])
def test_pieces_are_small_and_numbered_without_gaps(dimension: int, most: int) -> None:
    points = np.random.default_rng(dimension).normal(size=(1500, dimension))
    found = pieces(points, most)
    sizes = np.bincount(found)
    assert 0 < sizes.min() <= sizes.max() <= most


def test_no_piece_has_points_of_two_groups_that_are_far_apart() -> None:
    random = np.random.default_rng(3)
    group = random.integers(0, 5, 1200)
    points = 100.0 * random.normal(size=(5, 4))[group] + random.normal(size=(1200, 4))
    found = pieces(points, 300)
    assert len(np.unique(np.stack([group, found]), axis=1).T) == found.max() + 1


def test_points_that_are_equal_stay_one_piece() -> None:
    assert pieces(np.ones((40, 2)), 8).tolist() == [0] * 40
    few = np.repeat([[0.0, 0.0], [1.0, 0.0]], 30, axis=0)
    found = pieces(few, 8)
    assert (len(set(found[:30])), len(set(found[30:])), len(set(found))) == (1, 1, 2)


def test_a_cut_is_found_though_the_points_that_are_looked_at_first_are_equal() -> None:
    points = np.zeros((2000, 2))
    points[1::4] = 5.0
    found = pieces(points, 1600)
    assert sorted(np.bincount(found).tolist()) == [500, 1500]
    assert len(pieces(np.zeros((0, 3)), 8)) == 0
