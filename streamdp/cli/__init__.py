"""The command line. Heavy imports happen inside the commands, so that ``--help`` is quick."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; every foreseen error is one line on stderr and an exit code of sysexits.h."""
    _occupy_standard_streams()
    from streamdp.cli.app import app
    from streamdp.cli.errors import report

    try:
        app(prog_name="streamdp")
    except Exception as error:
        code = report(error)
        if code is None:
            raise
        sys.exit(code)


def _occupy_standard_streams() -> None:
    """Where one is closed, let no other file get its number; reading or writing it stays an error."""
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number
