"""The dashboards and the list of metrics, as code.

``python deploy/dashboards.py`` writes the JSON files for Grafana, and the list in ``docs/operations.md``.
Which panel shows a metric, and in what unit, stands in the table ``streamdp/monitor/table.py``; here is where
the panels are, and what they ask for besides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from streamdp.monitor import table
from streamdp.monitor.table import Metric

FOLDER = Path(__file__).parent / "grafana" / "dashboards"
PAGE = Path(__file__).parents[1] / "docs" / "operations.md"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
ONE = 'job=~"$job", instance=~"$instance"'
"""Which processes a dashboard shows; expressions here say ``$one``."""

Query = tuple[str, str]
"""An expression, and how its lines are named."""

Panel = dict[str, Any]


def per_second(name: str, legend: str = "") -> Query:
    """How fast a counter grows, all processes together."""
    return f"sum(rate(streamdp_{name}{{$one}}[$__rate_interval]))", legend


def quantile(name: str, q: float) -> str:
    """A quantile of a histogram."""
    rate = f"sum by (le) (rate(streamdp_{name}_bucket{{$one}}[$__rate_interval]))"
    return f"histogram_quantile({q}, {rate})"


def queries(metric: Metric, over: str, several: bool) -> Iterator[Query]:
    """What a panel asks of a metric; processes are combined by ``over``, or each for itself."""
    words = metric.name.replace("_", " ")
    if metric.kind == "histogram":
        for q, called in (0.5, "p50"), (0.99, "p99"):
            yield quantile(metric.name, q), f"{words} {called}" if several else called
        return
    value, labels = f"{metric.served}{{$one}}", metric.labels.split()
    value = f"rate({value}[$__rate_interval])" if metric.kind == "counter" else value
    if not over:
        yield value, f"{{{{instance}}}} {words}" if several else "{{instance}}"
    else:
        by = f" by ({', '.join(labels)}) " if labels else ""
        yield f"{over}{by}({value})", " ".join(f"{{{{{label}}}}}" for label in labels) or words


def lines(
    title: str,
    *more: Query,
    about: str = "",
    unit: str = "",
    width: int = 8,
    over: str = "sum",
    **custom: Any,
) -> Panel:
    """The metrics over time that the table has for this panel, and more."""
    metrics = [metric for metric in table.METRICS.values() if metric.panel == title]
    metrics.sort(key=lambda metric: metric.kind == "counter")  # the unit is that of the first
    asked = [query for each in metrics for query in queries(each, over, len(metrics) > 1)]
    options = {
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "asc"},
    }
    return {
        **panel("timeseries", title, about or " ".join(each.help for each in metrics), [*asked, *more]),
        "gridPos": {"h": 8, "w": width},
        "options": options,
        "fieldConfig": {
            "defaults": {"custom": {"fillOpacity": 5, **custom}, "unit": unit or metrics[0].unit},
            "overrides": [],
        },
    }


def number(title: str, about: str, expression: str, unit: str = "short") -> Panel:
    """The last value, large."""
    return {
        **panel("stat", title, about, [(expression, "")]),
        "gridPos": {"h": 4, "w": 4},
        "options": {
            "colorMode": "value",
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "showPercentChange": False,
            "textMode": "auto",
            "wideLayout": True,
        },
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
    }


def panel(kind: str, title: str, about: str, asked: list[Query]) -> Panel:
    """What every panel has."""
    targets = [
        {
            "datasource": SOURCE,
            "expr": expression.replace("$one", ONE),
            "legendFormat": legend,
            "refId": letter,
        }
        for letter, (expression, legend) in zip(ascii_uppercase, asked, strict=False)
    ]
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "targets": targets,
        "repeatDirection": "h",
        "transparent": False,
    }


def process(title: str, expression: str, about: str, unit: str = "short", width: int = 8) -> Panel:
    """What is known of any process, each for itself."""
    return lines(title, (expression, "{{instance}}"), about=about, unit=unit, width=width)


def operations() -> dict[str, list[Panel]]:
    """Whether the service runs, keeps up and can be restarted."""
    age = "max(streamdp_snapshot_age_seconds{$one})"
    stages = "Seconds per second; fetch is mostly waiting where the service keeps up."
    return {
        "Now": [
            number("Source", "1 where the broker answers.", "min(streamdp_source_up{$one})"),
            number("Records per second", "Answered.", per_second("records_total")[0]),
            number("Lag", "Records not read yet.", "sum(streamdp_lag_records{$one})"),
            number("Answered within", "99 of 100 records.", quantile("answer_seconds", 0.99), "s"),
            number("Age of the snapshot", "What a crash now would have to do again.", age, "s"),
            number(
                "Up since",
                "The last start of any process.",
                "max(process_start_time_seconds{$one}) * 1000",
                "dateTimeFromNow",
            ),
        ],
        "Throughput and lag": [
            lines("Records", per_second("rejects_total", "refused")),
            lines("Lag in records"),
            lines("Lag in event time", over="max"),
            lines(
                "Refused by reason", about="A new reason, or a jump of one, says that a producer has changed."
            ),
            lines("Held back"),
            lines("Source", over=""),
        ],
        "Latency": [lines("From arrival to answer"), lines("From event to answer"), lines("Batches")],
        "Where the time goes": [
            lines("Stages", about=stages, width=12, fillOpacity=30, stacking={"mode": "normal"}),
            process(
                "CPU", "rate(process_cpu_seconds_total{$one}[$__rate_interval])", about="Cores.", width=12
            ),
        ],
        "Snapshots": [
            lines("Seconds"),
            lines("Size", over=""),
            lines("Written and failed", per_second("snapshot_seconds_count", "written")),
        ],
        "Process": [
            process("Memory", "process_resident_memory_bytes{$one}", about="Resident.", unit="bytes"),
            process("Open files", "process_open_fds{$one}", about="And sockets."),
            process("Starts", "changes(process_start_time_seconds{$one}[1h])", about="In the last hour."),
        ],
    }


def model() -> dict[str, list[Panel]]:
    """What the clusters do, and whether the model still fits what comes."""

    def ratio(of: str, to: str, how: str) -> str:
        return f"sum({how}(streamdp_{of}{{$one}}[5m])) / sum({how}(streamdp_{to}{{$one}}[5m]))"

    return {
        "Clusters": [
            lines("Live clusters"),
            lines("Clusters that come and go"),
            lines(
                "Vocabulary",
                about="Words held, and those dropped per second: they ask for a higher max_words.",
            ),
            lines(
                "Rows that left the store",
                about="Rows per second that a bounded store removes: --store-days, --store-rows.",
            ),
        ],
        "Stories": [
            lines(
                "What happens",
                about="Events by kind: a new template, a surge or silence deserve a look at the page.",
            ),
            lines("Doubtful, corrected"),
            lines("Alerts"),
        ],
        "How well it predicts": [
            lines(
                "Log predictive of a record",
                (ratio("log_evidence_nats", "stream_records", "delta"), "nats"),
                about="Nats, the mean over five minutes. A lasting fall: the stream has changed.",
                unit="short",
                width=12,
            ),
            lines(
                "New clusters per record",
                (ratio("clusters_created_total", "records_total", "rate"), "share"),
                about="A lasting rise: records are like nothing that is known.",
                unit="percentunit",
                width=12,
            ),
        ],
        "The beam": [
            lines("Agreement", over="avg"),
            lines("Not settled yet"),
            lines("Changes of mind"),
            lines("Hypotheses"),
            lines("Second looks"),
        ],
        "Refinement inside the stream": [
            lines("Refinements"),
            lines("Moves"),
            lines(
                "Waiting",
                about="Seconds per second that the stream waits for refinements: lower refine_moves.",
            ),
        ],
    }


def board(uid: str, title: str, about: str, rows: dict[str, list[Panel]]) -> dict[str, Any]:
    """A dashboard for any Prometheus and any processes of it, its panels side by side in rows of 24."""
    panels, y = list[Panel](), 0
    for row, inside in rows.items():
        head = {"type": "row", "title": row, "collapsed": False, "panels": [], "gridPos": {"h": 1, "w": 24}}
        x = 24
        for each in (head, *inside):
            place = each["gridPos"]
            if x + place["w"] > 24:
                x, y = 0, y + (panels[-1]["gridPos"]["h"] if panels else 0)
            panels.append({**each, "id": len(panels) + 1, "gridPos": {**place, "x": x, "y": y}})
            x += place["w"]
    return {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": ["streamdp"],
        "annotations": {},
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "refresh": "10s",
        "schemaVersion": 41,
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                variable("datasource", "Prometheus", type="datasource", query="prometheus"),
                chosen("job", "streamdp_build_info"),
                chosen("instance", 'streamdp_build_info{job=~"$job"}'),
            ]
        },
        "panels": panels,
    }


def variable(name: str, label: str, **more: Any) -> dict[str, Any]:
    """What is chosen above a dashboard."""
    return {
        "name": name,
        "label": label,
        "allowCustomValue": True,
        "auto": False,
        "auto_count": 30,
        "auto_min": "10s",
        "includeAll": False,
        "multi": False,
        "skipUrlSync": False,
        **more,
    }


def chosen(name: str, selector: str) -> dict[str, Any]:
    """A label, of which any number of values are chosen."""
    return variable(
        name,
        name,
        type="query",
        datasource=SOURCE,
        query=f"label_values({selector}, {name})",
        refresh=2,
        sort=1,
        includeAll=True,
        multi=True,
        allValue=".*",
    )


def described(page: str) -> str:
    """A page with its list of metrics as the table has them."""
    rows = "".join(
        f"| `{metric.served}` | {metric.kind} | {_with_labels(metric)} |\n"
        for metric in table.METRICS.values()
    )
    head = "| metric | kind | |\n| --- | --- | --- |\n"
    return re.sub(rf"(?<={re.escape(head)})(\|.*\n)+", lambda _: rows, page)


def _with_labels(metric: Metric) -> str:
    text = metric.help[0].lower() + metric.help[1:].removesuffix(".")
    labels = ", ".join(f"`{label}`" for label in metric.labels.split())
    return f"{text}; by {labels}" if labels else text


def files() -> Iterator[tuple[Path, str]]:
    """Every file and what is in it."""
    yield PAGE, described(PAGE.read_text("utf-8"))
    for name, title, about, rows in (
        ("operations", "operations", "Does it run, keep up, and survive a restart?", operations()),
        ("model", "clusters and model", "What do clusters do, and does the model fit?", model()),
    ):
        made = board(f"streamdp-{name}", f"streamdp: {title}", about, rows)
        yield FOLDER / f"streamdp-{name}.json", f"{json.dumps(made, indent=2, sort_keys=True)}\n"


def main() -> None:
    """Write them."""
    for path, text in files():
        path.write_text(text, "utf-8")
        print(path)


if __name__ == "__main__":
    main()
