"""What a run reports to Prometheus: every metric, declared once, and its values.

What is served, the table in docs/operations.md and the dashboards follow from the declarations.

Counters are those of the process: they begin at 0 and never decrease, as ``rate`` and ``increase`` need. The
counts of an engine may be older than the process, or go back to a snapshot, so their first values are
subtracted. Two gauges describe the stream since it began.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from streamdp._version import __version__
from streamdp.monitor.stages import Ages, Stages

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector


class Declared(NamedTuple):
    """A metric; its name is without the prefix ``streamdp_`` and a counter's suffix ``_total``.

    ``key`` is its name in ``Engine.counters()`` and ``Engine.levels()``, where that differs.
    """

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    text: str
    labels: tuple[str, ...] = ()
    key: str = ""
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """The name that its samples begin with."""
        return f"streamdp_{self.name}"

    @property
    def served(self) -> str:
        """The name that it is asked for by."""
        return f"{self.full_name}_total" if self.kind == "counter" else self.full_name


_counter, _gauge, _histogram = (partial(Declared, kind) for kind in ("counter", "gauge", "histogram"))
_PARTITION = ("topic", "partition")

TOTALS = (
    _counter("records", "Records answered by this process."),
    _counter("revisions", "Answers that this process changed afterwards."),
    _counter("switches", "Times that another hypothesis became the best."),
    _counter("dissenters_dropped", "Hypotheses dropped: a record was open for max_undecided others."),
    _counter("clusters_created", "Clusters announced by this process."),
    _counter("clusters_closed", "Clusters reported closed or retired, by all hypotheses."),
    _counter("clusters_retired", "Clusters retired by retire_after or max_clusters."),
    _counter("second_looks", "Records and clusters that were looked at again."),
    _counter("records_moved", "Records that a second look has moved."),
    _counter("clusters_merged", "Clusters that a second look made part of others."),
    _counter("corrections", "Corrections by hand that this process has taken."),
)
"""What every engine counts, of this process from 0."""

WHERE_KNOWN = (
    _counter("refinements", "Refinements begun; only with refine_every, like the next five."),
    _counter("refinements_adopted", "Refinements of which anything was adopted."),
    _counter("refinement_moves", "Records that refinements have weighed again."),
    _counter("records_refined", "Records that a refinement has moved."),
    _counter("refinement_nats", "By how much refinements have raised the log joint."),
    _counter("refinement_waited_seconds", "Seconds for which this process has waited for a refinement."),
    _counter("words_dropped", "Words that found no room in the vocabulary; only for words and categories."),
    _counter("words_cut", "Words of more than 256 bytes, cut to their beginning and a hash."),
    _counter("released_early", "Records that were waited for less, as the memory limit was reached."),
    _counter("final_early", "Answers that were final early, as the memory limit was reached."),
    _gauge("retained_records", "Latest records held, for looks back and refinements.", key="retained"),
    _gauge("stream_records", "Records in the state, since the stream began."),
    _gauge(
        "log_evidence_nats", "Sum of the log predictives of the records in the state.", key="log_evidence"
    ),
    _gauge("clusters_live", "Live clusters of the best hypothesis."),
    _gauge("hypotheses", "Hypotheses in the beam."),
    _gauge("beam_agreement", "Share of the beam's clusters that all hypotheses hold.", key="agreement"),
    _gauge("undecided_records", "Records on whose cluster the hypotheses differ.", key="undecided"),
    _gauge("final_lag_records", "Records whose answer was not reported final yet.", key="final_lag"),
    _gauge("held_back_records", "Records held back to restore event-time order.", key="held_back"),
    _gauge("vocabulary_words", "Words in the vocabulary; only for words and categories.", key="words"),
)
"""What an engine counts or is, where it says so."""

LAG = _gauge("lag_records", "Records of a partition that are not read yet; only of a topic.", _PARTITION)
LAG_SECONDS = _gauge(
    "lag_seconds", "Event time from the last record read to now; 0 where no other waits.", _PARTITION
)
EVENT_AGE = _histogram("event_age_seconds", "From a record's event time to its answer.")
ARRIVAL_AGE = _histogram("answer_seconds", "From a record's arrival to its answer.")
SOURCE_UP = _gauge("source_up", "Whether the source answers, 1 or 0; only where it is a broker.")
STANDING_BY = _gauge("standing_by", "1 while this process waits because another runs with its state, else 0.")
REJECTS = _counter("rejects", "Records rejected by this process; the reason gap counts gaps.", ("reason",))
CONFLICTS = _counter("conflicts", "Records that a service refused: their ids are those of others.")
GAP = _counter("gap_records", "Records known to have been gone before this process could read them.")
SKIPPED = _counter("skipped", "Blank lines, or tombstones of a topic, that this process passed over.")
SNAPSHOTS = _histogram(
    "snapshot_seconds",
    "Seconds that a snapshot written by this process took.",
    buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
)
SNAPSHOT_BYTES = _gauge("snapshot_bytes", "Size of the last snapshot that this process wrote.")
SNAPSHOT_FAILURES = _counter("snapshot_failures", "Snapshots that could not be written.")
SNAPSHOT_AGE = _gauge("snapshot_age_seconds", "Seconds since this process last wrote a snapshot.")
STAGE = _counter("stage_seconds", "Seconds of this process by stage of the way of a batch.", ("stage",))
BATCH = _histogram(
    "batch_seconds",
    "Seconds to process a batch of records, answers included.",
    buckets=(1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
)
ADVANCE = _histogram(
    "advance_seconds",
    "Seconds the engine took to advance.",
    buckets=(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
)
EVENTS = _counter("events", "What happened to stories, or to templates, by kind.", ("event", "of"))
DOUBTS = _gauge("doubts", "Reasons for which the stories of texts are doubtful.")
REMOVED = _counter("store_removed", "Rows that this process removed from a bounded store.", ("table",))
_ALERT = ("alert",)
DELIVERED = _counter("alerts_delivered", "Alerts that a receiver has taken.", _ALERT)
UNDELIVERED = _counter(
    "alert_failures", "Messages that a receiver did not take; they are sent again.", _ALERT
)
DROPPED = _counter("alerts_dropped", "Alerts given up: too many waited, or they were refused.", _ALERT)
OUTBOX = _gauge("alerts_waiting", "Alerts that wait for their receiver.", _ALERT)
BUILD = _gauge("build_info", "1, with the versions of streamdp and Python.", ("version", "python"))

OF_RUN = (
    *(LAG, LAG_SECONDS, EVENT_AGE, ARRIVAL_AGE, SOURCE_UP, STANDING_BY, REJECTS, CONFLICTS, GAP, SKIPPED),
    *(SNAPSHOTS, SNAPSHOT_BYTES, SNAPSHOT_FAILURES, SNAPSHOT_AGE, STAGE, BATCH, ADVANCE, BUILD),
    *(EVENTS, DOUBTS, REMOVED, DELIVERED, UNDELIVERED, DROPPED, OUTBOX),
)
"""What a run reports by itself."""


def metrics() -> dict[str, Declared]:
    """All of them, by name."""
    return {metric.name: metric for metric in (*TOTALS, *WHERE_KNOWN, *OF_RUN)}


class AlertCounts(NamedTuple):
    """What has become of the alerts of one name: in this process, and now."""

    delivered: int
    failures: int
    dropped: int
    waiting: int


class PartitionLag(NamedTuple):
    """How far a partition is ahead of what was read: in records, and in seconds where those have times."""

    topic: str
    partition: int
    records: int
    seconds: float | None


class Metrics:
    """The metrics of one run, in a registry of their own. One thread reports and others scrape.

    The run sets ``ready`` (it can take records), ``source_up`` (its source answers, None without meaning),
    ``standing_by`` (another process runs with the same state), ``lags`` of every partition, ``doubts``, the
    rows ``removed`` from a store by table, and what gives the counts of ``alerts`` and
    ``conflicts``. ``reasons`` and ``events`` are all that rejects and events may have.
    """

    registry: CollectorRegistry

    def __init__(
        self,
        *,
        reasons: Iterable[str] = (),
        events: Iterable[str] = (),
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
        self.doubts = 0
        self.removed: Mapping[str, int] = {}
        self.alerts: Callable[[], Mapping[str, AlertCounts]] = dict
        self.conflicts: Callable[[], int] = int
        self._stages = stages or Stages()
        self._clock = clock
        self._first: dict[str, float] | None = None
        self._figures: tuple[Mapping[str, float], Mapping[str, float]] | None = None
        self._snapshot_at: tuple[float, int] | None = None
        self.registry = registry = CollectorRegistry()
        registry.register(cast("Collector", self))
        ProcessCollector(registry=registry)
        self._rejects = counter(REJECTS)
        for reason in reasons:
            self._rejects.labels(reason)
        self._events = counter(EVENTS)
        for kind in events:
            for of in ("story", "template"):
                self._events.labels(kind, of)  # from 0 on, so that the first one is an increase
        self._gap = counter(GAP)
        self._skipped = counter(SKIPPED)
        self._passed = self._blank = 0
        self._snapshots = histogram(SNAPSHOTS)
        self._failures = counter(SNAPSHOT_FAILURES)
        self._batch = histogram(BATCH)
        self._advance = histogram(ADVANCE)

    def update(self, counters: Mapping[str, float]) -> None:
        """Take the engine's totals and levels as they are; this process began with the first ones."""
        first = self._first = dict(counters) if self._first is None else self._first
        totals = {key: max(0.0, value - first.get(key, 0)) for key, value in counters.items()}
        self._figures = totals, dict(counters)  # one assignment: a scrape sees all or nothing of it

    def rejected(self, reason: str) -> None:
        """Count a record that could not be used, under a short stable code."""
        self._rejects.labels(reason).inc()

    def happened(self, kind: str, *, template: bool) -> None:
        """Count an event of a story, or of a template."""
        self._events.labels(kind, "template" if template else "story").inc()

    def passed(self, total: int) -> None:
        """Take how many records this process has passed over in all, because they were gone."""
        self._gap.inc(max(0, total - self._passed))
        self._passed = total

    def skipped(self, total: int) -> None:
        """Count blank lines and tombstones; ``total`` is how many there were."""
        self._skipped.inc(max(0, total - self._blank))
        self._blank = total

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

        yield _family(BUILD, {(__version__, platform.python_version()): 1})
        yield _family(STANDING_BY, {(): int(self.standing_by)})
        yield _family(DOUBTS, {(): self.doubts})
        yield _family(REMOVED, {(table,): rows for table, rows in {**self.removed}.items()})
        yield _family(CONFLICTS, {(): self.conflicts()})
        counts = self.alerts()
        for at, metric in enumerate((DELIVERED, UNDELIVERED, DROPPED, OUTBOX)):
            yield _family(metric, {(name,): each[at] for name, each in counts.items()})
        if self._figures is not None:
            totals, levels = self._figures
            for metric in (*TOTALS, *WHERE_KNOWN):
                values = totals if metric.kind == "counter" else levels
                value = values.get(metric.key or metric.name, 0 if metric in TOTALS else None)
                if value is not None:
                    yield _family(metric, {(): value})
        if lags := self.lags:
            where = {lag: (lag.topic, str(lag.partition)) for lag in lags}
            yield _family(LAG, {where[lag]: lag.records for lag in lags})
            yield _family(LAG_SECONDS, {where[lag]: lag.seconds for lag in lags if lag.seconds is not None})
        yield _family(STAGE, {(stage,): spent for stage, spent in self._stages.seconds().items()})
        for metric, ages in (EVENT_AGE, self.event_ages), (ARRIVAL_AGE, self.arrival_ages):
            cumulative, total = ages.counts()
            yield HistogramMetricFamily(metric.full_name, metric.text, buckets=cumulative, sum_value=total)
        if self.source_up is not None:
            yield _family(SOURCE_UP, {(): int(self.source_up)})
        if self._snapshot_at is not None:
            written, size = self._snapshot_at
            yield _family(SNAPSHOT_AGE, {(): max(0.0, self._clock() - written)})
            yield _family(SNAPSHOT_BYTES, {(): size})


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
