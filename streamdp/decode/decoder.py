"""Bytes to records: whatever a source delivers is decoded or refused, and never raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

from streamdp.decode.columns import DELIMITERS, Rows, TableColumns
from streamdp.decode.fields import LONGEST_ID, Fields, Parts, RefusedError, Unit, check_id, text_value
from streamdp.decode.log import Line, LogLines
from streamdp.decode.objects import CategoryObjects, Objects
from streamdp.decode.otlp import LogRecords
from streamdp.records import JOINED, FieldNames, Raw, Record, Reject
from streamdp.records.raw_batch import RawBatch

Format = Literal["jsonl", "csv", "tsv", "ssv", "psv", "text", "log", "otlp"]
"""How a record is written: an object, cells between commas, tabs or semicolons, a text, a log's line; or with
others in an object of OpenTelemetry."""

SCHEMA = b"\0"
"""What a record begins with whose next four bytes name its schema in a registry."""

REASONS = (
    "unreadable",
    "too_large",
    "not_utf8",
    "not_json",
    "not_an_object",
    "missing_field",
    "ambiguous",
    "wrong_type",
    "null_value",
    "empty",
    "not_finite",
    "bad_time",
    "csv_columns",
    "long_id",
)
"""Every reason a Decoder gives. They label a metric, so they are few and do not change."""


class Decoder:
    """Decodes the records of one source.

    A JSON record is an object with exactly one of ``text_field`` (a string), ``vector_field`` (an array
    of numbers) and ``features_field`` (an object of numbers); null counts as absent beside another.
    ``time_field`` is a number since the epoch (in ``time_unit``), ISO 8601 or another usual way of writing
    times (as ``time_format`` says; in ``time_zone``, else UTC, where no zone is written; its date may be in
    ``date_field``), ``id_field`` a string or an integer; both may be absent or null. A row of CSV or TSV has
    a text column, or else every named column except time, id, the kept ones and ``cluster`` (a known truth
    must not leak in) is a feature. Of "text" the line is the text. Fields in ``keep`` are copied to its
    ``keep`` where present; all others are ignored, whatever they hold. Of "log" see
    :class:`~streamdp.decode.log.LogLines`, of "otlp" :class:`~streamdp.decode.otlp.LogRecords`.

    With ``categories``, what these fields of an object or a row hold is the record; where none is named, all
    but time, id, the kept ones and ``cluster``. What is absent, null or empty is missing.

    ``max_bytes`` bounds a record. Raises ValueError for an unknown format and for field names that clash.
    """

    def __init__(
        self,
        format: Format = "jsonl",
        *,
        text_field: str = "text",
        vector_field: str = "vector",
        features_field: str = "features",
        time_field: str = "time",
        time_unit: Unit = "auto",
        time_zone: str | None = None,
        time_format: str | None = None,
        date_field: str | None = None,
        id_field: str = "id",
        keep: tuple[str, ...] = (),
        max_bytes: int = 1_000_000,
        header: Sequence[str] | None = None,
        timestamp_format: str | None = None,
        pattern: str | None = None,
        categories: FieldNames | None = None,
        decimal_comma: bool = False,
    ) -> None:
        if format not in get_args(Format):
            raise ValueError(f"format must be one of {', '.join(get_args(Format))}, not {format!r}")
        if format in DELIMITERS and categories is not None and categories.vectors:
            raise ValueError(f"vector_field: a cell of {format} holds no vector: use lines of JSON")
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, not {max_bytes}")
        self.format: Format = format
        self.max_bytes = max_bytes
        written = time_unit, time_zone, time_format, date_field, decimal_comma
        self.fields = Fields(text_field, vector_field, features_field, time_field, id_field, keep, *written)
        self._columns: TableColumns | None = None
        self.log = LogLines(timestamp_format, pattern, keep, time_zone) if format == "log" else None
        self._otlp = LogRecords(keep, max_bytes, time_zone) if format == "otlp" else None
        self._parse: Callable[[bytes], Parts]
        self._categories = categories
        if format == "jsonl":
            reader = Objects(self.fields) if categories is None else CategoryObjects(self.fields, categories)
            self._parse = reader.read
        elif format in DELIMITERS:
            self._parse = self._row
        else:
            self._parse = self._line
        if header is not None:
            self.header = header

    @property
    def has_texts(self) -> bool:
        """Whether records may be texts, no lines of a log, and each of their fields has one meaning."""
        alone = not set(self.fields.keep) & set(self.fields.roles) and self.fields.zone is None
        return self.log is None and self._otlp is None and self._categories is None and alone

    @property
    def header(self) -> Sequence[str] | None:
        """The column names of a CSV source, to be set before the first row; setting may raise ValueError."""
        return None if self._columns is None else self._columns.header

    @header.setter
    def header(self, names: Sequence[str]) -> None:
        named = None if self._categories is None else self._categories.all
        self._columns = TableColumns(names, self.fields, DELIMITERS[self.format], named)

    def decode_all(self, raw: Raw) -> list[Record | Reject]:
        """Decode all records of an event: several of OpenTelemetry, or none; of any other format one."""
        return [self.decode(raw)] if self._otlp is None else self._otlp.read(raw)

    def decode(self, raw: Raw) -> Record | Reject:
        """Decode one record. ValueError when a CSV decoder has no header yet, or an event holds several."""
        if self._otlp is not None:
            raise ValueError("an event of OpenTelemetry holds several records: decode_all reads them")
        data = raw.data
        try:
            if self.log is not None:
                self._check_size(data, raw.refused)
                return self._log_line(self.log, raw)
            value, time, identity, keep = self._read(data, raw.refused, topic="topic" in raw.position)
        except RefusedError as refused:
            return Reject(raw.position, refused.reason, refused.detail, data)
        except UnicodeDecodeError as error:
            return Reject(raw.position, "not_utf8", f"byte {error.start} is not UTF-8", data)
        if time is None:
            time = raw.time
        return Record(value, raw.position, time, identity, raw.arrival, keep, data)

    def parts(self, raws: RawBatch) -> list[Parts | Reject]:
        """What the events hold, or why each is refused: as :meth:`decode`, without an object for each."""
        found: list[Parts | Reject] = []
        read, topic, refused = self._read, "topic" in raws.fixed, raws.refused
        for i, data in enumerate(raws.data):
            try:
                found.append(read(data, refused.get(i, "") if refused else "", topic=topic))
            except (RefusedError, UnicodeDecodeError):
                reject = self.decode(raws[i])
                assert isinstance(reject, Reject)
                found.append(reject)
        return found

    def rows(self, raws: RawBatch) -> Rows | None:
        """Rows of a table of numbers, side by side; None where an event is another, or is refused."""
        if self._columns is None or raws.refused or max(map(len, raws.data), default=0) > self.max_bytes:
            return None
        return self._columns.read_all(raws.data)

    def _check_size(self, data: bytes, refused: str) -> None:
        if refused:
            raise RefusedError("unreadable", refused)
        if len(data) > self.max_bytes:
            raise RefusedError(
                "too_large", f"the record has {len(data)} bytes; the limit is {self.max_bytes}"
            )

    def _read(self, data: bytes, refused: str, *, topic: bool) -> Parts:
        """The parts of a record; raises RefusedError or UnicodeDecodeError."""
        if refused or len(data) > self.max_bytes:
            self._check_size(data, refused)
        behind = data[:1] == SCHEMA and self.format == "jsonl"
        found = self._parse(_payload(data, topic=topic) if behind else data)
        identity = found[2]
        if identity.__class__ is str and len(identity) > LONGEST_ID // 4:
            check_id(identity)
        return found

    def _log_line(self, log: LogLines, raw: Raw) -> Record | Reject:
        arrival = log.arrival(raw.position, raw.arrival) if log.years else raw.arrival
        found = log.read(raw.data, arrival, raw.position.get("partition"), raw)
        if found is None:
            return Reject(raw.position, JOINED, "it goes on with the line before it", raw.data)
        return _record(found, raw)

    def overdue(self) -> list[tuple[Raw, Record]]:
        """Of a log: traces, and lines that might have begun one; they come before the line just read."""
        if self.log is None or not self.log.overdue:
            return []
        found = [(held.raw, _record(held[:3], held.raw)) for held in self.log.overdue if held.raw is not None]
        self.log.overdue.clear()
        return found

    def _row(self, data: bytes) -> Parts:
        if self._columns is None:
            raise ValueError("a CSV decoder needs the header before the first row")
        return self._columns.read(data)

    def _line(self, data: bytes) -> Parts:
        return text_value(data.decode(), self.fields.text), None, None, None


def _payload(data: bytes, *, topic: bool) -> bytes:
    """The object behind the five bytes by which a schema registry's serializers name a schema.

    Refuses ``not_json`` for what else a record of a topic holds there.
    """
    payload = data[5:]
    if payload and payload.lstrip()[:1] != b"{" and topic:
        schema = int.from_bytes(data[1:5], "big")
        raise RefusedError(
            "not_json",
            f"it is Avro or Protobuf, by schema {schema} of a schema registry: write the topic as JSON, "
            "which is read behind a schema's number, too",
        )
    return payload


def _record(line: Line, raw: Raw) -> Record:
    message, time, keep = line
    return Record(
        message, raw.position, raw.time if time is None else time, None, raw.arrival, keep, raw.data
    )
