"""What a run reports to Prometheus.

Counters are those of the process: they begin at 0 and never decrease, as ``rate`` and ``increase`` need. The
counts of an engine may be older than the process, or go back to a snapshot, so their first values are
subtracted. Two gauges describe the stream since it began.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from streamdp._version import __version__
from streamdp.monitor import tables
from streamdp.monitor.tables import Declared
from streamdp.monitor.times import Ages, Stages

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector


class PartitionLag(NamedTuple):
    """How far a partition is ahead of what was read: in records, and in seconds where those have times."""

    topic: str
    partition: int
    records: int
    seconds: float | None


class Metrics:
    """The metrics of one run, in a registry of their own. One thread reports and others scrape.

    The run sets ``ready`` (it can take records), ``source_up`` (its source answers, None without meaning),
    ``standing_by`` (another process runs with the same state) and ``lags`` of every partition. ``reasons``
    are those of all possible rejects.
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

        def counter(metric: Declared) -> Counter:
            return Counter(metric.full_name, metric.text, metric.labels, registry=registry)

        def histogram(metric: Declared) -> Histogram:
            return Histogram(metric.full_name, metric.text, buckets=metric.buckets, registry=registry)

        self.ready = self.standing_by = False
        self.source_up: bool | None = None
        self.lags: tuple[PartitionLag, ...] = ()
        self.event_ages, self.arrival_ages = Ages(), Ages()
        self._stages = stages or Stages()
        self._clock = clock
        self._first: dict[str, float] | None = None
        self._figures: tuple[Mapping[str, float], Mapping[str, float]] | None = None
        self._snapshot_at: tuple[float, int] | None = None
        self.registry = registry = CollectorRegistry()
        registry.register(cast("Collector", self))
        ProcessCollector(registry=registry)
        self._rejects = counter(tables.REJECTS)
        for reason in reasons:
            self._rejects.labels(reason)
        self._gap = counter(tables.GAP)
        self._passed = 0
        self._snapshots = histogram(tables.SNAPSHOTS)
        self._failures = counter(tables.SNAPSHOT_FAILURES)
        self._batch = histogram(tables.BATCH)
        self._advance = histogram(tables.ADVANCE)

    def update(self, counters: Mapping[str, float], adapted: tuple[float, float] | None = None) -> None:
        """Take the engine's totals and levels as they are; this process began with the first ones.

        ``adapted`` are the current concentration and scale of the decay, where they follow the stream.
        """
        first = self._first = dict(counters) if self._first is None else self._first
        totals = {key: max(0.0, value - first.get(key, 0)) for key, value in counters.items()}
        levels = dict(counters)
        if adapted is not None:
            levels["concentration"], levels["decay_scale"] = adapted
        self._figures = totals, levels  # one assignment: a scrape sees all or nothing of it

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

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for at every scrape."""
        from prometheus_client.core import HistogramMetricFamily

        yield _family(tables.BUILD, {(__version__, platform.python_version()): 1})
        yield _family(tables.STANDING_BY, {(): int(self.standing_by)})
        if self._figures is not None:
            totals, levels = self._figures
            for metric in (*tables.TOTALS, *tables.WHERE_KNOWN):
                values = totals if metric.kind == "counter" else levels
                value = values.get(metric.key or metric.name, 0 if metric in tables.TOTALS else None)
                if value is not None:
                    yield _family(metric, {(): value})
        if lags := self.lags:
            where = {lag: (lag.topic, str(lag.partition)) for lag in lags}
            yield _family(tables.LAG, {where[lag]: lag.records for lag in lags})
            yield _family(
                tables.LAG_SECONDS, {where[lag]: lag.seconds for lag in lags if lag.seconds is not None}
            )
        yield _family(tables.STAGE, {(stage,): spent for stage, spent in self._stages.seconds().items()})
        for metric, ages in (tables.EVENT_AGE, self.event_ages), (tables.ARRIVAL_AGE, self.arrival_ages):
            cumulative, total = ages.counts()
            yield HistogramMetricFamily(metric.full_name, metric.text, buckets=cumulative, sum_value=total)
        if self.source_up is not None:
            yield _family(tables.SOURCE_UP, {(): int(self.source_up)})
        if self._snapshot_at is not None:
            written, size = self._snapshot_at
            yield _family(tables.SNAPSHOT_AGE, {(): max(0.0, self._clock() - written)})
            yield _family(tables.SNAPSHOT_BYTES, {(): size})


def _family(metric: Declared, samples: Mapping[tuple[str, ...], float]) -> Metric:
    """A counter or a gauge, and its values by its labels."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    found = kind(metric.full_name, metric.text, labels=metric.labels)
    for labels, value in samples.items():
        found.add_metric(labels, value)
    return found


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
