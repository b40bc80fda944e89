"""The dashboards, as code: ``python deploy/dashboards.py`` writes the JSON files that Grafana is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as models

FOLDER = Path(__file__).parent / "grafana" / "dashboards"
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
ONE = 'job=~"$job", instance=~"$instance"'
"""Which processes a dashboard shows."""

Query = tuple[str, str]
"""An expression, ``ONE`` standing for ``$one``, and how its lines are named."""


def _target(query: Query, letter: str) -> prometheus.Dataquery:
    expression, legend = query
    return (
        prometheus.Dataquery()
        .expr(expression.replace("$one", ONE))
        .legend_format(legend)
        .ref_id(letter)
        .datasource(SOURCE)
    )


def lines(
    title: str, description: str, *queries: Query, unit: str = "short", stacked: bool = False, span: int = 8
) -> timeseries.Panel:
    """Lines over time."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .height(8)
        .span(span)
        .fill_opacity(30 if stacked else 5)
        .legend(
            common.VizLegendOptions()
            .display_mode(shapes.LegendDisplayMode.LIST)
            .placement(shapes.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI))
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL))
    for number, query in enumerate(queries):
        panel = panel.with_target(_target(query, chr(ord("A") + number)))
    return panel


def number(title: str, description: str, query: Query, unit: str = "short") -> stat.Panel:
    """The last value, large."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .height(4)
        .span(4)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(_target(query, "A"))
    )


def quantiles(metric: str) -> tuple[Query, ...]:
    """The median and the 99th percentile of a histogram."""
    rate = f"sum by (le) (rate({metric}_bucket{{$one}}[$__rate_interval]))"
    return tuple((f"histogram_quantile({q}, {rate})", f"p{100 * q:.0f}") for q in (0.5, 0.99))


def per_second(metric: str, legend: str) -> Query:
    """How fast a counter grows, all processes together."""
    return f"sum(rate({metric}{{$one}}[$__rate_interval]))", legend


def empty(uid: str, title: str, description: str) -> build.Dashboard:
    """A dashboard without panels, for any Prometheus and any processes of it."""
    return (
        build.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["streamdp"])
        .editable()
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(build.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_labels("job", "streamdp_build_info"))
        .with_variable(_labels("instance", 'streamdp_build_info{job=~"$job"}'))
    )


def _labels(name: str, selector: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(name)
        .datasource(SOURCE)
        .query(f"label_values({selector}, {name})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
    )


def operations() -> build.Dashboard:
    """Whether the service runs, keeps up and can be restarted."""
    return _filled(
        empty("streamdp-operations", "streamdp: operations", "Does it run, keep up, and survive a restart?"),
        {
            "Now": [
                number("Source", "1 where the broker answers.", ("min(streamdp_source_up{$one})", "")),
                number(
                    "Records per second",
                    "Answered, all processes together.",
                    per_second("streamdp_records_total", ""),
                ),
                number(
                    "Lag", "Records not read yet, all partitions.", ("sum(streamdp_lag_records{$one})", "")
                ),
                number(
                    "Answered within",
                    "99 of 100 records, from arrival to answer.",
                    quantiles("streamdp_answer_seconds")[1],
                    "s",
                ),
                number(
                    "Age of the snapshot",
                    "What a crash now would have to do again.",
                    ("max(streamdp_snapshot_age_seconds{$one})", ""),
                    "s",
                ),
                number(
                    "Up since",
                    "The last start of any process.",
                    ("max(process_start_time_seconds{$one}) * 1000", ""),
                    "dateTimeFromNow",
                ),
            ],
            "Throughput and lag": [
                lines(
                    "Records",
                    "Answered, and refused, per second.",
                    per_second("streamdp_records_total", "answered"),
                    per_second("streamdp_rejects_total", "refused"),
                    per_second("streamdp_gap_records_total", "gone before they were read"),
                    unit="cps",
                ),
                lines(
                    "Lag in records",
                    "Records of a partition not read yet.",
                    ("sum by (topic, partition) (streamdp_lag_records{$one})", "{{topic}} {{partition}}"),
                ),
                lines(
                    "Lag in event time",
                    "From the last record read of a partition to now; 0 where none is left.",
                    (
                        "max by (topic, partition) (streamdp_lag_seconds{$one})",
                        "{{topic}} {{partition}}",
                    ),
                    unit="s",
                ),
                lines(
                    "Refused by reason",
                    "A new reason, or a jump of one, says that a producer has changed.",
                    ("sum by (reason) (rate(streamdp_rejects_total{$one}[$__rate_interval]))", "{{reason}}"),
                    unit="cps",
                ),
                lines(
                    "Held back",
                    "Records that wait for others to come before them.",
                    ("sum(streamdp_held_back_records{$one})", "records"),
                ),
                lines(
                    "Source",
                    "1 while the broker answers, 0 while it is lost; and who waits for another to end.",
                    ("streamdp_source_up{$one}", "{{instance}}"),
                    ("streamdp_standing_by{$one}", "{{instance}} stands by"),
                ),
            ],
            "Latency": [
                lines(
                    "From arrival to answer",
                    "Of records; those of a batch at the age of its first.",
                    *quantiles("streamdp_answer_seconds"),
                    unit="s",
                ),
                lines(
                    "From event to answer",
                    "Of records with times; what producers and brokers add is in it.",
                    *quantiles("streamdp_event_age_seconds"),
                    unit="s",
                ),
                lines(
                    "Batches",
                    "Seconds to answer a batch, and the engine's part of them.",
                    *quantiles("streamdp_batch_seconds"),
                    *((query, f"engine {name}") for query, name in quantiles("streamdp_advance_seconds")),
                    unit="s",
                ),
            ],
            "Where the time goes": [
                lines(
                    "Stages",
                    "Seconds per second; fetch is mostly waiting where the service keeps up.",
                    (
                        "sum by (stage) (rate(streamdp_stage_seconds_total{$one}[$__rate_interval]))",
                        "{{stage}}",
                    ),
                    unit="s",
                    stacked=True,
                    span=12,
                ),
                lines(
                    "CPU",
                    "Cores in use.",
                    ("rate(process_cpu_seconds_total{$one}[$__rate_interval])", "{{instance}}"),
                    span=12,
                ),
            ],
            "Snapshots": [
                lines(
                    "Seconds",
                    "How long the writing of one takes.",
                    *quantiles("streamdp_snapshot_seconds"),
                    unit="s",
                ),
                lines(
                    "Size", "The last one.", ("streamdp_snapshot_bytes{$one}", "{{instance}}"), unit="bytes"
                ),
                lines(
                    "Written and failed",
                    "Per second.",
                    per_second("streamdp_snapshot_seconds_count", "written"),
                    per_second("streamdp_snapshot_failures_total", "failed"),
                    unit="cps",
                ),
            ],
            "Process": [
                lines(
                    "Memory",
                    "Resident.",
                    ("process_resident_memory_bytes{$one}", "{{instance}}"),
                    unit="bytes",
                ),
                lines("Open files", "And sockets.", ("process_open_fds{$one}", "{{instance}}")),
                lines(
                    "Starts",
                    "In the last hour.",
                    ("changes(process_start_time_seconds{$one}[1h])", "{{instance}}"),
                ),
            ],
        },
    )


def model() -> build.Dashboard:
    """What the clusters do, and whether the model still fits what comes."""
    return _filled(
        empty(
            "streamdp-model", "streamdp: clusters and model", "What do clusters do, and does the model fit?"
        ),
        {
            "Clusters": [
                lines(
                    "Live clusters",
                    "Of the best hypothesis.",
                    ("sum(streamdp_clusters_live{$one})", "live"),
                ),
                lines(
                    "Clusters that come and go",
                    "Per second.",
                    per_second("streamdp_clusters_created_total", "announced"),
                    per_second("streamdp_clusters_closed_total", "closed or retired"),
                    per_second("streamdp_clusters_retired_total", "retired by a limit"),
                    per_second("streamdp_clusters_merged_total", "merged by a second look"),
                    unit="cps",
                ),
                lines(
                    "Vocabulary",
                    "Words held; those dropped for want of room, per second, ask for a higher max_words.",
                    ("sum(streamdp_vocabulary_words{$one})", "words"),
                    per_second("streamdp_words_dropped_total", "dropped per second"),
                ),
            ],
            "How well it foretells": [
                lines(
                    "Log predictive of a record",
                    "Nats, the mean over five minutes. A lasting fall: the stream has changed.",
                    (
                        "sum(delta(streamdp_log_evidence_nats{$one}[5m]))"
                        " / sum(delta(streamdp_stream_records{$one}[5m]))",
                        "nats",
                    ),
                    span=12,
                ),
                lines(
                    "New clusters per record",
                    "A lasting rise: records are like nothing that is known.",
                    (
                        "sum(rate(streamdp_clusters_created_total{$one}[5m]))"
                        " / sum(rate(streamdp_records_total{$one}[5m]))",
                        "share",
                    ),
                    unit="percentunit",
                    span=12,
                ),
            ],
            "The beam": [
                lines(
                    "Agreement",
                    "Share of the beam's clusters that all hypotheses hold.",
                    ("avg(streamdp_beam_agreement{$one})", "share"),
                    unit="percentunit",
                ),
                lines(
                    "Not settled yet",
                    "Records on which hypotheses differ, and those not told final.",
                    ("sum(streamdp_undecided_records{$one})", "undecided"),
                    ("sum(streamdp_final_lag_records{$one})", "not final"),
                ),
                lines(
                    "Changes of mind",
                    "Per second.",
                    per_second("streamdp_revisions_total", "answers revised"),
                    per_second("streamdp_switches_total", "another hypothesis best"),
                    per_second("streamdp_dissenters_dropped_total", "hypotheses dropped"),
                    unit="cps",
                ),
                lines("Hypotheses", "In the beam.", ("sum(streamdp_hypotheses{$one})", "hypotheses")),
                lines(
                    "Second looks",
                    "Per second.",
                    per_second("streamdp_second_looks_total", "looks"),
                    per_second("streamdp_records_moved_total", "records moved"),
                    unit="cps",
                ),
                lines(
                    "What adapts",
                    "Only with adapt.",
                    ("avg(streamdp_concentration{$one})", "concentration"),
                    ("avg(streamdp_decay_scale{$one})", "scale of the decay"),
                ),
            ],
            "Refinement inside the stream": [
                lines(
                    "Refinements",
                    "Per second; only with refine_every.",
                    per_second("streamdp_refinements_total", "begun"),
                    per_second("streamdp_refinements_adopted_total", "adopted"),
                    unit="cps",
                ),
                lines(
                    "Moves",
                    "Per second.",
                    per_second("streamdp_refinement_moves_total", "records weighed again"),
                    per_second("streamdp_records_refined_total", "records moved"),
                    per_second("streamdp_refinement_nats_total", "nats won"),
                    unit="cps",
                ),
                lines(
                    "Waiting",
                    "Seconds per second that the stream waits for refinements: lower refine_moves.",
                    per_second("streamdp_refinement_waited_seconds_total", "waiting"),
                    unit="s",
                ),
            ],
        },
    )


def _filled(board: build.Dashboard, rows: dict[str, list[timeseries.Panel | stat.Panel]]) -> build.Dashboard:
    ids = count(1)
    for title, panels in rows.items():
        board = board.with_row(build.Row(title).id(next(ids)))
        for panel in panels:
            board = board.with_panel(panel.id(next(ids)))
    return board


def files() -> Iterator[tuple[Path, str]]:
    """Every file and what is in it."""
    for board in (operations(), model()):
        built = board.build()
        text = JSONEncoder(sort_keys=True, indent=2).encode(built)
        yield FOLDER / f"{built.uid}.json", f"{json.dumps(json.loads(text), indent=2, sort_keys=True)}\n"


def main() -> None:
    """Write them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in files():
        path.write_text(text, "utf-8")
        print(path)


if __name__ == "__main__":
    main()
