"""The names of what an engine counts, as Prometheus is told of it."""

from __future__ import annotations

# metric, its name in Engine.counters(), its help; of this process, from 0
TOTALS = (
    ("streamdp_records", "records", "Records answered by this process."),
    ("streamdp_revisions", "revisions", "Answers that this process changed afterwards."),
    ("streamdp_switches", "switches", "Times that another hypothesis became the best."),
    ("streamdp_dissenters_dropped", "dissenters_dropped", "Hypotheses dropped because of max_undecided."),
    ("streamdp_clusters_created", "clusters_created", "Clusters announced by this process."),
    ("streamdp_clusters_closed", "clusters_closed", "Clusters told closed or retired, by all hypotheses."),
    ("streamdp_clusters_retired", "clusters_retired", "Clusters retired by a limit."),
    ("streamdp_second_looks", "second_looks", "Records and clusters that were looked at again."),
    ("streamdp_records_moved", "records_moved", "Records that a second look has moved."),
    ("streamdp_clusters_merged", "clusters_merged", "Clusters that a second look made part of others."),
)
REFINED = (
    ("streamdp_refinements", "refinements", "Refinements begun."),
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
WORDS_DROPPED = (
    "streamdp_words_dropped",
    "words_dropped",
    "Words that found no room in the vocabulary; only for models of text.",
)
LEVELS = (
    ("streamdp_stream_records", "stream_records", "Records in the state, since the stream began."),
    (
        "streamdp_log_evidence_nats",
        "log_evidence",
        "Sum of the log predictives of the records in the state.",
    ),
    ("streamdp_clusters_live", "clusters_live", "Live clusters of the best hypothesis."),
    ("streamdp_hypotheses", "hypotheses", "Hypotheses in the beam."),
    ("streamdp_beam_agreement", "agreement", "Share of the beam's clusters that all hypotheses hold."),
    ("streamdp_undecided_records", "undecided", "Records on whose cluster the hypotheses differ."),
    ("streamdp_final_lag_records", "final_lag", "Records whose answer was not told to be final yet."),
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
LAG = ("streamdp_lag_records", "Records of a partition that are not read yet.")
LAG_SECONDS = (
    "streamdp_lag_seconds",
    "Event time from the last record read of a partition to now; 0 where none is left.",
)
UP = ("streamdp_source_up", "Whether the source answers, 1 or 0; only where it is a broker.")
STANDING_BY = (
    "streamdp_standing_by",
    "Whether this process waits for its turn while another runs with its state, 1 or 0.",
)
AGE = ("streamdp_snapshot_age_seconds", "Seconds since this process last wrote a snapshot.")
BYTES = ("streamdp_snapshot_bytes", "Size of the last snapshot that this process wrote.")
STAGE = ("streamdp_stage_seconds", "Seconds of this process by stage of the way of a batch.")
BUILD = ("streamdp_build_info", "1, with the versions of streamdp and Python.")
EVENT_AGE = ("streamdp_event_age_seconds", "From a record's event time to its answer.")
ARRIVAL_AGE = ("streamdp_answer_seconds", "From a record's arrival to its answer.")
