"""What the kernels read of an exchangeable prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Weights(NamedTuple):
    """log p(z) = sum of ``found[0 .. K - 1]`` + sum over clusters of ``grown[n_k]`` - norm."""

    join: np.ndarray  # float64[N + 1] log weight of joining a cluster of that size
    grown: np.ndarray  # float64[N + 1] sum of ``join`` from 1 to below that size
    found: np.ndarray  # float64[N + 1] log weight of founding one beside that many
    norm: np.ndarray  # float64[1] log of the product of the normalisers of N records
