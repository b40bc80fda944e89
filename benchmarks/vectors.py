"""Vectors without any setting: the defaults beside fixed alternatives and ways of choosing a scale.

First-announced labels of one pass, the scales learned from the first 200 vectors as in the engine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.workloads import (
    chunks,
    digits,
    drifting_mixture,
    feed,
    mnist,
    pixels,
    segments,
    show,
    vector_search,
    windowed,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.likelihoods import NormalInverseWishart, VectorFamily
from streamdp.likelihoods.base import WITHIN, Moments
from streamdp.likelihoods.normal_inverse_wishart import RECORDS
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import WARMUP, build_likelihood, build_prior


class Stream(NamedTuple):
    """Where vectors and true clusters come from, and how many records a window of the windowed ARI has."""

    load: Callable[[], tuple[np.ndarray, np.ndarray]]
    window: int


STREAMS = {
    "digits": Stream(digits, 250),
    "pixels": Stream(pixels, 250),
    "segments": Stream(segments, 250),
    "mixture": Stream(drifting_mixture, 500),
    "mnist": Stream(mnist, 500),
}


def small(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set that scikit-learn brings along, shuffled."""
    from sklearn import datasets

    vectors, truth = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(truth))
    return np.ascontiguousarray(vectors[order]), truth[order].astype(np.int64)


STREAMS |= {name: Stream(partial(small, name), 50) for name in ("iris", "wine", "breast_cancer")}

GENERATED = 18
"""Mixtures that are generated."""


def generated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """3,000 records of a mixture of 3 to 40 clusters in 2 to 64 dimensions, each of its own unit.

    One in three has clusters that lean, each its own way, and one in three has long tails.
    """
    rng, n = np.random.default_rng(1000 + seed), 3000
    dimension, clusters = int(rng.choice([2, 4, 8, 16, 32, 64])), int(rng.choice([3, 5, 10, 20, 40]))
    apart = rng.uniform(1.0, 3.0) * (1.0 if dimension > 4 else 2.0)
    centres = rng.normal(size=(clusters, dimension)) * rng.uniform(0.5, 1.5, size=dimension) * apart
    truth = rng.choice(clusters, n, p=rng.dirichlet(np.full(clusters, 3.0)))
    shapes = np.empty((clusters, dimension, dimension))
    for k in range(clusters):
        if seed % 3 == 1:
            leaning = rng.normal(size=(dimension, dimension)) / np.sqrt(dimension)
            shapes[k] = leaning + 0.5 * np.eye(dimension)
        else:
            shapes[k] = np.eye(dimension) * rng.uniform(0.5, 1.5, size=dimension)
    noise = rng.normal(size=(n, dimension))
    if seed % 3 == 2:
        noise /= np.sqrt(rng.gamma(3.0, 1.0 / 3.0, size=(n, 1)))
    vectors = centres[truth] + np.einsum("nij,nj->ni", shapes[truth], noise)
    return vectors * np.exp(rng.normal(size=dimension)), truth.astype(np.int64)


Rule = Callable[[np.ndarray], VectorFamily]
"""The family that the first vectors suggest."""

FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Multiples of the neighbours' scale among which the choosing rules choose."""
SPLITS = 3


def set_to(**given: Any) -> Rule:
    """What settings mean."""

    def rule(first: np.ndarray) -> VectorFamily:
        family = build_likelihood(Settings(**given), Moments.of(first))
        assert isinstance(family, VectorFamily)
        return family

    return rule


def wishart(first: np.ndarray, scale: np.ndarray, records: float = RECORDS) -> VectorFamily:
    """Full covariance with this prior, shape (D, D), which counts for so many records."""
    degrees = first.shape[1] + 1.0 + records
    rows = tuple(map(tuple, (records * scale).tolist()))
    mean = tuple(first.mean(axis=0).tolist())
    return NormalInverseWishart(first.shape[1], mean=mean, kappa=WITHIN, degrees=degrees, scale=rows)


def share(records: float) -> Rule:
    """Full covariance, a fifth of the variance within a cluster."""
    return lambda first: wishart(first, np.diag(WITHIN * Moments.of(first).variance), records)


def diagonal(first: np.ndarray) -> VectorFamily:
    """The neighbours' scale in every dimension by itself."""
    return wishart(first, np.diag(np.diagonal(Moments.of(first).within)))


def chosen(judge: Callable[[np.ndarray, VectorFamily], float]) -> Rule:
    """The multiple of the neighbours' scale that a judge of the first vectors likes best."""

    def rule(first: np.ndarray) -> VectorFamily:
        scale = Moments.of(first).within
        bank = [wishart(first, factor * scale) for factor in FACTORS]
        return bank[int(np.argmax([judge(first, family) for family in bank]))]

    return rule


def stability(first: np.ndarray, family: VectorFamily) -> float:
    """Mean ARI between the labels of the first vectors in their order and in others."""
    rng, told = np.random.default_rng(0), labels_of(first, family)[0]
    orders = [rng.permutation(len(first)) for _ in range(SPLITS)]
    return float(np.mean([agreement(labels_of(first[p], family)[0], told[p]).ari for p in orders]))


def strength(first: np.ndarray, family: VectorFamily) -> float:
    """Mean ARI between the labels of one half and what the other half's clusters say of it.

    After Tibshirani and Walther 2005; -1, a new cluster, is a label of its own for each record.
    """
    rng, found = np.random.default_rng(0), []
    for _ in range(SPLITS):
        order = rng.permutation(len(first))
        halves = [np.sort(half) for half in np.array_split(order, 2)]
        runs = [labels_of(first[half], family) for half in halves]
        for (told, _), half, (_, other) in zip(runs, halves, reversed(runs), strict=True):
            foretold = other.score(batch_of(first[half])).answers["label"][: len(half)].copy()
            new = foretold < 0
            foretold[new] = -1 - np.arange(new.sum())
            found.append(agreement(foretold, told).ari)
    return float(np.mean(found))


def batch_of(vectors: np.ndarray) -> Batch:
    return Batch.of_vectors(vectors, np.arange(len(vectors), dtype=float))


def labels_of(vectors: np.ndarray, family: VectorFamily, beam: int = 4) -> tuple[np.ndarray, BeamSearch]:
    """First-announced labels, and the beam in the end."""
    settings = Settings(beam=beam)
    search = vector_search(settings, build_prior(settings, False), family)
    return feed(search, chunks(batch_of(vectors))), search


RULES: dict[str, Rule] = {
    "default": set_to(),
    "Wishart, a fifth of the variance": share(RECORDS),
    "the same, counting for 1 record": share(1.0),
    "Wishart, neighbours by dimension": diagonal,
    "gamma, shape 2, forget .99": set_to(likelihood="normal-inverse-gamma"),
    "gamma, shape 5, forget .98": set_to(shape=5.0, forget=0.98),
    "Wishart, stable under reordering": chosen(stability),
    "Wishart, prediction strength": chosen(strength),
}


def figures(labels: np.ndarray, truth: np.ndarray, window: int) -> tuple[str, ...]:
    """Windowed ARI, ARI, NMI and clusters, as shown."""
    over = agreement(labels, truth)
    shown = (f"{value:.3f}" for value in (windowed(labels, truth, window), over.ari, over.nmi))
    return *shown, f"{len(np.unique(labels))}"


def report(names: list[str], beam: int) -> None:
    """Mean windowed ARI over the generated mixtures."""
    rows: list[tuple[str, ...]] = []
    for name in names:
        found = []
        for seed in range(GENERATED):
            vectors, truth = generated(seed)
            labels, _ = labels_of(vectors, RULES[name](vectors[:WARMUP]), beam)
            found.append(float(figures(labels, truth, 250)[0]))
        rows.append((name, f"{np.mean(found):.3f}", f"{min(found):.3f}"))
    show(f"{GENERATED} generated mixtures", ("", "windowed ARI, mean", "least"), rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    parser.add_argument("--generated", action="store_true", help="the mean over generated mixtures instead")
    parser.add_argument("--beam", type=int, default=Settings().beam)
    options = parser.parse_args()
    if options.generated:
        report(options.rules, options.beam)
        return
    for name in options.streams:
        vectors, truth = STREAMS[name].load()
        rows = []
        for rule in options.rules:
            labels, _ = labels_of(vectors, RULES[rule](vectors[:WARMUP]), options.beam)
            rows.append((rule, *figures(labels, truth, STREAMS[name].window)))
        title = f"{name}, {len(vectors):,} by {vectors.shape[1]}"
        show(title, ("", "windowed ARI", "ARI", "NMI", "clusters"), rows)


if __name__ == "__main__":
    main()
