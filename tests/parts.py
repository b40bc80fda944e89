"""Three parts of the tests that take about as long: ``tests/run --part NAME`` runs one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

WITH_BROKER = ("test_consume_kafka", "test_members", "test_page_browser", "test_scraped", "test_watch")
"""Modules that read or write a real topic, besides those with kafka in their names and those of faults."""

SERVERS = (
    "faults",
    "faults-2",
    "kafka",
    "test_alerts",
    "test_alerts_revised",
    "test_alerts_sent",
    "test_consume_otlp",
    "test_deploy",
    "test_deploy_serve",
    "test_first_webhook",
    "test_page_commands",
    "test_page_corrections",
    "test_page_hands",
    "test_page_log",
    "test_page_server",
    "test_programs",
    "test_redis",
    "test_report",
    "test_serve",
    "test_serve_begins",
    "test_serve_bombs",
    "test_serve_full",
    "test_serve_killed",
    "test_serve_logs",
    "test_serve_questions",
    "test_site",
    "test_slow_clients",
    "test_spark",
)
"""What starts a server, a browser, Spark or npm, or is one and is asked."""

STATISTICS = (
    "test_agreement",
    "test_anchors",
    "test_astar",
    "test_beam_oracle",
    "test_beam_rare",
    "test_beam_widths",
    "test_beside",
    "test_bessel",
    "test_categorical",
    "test_chain",
    "test_closing",
    "test_clusterer",
    "test_confidence",
    "test_corrections",
    "test_document_level",
    "test_drifting",
    "test_embeddings",
    "test_enumeration",
    "test_estimators_look_back",
    "test_evaluate",
    "test_finite_streams",
    "test_five_blobs",
    "test_gate",
    "test_geweke",
    "test_lasting",
    "test_likelihoods",
    "test_mixed",
    "test_neighbours",
    "test_nine_families",
    "test_offline_parts",
    "test_oracle",
    "test_own_family",
    "test_parting",
    "test_predictive",
    "test_prior_settings",
    "test_priors",
    "test_proposers",
    "test_rates",
    "test_rearranging",
    "test_refine",
    "test_river",
    "test_samplers",
    "test_scales",
    "test_score",
    "test_second_look",
    "test_stability",
    "test_template_oracle",
    "test_themes",
    "test_twins",
    "test_unite",
    "test_vector_families",
    "test_vector_refusals",
    "test_word_families",
)
"""Models, priors, samplers and what they are compared with. Most kernels are compiled for these."""

PARTS = ("statistics", "streams", "servers")
"""``streams`` is what is in neither list: a new module is in it."""

SHOWN = 12
"""Groups whose time the last lines of a run say."""


def group_of(path: Path) -> str:
    """The name of the tests that share a process: a module, or those that share brokers."""
    if path.parent.name == "faults":  # as one they would take as long as all the rest of their part
        return "faults" if path.stem < "test_p" else "faults-2"
    return "kafka" if path.stem in WITH_BROKER or path.stem.startswith("test_kafka") else path.stem


def part_of(path: Path) -> str:
    """The part that a module of tests belongs to."""
    group = group_of(path)
    return "servers" if group in SERVERS else "statistics" if group in STATISTICS else "streams"


def summary(times: Iterable[tuple[Path, float]]) -> list[str]:
    """Lines that say how long the parts took, and the longest groups, from the seconds of each test."""
    parts, groups = Counter[str](), Counter[str]()
    for path, seconds in times:
        parts[part_of(path)] += seconds  # type: ignore[assignment]
        groups[group_of(path)] += seconds  # type: ignore[assignment]
    told = [*parts.most_common(), *groups.most_common(SHOWN)]
    return [f"{seconds:8.0f} s  {name}" for name, seconds in told]
