"""Where ``consume`` reads: a file, a pipe or a Kafka topic, and how its records are decoded."""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from streamdp_connectors.files.backwards import BackwardsSource
from streamdp_connectors.files.folder import FolderSource
from streamdp_connectors.files.npy import NpySource
from streamdp_connectors.files.parquet import ParquetSource
from streamdp_connectors.files.source import FileSource, Written
from streamdp_connectors.journal.segments import is_journal
from streamdp_connectors.journal.source import JournalSource
from streamdp_connectors.kafka.config import kafka_options
from streamdp_connectors.kafka.source import KafkaSource
from streamdp_connectors.protocol import Source, SourceError, SourceRequest, Watched

from streamdp.decode.columns import TRUTH
from streamdp.decode.dates import steps
from streamdp.decode.decoder import Format
from streamdp.decode.fields import LATEST, RefusedError, time_value
from streamdp.decode.log import FIRST, LogLines
from streamdp.decode.log_reader import LogReader
from streamdp.decode.log_times import years_of
from streamdp.decode.objects import fields_of
from streamdp.decode.texts import FEW, TextReader
from streamdp.encode.encoders import decoder_of
from streamdp.errors import ConfigError, Exit
from streamdp.monitor.stages import Stages
from streamdp.records import GAP, Raw, Record, Reject
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch
from streamdp.run.messages import say
from streamdp.run.registered import SOURCES, opened
from streamdp.settings import Settings
from streamdp.settings.io_options import Input, scheme_of
from streamdp.settings.memory import longest_record

BOOTSTRAP = "localhost:9092"
COLUMNS = ("csv", "tsv", "ssv", "psv")
"""Formats whose first line names the columns."""


ENDINGS: dict[str, Format] = {
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "text",
    ".log": "text",
}
"""Formats by how names of files end."""

UNTIMED = ("text", "otlp")
"""Formats of whose files nobody looks whether the newest records come first."""

JUDGED, ALIKE, FALLS, PARTLY = 100, 5, 2, 0.05
"""Records after which a file whose times rise is not looked at further, and batches after which one whose
times are all alike; how often times must fall; the share of records that may be late from the end."""

NEWEST_FIRST = (
    "{} has its newest records first, and only a file that is not followed is read backwards: "
    "write it to a file, turn it round with tac, or say --read-order forwards"
)

SETTLED = {"settled": True}
"""The mark of a position at which all was told of the lines of a log before it."""

BACK = 1 << 16
"""Bytes before a position in a log whose lines are read again."""


class Client(NamedTuple):
    """How the brokers of a topic are reached."""

    bootstrap: str
    options: Mapping[str, Any]
    """How a client logs in, with secrets: for the client alone."""
    transactions: str | None
    """How the transactional ids of its producers begin; None for no transactions."""

    @classmethod
    def of(cls, input: Input) -> Client:
        """What flags, the file of properties and the environment say. Raises KafkaConfigError (78)."""
        options = kafka_options(input.kafka_config, os.environ)
        named = options.pop("bootstrap_servers", BOOTSTRAP)
        transactions = options.pop("transactional_id_prefix", "streamdp")
        return cls(input.bootstrap or named, options, transactions)


def start_of(text: str, zone: str | None = None) -> Literal["earliest", "latest"] | float:
    """What ``--from`` means: earliest, latest, or a time as records have them. Raises ConfigError (64)."""
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    try:
        time = time_value(text, "--from", zone=zone)
    except RefusedError:
        time = None
    if time is None or not 0.0 < time < LATEST:
        raise ConfigError(
            f"--from: {text!r} is neither earliest, latest, a time in ISO 8601 nor a number since 1970 "
            "(in seconds, ms, us or ns, by its size)",
            Exit.USAGE,
        )
    return time


def format_of(settings: Settings, file: str | None) -> Format:
    """The format of the input: as set, else by the ending of the file's name."""
    return settings.format if settings.format != "auto" else ending_of(file or "") or "jsonl"


def written_as(format: Format) -> Written:
    """How a source cuts a format into records."""
    return "text" if format == "log" else "jsonl" if format == "otlp" else format


def ending_of(file: str) -> Format | None:
    """The format that the ending of a file's name says; None where it says none."""
    return ENDINGS.get(os.path.splitext(file.lower().removesuffix(".gz").removesuffix(".zst"))[1])


def is_columnar(file: str) -> bool:
    """Whether a file is Parquet or a NumPy array by its name."""
    return file.lower().endswith((".parquet", ".npy"))


def _shape(
    settings: Settings, names: list[str], numbers: set[str]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Keep rows with a text, a vector or features; else make all numbers features."""
    values = {settings.text_field, settings.vector_name, settings.features_field}
    if values & set(names) or settings.of_categories:
        return lambda row: row
    others = {settings.time_field, settings.id_field, TRUTH, *settings.kept}
    features = [name for name in names if name in numbers and name not in others]
    if not features:
        return lambda row: row
    return lambda row: row | {settings.features_field: {name: row[name] for name in features}}


def named_fields(settings: Settings) -> list[tuple[str, str]]:
    """Fields that are named by the user, or recognised, each with its flag."""
    default = Settings()
    roles = ("text_field", "vector_field", "time_field", "date_field", "id_field")
    found = [(name, getattr(settings, name)) for name in roles]
    found = [(name, field) for name, field in found if field != getattr(default, name)]
    if settings.of_categories:  # an engine of such ends the run where none of the first has it
        found = [(name, field) for name, field in found if name != "vector_field"]
    found += [(kind, name) for kind in ("fields", "texts", "numbers") for name in getattr(settings, kind)]
    found += [("truth_field" if name == settings.truth_field else "keep", name) for name in settings.kept]
    return [(f"--{name.replace('_', '-')}", field) for name, field in found]


def refuse_unknown(
    named: Iterable[tuple[str, str]], header: Sequence[str], likely: str | None = None
) -> None:
    """Raise ConfigError (65) where a table has no such column; ``likely`` is that of its texts."""
    for flag, name in named:
        if name not in header:
            near = {each.casefold(): each for each in reversed(header)}
            close = difflib.get_close_matches(name.casefold(), near, n=1)
            best = near[close[0]] if close else likely if flag == "--text-field" else None
            raise ConfigError(f"{flag}: {no_column(name, header, flag, best)}", Exit.BAD_DATA)


def no_column(name: str, header: Sequence[str], flag: str, best: str | None) -> str:
    """What is said of a column that is not there; ``best`` is the one that may be meant."""
    more = f": try {flag} {shlex.quote(best)}" if best else ""
    return f"there is no column {name!r}; its columns are {listed(list(filter(None, header)))}{more}"


def listed(names: Sequence[str]) -> str:
    """The first of some names."""
    shown = ", ".join(map(repr, names[:12]))
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"


def _format_of_all(settings: Settings, input: Input) -> Format:
    """The format of a file, or of all files of a folder. Raises ConfigError (64)."""
    if input.path is None or not os.path.isdir(input.path):
        return format_of(settings, input.path)
    names = [name for name in os.listdir(input.file) if not name.startswith(".")]
    formats = {format_of(settings, name): name for name in sorted(names, reverse=True)}
    if len(formats) > 1:
        shown = " and ".join(formats.values())
        raise ConfigError(f"{input.file} holds files of several formats ({shown}): say --format", Exit.USAGE)
    found: Format = next(iter(formats), "jsonl")
    if found in COLUMNS:
        raise ConfigError(
            f"{input.file} holds tables, each with columns of its own: read them one by one", Exit.USAGE
        )
    return found


def _lines_of(file: FileSource) -> Iterator[tuple[int, bytes]]:
    """All lines of a file with their numbers."""
    while not file.at_end:
        found = file.read(FIRST, 0.0)
        yield from zip(found.places, found.data, strict=True)


def _time_in(decoded: Sequence[Record | Reject]) -> float | None:
    """The earliest time of the records that an event holds."""
    times = (record.time for record in decoded if isinstance(record, Record))
    return min((time for time in times if time is not None), default=None)


def _times_in(found: Columns) -> np.ndarray:
    """The times of the records that have one."""
    times = found.seconds
    return np.compress(~np.isnan(times), times)


def _newest_first(settings: Settings, path: str) -> bool:
    """Whether a file has its newest records first, so that hardly any is late if it is read backwards."""
    settings = msgspec.structs.replace(settings, read_order="forwards")
    reader = Reader(settings, Input(file=path), say=lambda line: None)
    with contextlib.closing(reader.source):
        parts, falls = [np.zeros(0)], 0
        while not reader.source.at_end:
            parts.append(_times_in(reader.batch(JUDGED if len(parts) == 1 else 4_000, 1.0)))
            if not falls:
                falls, rises = steps(np.concatenate(parts))
                alike = not falls and (len(parts) > ALIKE or not len(parts[1]))
                if alike or rises > PARTLY * falls:
                    return False
    times = np.concatenate(parts)[::-1]
    if steps(times)[1] < FALLS:
        return False
    times = times[times <= np.quantile(times, 0.999)]  # one wrong clock makes no others late
    late = times[1:] < np.maximum.accumulate(times)[:-1]
    return bool(late.sum() <= PARTLY * len(times))


class PartitionLag(NamedTuple):
    """How far a partition is ahead of what was read: in records, and in seconds where those have times."""

    topic: str
    partition: int
    records: int
    seconds: float | None


class Reader:
    """A source and its decoder.

    The partitions of a topic are merged by the time inside the records, so those are decoded while they
    are merged, and what was decoded is kept until the record is handed out.
    """

    source: Source
    passed = 0
    """Records that the source is known to have lost."""
    _each = 1
    """Records of an event, about."""
    _settled = False
    blank = 0
    """Blank lines, or of a topic tombstones, that were skipped."""
    unfinished = False
    """Whether there is more to read at once: that a batch is empty is no silence."""
    _unjudged = False
    """Whether the first records have yet to show that a pipe does not begin with the newest."""

    def __init__(
        self,
        settings: Settings,
        input: Input,
        stages: Stages | None = None,
        source: Source | None = None,
        say: Callable[[str], None] = say,
    ) -> None:
        self._stages, self._say = stages or Stages(), say
        self.max_ahead = settings.max_ahead
        self.longest = max(16 << 20, longest_record(settings) + 1)
        self._decoded: dict[tuple[int, int], list[Record | Reject]] = {}
        input_format = _format_of_all(settings, input)
        self._named = named_fields(settings) if input_format not in UNTIMED else []
        self.decoder = decoder_of(settings, input_format)
        waits = settings.max_lateness > 0.0 or settings.of_lines  # such records are taken one by one
        self._texts = TextReader(self.decoder) if self.decoder.has_texts and not waits else None
        log = self.decoder.log
        self._logs = None if log is None else LogReader(self.decoder, log, lambda raw: self._decode(raw)[0])
        self._alone = settings.max_lateness > 0.0
        self._new_log = None if log is None or log.given else log
        self._dated = None if input.follow else log
        if source is None:
            if input.path is None and input_format in COLUMNS:
                what = "source of a package" if input.topic is None else "topic"
                raise ConfigError(f"a {what} has no header of columns: send JSON or text", Exit.USAGE)
            address = input.topic or input.file or ""
            asked = Opening(address, input.follow, self.longest, self, settings, input, input_format)
            self.source = opened(SOURCES, _kind_of(input), asked, Source)
        else:
            self.source = source
        found = self.source
        judged = settings.read_order != "forwards" and input_format not in UNTIMED
        if judged and isinstance(found, FileSource):
            self._unjudged = not found.seekable
            if settings.read_order == "backwards" or (found.seekable and _newest_first(settings, found.path)):
                self.source = self._turned(found, input.follow)

    def _turned(self, file: FileSource, follow: bool) -> BackwardsSource:
        """The same file read backwards."""
        if follow or not file.seekable:
            raise ConfigError(NEWEST_FIRST.format(file.path), Exit.USAGE)
        more = "(--read-order forwards reads it as it is)"
        self._say(f"{file.path} has its newest records first: it is read backwards {more}")
        if self._new_log is not None:
            self._learn(self._new_log, [])
        return BackwardsSource(file, None if self.decoder.log is None else self.decoder.log.begins)

    @functools.cached_property
    def watched(self) -> Watched | None:
        """The source, if it can be watched."""
        return self.source if isinstance(self.source, Watched) else None

    def set_header(self, file: FileSource) -> None:
        """Read rows of a table with these columns. Raises ConfigError (65) where a named one is not there."""
        try:
            refuse_unknown(self._named, file.header or ())
            self.decoder.header = file.header or []
        except ValueError as error:
            raise ConfigError(str(error), Exit.BAD_DATA) from error

    def _report_lacking(self, names: Sequence[str]) -> None:
        """Say, after the first records, which fields that the user has named are in none of them."""
        they_have = f"; they have {listed(names)}" if names else ""
        for flag, name in self._named:
            if name not in names:
                self._say(f"{flag}: no record so far has a field {name!r}{they_have}")
        self._named = []

    def times_of(self, raws: RawBatch) -> Sequence[float | None]:
        """The event times by which records of a topic are merged; None of one that will be refused.

        What was read of one that comes alone, and may go on with the one before, is kept until it is handed
        out.
        """
        if self._texts is not None:
            return self._texts.times(raws, self.max_ahead)
        (raw,) = raws
        if self._new_log is not None:
            self._learn(self._new_log, [raw])
        decoded = self.decoder.decode_all(raw)
        self._decoded[raw.position["partition"], raw.position["offset"]] = decoded
        time = _time_in(decoded)
        return [None if time is None or time > raw.arrival + self.max_ahead else time]

    @property
    def marks(self) -> dict[str, Any]:
        """What belongs to the position of the source."""
        return SETTLED if self._settled else {}

    @property
    def one_by_one(self) -> bool:
        """Whether ``times_of`` takes a record at a time."""
        return self._texts is None

    @property
    def joined(self) -> int:
        """Lines of a log that continue the line before."""
        return 0 if self._logs is None else self._logs.joined

    @property
    def exceptions(self) -> int:
        """Exceptions read in lines of a log that continue others."""
        return 0 if self.decoder.log is None else self.decoder.log.exceptions

    def read(self, max_records: int, timeout: float) -> list[Record | Reject]:
        """Read and decode a batch; [] if nothing came in time."""
        return self.batch(max_records, timeout).all()

    def batch(self, max_records: int, timeout: float) -> Columns:
        """The same side by side."""
        found = self._batch(max_records, timeout)
        if self._unjudged and found:
            falls, rises = steps(_times_in(found))
            self._unjudged = falls + rises < FALLS
            if falls >= FALLS and not rises:
                raise SourceError(NEWEST_FIRST.format(getattr(self.source, "path", "-")), Exit.BAD_DATA)
        return found

    def _batch(self, max_records: int, timeout: float) -> Columns:
        self._stages.enter("fetch")
        found = self.source.read(max(1, max_records // self._each), timeout)
        if isinstance(found, RawBatch):
            self.unfinished = found.unfinished
            self.blank += found.blank
        gaps = [] if self.watched is None else self.watched.gaps()
        self._stages.enter("decode")
        if found and self._new_log is not None:
            self._learn(self._new_log, found)
        if found and self._named and self.decoder.format == "jsonl":
            names: dict[str, None] = {}
            for raw in found[:FIRST]:
                with contextlib.suppress(RefusedError, UnicodeDecodeError):
                    names |= dict.fromkeys(fields_of(raw.data))
            if names:
                self._report_lacking(list(names))
        if gaps:  # what stands at an offset now may be another record
            self._decoded.clear()
            self.passed += sum(gap.records for gap in gaps)
        rejected = [Reject(gap.position, GAP, gap.detail, b"") for gap in gaps]
        if self._texts is not None and len(found) >= FEW and not rejected and not self._decoded:
            rows = found if isinstance(found, RawBatch) else RawBatch.of(found)
            if rows:
                texts = self._texts.read(rows)
                self._stages.enter("other")
                return texts
        if self._logs is not None:
            lines = self._lines(self._logs, found, together=not (rejected or self._decoded or self._alone))
            if self._named and lines:
                kept = (record.keep or {} for record in lines[:FIRST])
                self._named = [each for each in self._named if each[0] == "--keep"]
                self._report_lacking(list(dict.fromkeys(name for keep in kept for name in keep)))
            self._stages.enter("other")
            return Columns.of([*rejected, *lines.all()]) if rejected else lines
        decoded = [record for raw in found for record in self._decode(raw)]
        self._each = -(-len(decoded) // len(found)) or 1 if found else self._each
        self._stages.enter("other")
        return Columns.of([*rejected, *decoded])

    def _lines(self, logs: LogReader, found: Sequence[Raw], *, together: bool) -> Columns:
        """Lines of a log: those that go on with others are counted, exceptions in them are records."""
        if found and self._dated is not None and found[0].position.get("file", "-") not in self._dated.years:
            self._date(self._dated, found[0].position.get("file", "-"))
        records = logs.read(found, together=together)
        over = (not found and not self.unfinished) or self.source.at_end
        lost = not isinstance(self.source, FileSource | BackwardsSource)  # a resumed run does not read back
        told = logs.end(messages=not over) if over or lost else []
        self._settled = not lost and over and (bool(told) or (self._settled and not found))
        return Columns.of([*records.all(), *told]) if told else records

    def _learn(self, log: LogLines, found: Sequence[Raw]) -> None:
        """Learn how times are written from the beginning of a file, else from what comes, and report it."""
        self._new_log = None
        self._say(log.learn(raw.data for raw in self._beginning() or found))

    def _beginning(self) -> Sequence[Raw]:
        """The first lines of a file; none if it cannot be read twice."""
        if not isinstance(self.source, FileSource | BackwardsSource) or not self.source.seekable:
            return []
        with contextlib.closing(FileSource(self.source.path, "text", max_line=self.longest)) as again:
            return again.read(FIRST, 0.0)

    def _date(self, log: LogLines, path: str) -> None:
        """Find out of which years the lines of a file are, where they do not say."""
        log.years[path] = []
        if path == "-" or not os.path.isfile(path):
            return
        with contextlib.closing(FileSource(path, "text", max_line=self.longest)) as again:
            log.years[path] = years_of(log.dates(_lines_of(again)), os.stat(path).st_mtime)

    def _decode(self, raw: Raw) -> list[Record | Reject]:
        position: dict[str, Any] = raw.position
        if "offset" in position and self._decoded:
            known = self._decoded.pop((position["partition"], position["offset"]), None)
            if known is not None:
                return known
        return self.decoder.decode_all(raw)

    def lags(self, now: float) -> tuple[PartitionLag, ...]:
        """How far reading is behind, by partition, at a time in seconds since 1970."""
        found = []
        for topic, partition, records, last in [] if self.watched is None else self.watched.lags():
            time = None if last is None else _time_in(self.decoder.decode_all(last)) or last.time
            away = None if time is None else max(0.0, now - time)
            found.append(PartitionLag(topic, partition, records, away if records else 0.0))
        return tuple(found)

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue at the positions of a snapshot; return False if the source only goes on, as a pipe."""
        self._decoded.clear()
        try:
            found = self.source.seek(positions)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            raise SourceError(
                f"the position in the state is none of such a source ({type(error).__name__}: {error}): "
                "go on from another snapshot",
                Exit.BAD_DATA,
            ) from None
        if found and self.decoder.log is not None and isinstance(self.source, FileSource | BackwardsSource):
            self._read_back(self.decoder.log, self.source, settled=SETTLED.items() <= positions.items())
        return found

    def _read_back(self, log: LogLines, source: FileSource | BackwardsSource, *, settled: bool) -> None:
        """Read the lines before a position again: it may be inside of a stack trace."""
        if self._new_log is not None:
            self._learn(log, [Raw(data, {}, 0.0) for _, data in source.before(BACK)])
        now = time.time()
        for line, data in source.before(BACK):
            self.decoder.decode(Raw(data, {"file": source.path, "line": line}, now))
        if settled:
            log.end()
        log.overdue.clear()
        log.exceptions = 0


# ---------------------------------------------------------------- what is registered


@dataclass(frozen=True)
class Opening(SourceRequest):
    """What our own sources are opened for."""

    reader: Reader
    settings: Settings
    input: Input
    format: Format


def _kind_of(input: Input) -> str:
    """Which source an input is read by."""
    path = input.path
    if path is None:
        return scheme_of(input.file) or "topic"
    if is_journal(path):
        return "journal"
    if os.path.isdir(path):
        return "folder"
    return path.rpartition(".")[2].lower() if is_columnar(path) else "file"


def open_file(asked: Opening) -> FileSource:
    """A file or a pipe, of lines or rows."""
    file = FileSource(asked.address, written_as(asked.format), asked.follow, max_line=asked.longest)
    if asked.format in COLUMNS:
        asked.reader.set_header(file)
    return file


def open_folder(asked: Opening) -> FolderSource:
    """A folder of files of lines."""
    written, longest = written_as(asked.format), asked.longest
    return FolderSource(
        asked.address,
        lambda path, whole: FileSource(path, written, max_line=longest, whole=whole),
        asked.follow,
    )


def open_journal(asked: Opening) -> JournalSource:
    """A folder that is the journal of a service."""
    if asked.follow:
        raise ConfigError("--follow is for files; streamdp serve goes on with a journal", Exit.USAGE)
    return JournalSource(asked.address)


def open_npy(asked: Opening) -> NpySource:
    """A NumPy array."""
    _refuse_following(asked)
    return NpySource(asked.address, asked.settings.vector_name)


def open_parquet(asked: Opening) -> ParquetSource:
    """Rows of Parquet."""
    _refuse_following(asked)
    settings, fields = asked.settings, asked.reader.decoder.fields
    counts = {*fields.roles, *fields.keep}
    shape = functools.partial(_shape, settings)
    return ParquetSource(asked.address, shape, lambda name: settings.of_categories or name in counts)


def _refuse_following(asked: Opening) -> None:
    if asked.follow:
        raise ConfigError("--follow is for lines, not for rows of Parquet or an array", Exit.USAGE)


def open_topic(asked: Opening) -> KafkaSource:
    """A topic, merged by the times in its records."""
    input, settings, reader, client = asked.input, asked.settings, asked.reader, Client.of(asked.input)
    return KafkaSource(
        asked.address,
        client.bootstrap,
        group=input.group or f"streamdp-{asked.address}",
        start=start_of(input.start or "earliest", settings.time_zone),
        until_end=input.until_end,
        on_gap=input.on_gap,
        on_damage=input.on_damage,
        give_up_after=input.give_up_after,
        idle_timeout=settings.idle_timeout,
        in_step=settings.max_leap if settings.max_lateness else None,
        client_options=client.options,
        times_of=reader.times_of,
        one_by_one=reader.one_by_one,
        partition=input.partition,
    )
