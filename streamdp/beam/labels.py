"""Labels of clusters from one clustering of the same records to the next."""

from __future__ import annotations

import numpy as np

NONE = np.zeros(0, np.int64)


def inherit(
    before: np.ndarray, after: np.ndarray, kept: np.ndarray = NONE, minted: int = 0
) -> tuple[np.ndarray, int]:
    """The label of each new cluster: by largest overlap, one to one, the older label on ties.

    Parameters
    ----------
    before, after
        Labels, and numbers of clusters, of the same records.
    kept
        Labels of the first clusters, which keep them.
    minted
        Labels below it are taken, as are those of ``before``.

    Returns labels by the number of the cluster, and the first label that is free.
    """
    pairs, overlap = np.unique(np.stack([before, after], axis=1), axis=0, return_counts=True)
    minted = max(int(before.max(initial=-1)) + 1, minted)
    names = np.full(max(int(after.max(initial=-1)) + 1, len(kept)), -1)
    names[: len(kept)] = kept
    taken: set[int] = set(kept.tolist())
    for p in np.lexsort((pairs[:, 1], pairs[:, 0], -overlap)):
        label, cluster = int(pairs[p, 0]), int(pairs[p, 1])
        if names[cluster] < 0 and label not in taken:
            names[cluster] = label
            taken.add(label)
    for cluster in np.flatnonzero(names < 0).tolist():
        names[cluster] = minted
        minted += 1
    return names, minted
