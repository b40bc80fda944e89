"""``streamdp report``: one file to send to a colleague."""

from __future__ import annotations

import os
from pathlib import Path

from streamdp.cli.errors import say
from streamdp.errors import ConfigError, Exit
from streamdp.reports.report import report as written
from streamdp.reports.source import source_of


def report(path: str, output: str, title: str | None, *, overwrite: bool) -> None:
    """Write the report of a path to a file. Raises StreamdpError."""
    if os.path.exists(output) and not overwrite:
        raise ConfigError(f"{output} exists: --overwrite replaces it", Exit.CANNOT_CREATE)
    if os.path.exists(output) and os.path.samefile(output, path):
        raise ConfigError(f"{output} is what this command reads", Exit.USAGE)
    page = written(source_of(path), title or Path(path).name)
    try:
        Path(output).write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output}: cannot be written: {error.strerror}", Exit.CANNOT_CREATE) from error
    say(f"wrote {output}")
