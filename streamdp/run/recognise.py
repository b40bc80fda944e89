"""Recognise the format of a file by its first lines: logs, separators of cells, fields of times."""

from __future__ import annotations

import contextlib
import csv
import glob
import io
import os
import re
import select
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
from streamdp_connectors.files.parquet import ParquetSource
from streamdp_connectors.files.source import FileSource, Written, is_preamble
from streamdp_connectors.inputs import first_of_input
from streamdp_connectors.journal.segments import is_journal
from streamdp_connectors.protocol import SourceError

from streamdp.decode.columns import DELIMITERS, TRUTH, parse_row
from streamdp.decode.dates import AmbiguousError
from streamdp.decode.fields import EMPTY, RefusedError, is_time
from streamdp.decode.log import LogLines
from streamdp.decode.objects import plain_fields
from streamdp.decode.roles import has_commas, id_column, is_number, text_column, time_column, vector_column
from streamdp.errors import ConfigError, Exit
from streamdp.records import Reject
from streamdp.run.hints import foreign, is_record, nothing_usable, spread
from streamdp.run.messages import say
from streamdp.run.reading import (
    COLUMNS,
    Reader,
    ending_of,
    format_of,
    is_columnar,
    named_fields,
    refuse_unknown,
    written_as,
)
from streamdp.settings import Settings
from streamdp.settings.assemble import is_sparse
from streamdp.settings.io_options import Input, scheme_of
from streamdp.settings.options import nearest
from streamdp.state.snapshot import snapshots

NAMES = re.compile(r"(?:.*\.log|syslog|messages|kern\.log|.*[-_.]log)(?:[.-]\d+)*")
"""Names of logs, rotated or not, without what says that they are packed."""

OTHERS = (".csv", ".tsv", ".tab", ".parquet", ".npy")
"""Endings of names that say another format."""

BETWEEN = {"csv": "commas", "ssv": "semicolons", "tsv": "tabs", "psv": "|"}

LONGEST_NAME = 40
"""Characters of a column's name, of a table whose name does not say that it is one."""

PROBED = 100
"""Records by which a file is recognised."""

EMBEDDING = 8
"""Numbers that a vector beside texts has at least: places and boxes have fewer."""

MOMENT = 1.0
"""Seconds after which it is said that something is waited for."""

SAMPLE = 3_000
"""Records by which the parts of its columns are recognised."""


Form = Written | Literal["parquet"]
"""How records are written that have columns, or may have."""


def recognised(settings: Settings, file: str | None, *, logs: bool = True) -> Settings:
    """The settings, and what the first records of the input show of it; told to the user.

    Standard input is recognised by the lines that come first, unless a format without columns is named; a
    folder by its first file. An input that begins with an object of OpenTelemetry's is of such, unless a
    format is named. By ``logs`` an input is a log where its name or first lines are those of one, and a
    folder where its files are. Settings that have no meaning with templates say that it is something else.
    Cells of a ``.csv`` are between semicolons or tabs where its first line has those and no commas. What has
    no ending that says its format is a table or lines of text, unless it is JSON. Times are in the first
    field of times where none has the name that is set by default.
    """
    known = settings.format not in ("auto", *COLUMNS)
    if file is None or (file == "-" and known):  # a run that need not wait for lines does not
        return settings
    if file == "-":
        lines = _awaited()
        with _scratch() as copy:
            copy.write(b"\n".join(lines))
            copy.flush()
            name = copy.name if isinstance(copy.name, str) else f"/dev/fd/{copy.name}"
            return _shown(settings, "what comes", name, logs)
    _refuse_missing(file)
    if not os.path.isdir(file):
        return _shown(settings, file, file, logs)
    if is_journal(file) or not (paths := _files_of(file)):
        return settings
    if settings.format == "auto" and logs and all(map(_is_log, paths)):
        return _as_log(settings, file) or settings
    alike = len({ending_of(path) for path in paths}) == 1
    return _shown(settings, file, paths[0], logs=False) if alike else settings


def _scratch() -> IO[bytes]:
    """A file that only this process sees: in memory where the system can, as no folder may be writable."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("input"), "w+b")
    return tempfile.NamedTemporaryFile()


def _shown(settings: Settings, name: str, file: str, logs: bool) -> Settings:
    """The settings, and what the first records of a file, or of a copy of what came, show."""
    if not os.path.isfile(file) or file.lower().endswith(".npy"):
        return settings
    if not is_columnar(file):
        _refuse_foreign(settings, name, file)
    if settings.format == "auto" and not is_columnar(file):
        settings = (
            _as_otlp(settings, name, file)
            or (logs and _is_log(file) and _as_log(settings, name))
            or _as_cells(settings, name, file)
            or settings
        )
    return settings if settings.of_log or settings.format == "otlp" else _named(settings, name, file)


def _refuse_missing(file: str) -> None:
    """Raise ConfigError for what is not there, and for a state."""
    if os.path.isdir(file) and snapshots(Path(file)):
        raise ConfigError(f"{file} is a state of streamdp: streamdp stories {file} shows it", Exit.BAD_DATA)
    if not os.path.exists(file) and scheme_of(file) is None:
        if glob.has_magic(file):
            folder = os.path.dirname(file) or "."
            raise ConfigError(f"cannot open {file}: name one file, or their folder, {folder}", Exit.NO_INPUT)
        folder, name = os.path.split(file)
        with contextlib.suppress(OSError):
            if near := nearest(name, os.listdir(folder or ".")):
                raise ConfigError(f"cannot open {file}: there is no such file{near}", Exit.NO_INPUT)


def _refuse_foreign(settings: Settings, name: str, file: str) -> None:
    """Raise ConfigError for what is no file of lines or rows; no output is made then."""
    head = b"\n".join(_first(file))[:4096]
    what = foreign(head) or (spread(head) if format_of(settings, file) == "jsonl" else "")
    if what:
        raise ConfigError(f"{name} is {what}", Exit.BAD_DATA)


def refuse_lacking(settings: Settings, file: str | None) -> None:
    """Raise ConfigError (65) for a table without the column of texts of which no record could be used.

    So the corrected command finds no output that the wrong one has made.
    """
    if file is None or not os.path.isfile(file) or settings.of_categories:
        return
    if not is_columnar(file) and format_of(settings, file) not in COLUMNS:
        return
    reader = Reader(msgspec.structs.replace(settings, read_order="forwards"), Input(file=file))
    with contextlib.closing(reader.source):
        header = reader.decoder.header or ()
        found = [] if settings.text_field in header else reader.read(PROBED, 0.0)
    refused = [each for each in found if isinstance(each, Reject)]
    if refused and len(refused) == len(found):
        raise ConfigError(nothing_usable(refused, settings, reader.decoder.format, header), Exit.BAD_DATA)


def _as_otlp(settings: Settings, name: str, file: str) -> Settings | None:
    if not any("resourceLogs" in record for record in _records(name, file, "jsonl", 1)):
        return None
    say(f"{name} holds log records of OpenTelemetry (--format names another)")
    return msgspec.structs.replace(settings, format="otlp")


def _is_log(file: str) -> bool:
    """Whether the name of a file or its first lines are those of a log."""
    name = os.path.basename(file).lower().removesuffix(".gz").removesuffix(".zst")
    if NAMES.fullmatch(name):
        return True
    if name.endswith(OTHERS) and not name.endswith(".csv"):
        return False
    log = LogLines(None, None)
    log.learn(_first(file))
    if name.endswith(".csv"):  # a table of which the columns are a log's
        return log.has_columns
    return log.recognised and not (log.talks and file.endswith(".txt"))


def _files_of(folder: str) -> list[str]:
    """The first files of a folder, by name."""
    with os.scandir(folder) as entries:
        paths = sorted(each.path for each in entries if each.is_file() and not each.name.startswith("."))
    return paths[:PROBED]


def _as_log(settings: Settings, name: str) -> Settings | None:
    found = msgspec.structs.replace(settings, format="log")
    try:
        found.check()
    except ConfigError as error:
        say(f"{name} looks like a log, and is not read as one: {error.message}")
        return None
    say(f"{name} is read as a log, by templates (--format names another)")
    return found


def _awaited() -> list[bytes]:
    """The first lines of standard input; it is said that they are waited for, if they are."""
    with contextlib.suppress(OSError):  # there is none: that is said when it is read
        if not select.select([0], [], [], MOMENT)[0]:
            say("waiting for the first lines of standard input")
    return first_of_input()


def _as_cells(settings: Settings, name: str, file: str) -> Settings | None:
    """The settings for cells that are not between commas, or of a file whose name says no format."""
    ending = ending_of(file)
    lines = [line for line in _first(file) if not is_preamble(line, ",")]
    if ending not in ("csv", None) or not lines:
        return None
    counts = {found: lines[0].count(between.encode()) for found, between in DELIMITERS.items()}
    likeliest = max(counts, key=lambda found: counts[found])
    if ending is None:
        if lines[0].lstrip().startswith((b"{", b"[")):
            return None
        if not (counts[likeliest] and _is_table(lines, DELIMITERS[likeliest])):
            say(f"{name} is read as text, each line a record (--format names another)")
            return msgspec.structs.replace(settings, format="text")
    elif likeliest == "csv":
        return None
    say(f"{name} has its cells between {BETWEEN[likeliest]} (--format names another)")
    return msgspec.structs.replace(settings, format=likeliest)


def _is_table(lines: Sequence[bytes], delimiter: str) -> bool:
    """Whether three lines or more are rows of as many cells each, and the first has short names for them."""
    text = b"\n".join(lines).decode(errors="replace")
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))[:-1]
    except csv.Error:
        return False
    header = [name.strip() for name in rows[0]] if rows else []
    named = len({*header}) == len(header) and all(0 < len(name) <= LONGEST_NAME for name in header)
    return named and len(rows) > 1 and {*map(len, rows)} == {len(header)} and not is_record(header)


def _named(settings: Settings, shown: str, file: str) -> Settings:
    """The settings, with the fields of texts, times and ids where records have none of the default names."""
    written: Form = "parquet" if is_columnar(file) else written_as(format_of(settings, file))
    if written == "text":
        return settings
    columns: dict[str, list[Any]] = {}
    for record in _records(shown, file, written, SAMPLE):
        for name, value in record.items():
            columns.setdefault(name, []).extend(
                [] if value is None or (isinstance(value, str) and value in EMPTY) else [value]
            )
    roles = _Roles(settings, shown, written, columns)
    if columns and written != "jsonl":
        likely = text_column(roles.columns)
        refuse_unknown(named_fields(settings), roles.header, likely and likely[0])
    roles.find()
    return msgspec.structs.replace(settings, **roles.found)


class _Roles:
    """What columns are for, by their names and first values, as far as settings do not say it."""

    def __init__(self, settings: Settings, file: str, written: Form, columns: dict[str, list[Any]]) -> None:
        self.settings, self.file, self.written = settings, file, written
        self.header = list(columns)
        self.columns = {name: values for name, values in columns.items() if values}
        self.found: dict[str, Any] = {}
        """Settings by name."""
        self._reads: list[str] = []

    def find(self) -> None:
        """Find all, and say what was found."""
        self._doubt_numbers()
        self._find_contents()
        self._find_times()
        if self._is_default("id_field") and (identity := id_column(self._others())) is not None:
            self._take(f"ids from {identity!r}", id_field=identity)
        if self.written in COLUMNS[1:] and has_commas(self.columns):
            self._take("numbers with decimal commas", decimal_comma=True)
        if self._reads:
            named = [name for name, value in self.found.items() if name.endswith("field") and value]
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in named)
            how = f" ({flags} {'names another' if len(named) == 1 else 'name others'})" if named else ""
            say(f"{self.file}: reads {', '.join(self._reads)}{how}")

    def _take(self, reads: str, **found: Any) -> None:
        self.found |= found
        self._reads.append(reads)

    def _is_default(self, role: str) -> bool:
        """Whether a field has its default name, and there is none of that name."""
        name = getattr(Settings(), role)
        return bool(getattr(self.settings, role) == name and name not in self.header)

    def _others(self, own: str = "") -> dict[str, list[Any]]:
        """Columns that are for nothing yet, and ``own``."""
        settings = self.settings
        taken = {TRUTH, settings.truth_field, *settings.fields, *settings.texts, *settings.numbers}
        taken |= {settings.text_field, settings.time_field, settings.id_field, *self.found.values()} - {own}
        taken |= {name for name in self.header if is_time(name, numbers=False)}  # a record, not their names
        return {name: values for name, values in self.columns.items() if name not in taken}

    def _doubt_numbers(self) -> None:
        name = self.settings.text_field
        numbers = self.columns.get(name, ())
        if self.written != "jsonl" and numbers and all(map(is_number, numbers)) and self.settings.no_lines:
            say(
                f"{self.file}: {name!r} holds numbers, read as words (--numbers {name} clusters numbers, "
                "--text-field names another)"
            )

    def _find_contents(self) -> None:
        """Texts, vectors, or both."""
        settings, sparse = self.settings, is_sparse(self.settings)
        named = {settings.text_field, settings.vector_name, settings.features_field}
        known = named & self.columns.keys() or settings.of_categories
        unnamed = self.written in COLUMNS and is_record(self.header)
        default = settings.text_field == Settings().text_field
        if default and not (known or sparse is False or unnamed):
            text = text_column(self._others())
            if text is not None:
                more = f" (not {', '.join(map(repr, text[1]))})" if text[1] else ""
                self._take(f"texts from {text[0]!r}{more}", text_field=text[0])
        text_field = self.found.get("text_field", settings.text_field)
        if settings.vector_field is not None or settings.of_categories or sparse:
            return
        both = text_field in self.columns and settings.embed is None
        if (both and sparse is None) or not (known or self.found):
            vector = vector_column(self._others(), EMBEDDING if both else 1)
            if vector is not None and both:
                texts = "" if self.found else f"texts from {text_field!r}, "
                how = f"{texts}beside them vectors from {vector!r}"
                self._take(how, texts=(text_field,), vector_field=vector)
            elif vector is not None:
                self._take(f"vectors from {vector!r}", vector_field=vector)

    def _find_times(self) -> None:
        """Times, or dates and times of day. Raises ConfigError (65) where a date may mean two."""
        settings, default = self.settings, Settings()
        if settings.date_field is not None:
            return
        own, compact = settings.time_field, settings.time_unit == default.time_unit
        known = None if self._is_default("time_field") else own
        try:
            times = time_column(self._others(own), known, settings.time_format, compact)
        except AmbiguousError as error:
            raise ConfigError(f"{self.file}: {error}", Exit.BAD_DATA) from None
        if times is not None and times != (own, None, settings.time_format):
            found = {"time_field": times.time, "date_field": times.date, "time_format": times.form}
            self._take(f"times from {times}", **found)


def _records(shown: str, file: str, written: Form, most: int) -> Iterator[Mapping[str, Any]]:
    """The first records of a file, each by its fields; ``shown`` is its name in messages."""
    source: FileSource | ParquetSource
    try:
        if written == "parquet":
            source = ParquetSource(file, lambda names, numbers: lambda row: row)
        else:
            source = FileSource(file, written)
    except SourceError:  # no header: said when it is read
        return
    header = source.header if isinstance(source, FileSource) else None
    if isinstance(source, FileSource) and source.encoding is not None:
        say(f"{shown} is no UTF-8: it is read as {source.encoding}")
    with contextlib.closing(source):
        for raw in source.read(most, 0.0):
            with contextlib.suppress(RefusedError, UnicodeDecodeError):
                if header is None:
                    yield plain_fields(raw.data)
                else:
                    yield dict(zip(header, parse_row(raw.data.decode(), DELIMITERS[written]), strict=False))


def _first(file: str) -> list[bytes]:
    """The first lines of a file."""
    with contextlib.closing(FileSource(file, "text")) as source:
        return source.read(PROBED, 0.0).data
