"""``streamdp check``: print what settings mean, and try them on a file."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import msgspec

from streamdp.answers.listing import counted, when
from streamdp.cli.display import Display
from streamdp.cli.summary import lateness_line
from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.encode.embedding import PACKAGES
from streamdp.encode.encoders import Encoder, encode_all, order_of
from streamdp.encode.order import Ready
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.encode.word_encoder import WordEncoder
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit, how_to_install
from streamdp.records import Position, Record, Reject, holds_categories
from streamdp.run.hints import hint
from streamdp.run.messages import say
from streamdp.run.reading import Reader, is_columnar
from streamdp.run.recognise import recognised
from streamdp.settings import Settings
from streamdp.settings.assemble import (
    automatic,
    is_sparse,
)
from streamdp.settings.io_options import Input
from streamdp.settings.options import AUTO, Option, grouped
from streamdp.settings.schema import LOGS, setting_fields


def config(settings: Settings) -> None:
    """Print a settings file that means just these settings, and what is automatic in them."""
    lines = ["# Settings of streamdp; those behind a # are at their defaults.", ""]
    lines += [f"# {line}" for line in automatic(settings)]
    for title, fields in grouped(setting_fields()):
        lines += ["", f"# {title}"]
        for field in fields:
            lines += ["", *_entry(field, getattr(settings, field.name))]
    print("\n".join(lines))


def _entry(field: Option, value: object) -> list[str]:
    off = "" if value != field.default else "# "
    return [
        f"# {field.description}: {field.allowed}",
        f"{off}{field.name} = {json.dumps(AUTO if value is None else value, ensure_ascii=False)}",
    ]


LIMIT = 10_000
"""Records that are read."""

SHOWN = 3
"""Records, refusals and templates that are printed."""

HEADS = ("level", "component")
"""What is read of a log's lines beside time and message."""


def check(settings: Settings, file: str | None, *, compiles: bool, offline: bool) -> int:
    """Print what is asked for. Returns 65 if nothing of a file could be used."""
    if file is not None and compiles:
        raise ConfigError("say one of FILE and --compile", Exit.USAGE)
    if file is not None:
        return _check_file(settings, file)
    if compiles:
        from streamdp.cli.warm import warm

        warm(settings, offline=offline)
    else:
        config(settings)
    return 0


def _check_file(settings: Settings, file: str) -> int:
    settings = recognised(settings, file)
    heads: list[str] = []
    if settings.of_log or settings.format in LOGS:
        heads = [name for name in HEADS if name not in settings.keep]
        settings = msgspec.structs.replace(settings, keep=(*settings.keep, *heads))
    if settings.format == "otlp":  # as they are called there
        settings = msgspec.structs.replace(settings, text_field="body", time_field="timeUnixNano")
    unasked = tuple(f"--keep: no record so far has a field {name!r}" for name in heads)
    reader = Reader(
        settings, Input(file=file), say=lambda line: None if line.startswith(unasked) else say(line)
    )
    with Display(), contextlib.closing(reader.source):
        found = _read(reader)
        whole = reader.source.at_end
        taken, refused, encoder, late = _try(settings, found)
    if encoder is not None:
        encoder.recognise(settings)
    first = "all" if whole else "the first"
    written = file.rpartition(".")[2].lower() if is_columnar(file) else reader.decoder.format
    log = reader.decoder.log
    if log is not None:
        print(f"{file}: a log, {first} {counted(len(found), 'line')} looked at\nform: {log.form}")
    else:
        print(f"{file}: {written}, {first} {counted(len(found), 'record')} looked at")
    if not found:
        print("there are no records: nothing would be clustered")
    if reader.decoder.header is not None:
        print(f"columns: {', '.join(map(repr, reader.decoder.header))}")
    if taken and log is None:
        print(f"clustered by: {_read_as(settings, taken[0], encoder)}")
        of_texts = isinstance(taken[0].value, str) and settings.of_plain_texts and settings.no_lines
        if of_texts and settings.embed is None:
            _recommend_embedding()
    if taken:
        _report_times(settings, taken, log is not None)
    if reader.decoder.format in LOGS:
        _report_log(settings, reader, taken)
    if late:
        print(f"order: {late}")
    for record in taken[:SHOWN]:
        print(f"  {_place(record.position)}: {_shown(record, None if settings.of_lines else encoder)}")
    _report_refusals(refused)
    help_ = hint(refused, settings, reader.decoder.format, reader.decoder.header or ()) if refused else ""
    if help_:
        print(f"hint: {help_}")
    return Exit.BAD_DATA if refused and not taken else 0


def _recommend_embedding() -> None:
    (package,) = PACKAGES
    first = "" if find_spec(package) else f"{how_to_install('embed')}, pip install {package}, and "
    costs = "about 35 us of CPU a text and 100 MB of memory more"
    print(f"better: {first}--embed {package} counts their meaning beside their words ({costs})")


def _read(reader: Reader) -> list[Record | Reject]:
    found: list[Record | Reject] = []
    while len(found) < LIMIT and not reader.source.at_end:
        found += reader.read(LIMIT - len(found), 1.0)
    return found


def _try(
    settings: Settings, found: Sequence[Record | Reject]
) -> tuple[list[Record], list[Reject], Encoder | None, str]:
    """Records that would be clustered, in order; refused records; and the line about lateness."""
    order = order_of(settings)
    given: list[Record | Reject] = []
    for record in found:
        ready: Ready = []
        if isinstance(record, Record):
            order.push(record, ready)
        first = ready[0][1] if ready else record
        given.append(first if isinstance(first, Reject) else record)
    in_order = [record for record in given if isinstance(record, Record)]
    sparse = settings.of_lines or is_sparse(settings)
    encoder, outcomes = encode_all(in_order, settings, sparse)
    taken = [record for record, reject in zip(in_order, outcomes, strict=True) if reject is None]
    answers = iter(outcomes)
    results = [record if isinstance(record, Reject) else next(answers) for record in given]
    refused = [reject for reject in results if reject is not None]
    late = sum(reject.reason == "late" for reject in refused)
    return taken, refused, encoder, lateness_line(order.lateness, late, settings.max_lateness)


def _read_as(settings: Settings, record: Record, encoder: Encoder | None) -> str:
    if settings.of_lines:
        return "templates of their messages"
    if isinstance(record.value, str):
        language = encoder.language if isinstance(encoder, WordEncoder) else None
        without = "" if language is None else f", without the stop words of {language.capitalize()}"
        beside = "" if settings.embed is None else f"; beside them their meaning, by {settings.embed}"
        return f"texts, from {settings.text_field!r}{without}{beside}"
    normalised = isinstance(encoder, VectorEncoder) and encoder.normalise
    how = ", by direction as under --normalise" if normalised else ""
    if isinstance(record.value, dict):
        names = ", ".join(map(repr, sorted(record.value)[:8]))
        if isinstance(encoder, CategoryEncoder) and any(encoder.names[1:]):
            kinds = zip(("categories", "words of", "numbers of", "vector"), encoder.names, strict=True)
            return "; ".join(f"{what} {', '.join(map(repr, fields))}" for what, fields in kinds if fields)
        if holds_categories(record.value):
            return f"{len(record.value)} fields, as categories: {names}"
        more = "counts of words" if isinstance(encoder, WordEncoder) else "numbers"
        return f"{len(record.value)} features, as {more}{how}: {names}"
    return f"vectors of {len(record.value)} numbers, from {settings.vector_name!r}{how}"


def _report_times(settings: Settings, taken: Sequence[Record], of_log: bool) -> None:
    times = [record.time for record in taken if record.time is not None]
    if of_log:
        print(f"times: {when(min(times))} to {when(max(times))}" if times else "times: none")
        return
    if not times:
        print(f"times: none (there is no {settings.time_field!r}); records count as they come")
        return
    without = len(taken) - len(times)
    more = f", {counted(without, 'record')} without one" if without else ""
    unit = "" if settings.time_unit == "auto" else f" in {settings.time_unit}"
    date = "" if settings.date_field is None else f"{settings.date_field!r} and "
    print(f"times: from {date}{settings.time_field!r}{unit}, {when(min(times))} to {when(max(times))}{more}")


def _report_log(settings: Settings, reader: Reader, taken: Sequence[Record]) -> None:
    """Fields of heads, lines that go on with others, and templates."""
    for name in HEADS:
        found = Counter(record.keep[name] for record in taken if record.keep and name in record.keep)
        if found:
            shown = ", ".join(f"{value} {count:,}" for value, count in found.most_common(5))
            print(f"{name}: {shown}")
    if reader.joined:
        print(f"{counted(reader.joined, 'line')} would go on with the line before")
    if not settings.of_lines:
        return
    engine = Engine(settings)
    with Display():
        engine.advance([record.value for record in taken])
    templates = engine.clusters()
    print(f"{counted(len(templates), 'template')}, of {counted(len(taken), 'line')}; the commonest:")
    for cluster in templates[:SHOWN]:
        print(f"  {cluster.size:,} {cluster.template}")


def _shown(record: Record, encoder: Encoder | None) -> str:
    value: Any = record.value
    if isinstance(value, str) and isinstance(encoder, WordEncoder):
        value = " | ".join(encoder.tokenizer.tokens(value)[:20])
    else:
        value = repr(value)
    shown = value if len(value) <= 120 else value[:117] + "..."
    parts = [] if record.time is None else [when(record.time)]
    if record.id is not None:
        parts.append(f"id {record.id}")
    return ", ".join([*parts, shown])


def _place(position: Position) -> str:
    shown = f"line {position.get('line')}"
    return f"{shown}, record {position['record']}" if "record" in position else shown


def _report_refusals(refused: Sequence[Reject]) -> None:
    if not refused:
        return
    reasons = Counter(reject.reason for reject in refused)
    print("refused: " + ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common()))
    for reject in refused[:SHOWN]:
        print(f"  {_place(reject.position)}: {reject.detail}")
