"""Commands beside the stream, and their options; what they do stands in modules of their own."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamdp.cli.base import Config, Overwrite, PageHost, PageToken, app
from streamdp.cli.options import with_settings
from streamdp.offline.plan import Estimate, Method, Start
from streamdp.settings import Settings

Sort = Literal["size", "new", "growing"]
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
def warm(
    settings: Settings,
    offline: Annotated[bool, typer.Option("--offline", help="what fit and refine need, too")] = False,
) -> None:
    """Compile beforehand what a stream with these settings needs: for images, and for wheels."""
    from streamdp.cli.warm import warm as run

    run(settings, offline=offline)


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
