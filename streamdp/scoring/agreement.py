"""How well a clustering agrees with a truth: NMI, ARI, homogeneity, completeness.

Definitions and degenerate cases are those of scikit-learn, which the tests compare with.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamdp.records import SMALL

Labels = Sequence[int] | NDArray[np.integer]


class Agreement(msgspec.Struct, frozen=True):
    """Scores of a clustering of ``n`` records against a truth.

    ``nmi`` is the mutual information over the mean of the two entropies, in [0, 1] (Vinh, Epps &
    Bailey 2010); ``v`` is the V-measure, which equals it (Rosenberg & Hirschberg 2007);
    ``homogeneity`` is 1 when no cluster mixes classes, ``completeness`` is 1 when no class is split.
    ``ari`` is the adjusted Rand index, in [-0.5, 1], expected 0 by chance (Hubert & Arabie 1985).
    ``found`` is the number of clusters, ``larger`` of those of more than three records, ``true`` the number
    of classes.
    """

    nmi: float
    ari: float
    homogeneity: float
    completeness: float
    v: float
    found: int
    larger: int
    true: int
    n: int


def agreement(labels: Labels, truth: Labels) -> Agreement:
    """Compare the clustering ``labels`` with the classes ``truth``, record by record.

    Any integers serve as names. Two clusterings that are both one single cluster, or both empty,
    agree fully. Raises ``ValueError`` when the two are not one-dimensional integers of one length.
    """
    found, true = _codes(labels, "labels"), _codes(truth, "truth")
    if len(found) != len(true):
        raise ValueError(f"{len(found)} labels but {len(true)} truth values")
    n = len(found)
    clusters, classes = np.bincount(found), np.bincount(true)
    cells, cluster_of, class_of = _contingency(found, true, len(clusters), len(classes))

    information = _mutual_information(cells, clusters[cluster_of], classes[class_of], n)
    if len(clusters) == 1 or len(classes) == 1:
        information = 0.0
    of_clusters, of_classes = _entropy(clusters, n), _entropy(classes, n)
    nmi = _share(information, (of_clusters + of_classes) / 2)
    return Agreement(
        nmi=nmi,
        ari=_adjusted_rand(cells, clusters, classes, n),
        homogeneity=_share(information, of_classes),
        completeness=_share(information, of_clusters),
        v=nmi,
        found=len(clusters),
        larger=int((clusters > SMALL).sum()),
        true=len(classes),
        n=n,
    )


def _codes(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """The values renamed to 0, 1, ... in ascending order."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a one-dimensional sequence of integers")
    _, codes = np.unique(given, return_inverse=True)
    return codes.astype(np.int64)


def _contingency(
    found: NDArray[np.int64], true: NDArray[np.int64], n_clusters: int, n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The non-empty cells of the table of clusters by classes: count, cluster, class."""
    # Both factors are at most the number of records, so the product fits 63 bits up to 3 * 10^9 of them.
    pairs = found * max(n_classes, 1) + true
    if n_clusters * n_classes <= len(pairs):
        table = np.bincount(pairs, minlength=1)
        occupied = np.flatnonzero(table)
        cells = table[occupied]
    else:
        occupied, cells = np.unique(pairs, return_counts=True)
    cluster_of, class_of = np.divmod(occupied, max(n_classes, 1))
    return cells.astype(np.int64), cluster_of, class_of


def _mutual_information(
    cells: NDArray[np.int64], clusters: NDArray[np.int64], classes: NDArray[np.int64], n: int
) -> float:
    if not n:
        return 0.0
    # Differences of logarithms instead of a product of counts: nothing can overflow.
    ratio = np.log(cells) - np.log(clusters) - np.log(classes) + np.log(n)
    information = float(np.sum(cells / n * ratio))
    # The rounding errors of independent labels must not show up as agreement.
    return information if information > np.finfo(np.float64).eps * max(1.0, np.log(n)) else 0.0


def _entropy(sizes: NDArray[np.int64], n: int) -> float:
    if len(sizes) <= 1:
        return 0.0
    return float(-np.sum(sizes / n * (np.log(sizes) - np.log(n))))


def _share(information: float, entropy: float) -> float:
    return min(1.0, information / entropy) if entropy else 1.0


def _pairs(sizes: NDArray[np.int64]) -> int:
    """Ordered pairs of different records within the cells: at most n (n - 1), which int64 holds."""
    return int(np.sum(sizes * (sizes - 1)))


def _adjusted_rand(
    cells: NDArray[np.int64], clusters: NDArray[np.int64], classes: NDArray[np.int64], n: int
) -> float:
    both, in_clusters, in_classes = _pairs(cells), _pairs(clusters), _pairs(classes)
    if both == in_clusters == in_classes:
        return 1.0
    # Products of pair counts need twice the bits of int64: plain Python integers until the division.
    every = n * (n - 1)
    expected = in_clusters * in_classes
    return (2 * (both * every - expected)) / ((in_clusters + in_classes) * every - 2 * expected)
