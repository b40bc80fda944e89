"""What a run tells Prometheus of itself.

Counters are those of the process: they begin at 0 and never go back, as ``rate`` and ``increase`` want
it. What the engine counts since its stream began, and so may be older than this process or go back to a
snapshot, is set against what it was at first; two levels tell of the stream as a whole.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from streamdp._version import __version__
from streamdp.monitor import tables
from streamdp.monitor.ages import Ages
from streamdp.monitor.stages import Stages

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

ADVANCE_BUCKETS = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
BATCH_BUCKETS = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SNAPSHOT_BUCKETS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class PartitionLag(NamedTuple):
    """How far a partition is ahead of what was read: in records, and in seconds where those have times."""

    topic: str
    partition: int
    records: int
    seconds: float | None


class _Figures(NamedTuple):
    totals: Mapping[str, float]
    levels: Mapping[str, float]
    adapted: tuple[float, float] | None


class Metrics:
    """The metrics of one run, in a registry of their own.

    One thread reports and others scrape. ``ready`` is for the run to set: whether it is able to
    take records; and so is ``source_up``: whether its source can be reached, None where that means nothing;
    ``standing_by``: whether another process runs with the same state;
    and ``lags``, of every partition. ``reasons`` are those of all rejects that may come.
    """

    registry: CollectorRegistry

    def __init__(
        self,
        *,
        reasons: Iterable[str] = (),
        stages: Stages | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
        from prometheus_client.registry import Collector

        figures = self._collect

        class Figures(Collector):
            def collect(self) -> Iterator[Metric]:
                return figures()

        self.ready = self.standing_by = False
        self.source_up: bool | None = None
        self.lags: tuple[PartitionLag, ...] = ()
        self.event_ages, self.arrival_ages = Ages(), Ages()
        self._stages = stages or Stages()
        self._clock = clock
        self._first: dict[str, float] | None = None
        self._figures: _Figures | None = None
        self._snapshot_at: tuple[float, int] | None = None
        self.registry = registry = CollectorRegistry()
        registry.register(Figures())
        ProcessCollector(registry=registry)
        self._rejects = Counter(
            "streamdp_rejects", "Records rejected by this process.", ["reason"], registry=registry
        )
        for reason in reasons:
            self._rejects.labels(reason)
        self._gap = Counter(
            "streamdp_gap_records",
            "Records known to have been gone before this process could read them.",
            registry=registry,
        )
        self._passed = 0
        self._snapshots = Histogram(
            "streamdp_snapshot_seconds",
            "Seconds that a snapshot written by this process took.",
            buckets=SNAPSHOT_BUCKETS,
            registry=registry,
        )
        self._failures = Counter(
            "streamdp_snapshot_failures", "Snapshots that could not be written.", registry=registry
        )
        self._batch = Histogram(
            "streamdp_batch_seconds",
            "Seconds to process a batch of records, answers included.",
            buckets=BATCH_BUCKETS,
            registry=registry,
        )
        self._advance = Histogram(
            "streamdp_advance_seconds",
            "Seconds the engine took to advance.",
            buckets=ADVANCE_BUCKETS,
            registry=registry,
        )

    def update(self, counters: Mapping[str, float], adapted: tuple[float, float] | None = None) -> None:
        """Take the engine's totals and levels as they are; the first are those that this process began with.

        ``adapted`` are concentration and scale of the decay of now, where they follow the stream.
        """
        first = self._first = dict(counters) if self._first is None else self._first
        totals = {key: max(0.0, value - first.get(key, 0)) for key, value in counters.items()}
        # one assignment: a scrape sees all or nothing of it
        self._figures = _Figures(totals, dict(counters), adapted)

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

    def snapshot_written(self, seconds: float, size: int) -> None:
        """Count a snapshot of so many bytes, and start its age."""
        self._snapshot_at = self._clock(), size
        self._snapshots.observe(seconds)

    def snapshot_failed(self) -> None:
        """Count a snapshot that could not be written."""
        self._failures.inc()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics as text, and its content type: OpenMetrics where an Accept header asks for it."""
        from prometheus_client import exposition
        from prometheus_client.openmetrics import exposition as openmetrics

        if takes_openmetrics(accept):
            text: bytes = openmetrics.generate_latest(self.registry)  # type: ignore[no-untyped-call]
            return text, "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return exposition.generate_latest(self.registry), "text/plain; version=0.0.4; charset=utf-8"

    def _collect(self) -> Iterator[Metric]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        build = GaugeMetricFamily(*tables.BUILD, labels=("version", "python"))
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        yield GaugeMetricFamily(*tables.STANDING_BY, value=int(self.standing_by))
        if self._figures is not None:
            yield from _families(self._figures)
        lags = self.lags
        if lags:
            records = GaugeMetricFamily(*tables.LAG, labels=("topic", "partition"))
            seconds = GaugeMetricFamily(*tables.LAG_SECONDS, labels=("topic", "partition"))
            for lag in lags:
                where = lag.topic, str(lag.partition)
                records.add_metric(where, lag.records)
                if lag.seconds is not None:
                    seconds.add_metric(where, lag.seconds)
            yield records
            yield seconds
        stages = CounterMetricFamily(*tables.STAGE, labels=("stage",))
        for stage, spent in self._stages.seconds().items():
            stages.add_metric((stage,), spent)
        yield stages
        for names, ages in ((tables.EVENT_AGE, self.event_ages), (tables.ARRIVAL_AGE, self.arrival_ages)):
            cumulative, total = ages.counts()
            yield HistogramMetricFamily(*names, buckets=cumulative, sum_value=total)
        if self.source_up is not None:
            yield GaugeMetricFamily(*tables.UP, value=int(self.source_up))
        if self._snapshot_at is not None:
            written, size = self._snapshot_at
            yield GaugeMetricFamily(*tables.AGE, value=max(0.0, self._clock() - written))
            yield GaugeMetricFamily(*tables.BYTES, value=size)


def _families(figures: _Figures) -> Iterator[Metric]:
    """What the engine says, under the names of the tables."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    totals, levels = figures.totals, figures.levels
    for name, key, text in tables.TOTALS:
        yield CounterMetricFamily(name, text, value=totals.get(key, 0))
    for name, key, text in (*tables.REFINED, tables.WORDS_DROPPED):
        if key in totals:
            yield CounterMetricFamily(name, text, value=totals[key])
    for name, key, text in tables.LEVELS:
        if key in levels:
            yield GaugeMetricFamily(name, text, value=levels[key])
    name, key, text = tables.WORDS
    if key in levels:
        yield GaugeMetricFamily(name, text, value=levels[key])
    if figures.adapted is not None:
        for (name, text), value in zip(tables.ADAPTED, figures.adapted, strict=True):
            yield GaugeMetricFamily(name, text, value=value)


def takes_openmetrics(accept: str) -> bool:
    """Whether an Accept header names OpenMetrics 1, and does not rank plain text above it."""
    ranks = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for entry in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in entry.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        if kind not in ranks or (kind != "text/plain" and not _is_version_1(given.get("version", "1"))):
            continue
        ranks[kind] = max(ranks[kind], _quality(given.get("q", "1")))
    openmetrics, plain = ranks.values()
    return openmetrics > 0.0 and openmetrics >= plain


def _is_version_1(version: str) -> bool:
    return version.strip('"').split(".")[0] == "1"


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
