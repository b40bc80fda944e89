"""The dashboards and the table of metrics, as code.

``python deploy/dashboards.py`` writes the JSON files for Grafana, and the table in ``docs/operations.md``. A
panel names metrics of ``streamdp/monitor/metrics.py``; expressions, legends and units follow from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as models

from streamdp.monitor import metrics as monitor
from streamdp.monitor.metrics import Declared

FOLDER = Path(__file__).parent / "grafana" / "dashboards"
PAGE = Path(__file__).parents[1] / "docs" / "operations.md"
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
ONE = 'job=~"$job", instance=~"$instance"'
"""Which processes a dashboard shows."""

Query = tuple[str, str]
"""An expression, ``ONE`` standing for ``$one``, and how its lines are named."""


def queries(names: tuple[str | Query, ...], over: str) -> Iterator[Query]:
    """What a panel asks for; metrics are given by name."""
    for each in names:
        if isinstance(each, tuple):
            yield each
            continue
        metric, words = monitor.metrics()[each], each.replace("_", " ")
        others = len(names) > 1
        if metric.kind == "histogram":
            for expression, quantile in quantiles(each):
                yield expression, f"{words} {quantile}" if others else quantile
            continue
        value = f"{metric.served}{{$one}}"
        value = f"rate({value}[$__rate_interval])" if metric.kind == "counter" else value
        if over:
            by = f" by ({', '.join(metric.labels)}) " if metric.labels else ""
            yield f"{over}{by}({value})", " ".join(f"{{{{{each}}}}}" for each in metric.labels) or words
        else:
            yield value, f"{{{{instance}}}} {words}" if others else "{{instance}}"


def quantiles(name: str) -> tuple[Query, ...]:
    """The median and the 99th percentile of a histogram."""
    rate = f"sum by (le) (rate(streamdp_{name}_bucket{{$one}}[$__rate_interval]))"
    return tuple((f"histogram_quantile({q}, {rate})", f"p{100 * q:.0f}") for q in (0.5, 0.99))


def per_second(name: str, legend: str) -> Query:
    """How fast a counter grows, all processes together."""
    return f"sum(rate(streamdp_{name}{{$one}}[$__rate_interval]))", legend


def usual_unit(metric: Declared) -> str:
    """The unit of a metric, by its name and kind."""
    unit = {"seconds": "s", "bytes": "bytes"}.get(metric.name.rpartition("_")[2])
    return unit or ("cps" if metric.kind == "counter" else "short")


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
    title: str,
    *of: str | Query,
    about: str = "",
    unit: str = "",
    span: int = 8,
    over: str = "sum",
    stacked: bool = False,
) -> timeseries.Panel:
    """Metrics over time, all processes combined by a function or, where it is empty, each for itself."""
    metrics = [monitor.metrics()[each] for each in of if isinstance(each, str)]
    panel = (
        timeseries.Panel()
        .title(title)
        .description(about or " ".join(metric.text for metric in metrics))
        .datasource(SOURCE)
        .unit(unit or usual_unit(metrics[0]))
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
    for letter, query in zip(ascii_uppercase, queries(of, over), strict=False):
        panel = panel.with_target(_target(query, letter))
    return panel


def number(title: str, about: str, query: Query, unit: str = "short") -> stat.Panel:
    """The last value, large."""
    return (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .unit(unit)
        .height(4)
        .span(4)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(_target(query, "A"))
    )


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
                number("Records per second", "Answered.", per_second("records_total", "")),
                number("Lag", "Records not read yet.", ("sum(streamdp_lag_records{$one})", "")),
                number("Answered within", "99 of 100 records.", quantiles("answer_seconds")[1], "s"),
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
                    "records",
                    per_second("rejects_total", "refused"),
                    "gap_records",
                    "skipped",
                    "conflicts",
                ),
                lines("Lag in records", "lag_records"),
                lines("Lag in event time", "lag_seconds", over="max"),
                lines(
                    "Refused by reason",
                    "rejects",
                    about="A new reason, or a jump of one, says that a producer has changed.",
                ),
                lines("Held back", "held_back_records", "released_early", "final_early", "retained_records"),
                lines("Source", "source_up", "standing_by", over=""),
            ],
            "Latency": [
                lines("From arrival to answer", "answer_seconds"),
                lines("From event to answer", "event_age_seconds"),
                lines("Batches", "batch_seconds", "advance_seconds"),
            ],
            "Where the time goes": [
                lines(
                    "Stages",
                    "stage_seconds",
                    about="Seconds per second; fetch is mostly waiting where the service keeps up.",
                    stacked=True,
                    span=12,
                ),
                lines(
                    "CPU",
                    _process("rate(process_cpu_seconds_total{$one}[$__rate_interval])"),
                    about="Cores.",
                    unit="short",
                    span=12,
                ),
            ],
            "Snapshots": [
                lines("Seconds", "snapshot_seconds"),
                lines("Size", "snapshot_bytes", over=""),
                lines(
                    "Written and failed", "snapshot_failures", per_second("snapshot_seconds_count", "written")
                ),
            ],
            "Process": [
                lines(
                    "Memory", _process("process_resident_memory_bytes{$one}"), about="Resident.", unit="bytes"
                ),
                lines("Open files", _process("process_open_fds{$one}"), about="And sockets.", unit="short"),
                lines(
                    "Starts",
                    _process("changes(process_start_time_seconds{$one}[1h])"),
                    about="In the last hour.",
                    unit="short",
                ),
            ],
        },
    )


def _process(expression: str) -> Query:
    return expression, "{{instance}}"


def model() -> build.Dashboard:
    """What the clusters do, and whether the model still fits what comes."""
    return _filled(
        empty(
            "streamdp-model", "streamdp: clusters and model", "What do clusters do, and does the model fit?"
        ),
        {
            "Clusters": [
                lines("Live clusters", "clusters_live"),
                lines(
                    "Clusters that come and go",
                    "clusters_created",
                    "clusters_closed",
                    "clusters_retired",
                    "clusters_merged",
                ),
                lines(
                    "Vocabulary",
                    "vocabulary_words",
                    "words_dropped",
                    "words_cut",
                    about="Words held, and those dropped per second: they ask for a higher max_words.",
                ),
                lines(
                    "Rows that left the store",
                    "store_removed",
                    about="Rows per second that a bounded store removes: --store-days, --store-rows.",
                ),
            ],
            "Stories": [
                lines(
                    "What happens",
                    "events",
                    about="Events by kind: a new template, a surge or silence deserve a look at the page.",
                ),
                lines("Doubtful, corrected", "doubts", "corrections"),
                lines("Alerts", "alerts_delivered", "alert_failures", "alerts_dropped", "alerts_waiting"),
            ],
            "How well it predicts": [
                lines(
                    "Log predictive of a record",
                    (
                        "sum(delta(streamdp_log_evidence_nats{$one}[5m]))"
                        " / sum(delta(streamdp_stream_records{$one}[5m]))",
                        "nats",
                    ),
                    about="Nats, the mean over five minutes. A lasting fall: the stream has changed.",
                    unit="short",
                    span=12,
                ),
                lines(
                    "New clusters per record",
                    (
                        "sum(rate(streamdp_clusters_created_total{$one}[5m]))"
                        " / sum(rate(streamdp_records_total{$one}[5m]))",
                        "share",
                    ),
                    about="A lasting rise: records are like nothing that is known.",
                    unit="percentunit",
                    span=12,
                ),
            ],
            "The beam": [
                lines("Agreement", "beam_agreement", unit="percentunit", over="avg"),
                lines("Not settled yet", "undecided_records", "final_lag_records"),
                lines("Changes of mind", "revisions", "switches", "dissenters_dropped"),
                lines("Hypotheses", "hypotheses"),
                lines("Second looks", "second_looks", "records_moved"),
            ],
            "Refinement inside the stream": [
                lines("Refinements", "refinements", "refinements_adopted"),
                lines("Moves", "refinement_moves", "records_refined", "refinement_nats"),
                lines(
                    "Waiting",
                    "refinement_waited_seconds",
                    about="Seconds per second that the stream waits for refinements: lower refine_moves.",
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


def described(page: str) -> str:
    """A page with its table of metrics as they are declared."""
    rows = "".join(
        f"| `{metric.served}` | {metric.kind} | {_with_labels(metric)} |\n"
        for metric in monitor.metrics().values()
    )
    head = "| metric | kind | |\n| --- | --- | --- |\n"
    return re.sub(rf"(?<={re.escape(head)})(\|.*\n)+", lambda _: rows, page)


def _with_labels(metric: Declared) -> str:
    text = metric.text[0].lower() + metric.text[1:].removesuffix(".")
    return f"{text}; by {', '.join(f'`{label}`' for label in metric.labels)}" if metric.labels else text


def files() -> Iterator[tuple[Path, str]]:
    """Every file and what is in it."""
    yield PAGE, described(PAGE.read_text("utf-8"))
    for board in (operations(), model()):
        built = board.build()
        text = JSONEncoder(sort_keys=True, indent=2).encode(built)
        yield FOLDER / f"{built.uid}.json", f"{json.dumps(json.loads(text), indent=2, sort_keys=True)}\n"


def main() -> None:
    """Write them."""
    for path, text in files():
        path.write_text(text, "utf-8")
        print(path)


if __name__ == "__main__":
    main()
