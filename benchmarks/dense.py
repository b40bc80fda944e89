"""Vectors: MNIST under a narrow beam and a drifting Gaussian mixture under a wide one, beside River."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from benchmarks.workloads import (
    chunks,
    drifting_mixture,
    feed,
    median_of,
    mnist,
    predicted,
    show,
    timed,
    vector_search,
    warm,
    windowed,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.likelihoods.base import Moments
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import WARMUP, build_likelihood, build_prior

WINDOW = 500
"""Records in a window of the windowed ARI."""


class Case(NamedTuple):
    """A stream, how it is clustered, and the peers' settings."""

    name: str
    vectors: np.ndarray
    truth: np.ndarray
    settings: Settings
    goal: int
    clusters: int
    radius: float


def cases(which: list[str]) -> list[Case]:
    """The streams asked for."""
    found = []
    if "mnist" in which:
        # with these variances and concentration, about 50 clusters are live in the end
        settings = Settings(
            beam=1,
            likelihood="gaussian",
            variance=0.52,
            mean_variance=1.0,
            prior="crp",
            concentration=1.0,
        )
        found.append(Case("MNIST, 50 components", *mnist(), settings, 200_000, 50, 9.0))
    if "mixture" in which:
        settings = Settings(beam=16, likelihood="normal-inverse-gamma", forget=0.99)
        found.append(Case("drifting mixture", *drifting_mixture(), settings, 40_000, 20, 2.5))
    return found


def new_search(case: Case) -> BeamSearch:
    """The beam with location and scales learned as the engine does, from the first vectors."""
    first = case.vectors[:WARMUP]
    moments = Moments.of(first)
    likelihood = build_likelihood(case.settings, moments)
    return vector_search(case.settings, build_prior(case.settings, False), likelihood)


def row_of(name: str, records: int, seconds: float, ratio: float | None, *rest: object) -> tuple[object, ...]:
    """A line of the table."""
    shown = "" if ratio is None else f"{ratio:,.0f}"
    return (name, records, f"{records / seconds:,.0f}", shown, *rest)


def report(case: Case, runs: int, peer_records: int) -> None:
    """Measure a stream and print."""
    from river.cluster import DenStream, KMeans

    batches = chunks(Batch.of_vectors(case.vectors, np.arange(len(case.vectors), dtype=float)))
    search = new_search(case)
    labels = feed(search, batches)
    seconds = median_of(runs, lambda: timed_feed(case, batches))
    n = labels.shape[0]
    rows = []
    peers = {
        "River KMeans": KMeans(n_clusters=case.clusters, halflife=0.1, seed=0),
        "River DenStream": DenStream(epsilon=case.radius, decaying_factor=0.01, beta=0.5, mu=2.5),
    }
    for name, model in peers.items():
        guesses, taken = predicted(model, case.vectors[:peer_records])
        ratio = (n / seconds) / (peer_records / taken)
        rows.append(row_of(name, peer_records, taken, ratio, *quality(guesses, case.truth[:peer_records])))
    live = search.counters()["clusters_live"]
    name = f"streamdp, beam {case.settings.beam}"
    rows.append(row_of(name, n, seconds, None, *quality(labels, case.truth), live, f"{case.goal:,}"))
    show(
        case.name,
        ("", "records", "records / CPU s", "we / it", "NMI", "ARI", "windowed ARI", "live", "goal"),
        [(*row, *[""] * (9 - len(row))) for row in rows],
    )


def timed_feed(case: Case, batches: list[Batch]) -> float:
    """CPU seconds of a fresh beam."""
    search = new_search(case)
    return timed(lambda: feed(search, batches))


def quality(labels: np.ndarray, truth: np.ndarray) -> tuple[str, str, str]:
    """NMI, ARI and windowed ARI, as shown."""
    over = agreement(labels, truth)
    return f"{over.nmi:.3f}", f"{over.ari:.3f}", f"{windowed(labels, truth, WINDOW):.3f}"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", nargs="+", default=["mnist", "mixture"], choices=["mnist", "mixture"])
    parser.add_argument("--runs", type=int, default=3, help="runs of the engine, of which the median counts")
    parser.add_argument("--peer-records", type=int, default=5_000, help="records that the peers are given")
    options = parser.parse_args()
    warm()
    for case in cases(options.streams):
        report(case, options.runs, options.peer_records)


if __name__ == "__main__":
    main()
