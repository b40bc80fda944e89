"""Answers as lines of a file: JSON, or the rows of one table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from streamdp.errors import ConfigError, Exit
from streamdp.records import PARAMS, TEMPLATE, WHOLE, Assignment, Lines
from streamdp.records.answer_rows import all_rows
from streamdp.records.arrow import ANSWERS, answer_row
from streamdp.records.cells import harmless
from streamdp.settings import Settings
from streamdp.settings.io_options import Outputs

CONFIDENT = ("confidence", "confidence_labels")

_json = msgspec.json.Encoder()


class JsonLines:
    """An object for each line, finality among the assignments."""

    header: bytes = b""
    beginnings: tuple[bytes, ...] = (b'{"seq":', b'{"final_through":')

    def encode(self, lines: Lines) -> bytes:
        """Whole lines."""
        return lines.encode()


OTEL = {TEMPLATE: b'"log.record.template":', PARAMS: b'"log.record.template.params":'}
"""What OpenTelemetry's collector calls the template of a log record, and the values of its holes."""


class OtelLines(JsonLines):
    """The same, templates and the values of their holes also as ``attributes``, by OpenTelemetry's names."""

    def encode(self, lines: Lines) -> bytes:
        """Whole lines."""
        found = all_rows(lines)
        parts = [found.written(part) for part in (WHOLE, *OTEL)]
        return b"".join(map(_with_attributes, *parts))


def _with_attributes(line: bytes, *values: bytes) -> bytes:
    told = [name + value for name, value in zip(OTEL.values(), values, strict=True) if value]
    return line[:-2] + b',"attributes":{' + b",".join(told) + b"}}\n" if told else line


class CsvLines:
    """A row for each assignment, without finality; no cell runs over lines, so that every row is a line.

    Parameters
    ----------
    place
        Keys of the records' position, a column each.
    keep
        Names of the kept fields, a column each (``kept_NAME`` where the table has such a column already);
        what is no text or number is written as JSON.
    """

    def __init__(self, place: Sequence[str], keep: Sequence[str]) -> None:
        self._place, own = tuple(place), (*ANSWERS, *place)
        self._columns = [*own, *(f"kept_{name}" if name in own else name for name in keep)]
        self.header = csv_of([self._columns])
        self.beginnings: tuple[bytes, ...] = (self.header[:4], *(b"%d" % digit for digit in range(10)))

    def encode(self, lines: Lines) -> bytes:
        """Whole lines."""
        return csv_of(self.cells(line) for line in lines if isinstance(line, Assignment))

    def cells(self, line: Assignment) -> Iterable[Any]:
        """The cells of one assignment."""
        row = answer_row(line, self._place)
        return [_cell(row.get(name)) for name in self._columns]


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else _json.encode(value).decode()
    return " ".join(text.splitlines())


def csv_of(rows: Iterable[Iterable[Any]]) -> bytes:
    """Rows of harmless cells between commas, a line each; what is no text at all is written as ?."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(harmless, row) for row in rows)
    return out.getvalue().encode("utf-8", "replace")


def further_columns(settings: Settings) -> tuple[str, ...]:
    """Further columns of a table: kept fields, templates of log lines, confidence where classes are known."""
    further: tuple[str, ...] = ("template",) if settings.of_lines else ()
    further += ("params",) if settings.params else ()
    further += CONFIDENT if settings.truth_field else ()
    return tuple(dict.fromkeys((*settings.kept, *further)))


def is_parquet(outputs: Outputs) -> bool:
    """Whether answers go to a Parquet file."""
    if outputs.output_topic is not None:
        return False
    by_name = outputs.to_file and outputs.output.lower().endswith(".parquet")
    return outputs.output_format == "parquet" or (outputs.output_format == "auto" and by_name)


def lines_for(
    outputs: Outputs, settings: Settings, place: Sequence[str], keep: Sequence[str]
) -> JsonLines | CsvLines:
    """How answers are written to the output. Raises ConfigError (64)."""
    wanted, otel = outputs.output_format, outputs.attributes == "otel"
    if otel and not settings.of_lines:
        raise ConfigError("--attributes otel is for templates of log lines, and this is no log", Exit.USAGE)
    if is_parquet(outputs) and not outputs.to_file:
        what = "a Parquet file is complete at its end only: name one, as in --output answers.parquet"
        raise ConfigError(what, Exit.USAGE)
    by_name = wanted == "auto" and outputs.output.lower().endswith(".csv")
    csv_ = outputs.output_topic is None and (wanted == "csv" or by_name)
    if otel and (csv_ or is_parquet(outputs)):
        raise ConfigError("--attributes otel is for lines of JSON: a table has no attributes", Exit.USAGE)
    if csv_:
        return CsvLines(place, keep)
    return OtelLines() if otel else JsonLines()
