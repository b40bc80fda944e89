"""The papers' data sets and models, clusterings of them as the papers' figures, and how they are found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from benchmarks.workloads import data_folder, timed
from streamdp.beam.data.state import MAX_SLACK
from streamdp.beam.search import BeamSearch
from streamdp.likelihoods import DirichletMultinomial, Gaussian, Likelihood
from streamdp.offline.chain import Chain
from streamdp.offline.prepare import Data, log_coefficients
from streamdp.offline.samplers import Gibbs, Move, SequentiallyAllocated, SplitMerge
from streamdp.offline.samplers.permutation import Permutation
from streamdp.offline.schedule import Budget, Hybrid, run
from streamdp.offline.starts import Order, sequential
from streamdp.priors import CRP
from streamdp.priors.base import Prior
from streamdp.settings import Settings
from streamdp.settings.assemble import build_model

FIRST_WORD, WORDS = 10, 1000
"""Daume leaves out the ten most frequent words of the NIPS papers and takes the next thousand."""
COMPONENTS = 50

# ---------------------------------------------------------------- records and their model


class Figures(NamedTuple):
    """What the papers report of a clustering."""

    clusters: int
    loss: float  # -log p(x | z) in nats, of word counts with their multinomial coefficients
    objective: float  # loss - log p(z)


@dataclass(frozen=True)
class Problem:
    """Records and the model that they are clustered under."""

    data: Data
    likelihood: Likelihood
    prior: Prior

    def chain(self, labels: np.ndarray | None = None, seed: int = 0) -> Chain:
        """A chain at a clustering; None: one cluster."""
        return Chain(self.data, self.likelihood, self.prior, labels, seed=seed)

    @cached_property
    def log_coefficient(self) -> float:
        """Sum of the records' log multinomial coefficients, in nats; 0 for vectors."""
        return float(log_coefficients(self.chain().store, self.likelihood).sum())

    def figures(self, chain: Chain) -> Figures:
        """Those of a chain's present clustering, computed anew."""
        chain.refresh()
        loss = -chain.log_likelihood - self.log_coefficient
        return Figures(chain.clusters, loss, loss - chain.log_prior())


SOURCES = {
    "nips12.npz": "NIPS 1-12, word counts of 1,740 papers, from S. Roweis",
    "nips12.vocab.txt": "the vocabulary of NIPS 1-12, from S. Roweis",
    "mnist.npz": "MNIST, 60,000 handwritten digits, from Y. LeCun, C. Cortes and C. Burges",
    "reuters21578.jsonl.gz": "20,840 Reuters stories of 1987, from D. Lewis",
    "ap.dat": "2,246 AP documents in the format of lda-c, from D. Blei",
}


def data_file(name: str) -> Path:
    """Where a set lies; the program ends with a line that says what it is and whose, if it is not there."""
    try:
        path = data_folder() / name
    except SystemExit as missing:
        sys.exit(f"{missing}; {name} is wanted: {SOURCES[name]}")
    if not path.exists():
        sys.exit(f"no {name} in {path.parent}: {SOURCES[name]}")
    return path


def nips() -> Problem:
    """1,740 papers of NIPS 1-12 under Daume's model."""
    with np.load(data_file("nips12.npz")) as file:
        counts, words = file["data"], file["indices"] - FIRST_WORD
        papers = int(file["shape"][0])
        rows = np.repeat(np.arange(papers), np.diff(file["indptr"]))
    kept = (words >= 0) & (words < WORDS)
    offsets = np.zeros(papers + 1, np.int64)
    np.cumsum(np.bincount(rows[kept], minlength=papers), out=offsets[1:])
    return Problem(Data(offsets, words[kept], counts[kept]), DirichletMultinomial(10.0, WORDS), CRP(1.0))


@cache
def digits(count: int) -> Problem:
    """The first digits of MNIST, centred and whitened on their principal components, under Daume's model."""
    from sklearn.decomposition import PCA

    with np.load(data_file("mnist.npz")) as file:
        pixels = file["x_train"][:count].reshape(count, -1) / 255.0
    vectors = PCA(COMPONENTS, whiten=True, random_state=0).fit_transform(pixels)
    likelihood = Gaussian(dimension=COMPONENTS, variance=1.0, mean_variance=0.1)
    return Problem(Data.of_vectors(np.ascontiguousarray(vectors)), likelihood, CRP(1.0))


def articles() -> Problem:
    """2,246 articles of AP; the smoothing is ours, as Liang, Jordan and Taskar do not state theirs."""
    lines = data_file("ap.dat").read_text().splitlines()
    bags = [
        np.array([pair.split(":") for pair in line.split()[1:]], np.int64).reshape(-1, 2).T for line in lines
    ]
    return Problem(
        Data.of_words([(bag[0], bag[1]) for bag in bags]), DirichletMultinomial(0.1, 10_473), CRP(1.0)
    )


def standardised_digits(count: int, components: int) -> Problem:
    """The first digits of MNIST, pixels standardised, on principal components, with noise of variance 16."""
    with np.load(data_file("mnist.npz")) as file:
        pixels = file["x_train"][:count].reshape(count, -1).astype(float)
    pixels = pixels[:, pixels.std(axis=0) > 0.0]
    pixels = (pixels - pixels.mean(axis=0)) / pixels.std(axis=0)
    vectors = pixels @ np.linalg.svd(pixels, full_matrices=False)[2][:components].T
    likelihood = Gaussian(components, variance=16.0, mean_variance=float(vectors.var()))
    return Problem(Data.of_vectors(np.ascontiguousarray(vectors)), likelihood, CRP(1.0))


def mixture(
    count: int, dimension: int, clusters: int, deviation: float, mean_variance: float, seed: int
) -> tuple[Problem, np.ndarray]:
    """Normal centres of that deviation, unit noise around them; and the true clusters."""
    rng = np.random.default_rng(seed)
    centres = deviation * rng.normal(size=(clusters, dimension))
    truth = rng.integers(0, clusters, count)
    vectors = centres[truth] + rng.normal(size=(count, dimension))
    likelihood = Gaussian(dimension, variance=1.0, mean_variance=mean_variance)
    return Problem(Data.of_vectors(vectors), likelihood, CRP(1.0)), truth


# ---------------------------------------------------------------- search and samplers


def searched(
    problem: Problem, order: np.ndarray, width: int, prior: Prior | None = None
) -> tuple[np.ndarray, float]:
    """The clustering that a beam ends up with, by record, and its CPU seconds; ``prior``: to search under."""
    model = build_model(Settings(beam=width, slack=MAX_SLACK), prior or problem.prior, problem.likelihood)
    search = BeamSearch(model, problem.likelihood)
    if problem.likelihood.sparse:
        search.ensure_words(int(problem.data.words.max()) + 1)
    batch = in_order(problem.data, order)
    found = np.empty(problem.data.size, np.int64)
    began = time.process_time()
    for start, stop, out in search.run(batch):
        found[start:stop] = out.answers["label"][start:stop]
        revised = slice(0, out.counters.revisions)
        found[out.revisions["seq"][revised]] = out.revisions["label"][revised]  # of several, the last holds
    seconds = time.process_time() - began
    labels = np.empty_like(found)
    labels[order] = found
    return labels, seconds


def in_order(data: Data, order: np.ndarray) -> Data:
    """What the beam takes; of a record's words those that occur once come first."""
    taken, times = data.take(order), np.arange(len(order), dtype=float)
    if not taken.sparse:
        return replace(taken, times=times)
    by_count = np.lexsort((taken.counts > 1, taken.rows))
    return Data(taken.offsets, taken.words[by_count], taken.counts[by_count], times=times)


def greedy(problem: Problem, order: Order, seed: int = 0, count_prior: bool = False) -> tuple[Figures, float]:
    """One pass that never looks back, and its CPU seconds."""
    chain = problem.chain(seed=seed)
    seconds = timed(lambda: sequential(chain, order=order, count_prior=count_prior))
    return problem.figures(chain), seconds


def refined(
    problem: Problem, start: Callable[[Chain], None], move: Move, rounds: int, seed: int = 0
) -> tuple[Figures, float]:
    """The best clustering that a move meets in some rounds, and their CPU seconds."""
    chain = problem.chain(seed=seed)
    start(chain)
    began = time.process_time()
    _, best = run(chain, move, Budget(rounds))
    seconds = time.process_time() - began
    chain.set_labels(best.labels)
    return problem.figures(chain), seconds


def split_merge(scans: int = 1, proposals: int = 3) -> Hybrid:
    """Gibbs sweeps with splits and mergers in between."""
    return Hybrid([Gibbs(), SplitMerge(scans=scans, proposals=proposals)])


def allocated() -> Hybrid:
    """Gibbs sweeps with sequentially allocated splits and mergers in between."""
    return Hybrid([Gibbs(), SequentiallyAllocated()])


def permuted(order: str) -> Hybrid:
    """Gibbs sweeps with a draw of all clusters along a permutation in between."""
    return Hybrid([Gibbs(), Permutation(order=order, keep=1e-3, width=50)])  # type: ignore[arg-type]


def warm(problem: Problem, *moves: Move) -> None:
    """Compile, or load, the kernels of the moves and of the beam outside all measurements."""
    few = Problem(problem.data.take(np.arange(20)), problem.likelihood, problem.prior)
    searched(few, np.arange(20), 2)
    for move in moves:
        move(few.chain(np.arange(20) % 3))
