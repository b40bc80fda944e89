"""The commands and their options; what they do stands in modules of their own, imported when called."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamdp._version import __version__
from streamdp.cli.errors import LogFormat, choose_log_format
from streamdp.cli.lines import OutputFormat
from streamdp.cli.options import with_settings
from streamdp.offline.plan import Estimate, Method, Start
from streamdp.settings import Settings

app = typer.Typer(
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Cluster a stream while it flows. Assignments go to stdout, logs and progress to stderr.",
    epilog="Settings: flag over environment (STREAMDP_BEAM=8) over streamdp.toml over default.",
)

Config = Annotated[
    str | None, typer.Option(help="settings file (default: streamdp.toml where there is one)", metavar="PATH")
]

PagePort = Annotated[
    int | None, typer.Option("--page", min=0, help="serve a live page at this port", metavar="PORT")
]
PageHost = Annotated[str, typer.Option(help="address to serve the page at")]
PageToken = Annotated[
    str | None,
    typer.Option(help="file with the token that strangers need (default: one is made up)", metavar="PATH"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace what is there already")]
Sort = Literal["size", "new", "growing"]
OnGap = Literal["stop", "earliest", "latest"]
Until = Literal["never", "end"]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamdp {__version__}")
        raise typer.Exit


def _log_format(form: LogFormat) -> LogFormat:
    choose_log_format(form)
    return form


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


@app.command()
@with_settings
def consume(
    settings: Settings,
    source: Annotated[
        str | None, typer.Argument(help="JSON lines, CSV, TSV or text, .gz, .zst or not", metavar="[FILE]")
    ] = None,
    file: Annotated[str | None, typer.Option(help="the same; - for standard input")] = None,
    topic: Annotated[str | None, typer.Option(help="Kafka topic to read instead of a file")] = None,
    bootstrap: Annotated[
        str | None, typer.Option(help="Kafka brokers, host:port,... (default: localhost:9092)")
    ] = None,
    kafka_config: Annotated[
        str | None,
        typer.Option(help="properties for TLS and logins, as of Kafka's own tools", metavar="PATH"),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="consumer group that is told the positions (default: streamdp-TOPIC)")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="where a topic is begun: earliest (the default), latest or a time"),
    ] = None,
    on_gap: Annotated[
        OnGap,
        typer.Option(help="where records of the topic are gone: stop, or go on with the earliest or latest"),
    ] = "stop",
    give_up_after: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="seconds to wait for lost brokers (default: 10 at the start, later for ever)",
            metavar="SECONDS",
        ),
    ] = None,
    until: Annotated[
        Until, typer.Option(help="end: stop at what the topic holds when the run begins")
    ] = "never",
    output: Annotated[str, typer.Option(help="where assignments go, - for standard output")] = "-",
    output_format: Annotated[
        OutputFormat,
        typer.Option(help="jsonl, or csv: one table, the kept fields as columns; auto: by its name"),
    ] = "auto",
    finality: Annotated[
        str | None, typer.Option(help="where finality goes, instead of among the assignments")
    ] = None,
    output_topic: Annotated[
        str | None, typer.Option(help="Kafka topic (of one partition) for assignments instead of a file")
    ] = None,
    state: Annotated[str | None, typer.Option(help="folder of snapshots; resumes from the newest")] = None,
    rejects: Annotated[
        str | None, typer.Option(help="where refused records go (default: next to the output)")
    ] = None,
    rejects_topic: Annotated[
        str | None, typer.Option(help="Kafka topic for refused records instead of a file")
    ] = None,
    events: Annotated[str | None, typer.Option(help="where cluster events go, if anywhere")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="wait for a growing file, like tail -F")] = False,
    final_only: Annotated[
        bool, typer.Option("--final-only", help="write each record once, when its cluster is final")
    ] = False,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="score against the state without learning from the records")
    ] = False,
    overwrite: Overwrite = False,
    new_output: Annotated[
        bool, typer.Option("--new-output", help="begin new files where those of the state were moved away")
    ] = False,
    rotate: Annotated[
        str | None,
        typer.Option(help="begin new output files daily, or at a size such as 100M", metavar="daily|SIZE"),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(help="snapshot or state folder to begin with, of fit, refine or another stream"),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, help="serve /metrics, /livez and /readyz at this port")
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="address to serve them at")] = "127.0.0.1",
    page: PagePort = None,
    page_host: PageHost = "127.0.0.1",
    page_token: PageToken = None,
    page_linger: Annotated[
        bool, typer.Option("--page-linger", help="serve it on when the input has ended, until Ctrl-C")
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            help="lines on stderr: plain, dated (with time and level) or json",
            callback=_log_format,
            is_eager=True,
        ),
    ] = "plain",
    config: Config = None,
) -> int:
    """Read records in time order, say of each at once which cluster it belongs to."""
    from streamdp.cli.consume import consume
    from streamdp.cli.live import page_at
    from streamdp.cli.reading import one_file, origin_of
    from streamdp.cli.writing import Paths, rotation_of

    return consume(
        settings,
        origin_of(
            one_file(source, file),
            follow,
            topic,
            bootstrap,
            group,
            start,
            until == "end",
            on_gap,
            give_up_after,
            kafka_config,
        ),
        Paths(
            output,
            state,
            rejects,
            events,
            output_topic,
            rejects_topic,
            overwrite,
            new_output,
            finality,
            output_format,
            rotation_of(rotate),
        ),
        final_only=final_only,
        frozen=frozen,
        start_from=start_from,
        metrics=None if metrics_port is None else (metrics_host, metrics_port),
        page=page_at(page, page_host, page_token, linger=page_linger),
    )


@app.command()
@with_settings
def demo(
    settings: Settings,
    records: Annotated[int, typer.Option(min=1, help="records to generate")] = 5000,
    page: Annotated[
        bool, typer.Option("--page", help="show a live page, and take the time to look at it")
    ] = False,
    page_port: Annotated[int, typer.Option(min=0, help="port of the page, 0 for any free one")] = 8080,
    config: Config = None,
) -> None:
    """Cluster a generated stream of news whose stories are born, drift and die; score it at the end."""
    from streamdp.cli.demo import demo
    from streamdp.cli.live import page_at

    demo(settings, records, page_at(page_port if page else None, linger=True))


Budget = Annotated[str, typer.Option(help="when to stop: 30s, 10m, 1h, or a number of rounds")]
Chains = Annotated[int, typer.Option(min=1, max=64, help="chains side by side")]


@app.command()
@with_settings
def fit(
    settings: Settings,
    file: Annotated[str, typer.Argument(help="JSON lines, CSV or text, .gz or not", metavar="FILE")],
    method: Annotated[Method, typer.Option(help="how to search")] = "hybrid",
    budget: Budget = "30s",
    chains: Chains = 1,
    start: Annotated[Start, typer.Option(help="where samplers start")] = "auto",
    estimate: Annotated[
        Estimate, typer.Option(help="best: the most probable clustering met; vi, binder: of all draws")
    ] = "best",
    hyper: Annotated[
        bool, typer.Option("--hyper/--no-hyper", help="draw the hyperparameters that are automatic")
    ] = True,
    queue: Annotated[int, typer.Option(min=0, help="states that astar keeps, 0 for all")] = 100,
    look_ahead: Annotated[
        str,
        typer.Option(help="astar's score: trivial, admissible, replica, predictive or inadmissible"),
    ] = "inadmissible",
    order: Annotated[
        str, typer.Option(help="astar's order: given, random, ascending or descending")
    ] = "given",
    distances: Annotated[
        str | None,
        typer.Option(help="D.npy: row i holds the distances of record i from earlier ones"),
    ] = None,
    output: Annotated[str, typer.Option(help="where assignments go, - for standard output")] = "-",
    state: Annotated[
        str | None, typer.Option(help="folder for a snapshot that show, refine and consume read")
    ] = None,
    rejects: Annotated[
        str | None, typer.Option(help="where refused records go (default: next to the output)")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(help="draw PREFIX-trace.png, -sizes.png and -similarity.png", metavar="PREFIX"),
    ] = None,
    overwrite: Overwrite = False,
    config: Config = None,
) -> None:
    """Cluster a finite file offline, with all the time it is given."""
    from streamdp.cli.fit import Places, parse_budget, run_fit
    from streamdp.offline.plan import Plan

    rounds, seconds = parse_budget(budget)
    plan = Plan(
        method,
        start,
        rounds,
        seconds,
        chains,
        estimate,
        hyper,
        queue,
        look_ahead,
        order,
    )
    run_fit(settings, file, plan, Places(output, state, plot, rejects, overwrite), distances)


@app.command()
def refine(
    state: Annotated[str, typer.Argument(help="state folder or snapshot file", metavar="STATE")],
    budget: Budget = "10",
    chains: Chains = 1,
    into: Annotated[
        str | None, typer.Option(help="folder for a snapshot of the result, for consume --start-from")
    ] = None,
    hyper: Annotated[
        bool, typer.Option("--hyper/--no-hyper", help="draw the prior's hyperparameters too")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="seed (default: that of the state)")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Go back over the records that a snapshot holds; print those whose cluster changes."""
    from streamdp.cli.fit import parse_budget
    from streamdp.cli.refine import run_refine
    from streamdp.offline.plan import Plan

    rounds, seconds = parse_budget(budget)
    run_refine(
        state, Plan("hybrid", "one", rounds, seconds, chains, "best", hyper), into, seed, overwrite=overwrite
    )


@app.command()
@with_settings
def check(
    settings: Settings,
    file: Annotated[
        str, typer.Argument(help="JSON lines, CSV, TSV or text, .gz, .zst or not", metavar="FILE")
    ],
    config: Config = None,
) -> int:
    """Say how a file would be read: format, fields, times and their order, first records, first refusals."""
    from streamdp.cli.check import check

    return check(settings, file)


@app.command("config")
@with_settings
def show_config(settings: Settings, config: Config = None) -> None:
    """Print the settings in force as a commented streamdp.toml, and what is automatic in them."""
    from streamdp.cli.config import config as print_config

    print_config(settings)


@app.command()
def show(
    state: Annotated[str, typer.Argument(help="state folder or snapshot file", metavar="STATE")],
    json: Annotated[bool, typer.Option("--json", help="all clusters as JSON lines")] = False,
    top: Annotated[int, typer.Option(min=1, help="clusters in the table")] = 15,
    sort: Annotated[Sort, typer.Option(help="what comes first: size, new or growing")] = "size",
    closed: Annotated[bool, typer.Option("--closed", help="those that closed last, instead")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="show each newer snapshot of a running stream")
    ] = False,
) -> None:
    """Show the clusters of a snapshot: size, trend, life, top words, some of their records."""
    from streamdp.cli.show import show

    show(state, as_json=json, top=top, sort=sort, watch=watch, closed=closed)


@app.command()
def page(
    state: Annotated[str, typer.Argument(help="state folder or snapshot file", metavar="STATE")],
    port: Annotated[int, typer.Option(min=0, help="port, 0 for any free one")] = 8080,
    page_host: PageHost = "127.0.0.1",
    page_token: PageToken = None,
) -> None:
    """Serve a page of a snapshot, and of each newer one, until Ctrl-C."""
    from streamdp.cli.live import page_at
    from streamdp.cli.page import serve_state

    at = page_at(port, page_host, page_token)
    assert at is not None
    serve_state(state, at)


@app.command()
def plot(
    source: Annotated[
        str,
        typer.Argument(help="state folder, snapshot, or output of streamdp consume", metavar="STATE|FILE"),
    ],
    events: Annotated[str | None, typer.Option(help="cluster events of the same run")] = None,
    state: Annotated[
        str | None, typer.Option(help="state of the same run, for what the clusters are about")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="PREFIX-streamgraph.png and so on, or a folder for them", metavar="PREFIX|FOLDER"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw clusters over time, their lives, how novel records are and how sure the answers."""
    from streamdp.cli.plot import plot

    plot(source, events, state, output, overwrite=overwrite)


@app.command()
def score(
    assignments: Annotated[str, typer.Argument(help="output of streamdp consume", metavar="ASSIGNMENTS")],
    truth: Annotated[str, typer.Option(help="JSON lines that hold the true cluster of each record")],
    field: Annotated[str, typer.Option(help="field of the truth")] = "cluster",
    json: Annotated[bool, typer.Option("--json", help="as one JSON object")] = False,
) -> None:
    """Compare assignments with a known truth: NMI, ARI, homogeneity, completeness, V."""
    from streamdp.cli.score import show_scores

    show_scores(assignments, truth, field, as_json=json)
