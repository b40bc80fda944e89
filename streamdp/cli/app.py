"""All commands. What they do stands in modules of their own, which are imported when they are called."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import msgspec
import typer

from streamdp._version import __version__
from streamdp.cli.errors import LogFormat, choose_log_format
from streamdp.cli.options import (
    DiffOptions,
    FitOptions,
    Group,
    SparkJob,
    StoriesOptions,
    with_options,
)
from streamdp.errors import ConfigError, Exit
from streamdp.settings import Settings
from streamdp.settings.alerts import Alerting
from streamdp.settings.io_options import Input, Outputs, PageAddress, Results, Service, Serving
from streamdp.settings.schema import Classes

app = typer.Typer(
    cls=Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Cluster a stream while it flows. Assignments go to stdout, logs and progress to stderr.",
    epilog="Settings: flag over environment (STREAMDP_BEAM=8) over streamdp.toml over default.",
)

state_app = typer.Typer(help="Look after a state: what it holds, whether it is sound, tables of it.")
app.add_typer(state_app, name="state")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamdp {__version__}")
        raise typer.Exit


def _log_format(form: LogFormat) -> LogFormat:
    choose_log_format(form)
    return form


Lines = Annotated[
    LogFormat,
    typer.Option(
        help="lines on stderr: plain, dated (with time and level) or json",
        callback=_log_format,
        is_eager=True,
        hidden=True,
    ),
]


def _share(results: Results) -> None:
    """Let the group of the user's files read what is made from now on, where that was asked for."""
    if results.group_read:
        os.umask(0o027)


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


@app.command(epilog="Example: streamdp consume news.csv --text-field title --store news.db --page 8080")
@with_options
def consume(
    input: Input,
    outputs: Outputs,
    settings: Settings,
    serving: Serving,
    alerting: Alerting,
    written: frozenset[str],
    log_format: Lines = "plain",
) -> int:
    """Read records in time order, and say of each which cluster it belongs to."""
    _share(outputs)
    if input.scope == "partition":
        from streamdp.cli.scope import share

        return share(input, outputs, serving)
    from streamdp.cli.consume import consume

    return consume(settings, written, input, outputs, serving, alerting)


@app.command(epilog="Example: streamdp serve --port 8080 --state st --store news.db")
@with_options
def serve(
    outputs: Outputs,
    settings: Settings,
    service: Service,
    alerting: Alerting,
    written: frozenset[str],
    log_format: Lines = "plain",
) -> int:
    """Take records over HTTP and answer them; with a page, stories, events, metrics and health."""
    _share(outputs)
    from streamdp.cli.serve import serve

    return serve(settings, written, outputs, service, alerting)


@app.command(epilog="Example: streamdp mcp news.db")
def mcp(
    where: Annotated[
        str,
        typer.Argument(
            help="state folder, snapshot, store, output of consume, or address of a service",
            metavar="PATH|URL",
        ),
    ],
    token: Annotated[
        str | None,
        typer.Option(help="file with the service's token (or its text in STREAMDP_TOKEN)", metavar="PATH"),
    ] = None,
    allow_corrections: Annotated[
        bool, typer.Option("--allow-corrections", help="programs may correct stories, too")
    ] = False,
) -> None:
    """Let programs ask about a stream, by the Model Context Protocol over stdin and stdout."""
    from streamdp.cli.programs import serve_programs

    serve_programs(where, token, corrects=allow_corrections)


@app.command(epilog="Example: streamdp demo --page")
@with_options
def demo(
    settings: Settings,
    records: Annotated[int, typer.Option(min=1, help="records to generate")] = 5000,
    page: Annotated[
        bool, typer.Option("--page", help="show a live page, and take the time to look at it")
    ] = False,
    page_port: Annotated[int, typer.Option(min=0, help="port of the page, 0 for any free one")] = 8080,
) -> None:
    """Cluster a generated stream of news whose stories are born, drift and die; score it at the end."""
    from streamdp.cli.demo import demo

    demo(settings, records, Serving(page=page_port if page else None, page_linger=True))


@app.command(epilog="Example: streamdp spark --folder tickets --key tenant --checkpoint cp --output answers")
@with_options
def spark(settings: Settings, job: SparkJob) -> None:
    """Cluster each key of a topic or a folder by an engine of its own, or all in shards (docs/spark.md)."""
    from streamdp.cli.spark import run

    run(settings, job)


@app.command(epilog="Example: streamdp fit news.csv --text-field title --budget 1m --output answers.jsonl")
@with_options
def fit(
    settings: Settings,
    results: Results,
    search: FitOptions,
    file: Annotated[
        str,
        typer.Argument(help="JSON lines, CSV or text, .gz or not; or a state", metavar="FILE|STATE"),
    ],
    written: frozenset[str],
) -> None:
    """Cluster a finite file offline, with all the time it is given; or go over a state again."""
    _share(results)
    from streamdp.cli.fit import run_fit

    run_fit(settings, written, file, search, results)


@app.command(epilog="Example: streamdp check news.csv --text-field title")
@with_options
def check(
    settings: Settings,
    file: Annotated[
        str | None,
        typer.Argument(help="JSON lines, CSV, TSV or text, .gz, .zst or not", metavar="[FILE]"),
    ] = None,
    compile: Annotated[
        bool, typer.Option("--compile", help="compile what a stream needs beforehand, for images and wheels")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="compile what fit needs, too")] = False,
) -> int:
    """Say how a file would be read; without one, print the settings in force as a streamdp.toml."""
    from streamdp.cli.config import check

    return check(settings, file, compiles=compile or offline, offline=offline)


@app.command(epilog="Example: streamdp correct st merge 12 57")
@with_options
def correct(
    state: Annotated[str, typer.Argument(help="state folder", metavar="STATE")],
    classes: Classes,
    what: Annotated[
        str,
        typer.Argument(
            help="rename, merge, split, move, keep-apart, pin, mute, close, undo or list", metavar="WHAT"
        ),
    ],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            help="labels of stories; ids of records (numbers: --seq); a title; hole N VALUE", metavar="..."
        ),
    ] = None,
    seq: Annotated[list[int] | None, typer.Option(help="number of a record; may be repeated")] = None,
    who: Annotated[str | None, typer.Option(help="who corrects (default: the user's name)")] = None,
) -> None:
    """Correct the stories of a state by hand, while its stream flows or stands still."""
    from streamdp.cli.correct import correct

    correct(state, what, given or [], seq or [], who, classes)


@app.command(epilog="Example: streamdp erase st news.db answers.jsonl --where user=4711")
@with_options
def erase(
    paths: Annotated[
        list[str],
        typer.Argument(help="state folder, and the stores and outputs of its runs", metavar="PATH..."),
    ],
    classes: Classes,
    id: Annotated[
        list[str] | None, typer.Option(help="id of a record (its number: --seq); may be repeated")
    ] = None,
    seq: Annotated[list[int] | None, typer.Option(help="number of a record; may be repeated")] = None,
    ids: Annotated[str | None, typer.Option(help="file of ids, one a line", metavar="FILE")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="records whose field has this value", metavar="FIELD=VALUE")
    ] = None,
) -> int:
    """Erase records: from a state, its store, its outputs and its journal; while no run goes on with it."""
    from streamdp.cli.erase import erase, wanted

    return erase(paths, wanted(id or [], seq or [], ids, where or []), classes)


@app.command(epilog="Example: streamdp stories news.db --growing --since 6h")
@with_options
def stories(
    options: StoriesOptions,
    path: Annotated[
        str,
        typer.Argument(
            help="state folder, snapshot, store, output of consume, or URL of a service", metavar="PATH"
        ),
    ],
    address: PageAddress,
    classes: Classes,
) -> None:
    """Print stories, or one of them, or their records; or write a report of them, or serve a page."""
    if options.page is not None:
        from streamdp.cli.state_page import serve_state

        options.refuse_beside("page")
        where = msgspec.structs.asdict(address)
        serve_state(path, Serving(page=options.page, **where), classes)
        return
    if address != PageAddress():
        raise ConfigError("options of a page need one: say --page PORT", Exit.USAGE)
    from streamdp.cli.stories import stories

    stories(path, options, classes)


@app.command(epilog="Example: streamdp diff st --since 6h")
@with_options
def diff(
    options: DiffOptions,
    path: Annotated[
        str, typer.Argument(help="state; with --truth, output of streamdp consume", metavar="STATE|ANSWERS")
    ],
) -> None:
    """Say what has changed since a time, a mark or another state, or how answers differ from a truth."""
    from streamdp.cli.diff import compare

    compare(path, options)


@app.command(epilog="Example: streamdp gate app.log --baseline release-41")
def gate(
    path: Annotated[str, typer.Argument(help="log, state folder, snapshot or store", metavar="LOG|STATE")],
    baseline: Annotated[
        str,
        typer.Option(help="state of the logs that it shall be like; a mark of STATE", metavar="STATE|MARK"),
    ],
    rate: Annotated[
        float, typer.Option(min=1e-9, max=0.5, help="how often a log fails in which nothing has changed")
    ] = 0.01,
    json: Annotated[bool, typer.Option("--json", help="as one JSON object")] = False,
) -> int:
    """Exit with 1 if a template of a log is new, has surged or is gone, compared with a baseline.

    What the baseline never had is always shown. It fails where it has more lines than chance explains, which
    are fewer the longer the baseline is.
    """
    from streamdp.cli.gate import gate

    return gate(path, baseline, rate, as_json=json)


@app.command(epilog="Example: streamdp plot st --output pictures")
@with_options
def plot(
    source: Annotated[
        str,
        typer.Argument(help="state folder, snapshot, or output of streamdp consume", metavar="STATE|FILE"),
    ],
    classes: Classes,
    state: Annotated[
        str | None, typer.Option(help="state of the same run, for what the clusters are about")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="PREFIX-streamgraph.png, or a folder for it", metavar="PREFIX|FOLDER"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace existing files")] = False,
) -> None:
    """Draw clusters over time."""
    from streamdp.cli.plot import plot

    plot(source, state, output, classes, overwrite=overwrite)


State = Annotated[str, typer.Argument(help="state folder or snapshot file", metavar="STATE")]


@state_app.command("info", epilog="Example: streamdp state info st")
def state_info(
    state: State, json: Annotated[bool, typer.Option("--json", help="as one JSON object")] = False
) -> None:
    """Print what a snapshot says of itself: release, format, records, positions, settings."""
    from streamdp.cli.state import info

    info(state, as_json=json)


@state_app.command("verify", epilog="Example: streamdp state verify st")
@with_options
def state_verify(state: State, classes: Classes) -> int:
    """Load every snapshot, and say of each whether it is sound."""
    from streamdp.cli.state import verify

    return verify(state, classes)


@state_app.command("export", epilog="Example: streamdp state export st --into tables --format csv")
@with_options
def state_export(
    state: State,
    classes: Classes,
    into: Annotated[str, typer.Option(help="folder for the tables", metavar="FOLDER")],
    format: Annotated[Literal["jsonl", "csv"], typer.Option(help="jsonl or csv")] = "jsonl",
) -> None:
    """Write clusters, records held and settings as flat tables, a file each."""
    from streamdp.cli.state import export

    export(state, into, format, classes)
