"""Vectors for the bench of strangers: generated kinds, public sets, and files that are given.

Each kind has as many sets of one half as of the other, by their seeds. All but ``scales``, embeddings and
what is read from a file are standardised.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.workloads import data_folder

DIMENSIONS = (2, 4, 8, 16, 32)
HALVES = {"choose": 0, "table": len(DIMENSIONS)}
"""The first seed of each kind's five sets, and of the orders of other sets."""

SMALL = ("wine", "iris", "breast_cancer", "moons")
ORDERS = len(DIMENSIONS)
"""In which each of these comes."""

COMPARED = ("sklearn_blobs", "aniso", "varied", "circles")
"""Of scikit-learn's comparison of clusterers, 500 points each, with other seeds."""

SEEDS = 2 * ORDERS
"""Sets of each of the other kinds."""

MIXTURES = ("spherical", "imbalanced", "full", "t3")
"""Equal variances; weights from a Dirichlet of 1/2; a covariance for each cluster; Student's t, 3 degrees."""

WIDE = (32, 64, 128, 256, 384)
"""Dimensions of pairs of clusters."""

SIPU_ORDERS = 2
"""Random ones, beside the order that they are published in, which has cluster after cluster."""


class Data(NamedTuple):
    """Vectors, shape (n, D), their true clusters, and whether they are embeddings."""

    vectors: np.ndarray
    truth: np.ndarray
    normalise: bool = False

    @property
    def clusters(self) -> int:
        """How many true clusters there are."""
        return len(np.unique(self.truth))


def standardised(vectors: np.ndarray, truth: np.ndarray) -> Data:
    """Of mean 0 and variance 1 in every dimension."""
    spread = vectors.std(axis=0)
    unit = (vectors - vectors.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return Data(np.ascontiguousarray(unit), truth.astype(np.int64))


# ---------------------------------------------------------------- generated kinds


def mixture(kind: str, seed: int) -> Data:
    """1,000 to 5,000 records of 3 to 12 clusters in 2 to 32 dimensions, of which some overlap."""
    rng = np.random.default_rng([MIXTURES.index(kind), seed])
    dimension = DIMENSIONS[seed % len(DIMENSIONS)]
    clusters, n = int(rng.integers(3, 13)), int(rng.integers(1000, 5001))
    # typical distances between centres grow less than their dimensions do, as overlaps do not vanish then
    centres = rng.normal(size=(clusters, dimension)) * rng.uniform(2.0, 3.5) * (2.0 / dimension) ** 0.25
    weights = rng.dirichlet(np.full(clusters, 0.5 if kind == "imbalanced" else 20.0))
    truth = rng.choice(clusters, n, p=weights)
    noise = rng.normal(size=(n, dimension))
    if kind == "full":
        turns = np.linalg.qr(rng.normal(size=(clusters, dimension, dimension)))[0]
        shapes = turns * np.exp(rng.uniform(-1.5, 1.0, size=(clusters, 1, dimension)))
        noise = np.einsum("nij,nj->ni", shapes[truth], noise)
    if kind == "t3":
        noise /= np.sqrt(rng.chisquare(3.0, size=(n, 1)) / 3.0)
    return standardised(centres[truth] + noise, truth)


def _spaced(rng: np.random.Generator, clusters: int, side: float, apart: float) -> np.ndarray:
    """Centres in a square of this side, each pair at least so far apart."""
    found = rng.uniform(0.0, side, size=(1, 2))
    while len(found) < clusters:
        tried = rng.uniform(0.0, side, size=(1, 2))
        if np.linalg.norm(found - tried, axis=1).min() >= apart:
            found = np.concatenate([found, tried])
    return found


def blobs(seed: int) -> Data:
    """20 to 50 round clusters of one width in a plane, centres at least 4 standard deviations apart."""
    rng = np.random.default_rng([10, seed])
    clusters, n = int(rng.integers(20, 51)), int(rng.integers(1500, 5001))
    centres = _spaced(rng, clusters, rng.uniform(8.0, 12.0) * clusters**0.5, 4.0)
    truth = rng.integers(0, clusters, n)
    return standardised(centres[truth] + rng.normal(size=(n, 2)), truth)


def pairs(seed: int) -> Data:
    """Two round clusters in 32 to 384 dimensions, centres 5 to 12 standard deviations apart."""
    rng = np.random.default_rng([11, seed])
    dimension, n = WIDE[seed % len(WIDE)], int(rng.integers(500, 2001))
    axis = rng.normal(size=dimension)
    truth = rng.choice(2, n, p=rng.dirichlet(np.full(2, 10.0)))
    centres = np.outer([0.0, rng.uniform(5.0, 12.0)], axis / np.linalg.norm(axis))
    return standardised(centres[truth] + rng.normal(size=(n, dimension)), truth)


def binary(seed: int) -> Data:
    """Columns of measurements beside as many or more that a cluster has nearly always 0, or 1."""
    rng = np.random.default_rng([12, seed])
    clusters, n = int(rng.integers(3, 9)), int(rng.integers(1000, 3001))
    real = int(rng.integers(2, 7))
    flags = real + int(rng.integers(0, 6))
    truth = rng.choice(clusters, n, p=rng.dirichlet(np.full(clusters, 10.0)))
    centres = rng.normal(size=(clusters, real)) * rng.uniform(2.0, 3.5) * (2.0 / real) ** 0.25
    often = rng.beta(0.2, 0.2, size=(clusters, flags))
    set_to = (rng.random((n, flags)) < often[truth]).astype(float)
    return standardised(np.hstack([centres[truth] + rng.normal(size=(n, real)), set_to]), truth)


def scales(seed: int) -> Data:
    """A mixture of round clusters of which every column has another unit and zero; not standardised."""
    rng = np.random.default_rng([13, seed])
    dimension, clusters, n = (
        (2, 4, 8, 12, 16)[seed % 5],
        int(rng.integers(3, 13)),
        int(rng.integers(1000, 3001)),
    )
    centres = rng.normal(size=(clusters, dimension)) * rng.uniform(2.5, 4.0) * (2.0 / dimension) ** 0.25
    truth = rng.choice(clusters, n, p=rng.dirichlet(np.full(clusters, 10.0)))
    vectors = centres[truth] + rng.normal(size=(n, dimension))
    units = np.exp(rng.uniform(-3.0, 3.0, size=dimension))
    return Data(np.ascontiguousarray(units * (vectors + rng.normal(0.0, 10.0, dimension))), truth)


def outliers(seed: int) -> Data:
    """One Gaussian, and 1 to 5 % of others in one to three places 8 to 20 standard deviations away."""
    rng = np.random.default_rng([14, seed])
    dimension, n, places = (2, 3, 5, 8, 16)[seed % 5], int(rng.integers(1000, 4001)), int(rng.integers(1, 4))
    axes = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    away = rng.uniform(8.0, 20.0, size=(places, 1)) * axes[np.arange(places) % dimension]
    away[dimension:] *= -1.0  # more places than axes
    rare = rng.random(n) < rng.uniform(0.01, 0.05)
    truth = np.where(rare, rng.integers(1, places + 1, n), 0)
    centres = np.vstack([np.zeros(dimension), away])
    return standardised(centres[truth] + rng.normal(size=(n, dimension)), truth)


def skewed(seed: int) -> Data:
    """2 to 4 clusters in 10 to 30 columns: exponentials of normal ones that have three factors in common."""
    rng = np.random.default_rng([15, seed])
    dimension, clusters, n = int(rng.integers(10, 31)), int(rng.integers(2, 5)), int(rng.integers(400, 2001))
    loads = rng.normal(size=(3, dimension))
    centres = rng.normal(size=(clusters, dimension)) * rng.uniform(1.0, 1.6)
    truth = rng.choice(clusters, n, p=rng.dirichlet(np.full(clusters, 10.0)))
    logs = centres[truth] + rng.normal(size=(n, 3)) @ loads * 0.7 + rng.normal(size=(n, dimension)) * 0.6
    return standardised(np.exp(rng.uniform(0.2, 0.7, dimension) * logs), truth)


def heavy(seed: int) -> Data:
    """5 to 20 clusters of Student's t with 2 to 3 degrees of freedom."""
    rng = np.random.default_rng([16, seed])
    dimension = (2, 4, 8, 12, 16)[seed % 5]
    clusters, n = int(rng.integers(5, 21)), int(rng.integers(1500, 4001))
    degrees = rng.uniform(2.0, 3.0)
    centres = rng.normal(size=(clusters, dimension)) * rng.uniform(5.0, 8.0) * (2.0 / dimension) ** 0.25
    truth = rng.choice(clusters, n, p=rng.dirichlet(np.full(clusters, 10.0)))
    noise = rng.normal(size=(n, dimension)) / np.sqrt(rng.chisquare(degrees, size=(n, 1)) / degrees)
    return standardised(centres[truth] + noise, truth)


OTHERS: dict[str, Callable[[int], Data]] = {
    "blobs": blobs,
    "pairs": pairs,
    "binary": binary,
    "scales": scales,
    "outliers": outliers,
    "skewed": skewed,
    "heavy": heavy,
}

# ---------------------------------------------------------------- public sets


def small(name: str, seed: int) -> Data:
    """A set that scikit-learn brings along, or makes, in a random order."""
    from sklearn import datasets

    if name == "moons":
        vectors, truth = datasets.make_moons(1000, noise=0.06, random_state=0)
    else:
        vectors, truth = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(truth))
    return standardised(vectors[order], truth[order])


def compared(name: str, seed: int) -> Data:
    """A set of the plane as scikit-learn's comparison of clusterers makes it."""
    from sklearn import datasets

    if name == "circles":
        vectors, truth = datasets.make_circles(500, factor=0.5, noise=0.05, random_state=seed)
    else:
        spread = [1.0, 2.5, 0.5] if name == "varied" else 1.0
        vectors, truth = datasets.make_blobs(500, cluster_std=spread, random_state=seed)
    if name == "aniso":
        vectors = vectors @ [[0.6, -0.6], [-0.4, 0.8]]
    return standardised(vectors, truth)


def sipu(name: str) -> list[Data]:
    """A set of the plane as it is published, and in other orders."""
    folder = data_folder() / "more" / "sipu"
    with gzip.open(folder / f"sipu_{name}.data.gz", "rt") as file:
        vectors = np.loadtxt(file)
    with gzip.open(folder / f"sipu_{name}.labels0.gz", "rt") as file:
        truth = np.loadtxt(file).astype(np.int64)
    given = [np.arange(len(truth))]
    given += [np.random.default_rng(seed).permutation(len(truth)) for seed in range(SIPU_ORDERS)]
    return [standardised(vectors[order], truth[order]) for order in given]


def banking77() -> list[Data]:
    """MiniLM's embeddings of what customers of a bank want, in a random order."""
    with np.load(data_folder() / "more" / "emb_banking77.npz") as file:
        vectors, truth = file["X"].astype(float), np.unique(file["y"], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(truth))
    return [Data(np.ascontiguousarray(vectors[order]), truth[order].astype(np.int64), True)]


PUBLIC: dict[str, Callable[[], list[Data]]] = {
    "a2": lambda: sipu("a2"),
    "s1": lambda: sipu("s1"),
    "d31": lambda: sipu("d31"),
    "banking77": banking77,
}
"""The same in both halves: constants may have been chosen on these."""

KINDS = (*SMALL, *COMPARED, *MIXTURES, *OTHERS, *PUBLIC)


def sets(half: str, kinds: Sequence[str] = KINDS) -> dict[str, list[Data]]:
    """The sets of one half by row of the table."""
    seeds, found = range(HALVES[half], HALVES[half] + ORDERS), dict[str, list[Data]]()
    for kind in kinds:
        if kind in PUBLIC:
            found[f"{kind} *"] = PUBLIC[kind]()
        elif kind in SMALL:
            found[kind] = [small(kind, seed) for seed in seeds]
        elif kind in COMPARED:
            found[kind] = [compared(kind, seed) for seed in seeds]
        elif kind in MIXTURES:
            found[kind] = [mixture(kind, seed) for seed in seeds]
        else:
            begin = HALVES[half] // ORDERS * SEEDS
            found[kind] = [OTHERS[kind](seed) for seed in range(begin, begin + SEEDS)]
    return found


# ---------------------------------------------------------------- files


def from_file(path: str, truth: str, normalise: bool) -> Data:
    """Vectors of a ``.npy`` or Parquet file in its order, as they are.

    ``truth`` is a ``.npy`` file of labels, or the name of a column of the Parquet file. The columns of a
    Parquet file are its numbers, or the one that holds lists of numbers.
    """
    try:
        if path.endswith(".parquet"):
            vectors, labels = _from_parquet(path, truth)
        elif path.endswith(".npy"):
            vectors, labels = np.load(path), np.load(truth)
        else:
            sys.exit(f"{path}: neither .npy nor .parquet")
    except (OSError, ValueError) as error:
        sys.exit(f"{path}, {truth}: {error}")
    if vectors.ndim != 2 or vectors.dtype.kind not in "biuf":
        sys.exit(
            f"{path}: not an array of numbers with a row for each record: {vectors.shape}, {vectors.dtype}"
        )
    if not np.isfinite(vectors).all():
        sys.exit(f"{path}: some numbers are missing or not finite")
    if len(labels) != len(vectors):
        sys.exit(f"{truth}: {len(labels):,} labels of {len(vectors):,} vectors")
    clusters = np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return Data(np.ascontiguousarray(vectors, float), clusters, normalise)


def _from_parquet(path: str, truth: str) -> tuple[np.ndarray, np.ndarray]:
    import pyarrow.parquet as pq
    from pyarrow import types

    table = pq.read_table(path)
    if truth not in table.column_names:
        sys.exit(f"{path}: no column {truth!r}; there are {', '.join(table.column_names)}")
    labels = np.array(table.column(truth).to_pylist()).astype(str)
    table = table.drop_columns([truth])
    for field in table.schema:
        if (
            types.is_list(field.type)
            or types.is_large_list(field.type)
            or types.is_fixed_size_list(field.type)
        ):
            return np.array(table.column(field.name).to_pylist()), labels
    numbers = [f.name for f in table.schema if types.is_integer(f.type) or types.is_floating(f.type)]
    if not numbers:
        sys.exit(f"{path}: no column of numbers")
    return np.column_stack([table.column(name).to_numpy() for name in numbers]), labels


def name_of(path: str) -> str:
    """What the row of a file is called."""
    return Path(path).stem
