"""The command line. Heavy imports happen inside the commands, so that ``--help`` is quick."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; every foreseen error is one line on stderr and an exit code of sysexits.h."""
    from streamdp.cli.app import app
    from streamdp.cli.errors import report

    try:
        app(prog_name="streamdp")
    except Exception as error:
        code = report(error)
        if code is None:
            raise
        sys.exit(code)
