"""The values of the metrics of a run, for Prometheus.

Counters are those of the process: they begin at 0 and never decrease, as ``rate`` and ``increase`` need. The
counts of an engine may be older than the process, or go back to a snapshot, so their first values are
subtracted. Two gauges describe the stream since it began.
"""

from __future__ import annotations

import bisect
import itertools
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from streamdp._version import __version__
from streamdp.monitor.table import AGES, BOUNDS, METRICS

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric as Family
    from prometheus_client.registry import Collector

Samples = Mapping[Any, float]
"""The values of a metric by its labels, a tuple; one without labels has a single value, by ``()``."""


class Histogram:
    """How often a number was up to each of some bounds."""

    def __init__(self, bounds: tuple[float, ...] = AGES) -> None:
        self._bounds, self._counts, self._total = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a number so many times; one below 0, as the age of a clock that is behind, counts as 0."""
        value = max(0.0, value)
        self._counts[bisect.bisect_left(self._bounds, value)] += times
        self._total += value * times

    def counts(self) -> tuple[list[tuple[str, float]], float]:
        """How many were up to each bound, the last of which is infinite, and the sum of all."""
        bounds = [*map(repr, self._bounds), "+Inf"]
        reached = itertools.accumulate(self._counts)
        return list(zip(bounds, map(float, reached), strict=True)), self._total


class Metrics:
    """The metrics of one run, in a registry of their own. One thread reports and others scrape.

    The run says whether it is ``ready`` (it can take records) or ``standing_by`` (another process runs with
    the same state), and whether its source answers (``source_up``, None without meaning).
    """

    registry: CollectorRegistry

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector

        self.ready = self.standing_by = False
        self.source_up: bool | None = None
        self._clock = clock
        self._first: dict[str, float] | None = None
        self._engine: Mapping[str, float] = {}
        self._values: dict[str, Samples | Callable[[], Samples]] = {
            "build_info": {(__version__, platform.python_version()): 1.0},
            "standing_by": lambda: {(): self.standing_by},
            "source_up": lambda: {} if self.source_up is None else {(): self.source_up},
        }
        self._counts: dict[str, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, metric in METRICS.items():
            if metric.kind == "histogram":
                self._histograms[name] = Histogram(BOUNDS.get(name, AGES))
            elif metric.kind == "counter" and not metric.counted:
                self._values[name] = self._counts[name] = {} if metric.labels else {(): 0.0}
        self.registry = CollectorRegistry()
        self.registry.register(cast("Collector", self))
        ProcessCollector(registry=self.registry)

    def update(self, counters: Mapping[str, float]) -> None:
        """Take the engine's totals and levels as they are; this process began with the first ones."""
        first = self._first = dict(counters) if self._first is None else self._first
        found = dict[str, float]()
        for name, metric in METRICS.items():
            if metric.kind == "counter" and metric.counted:
                found[name] = max(0.0, counters.get(metric.counted, 0.0) - first.get(metric.counted, 0.0))
            elif metric.counted in counters:
                found[name] = counters[metric.counted]
        self._engine = found  # one assignment: a scrape sees all or nothing of it

    def set(self, name: str, value: float | Samples | Callable[[], Samples]) -> None:
        """Say what a metric is: a number, numbers by labels, or what gives these whenever it is asked for."""
        self._values[name] = {(): value} if isinstance(value, int | float) else value

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Raise a counter; by 0, it is served from now on, so that its first increase is seen as one."""
        counts = self._counts[name]
        counts[labels] = counts.get(labels, 0.0) + by

    def observe(self, name: str, value: float, times: int = 1) -> None:
        """Count a number in a histogram, so many times."""
        self._histograms[name].observe(value, times)

    def snapshot_written(self, seconds: float, size: int) -> None:
        """Count a snapshot of so many bytes, and start its age."""
        written = self._clock()
        self.observe("snapshot_seconds", seconds)
        self.set("snapshot_bytes", size)
        self.set("snapshot_age_seconds", lambda: {(): max(0.0, self._clock() - written)})

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics as text, and its content type: OpenMetrics where an Accept header asks for it."""
        from prometheus_client import exposition
        from prometheus_client.openmetrics import exposition as openmetrics

        if takes_openmetrics(accept):
            text: bytes = openmetrics.generate_latest(self.registry)  # type: ignore[no-untyped-call]
            return text, "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return exposition.generate_latest(self.registry), "text/plain; version=0.0.4; charset=utf-8"

    def collect(self) -> Iterator[Family]:
        """What the registry asks for at every scrape: what has a value."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        engine = self._engine
        for name, metric in METRICS.items():
            if metric.kind == "histogram":
                reached, total = self._histograms[name].counts()
                yield HistogramMetricFamily(metric.full_name, metric.help, buckets=reached, sum_value=total)
                continue
            value = {(): engine[name]} if name in engine else self._values.get(name, {})
            samples = dict(value() if callable(value) else value)
            if samples:
                kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
                family = kind(metric.full_name, metric.help, labels=metric.labels.split())
                for labels, number in samples.items():
                    family.add_metric(labels, number)
                yield family


def takes_openmetrics(accept: str) -> bool:
    """Whether an Accept header names OpenMetrics 1, and does not rank plain text above it."""
    ranks = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for entry in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in entry.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        version = given.get("version", "1").strip('"').split(".")[0]
        if kind not in ranks or (kind != "text/plain" and version != "1"):
            continue
        ranks[kind] = max(ranks[kind], _quality(given.get("q", "1")))
    openmetrics, plain = ranks.values()
    return openmetrics > 0.0 and openmetrics >= plain


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
