"""The command line without its commands, and options that several share."""

from __future__ import annotations

from typing import Annotated

import typer

from streamdp._version import __version__

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

PageHost = Annotated[str, typer.Option(help="address to serve the page at")]
PageToken = Annotated[
    str | None,
    typer.Option(help="file with the token that strangers need (default: one is made up)", metavar="PATH"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace what is there already")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamdp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)
