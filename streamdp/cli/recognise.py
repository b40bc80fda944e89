"""Whether a file whose format is not named is a log."""

from __future__ import annotations

import os
import re

import msgspec
from streamdp_connectors.files.source import FileSource

from streamdp.cli.errors import say
from streamdp.decode.log import JOURNALS, LogLines
from streamdp.errors import ConfigError
from streamdp.settings import Settings

NAMES = re.compile(r"(?:.*\.log|syslog|messages|kern\.log|.*[-_.]log)(?:[.-]\d+)*")
"""Names of logs, rotated or not, without what says that they are packed."""

OTHERS = (".csv", ".tsv", ".tab", ".txt", ".parquet")
"""Endings of names that say another format."""

PROBED = 100
"""Lines by which a log is recognised."""


def recognised(settings: Settings, file: str | None) -> Settings:
    """The settings: of a log where no format is named, and the name or the first lines are those of one.

    Settings that have no meaning with templates say that it is read as something else.
    """
    if settings.format != "auto" or file is None or file == "-" or not os.path.isfile(file):
        return settings
    name = os.path.basename(file).lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith(OTHERS) or not (NAMES.fullmatch(name) or _begins_as_log(file)):
        return settings
    found = msgspec.structs.replace(settings, format="log")
    try:
        found.check()
    except ConfigError:
        return settings
    say(f"{file} is read as a log, by templates (--format names another)")
    return found


def _begins_as_log(file: str) -> bool:
    """Whether nearly all of the first lines begin with a time, or are objects of a journal."""
    source = FileSource(file, "text")
    try:
        lines = list(source.read(PROBED, 0.0).data) if source.seekable else []
    finally:
        source.close()
    if not lines:
        return False
    if lines[0].startswith(b"{"):
        return any(all(f'"{name}"'.encode() in lines[0] for name in names) for names in JOURNALS)
    return "belongs to the line before" in LogLines(None, None).learn(lines)
