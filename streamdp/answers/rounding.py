"""The numbers of answers, as they are told."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry


@entry
def tell_numbers(numbers: np.ndarray, sizes: np.ndarray, unit: float) -> None:
    """Write novelties and round all to ``unit`` parts of one, as ``np.round`` does.

    ``numbers`` is of shape (4, n): two probabilities, the log predictive and the novelty of each record.
    """
    for i in range(sizes.shape[0]):
        # never -0; long records would else look novel
        numbers[3, i] = 0.0 - numbers[2, i] / max(sizes[i], 1)
        for k in range(4):
            numbers[k, i] = np.rint(numbers[k, i] * unit) / unit
