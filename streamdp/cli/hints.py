"""What to do about input of which nothing could be used: told from the first records that were refused."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Sequence

import msgspec

from streamdp.records import Reject
from streamdp.settings import Settings

PACKED = {
    b"\x1f\x8b": "gzip, though its name does not end in .gz",
    b"\x28\xb5\x2f\xfd": "Zstandard, though its name does not end in .zst",
    b"PK\x03\x04": "a zip archive: unpack it",
    b"BZh": "bzip2: unpack it",
    b"\xfd7zXZ": "xz: unpack it",
    b"PAR1": "Parquet, though its name does not end in .parquet",
}
"""How files begin that are no lines of text."""

ROLES = ("text_field", "vector_field", "features_field")


def hint(rejects: Sequence[Reject], settings: Settings, input_format: str, header: Sequence[str]) -> str:
    """One sentence on what would help; empty where nothing is known."""
    if not rejects:
        return ""
    first = rejects[0]
    for magic, what in PACKED.items():
        if first.data.startswith(magic):
            return f"the input looks like {what}"
    if first.reason in ("not_utf8", "too_large") or b"\0" in first.data[:1000]:
        return "the input does not look like text: unpack or convert it to JSON lines, CSV or text"
    if first.reason in ("not_json", "not_an_object"):
        return _of_lines(first.data)
    if first.reason in ("missing_field", "null_value"):
        return _of_fields(first.data, settings)
    if input_format in ("csv", "tsv") and header:
        return _of_columns(rejects, settings, header)
    if first.reason == "wrong_kind" and settings.likelihood != "auto":
        return f"--likelihood {settings.likelihood} is for other records than these: leave it out"
    return ""


def _of_lines(data: bytes) -> str:
    line = data.decode(errors="replace")
    for delimiter, name in (("\t", "tsv"), (",", "csv")):
        if line.count(delimiter) >= 2 and not line.lstrip().startswith(("{", "[")):
            return (
                f"if its first line names columns, say --format {name}; for plain lines of text --format text"
            )
    return "for plain lines of text say --format text"


def _of_fields(data: bytes, settings: Settings) -> str:
    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return ""
    texts = [name for name, value in found.items() if bytes(value).startswith(b'"')]
    vectors = [name for name, value in found.items() if bytes(value).startswith(b"[")]
    spoken = {settings.time_field, settings.id_field, *settings.keep}
    for flag, names, wanted in (
        ("--text-field", texts, settings.text_field),
        ("--vector-field", vectors, settings.vector_field),
    ):
        names = [name for name in names if name not in spoken]
        if names:
            return f"its fields are {_listed(list(found))}: try {flag} {_likeliest(wanted, names, found)}"
    return f"its fields are {_listed(list(found))}"


def _of_columns(rejects: Sequence[Reject], settings: Settings, header: Sequence[str]) -> str:
    if settings.text_field in header:
        return ""
    named = [name for name in header if name]
    try:
        row = next(
            csv.reader(
                [rejects[0].data.decode()], delimiter="\t" if "\t" in rejects[0].data.decode() else ","
            )
        )
    except (StopIteration, UnicodeDecodeError, csv.Error):
        return f"its columns are {_listed(named)}: say --text-field NAME for a column of texts"
    cells = dict(zip(header, row, strict=False))
    spoken = {settings.time_field, settings.id_field, *settings.keep, ""}
    texts = [name for name, cell in cells.items() if name not in spoken and not _is_number(cell)]
    if not texts:
        return f"its columns are {_listed(named)}: say --text-field NAME for a column of texts"
    return (
        f"its columns are {_listed(named)}: try --text-field {_likeliest(settings.text_field, texts, cells)}"
    )


def _likeliest(wanted: str, names: Sequence[str], values: object) -> str:
    """The name that is most like the wanted one, else that of the longest value."""
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    if near:
        return near[0]
    assert isinstance(values, dict)
    return max(
        names,
        key=lambda name: len(bytes(values[name]) if not isinstance(values[name], str) else values[name]),
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:12]))
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not cell.strip()
    return True
