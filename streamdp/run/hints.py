"""Hints for input of which nothing could be used, from the first refused records."""

from __future__ import annotations

import contextlib
import difflib
import re
import shlex
from collections.abc import Container, Mapping, Sequence
from typing import Any

from streamdp_connectors.packed import Gunzip, Unzstd, Windows1252

from streamdp.decode.columns import DELIMITERS, parse_row
from streamdp.decode.decoder import SCHEMA
from streamdp.decode.fields import RefusedError, is_time
from streamdp.decode.objects import fields_of, plain_fields
from streamdp.decode.roles import category_columns, is_number
from streamdp.records import Reject
from streamdp.run.reading import listed, no_column
from streamdp.settings import Settings
from streamdp.state.snapshot import MAGIC

FOREIGN = {
    Gunzip.magic: "gzip, though its name does not end in .gz",
    Unzstd.magic: "Zstandard, though its name does not end in .zst",
    b"PK\x03\x04": "a zip archive: unpack it",
    b"BZh": "bzip2: unpack it",
    b"\xfd7zXZ": "xz: unpack it",
    b"PAR1": "Parquet, though its name does not end in .parquet",
    b"\x93NUMPY": "a NumPy array, though its name does not end in .npy",
    b"SQLite format 3": "an SQLite file: streamdp stories shows a store; of others export a table",
    b"\xd0\xcf\x11\xe0": "a file of Office: save it as CSV",
    b"%PDF-": "a PDF: save its text",
    MAGIC: "a snapshot of streamdp: streamdp stories shows it",
}
"""The first bytes of files that are not text."""

OWN = {"seq", "cluster", "revision"}
"""Fields of our own answers."""

CONVERTER = "examples/to_lines.py of streamdp makes JSON lines of it"
"""What helps with records that stand in files of other programs."""

MARKED = {
    rb"From \S+ .*\d\d:\d\d:\d\d \d{4}\r?\n": f"a mailbox: {CONVERTER}",
    rb"((?i:from|to|subject|date|received|return-path|message-id|mime-version): .*\n([ \t].*\n)*){3}": (
        f"a mail: {CONVERTER}"
    ),
    rb"(?i:<!doctype|<html)": "a page of HTML: save its text",
    rb"<(\?xml|[A-Za-z]+[ >])": f"XML: {CONVERTER}, if it is a feed",
}
"""How files of text begin that are none of records in lines."""

NO_TEXT = "no text: unpack or convert it to JSON lines, CSV or text"
_CONTROL = bytes({*range(1, 9), *range(14, 27), *range(28, 32)})


def foreign(head: bytes) -> str:
    """What a file is, by its first bytes, that is none of lines or rows; empty where it may be."""
    if head.startswith(b"PK\x03\x04") and re.search(rb"\[Content_Types\]|opendocument\.spread", head[:200]):
        return "a spreadsheet: save it as CSV"
    what = next((what for magic, what in FOREIGN.items() if head.startswith(magic)), "")
    return what or (NO_TEXT if 20 * (len(head) - len(head.translate(None, _CONTROL))) > len(head) else "")


def spread(head: bytes) -> str:
    """What a file is whose lines are no records, by how it begins; empty where they may be."""
    for begin, what in MARKED.items():
        if re.match(rb"(?:\xef\xbb\xbf)?\s*" + begin, head):
            return what
    if re.match(rb"\s*\[\s*([{\]]|$)", head):
        return "one JSON array: jq -c '.[]' makes a line of each of its records"
    return (
        "JSON over several lines: jq -c . makes one of each record"
        if re.match(rb"\s*\{\s*(\n|$)", head)
        else ""
    )


def nothing_usable(
    rejects: Sequence[Reject], settings: Settings, input_format: str, header: Sequence[str]
) -> str:
    """Why nothing could be used, and what would help."""
    help_ = hint(rejects, settings, input_format, header)
    return f"nothing could be used: {rejects[0].detail}" + (f" ({help_})" if help_ else "")


def hint(rejects: Sequence[Reject], settings: Settings, input_format: str, header: Sequence[str]) -> str:
    """A sentence on what would help; empty if nothing is known."""
    if not rejects:
        return ""
    first = rejects[0]
    if (first.reason == "too_large" and input_format == "otlp") or "schema registry" in first.detail:
        return ""
    if what := foreign(first.data[:4096]):
        return f"the input looks like {what}"
    if first.reason == "too_large" and "number" in first.detail:
        return "divide all numbers by the same one"
    front = 5 if "topic" in first.position else 0  # where the number of a schema may stand
    if first.reason == "not_utf8" and Windows1252.wrote(first.data):
        return f"the input looks like {Windows1252.kind}: iconv -f WINDOWS-1252 -t UTF-8 makes UTF-8 of it"
    if first.reason in ("not_utf8", "too_large") or b"\0" in first.data[front:1000]:
        return f"the input looks like {NO_TEXT}"
    if first.reason in ("not_json", "not_an_object"):
        what = spread(first.data)
        return f"the input looks like {what}" if what else "for plain lines of text say --format text"
    if first.reason == "wrong_type" and first.detail.endswith("not a number"):
        return f"--numbers {settings.text_field} clusters numbers, --text-field names another"
    if first.reason in ("missing_field", "null_value") and input_format != "otlp":
        return _of_fields(rejects, settings)
    if input_format in DELIMITERS and header:
        return _of_columns(rejects, settings, input_format, header)
    if first.reason == "wrong_kind" and settings.likelihood != "auto":
        return f"--likelihood {settings.likelihood} is for other records than these: leave it out"
    return ""


def _of_fields(rejects: Sequence[Reject], settings: Settings) -> str:
    data = rejects[0].data
    try:
        found = fields_of(data[5:] if data.startswith(SCHEMA) else data)
    except (RefusedError, UnicodeDecodeError):
        return ""
    if "resourceLogs" in found:
        return "for log records of OpenTelemetry say --format otlp"
    if found.keys() >= OWN:
        return "these are answers of streamdp: streamdp stories shows what they come to"
    fields = f"its fields are {listed(list(found))}"
    spoken = {settings.time_field, settings.id_field, *settings.kept}
    alike = [each.data for each in rejects if each.reason == rejects[0].reason and each.data[:1] == b"{"]
    if flags := _of_categories([plain_fields(each) for each in alike], spoken):
        return f"{fields}: try {flags}"
    for flag, begin, wanted in (
        ("--text-field", b'"', settings.text_field),
        ("--vector-field", b"[", settings.vector_name),
    ):
        written = {name: bytes(value) for name, value in found.items() if name not in spoken}
        lengths = {name: len(value) for name, value in written.items() if value.startswith(begin)}
        if lengths:
            return f"{fields}: try {flag} {shlex.quote(_likeliest(wanted, lengths))}"
    inner = next((name for name, value in written.items() if value.startswith(b"{")), None)
    return fields if inner is None else f"{fields}: jq -c '.{inner} + .' brings up what {inner!r} holds"


def _of_columns(
    rejects: Sequence[Reject], settings: Settings, input_format: str, header: Sequence[str]
) -> str:
    if settings.text_field in header:
        return ""
    if is_record(header):
        return "the first line, which should name the columns, looks like a record: put names before it"
    rows: list[dict[str, str]] = []
    for each in rejects:
        with contextlib.suppress(UnicodeDecodeError, RefusedError):
            row = parse_row(each.data.decode(), DELIMITERS[input_format])
            rows.append(dict(zip(header, row, strict=False)))
    spoken = {settings.time_field, settings.id_field, *settings.kept, ""}
    if flags := _of_categories(rows, spoken):
        return f"{no_column(settings.text_field, header, '--text-field', None)}: try {flags}"
    cells = rows[0].items() if rows else ()
    texts = {
        name: len(cell) for name, cell in cells if name not in spoken and cell.strip() and not is_number(cell)
    }
    best = _likeliest(settings.text_field, texts) if texts else None
    return no_column(settings.text_field, header, "--text-field", best)


def _of_categories(rows: Sequence[Mapping[str, Any]], spoken: Container[str]) -> str:
    """Flags for records of categories and numbers; empty where a column may hold texts, or too few repeat."""
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in spoken and value is not None and value != "":
                columns.setdefault(name, []).append(value)
    fields, numbers = category_columns(columns)
    flags = {"--fields": fields, "--numbers": numbers if fields else []}
    return " ".join(f"{flag} {shlex.quote(','.join(names))}" for flag, names in flags.items() if names)


def is_record(header: Sequence[str]) -> bool:
    """Whether what should be names of columns are times or numbers."""
    return any(is_time(name, numbers=False) or is_number(name) for name in header)


def _likeliest(wanted: str, lengths: Mapping[str, int]) -> str:
    """The name most like the wanted one, else the name of the longest value."""
    near = difflib.get_close_matches(wanted, lengths, n=1, cutoff=0.6)
    return near[0] if near else max(lengths, key=lambda name: lengths[name])
