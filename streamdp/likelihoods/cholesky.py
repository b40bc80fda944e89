"""Lower Cholesky factors L of symmetric positive definite matrices L L'."""

from __future__ import annotations

import numpy as np

LEAST = 0.1
"""The least share of the determinant that a downdate may leave without losing digits."""


def solve_lower(factor: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The solution p of L p = v, in O(D^2)."""
    solution = np.empty_like(vector)
    for d, row in enumerate(factor):
        solution[d] = (vector[d] - row[:d] @ solution[:d]) / row[d]
    return solution


def rank_one(factor: np.ndarray, vector: np.ndarray, sign: float) -> bool:
    """Make L the factor of L L' + sign v v', in place and in O(D^2).

    False, and nothing is done, when a downdate would leave less than ``LEAST`` of the determinant.
    With p = L^-1 v the new factor is L M, M that of I + sign p p' (Gill, Golub, Murray and Saunders 1974).
    """
    p = solve_lower(factor, vector)
    grown = 1.0 + sign * np.cumsum(p * p)  # determinants of the leading blocks of I + sign p p'
    if grown[-1] < LEAST:
        return False
    before = np.concatenate(([1.0], grown[:-1]))
    beyond = np.cumsum((factor * p)[:, ::-1], axis=1)[:, ::-1]  # sum over j >= c of L_dj p_j
    factor *= np.sqrt(grown / before)
    factor[:, :-1] += sign * beyond[:, 1:] * (p / np.sqrt(before * grown))[:-1]
    return True


def log_determinant(factor: np.ndarray) -> float:
    """log |L L'|."""
    return 2.0 * float(np.log(np.diagonal(factor)).sum())


def factorise(matrix: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """L of a matrix that exceeds another, ``floor``, by a positive semidefinite one, in O(D^3).

    Where rounding has broken this, eigenvalues are raised to the smallest of ``floor``.
    """
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(values, np.linalg.eigvalsh(floor)[0])
        factor: np.ndarray = np.linalg.qr((vectors * np.sqrt(values)).T).R.T
        factor *= np.where(np.diagonal(factor) < 0.0, -1.0, 1.0)
        return factor
