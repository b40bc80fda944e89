"""StreamDP beside clusterers of River and scikit-learn, test-then-train, in one run: the table of the README.

Every peer predicts a record, then learns it, one at a time; k is given where it is asked for. The labels of
StreamDP are what it predicted before learning, None counted as a cluster of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import streamdp
from benchmarks.workloads import digits, drifting_mixture, median_of, segments, show, windowed
from streamdp.scoring.agreement import agreement


class Stream(NamedTuple):
    """Vectors and their true clusters, a window of the windowed ARI, and what peers are told."""

    load: Callable[[], tuple[np.ndarray, np.ndarray]]
    window: int
    clusters: int
    radius: float


STREAMS = {
    "digits": Stream(digits, 250, 10, 4.0),
    "segments": Stream(segments, 250, 7, 2.0),
    "mixture": Stream(drifting_mixture, 500, 20, 2.5),
}


class _Batches:
    """scikit-learn's MiniBatchKMeans, a record at a time from the first 100 on."""

    def __init__(self, clusters: int) -> None:
        from sklearn.cluster import MiniBatchKMeans

        self._model = MiniBatchKMeans(clusters, random_state=0, n_init=3)
        self._held: list[list[float]] = []
        self._ready = False

    def predict_one(self, x: dict[Any, float]) -> int:
        return int(self._model.predict([[*x.values()]])[0]) if self._ready else 0

    def learn_one(self, x: dict[Any, float]) -> None:
        self._held.append([*x.values()])
        if self._ready or len(self._held) == 100:
            self._model.partial_fit(self._held)
            self._held, self._ready = [], True


def models(stream: Stream) -> dict[str, Callable[[], Any]]:
    """Who is compared."""
    from river import cluster

    return {
        "StreamDP": lambda: streamdp.StreamDP(),
        "StreamDP, beam 1": lambda: streamdp.StreamDP(beam=1),
        "River KMeans": lambda: cluster.KMeans(n_clusters=stream.clusters, halflife=0.1, seed=1),
        "River DBSTREAM": lambda: cluster.DBSTREAM(clustering_threshold=stream.radius),
        "River DenStream": lambda: cluster.DenStream(epsilon=stream.radius, n_samples_init=200),
        "scikit-learn MiniBatchKMeans": lambda: _Batches(stream.clusters),
    }


def run(model: Any, rows: list[dict[Any, float]]) -> tuple[np.ndarray, float]:
    """What was predicted of each record before it was learned, and CPU seconds."""
    labels: list[Any] = []
    started = time.process_time()
    for row in rows:
        try:
            labels.append(model.predict_one(row))
        except (IndexError, KeyError, ValueError, StopIteration):  # before it has seen enough
            labels.append(None)
        model.learn_one(row)
    seconds = time.process_time() - started
    return np.array([-1 if label is None else label for label in labels], np.int64), seconds


def rates(events: int = 20_000) -> None:
    """Predicting and learning 20 far-off clusters in 10 dimensions, one event after the other, greedy."""
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(20, 10))
    vectors = centres[rng.integers(0, 20, events)] + 0.4 * rng.normal(size=(events, 10))
    rows = [dict(enumerate(row)) for row in vectors.tolist()]
    table: list[tuple[object, ...]] = []
    for likelihood in ("auto", "normal-inverse-gamma", "gaussian"):
        model = streamdp.StreamDP(likelihood, beam=1)
        run(model, rows[:1000])
        seconds = median_of(3, lambda model=model: run(model, rows)[1])
        table.append((likelihood, model.n_clusters, f"{events / seconds:,.0f}"))
    show("20 clusters, 10 dimensions, beam 1", ("likelihood", "clusters", "events per CPU second"), table)


def main() -> None:
    """Print a row for every model and stream."""
    import sklearn.cluster  # noqa: F401  its threads are there to be limited

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("streams", nargs="*", choices=[*STREAMS, []], help="which (all)")
    parser.add_argument("--records", type=int, help="at most so many of each stream")
    parser.add_argument("--peer-records", type=int, default=10_000, help="at most so many for slow peers")
    options = parser.parse_args()
    with threadpool_limits(1):  # a second thread for one row only gets in the way of scikit-learn's first
        rates()
        compare(options.streams or list(STREAMS), options.records, options.peer_records)


def compare(names: Sequence[str], most: int | None, of_peers: int) -> None:
    """Print a table for each stream."""
    for name in names:
        stream = STREAMS[name]
        vectors, truth = stream.load()
        table: list[tuple[object, ...]] = []
        for who, make in models(stream).items():
            limit = most if who.startswith("StreamDP") else of_peers
            rows = [dict(enumerate(row)) for row in vectors[:limit].tolist()]
            if who.startswith("StreamDP"):
                run(make(), rows[:300])  # compiled before the clock runs
            labels, seconds = run(make(), rows)
            found, seen = agreement(labels, truth[: len(rows)]), len(rows)
            share = windowed(labels, truth[:seen], stream.window)
            table.append((who, f"{seen:,}", f"{found.ari:.3f}", f"{share:.3f}", f"{seen / seconds:,.0f}"))
        title = f"{name}, {vectors.shape[1]} dimensions"
        show(title, ("model", "records", "ARI", "windowed ARI", "events per CPU second"), table)


if __name__ == "__main__":
    main()
