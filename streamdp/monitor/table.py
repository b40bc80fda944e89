"""The table of metrics. What is served, the dashboards and the list in docs/operations.md follow from it."""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

Kind = Literal["counter", "gauge", "histogram"]

AGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3600.0)
"""Bounds of a histogram, in seconds."""

BOUNDS = {
    "snapshot_seconds": (0.003, *AGES[:8]),
    "batch_seconds": (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    "advance_seconds": (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
}
"""Bounds of histograms that have others."""


class Metric(NamedTuple):
    """A line of the table.

    ``name`` has neither the prefix ``streamdp_`` nor a counter's ``_total``. ``unit`` is that of Grafana, for
    counters by the second, and ``panel`` the title of the one that shows it. ``counted`` is its name in
    ``Engine.counters()`` or ``Engine.levels()``, where it comes from there; ``labels`` are separated by
    blanks.
    """

    kind: Kind
    name: str
    unit: str
    panel: str
    counted: str
    labels: str
    help: str

    @property
    def full_name(self) -> str:
        """The name that its samples begin with."""
        return f"streamdp_{self.name}"

    @property
    def served(self) -> str:
        """The name that it is asked for by."""
        return f"{self.full_name}_total" if self.kind == "counter" else self.full_name


def read(table: str) -> dict[str, Metric]:
    """The metrics of a table, by name."""
    lines = (map(str.strip, line.split("|")) for line in table.strip().splitlines())
    return {name: Metric(cast("Kind", kind), name, *others) for kind, name, *others in lines}


METRICS = read("""
counter   | records                   | cps         | Records                   | records                   |                 | Records answered by this process.
counter   | revisions                 | cps         | Changes of mind           | revisions                 |                 | Answers that this process changed afterwards.
counter   | switches                  | cps         | Changes of mind           | switches                  |                 | Times that another hypothesis became the best.
counter   | dissenters_dropped        | cps         | Changes of mind           | dissenters_dropped        |                 | Hypotheses dropped: a record was open for max_undecided others.
counter   | clusters_created          | cps         | Clusters that come and go | clusters_created          |                 | Clusters announced by this process.
counter   | clusters_closed           | cps         | Clusters that come and go | clusters_closed           |                 | Clusters reported closed or retired, by all hypotheses.
counter   | clusters_retired          | cps         | Clusters that come and go | clusters_retired          |                 | Clusters retired by retire_after or max_clusters.
counter   | second_looks              | cps         | Second looks              | second_looks              |                 | Records and clusters that were looked at again.
counter   | records_moved             | cps         | Second looks              | records_moved             |                 | Records that a second look has moved.
counter   | clusters_merged           | cps         | Clusters that come and go | clusters_merged           |                 | Clusters that a second look made part of others.
counter   | corrections               | cps         | Doubtful, corrected       | corrections               |                 | Corrections by hand that this process has taken.
counter   | refinements               | cps         | Refinements               | refinements               |                 | Refinements begun.
counter   | refinements_adopted       | cps         | Refinements               | refinements_adopted       |                 | Refinements of which anything was adopted.
counter   | refinement_moves          | cps         | Moves                     | refinement_moves          |                 | Records that refinements have weighed again.
counter   | records_refined           | cps         | Moves                     | records_refined           |                 | Records that a refinement has moved.
counter   | refinement_nats           | cps         | Moves                     | refinement_nats           |                 | By how much refinements have raised the log joint.
counter   | refinement_waited_seconds | s           | Waiting                   | refinement_waited_seconds |                 | Seconds for which this process has waited for a refinement.
counter   | words_dropped             | cps         | Vocabulary                | words_dropped             |                 | Words that found no room in the vocabulary; only for words and categories.
counter   | words_cut                 | cps         | Vocabulary                | words_cut                 |                 | Words of more than 256 bytes, cut to their beginning and a hash.
counter   | lines_forgotten           | cps         | Vocabulary                | lines_forgotten           |                 | Distinct lines of a log forgotten, as more than max_lines or memory_limit allow were known.
counter   | released_early            | cps         | Held back                 | released_early            |                 | Records that were waited for less, as the memory limit was reached.
counter   | final_early               | cps         | Held back                 | final_early               |                 | Answers that were final early, as the memory limit was reached.
gauge     | retained_records          | short       | Held back                 | retained                  |                 | Latest records held, for looks back and refinements.
gauge     | stream_records            | short       |                           | stream_records            |                 | Records in the state, since the stream began.
gauge     | log_evidence_nats         | short       |                           | log_evidence              |                 | Sum of the log predictives of the records in the state.
gauge     | clusters_live             | short       | Live clusters             | clusters_live             |                 | Live clusters of the best hypothesis.
gauge     | hypotheses                | short       | Hypotheses                | hypotheses                |                 | Hypotheses in the beam.
gauge     | beam_agreement            | percentunit | Agreement                 | agreement                 |                 | Share of the beam's clusters that all hypotheses hold.
gauge     | undecided_records         | short       | Not settled yet           | undecided                 |                 | Records on whose cluster the hypotheses differ.
gauge     | final_lag_records         | short       | Not settled yet           | final_lag                 |                 | Records whose answer was not reported final yet.
gauge     | held_back_records         | short       | Held back                 | held_back                 |                 | Records held back to restore event-time order.
gauge     | vocabulary_words          | short       | Vocabulary                | words                     |                 | Words in the vocabulary; only for words and categories.
gauge     | lag_records               | short       | Lag in records            |                           | topic partition | Records of a partition that are not read yet; only of a topic.
gauge     | lag_seconds               | s           | Lag in event time         |                           | topic partition | Event time from the last record read to now; 0 where no other waits.
histogram | event_age_seconds         | s           | From event to answer      |                           |                 | From a record's event time to its answer.
histogram | answer_seconds            | s           | From arrival to answer    |                           |                 | From a record's arrival to its answer.
gauge     | source_up                 | short       | Source                    |                           |                 | Whether the source answers, 1 or 0; only where it is a broker.
gauge     | standing_by               | short       | Source                    |                           |                 | 1 while this process waits because another runs with its state, else 0.
counter   | rejects                   | cps         | Refused by reason         |                           | reason          | Records rejected by this process; the reason gap counts gaps.
counter   | conflicts                 | cps         | Records                   |                           |                 | Records that a service refused: their ids are those of others.
counter   | gap_records               | cps         | Records                   |                           |                 | Records known to have been gone before this process could read them.
counter   | skipped                   | cps         | Records                   |                           |                 | Blank lines, or tombstones of a topic, that this process passed over.
histogram | snapshot_seconds          | s           | Seconds                   |                           |                 | Seconds that a snapshot written by this process took.
gauge     | snapshot_bytes            | bytes       | Size                      |                           |                 | Size of the last snapshot that this process wrote.
counter   | snapshot_failures         | cps         | Written and failed        |                           |                 | Snapshots that could not be written.
gauge     | snapshot_age_seconds      | s           |                           |                           |                 | Seconds since this process last wrote a snapshot.
counter   | stage_seconds             | s           | Stages                    |                           | stage           | Seconds of this process by stage of the way of a batch.
histogram | batch_seconds             | s           | Batches                   |                           |                 | Seconds to process a batch of records, answers included.
histogram | advance_seconds           | s           | Batches                   |                           |                 | Seconds the engine took to advance.
gauge     | build_info                | short       |                           |                           | version python  | 1, with the versions of streamdp and Python.
counter   | events                    | cps         | What happens              |                           | event of        | What happened to stories, or to templates, by kind.
gauge     | doubts                    | short       | Doubtful, corrected       |                           |                 | Reasons for which the stories of texts are doubtful.
counter   | store_removed             | cps         | Rows that left the store  |                           | table           | Rows that this process removed from a bounded store.
counter   | alerts_delivered          | cps         | Alerts                    |                           | alert           | Alerts that a receiver has taken.
counter   | alert_failures            | cps         | Alerts                    |                           | alert           | Messages that a receiver did not take; they are sent again.
counter   | alerts_dropped            | cps         | Alerts                    |                           | alert           | Alerts given up: too many waited, or they were refused.
gauge     | alerts_waiting            | short       | Alerts                    |                           | alert           | Alerts that wait for their receiver.
""")  # noqa: E501
"""All metrics, by name."""
