"""What a run tells Prometheus of itself.

The engine's totals may come from a snapshot, so they are exposed as the engine last gave them and
not counted again here. Nothing is exposed before it is known: a total of 0 while a snapshot is
being read would look like a restart followed by a burst.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

ADVANCE_BUCKETS = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
BATCH_BUCKETS = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

# metric, its name in Engine.counters(), its help
TOTALS = (
    ("streamdp_records", "records", "Records clustered since the stream began, restarts included."),
    ("streamdp_clusters_created", "clusters_created", "Clusters founded since the stream began."),
    ("streamdp_clusters_closed", "clusters_closed", "Clusters told closed or retired, by all hypotheses."),
    ("streamdp_clusters_retired", "clusters_retired", "Clusters retired since the stream began."),
    ("streamdp_second_looks", "second_looks", "Records and clusters that were looked at again."),
    ("streamdp_records_moved", "records_moved", "Records that a second look has moved."),
    ("streamdp_clusters_merged", "clusters_merged", "Clusters that a second look made part of others."),
)
REFINED = (
    ("streamdp_refinements", "refinements", "Refinements begun since the stream began."),
    ("streamdp_refinements_adopted", "refinements_adopted", "Refinements of which anything was adopted."),
    ("streamdp_refinement_moves", "refinement_moves", "Records that refinements have weighed again."),
    ("streamdp_records_refined", "records_refined", "Records that a refinement has moved."),
    ("streamdp_refinement_nats", "refinement_nats", "By how much refinements have raised the log joint."),
    (
        "streamdp_refinement_waited_seconds",
        "refinement_waited_seconds",
        "Seconds for which this process has waited for a refinement.",
    ),
)
LEVELS = (
    ("streamdp_clusters_live", "clusters_live", "Live clusters of the best hypothesis."),
    ("streamdp_hypotheses", "hypotheses", "Hypotheses in the beam."),
    ("streamdp_undecided_records", "undecided", "Records whose cluster may still change."),
    ("streamdp_held_back_records", "held_back", "Records held back to restore event-time order."),
)
WORDS = ("streamdp_vocabulary_words", "words", "Words in the vocabulary; only for models of text.")
ADAPTED = (
    ("streamdp_concentration", "Weight of a new cluster as it is now; only with adapt."),
    (
        "streamdp_decay_scale",
        "Scale of the decay as it is now, in records or seconds; only with adapt.",
    ),
)
LAG = ("streamdp_lag_records", "Records in the source that are not read yet; only where it can tell.")
UP = ("streamdp_source_up", "Whether the source answers, 1 or 0; only where it is a broker.")
AGE = ("streamdp_snapshot_age_seconds", "Seconds since this process last wrote a snapshot.")


class _Figures(NamedTuple):
    counters: Mapping[str, float]
    lag: int | None
    adapted: tuple[float, float] | None


class Metrics:
    """The metrics of one run, in a registry of their own.

    One thread reports and others scrape. ``ready`` is for the run to set: whether it is able to
    take records; and so is ``source_up``: whether its source can be reached, None where that means nothing.
    """

    registry: CollectorRegistry

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram
        from prometheus_client.registry import Collector

        figures = self._collect

        class Figures(Collector):
            def collect(self) -> Iterator[Metric]:
                return figures()

        self.ready = False
        self.source_up: bool | None = None
        self._clock = clock
        self._figures: _Figures | None = None
        self._snapshot_at: float | None = None
        self.registry = CollectorRegistry()
        self.registry.register(Figures())
        self._rejects = Counter(
            "streamdp_rejects", "Records rejected by this process.", ["reason"], registry=self.registry
        )
        self._gap = Counter(
            "streamdp_gap_records",
            "Records known to have been gone before this process could read them.",
            registry=self.registry,
        )
        self._passed = 0
        self._snapshots = Counter(
            "streamdp_snapshots", "Snapshots written by this process.", registry=self.registry
        )
        self._batch = Histogram(
            "streamdp_batch_seconds",
            "Seconds to process a batch of records, answers included.",
            buckets=BATCH_BUCKETS,
            registry=self.registry,
        )
        self._advance = Histogram(
            "streamdp_advance_seconds",
            "Seconds the engine took to advance.",
            buckets=ADVANCE_BUCKETS,
            registry=self.registry,
        )

    def update(
        self, counters: dict[str, float], lag: int | None, adapted: tuple[float, float] | None = None
    ) -> None:
        """Take the engine's totals as they are, and the source's lag where it is known.

        ``adapted`` are concentration and scale of the decay of now, where they follow the stream.
        """
        self._figures = _Figures(
            dict(counters), lag, adapted
        )  # one assignment: a scrape sees all or nothing of it

    def rejected(self, reason: str) -> None:
        """Count a record that could not be used, under a short stable code."""
        self._rejects.labels(reason).inc()

    def passed(self, total: int) -> None:
        """Take how many records this process has passed over in all, because they were gone."""
        self._gap.inc(max(0, total - self._passed))
        self._passed = total

    def observe_batch(self, seconds: float) -> None:
        """Record how long a batch took."""
        self._batch.observe(seconds)

    def observe_advance(self, seconds: float) -> None:
        """Record how long an advance of the engine took."""
        self._advance.observe(seconds)

    def snapshot_written(self) -> None:
        """Count a snapshot, and start its age."""
        self._snapshot_at = self._clock()
        self._snapshots.inc()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics as text, and its content type, in the format an Accept header asks for."""
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def _collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        figures, written = self._figures, self._snapshot_at
        if figures is not None:
            counters = figures.counters
            for name, key, text in TOTALS:
                yield CounterMetricFamily(name, text, value=counters.get(key, 0))
            for name, key, text in REFINED:
                if key in counters:
                    yield CounterMetricFamily(name, text, value=counters[key])
            for name, key, text in LEVELS:
                yield GaugeMetricFamily(name, text, value=counters.get(key, 0))
            name, key, text = WORDS
            if key in counters:
                yield GaugeMetricFamily(name, text, value=counters[key])
            if figures.adapted is not None:
                for (name, text), value in zip(ADAPTED, figures.adapted, strict=True):
                    yield GaugeMetricFamily(name, text, value=value)
            if figures.lag is not None:
                yield GaugeMetricFamily(*LAG, value=figures.lag)
        if self.source_up is not None:
            yield GaugeMetricFamily(*UP, value=int(self.source_up))
        if written is not None:
            yield GaugeMetricFamily(*AGE, value=max(0.0, self._clock() - written))
