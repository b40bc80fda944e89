"""Every metric, declared once; what is served, the table in docs/operations.md and the dashboards follow."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple


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
    _gauge("concentration", "Weight of a new cluster as it is now; only with adapt."),
    _gauge("decay_scale", "Scale of the decay as it is now, in records or seconds; only with adapt."),
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
GAP = _counter("gap_records", "Records known to have been gone before this process could read them.")
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
BUILD = _gauge("build_info", "1, with the versions of streamdp and Python.", ("version", "python"))

OF_RUN = (
    *(LAG, LAG_SECONDS, EVENT_AGE, ARRIVAL_AGE, SOURCE_UP, STANDING_BY, REJECTS, GAP, SNAPSHOTS),
    *(SNAPSHOT_BYTES, SNAPSHOT_FAILURES, SNAPSHOT_AGE, STAGE, BATCH, ADVANCE, BUILD),
)
"""What a run reports by itself."""


def metrics() -> dict[str, Declared]:
    """All of them, by name."""
    return {metric.name: metric for metric in (*TOTALS, *WHERE_KNOWN, *OF_RUN)}
