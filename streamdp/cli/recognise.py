"""Recognise the format of a file by its first lines: logs, separators of cells, fields of times."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from streamdp_connectors.files.source import FileSource, Written
from streamdp_connectors.journal.segments import is_journal
from streamdp_connectors.protocol import SourceError

from streamdp.cli.errors import say
from streamdp.cli.hints import nothing_usable
from streamdp.cli.reading import COLUMNS, LINES, Reader, format_of, is_parquet
from streamdp.decode.columns import DELIMITERS, parse_row
from streamdp.decode.fields import RefusedError, is_time
from streamdp.decode.log import JOURNALS, LogLines
from streamdp.decode.objects import plain_fields
from streamdp.errors import ConfigError, Exit
from streamdp.records import Reject
from streamdp.settings import Settings
from streamdp.settings.places import Input

NAMES = re.compile(r"(?:.*\.log|syslog|messages|kern\.log|.*[-_.]log)(?:[.-]\d+)*")
"""Names of logs, rotated or not, without what says that they are packed."""

OTHERS = (".csv", ".tsv", ".tab", ".txt", ".parquet")
"""Endings of names that say another format."""

PROBED = 100
"""Records by which a file is recognised."""

SPOKEN = re.compile(r"time|date|stamp", re.IGNORECASE)
"""Names of fields whose numbers may be times."""


def recognised(settings: Settings, file: str | None, *, logs: bool = True) -> Settings:
    """The settings, and what the first records of a file show of it; told to the user.

    Where no format is named, a file that begins with an object of OpenTelemetry's is of such. With ``logs`` a
    file is a log where its name or first lines are those of one, and a folder where its files are; settings
    that have no meaning with templates say that it is something else. Cells of a ``.csv`` are between
    semicolons or tabs where its first line has those and no commas. Times are in the first field of times
    where none has the name that is set by default.
    """
    if file is None or file == "-":
        return settings
    if os.path.isdir(file) and not is_journal(file) and settings.format == "auto" and logs:
        return _as_log(settings, file) or settings
    if not os.path.isfile(file) or is_parquet(file):
        return settings
    if settings.format == "auto":
        settings = (
            _as_otlp(settings, file)
            or (logs and _as_log(settings, file))
            or _as_cells(settings, file)
            or settings
        )
    return settings if settings.of_log or settings.format == "otlp" else _timed(settings, file)


def refuse_lacking(settings: Settings, file: str | None) -> None:
    """Raise ConfigError (65) for a table without the column of texts of which no record could be used.

    So the corrected command finds no output that the wrong one has made.
    """
    if file is None or not os.path.isfile(file) or settings.of_categories:
        return
    if not is_parquet(file) and format_of(settings, file) not in COLUMNS:
        return
    reader = Reader(settings, Input(file=file))
    try:
        header = reader.decoder.header or ()
        if settings.text_field in header:
            return
        found = reader.read(PROBED, 0.0)
    finally:
        reader.source.close()
    refused = [each for each in found if isinstance(each, Reject)]
    if refused and len(refused) == len(found):
        raise ConfigError(nothing_usable(refused, settings, reader.decoder.format, header), Exit.BAD_DATA)


def _as_otlp(settings: Settings, file: str) -> Settings | None:
    if not any("resourceLogs" in record for record in _objects(_first(file)[:1])):
        return None
    say(f"{file} holds log records of OpenTelemetry (--format names another)")
    return msgspec.structs.replace(settings, format="otlp")


def _is_log(file: str) -> bool:
    name = os.path.basename(file).lower().removesuffix(".gz").removesuffix(".zst")
    return not name.endswith(OTHERS) and bool(NAMES.fullmatch(name) or _begins_as_log(file))


def _holds_logs(folder: str) -> bool:
    """Whether the first files of a folder are logs, and it has some."""
    with os.scandir(folder) as entries:
        paths = sorted(each.path for each in entries if each.is_file() and not each.name.startswith("."))
    return bool(paths) and all(map(_is_log, paths[:PROBED]))


def _as_log(settings: Settings, file: str) -> Settings | None:
    if not (_holds_logs(file) if os.path.isdir(file) else _is_log(file)):
        return None
    found = msgspec.structs.replace(settings, format="log")
    try:
        found.check()
    except ConfigError:
        return None
    say(f"{file} is read as a log, by templates (--format names another)")
    return found


def _begins_as_log(file: str) -> bool:
    """Whether nearly all of the first lines begin with a time, or are objects of a journal."""
    lines = _first(file)
    if not lines:
        return False
    if lines[0].startswith(b"{"):
        return any(all(f'"{name}"'.encode() in lines[0] for name in names) for names in JOURNALS)
    return "belongs to the line before" in LogLines(None, None).learn(lines)


def _as_cells(settings: Settings, file: str) -> Settings | None:
    """The settings for a ``.csv`` whose cells are not between commas; None for any other file."""
    if format_of(settings, file) != "csv" or not (lines := _first(file)) or b"," in lines[0]:
        return None
    between = {"ssv": "semicolons", "tsv": "tabs"}
    counts = {name: lines[0].count(DELIMITERS[name].encode()) for name in between}
    likeliest = max(counts, key=lambda name: counts[name])
    if not counts[likeliest]:
        return None
    say(f"{file} has its cells between {between[likeliest]} (--format names another)")
    return msgspec.structs.replace(settings, format=likeliest)


def _timed(settings: Settings, file: str) -> Settings:
    """The settings, with the field of times where records have none of the default name."""
    default: str = Settings().time_field
    written = LINES[format_of(settings, file)]
    if settings.time_field != default or written == "text":
        return settings
    values: dict[str, list[Any]] = {}
    records = list(_cells(file, written) if written in COLUMNS else _objects(_first(file)))
    for record in records:
        for name, value in record.items():
            values.setdefault(name, []).append(value)
    if not records or default in values:
        return settings
    taken = {settings.text_field, settings.id_field, *settings.fields, *settings.texts, *settings.numbers}
    for name, found in values.items():
        if name not in taken and _are_times(name, found):
            say(f"times are read from {name!r} (--time-field names another)")
            return msgspec.structs.replace(settings, time_field=name)
    return settings


def _are_times(name: str, values: list[Any]) -> bool:
    """Whether all that is there are times; numbers only under a name that says so."""
    there = [value for value in values if value is not None and value != ""]
    return bool(there) and all(is_time(value, numbers=bool(SPOKEN.search(name))) for value in there)


def _cells(file: str, written: Written) -> Iterator[Mapping[str, str]]:
    try:
        source = FileSource(file, written)
    except SourceError:  # no header: said when it is read
        return
    try:
        for raw in source.read(PROBED, 0.0) if source.seekable else ():
            try:
                row = parse_row(raw.data.decode(), DELIMITERS[written])
            except (UnicodeDecodeError, RefusedError):
                continue
            yield dict(zip(source.header or (), row, strict=False))
    finally:
        source.close()


def _objects(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        with contextlib.suppress(RefusedError, UnicodeDecodeError):
            yield plain_fields(line)


def _first(file: str) -> list[bytes]:
    """The first lines of a file; none if it cannot be read twice."""
    source = FileSource(file, "text")
    try:
        return list(source.read(PROBED, 0.0).data) if source.seekable else []
    finally:
        source.close()
