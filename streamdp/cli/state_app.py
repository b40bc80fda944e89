"""The commands of ``streamdp state``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamdp.cli.options import with_options
from streamdp.settings.schema import Classes

state_app = typer.Typer(help="Look after a state: what it holds, whether it is sound, tables of it.")

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
