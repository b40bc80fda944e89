"""The contents of a state as flat tables: cells are numbers, texts, or empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from streamdp.encode.word_encoder import WordEncoder
from streamdp.engine import Engine
from streamdp.errors import Exit, StreamdpError
from streamdp.records import ClusterSummary
from streamdp.run.lines import csv_of
from streamdp.safe_files import create

TableFormat = Literal["jsonl", "csv"]
Row = tuple[Any, ...]

COLUMNS: dict[str, tuple[str, ...]] = {
    "clusters": (
        "cluster",
        "size",
        "first_time",
        "last_time",
        "first_seq",
        "last_seq",
        "weight",
        "recent",
        "before",
        "template",
    ),
    "cluster_words": ("cluster", "rank", "word", "count"),
    "cluster_means": ("cluster", "place", "name", "mean"),
    "cluster_samples": ("cluster", "rank", "text"),
    "records": ("seq", "cluster", "time"),
    "record_words": ("seq", "word", "count"),
    "record_values": ("seq", "place", "name", "value"),
    "settings": ("name", "value"),
}
"""Tables, and the columns of each. A table without rows is not written."""


def write_tables(
    folder: Path, form: TableFormat, engine: Engine, settings: Mapping[str, Any]
) -> dict[str, int]:
    """Write the tables to a folder; how many rows each has. StreamdpError (73) where a file is in the way."""
    written: dict[str, int] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables_of(engine, settings).items():
            columns, made = COLUMNS[name], list(rows)
            if made:
                with open(create(folder / f"{name}.{form}"), "wb") as file:
                    named = (dict(zip(columns, row, strict=True)) for row in made)
                    lines = msgspec.json.Encoder().encode_lines
                    file.write(csv_of([columns, *made]) if form == "csv" else lines(named))
                written[name] = len(made)
    except FileExistsError as error:
        what = "is there already: name another folder"
        raise StreamdpError(f"{error.filename}: {what}", Exit.CANNOT_CREATE) from None
    except OSError as error:
        raise StreamdpError(
            f"{error.filename or folder}: cannot be written: {error.strerror}", Exit.CANNOT_CREATE
        ) from error
    return written


def tables_of(engine: Engine, settings: Mapping[str, Any]) -> dict[str, Iterable[Row]]:
    """Rows of each table."""
    clusters = engine.clusters()
    names = next((each.names or None for each in clusters), None)
    return {
        "clusters": (_row_of(cluster) for cluster in clusters),
        "cluster_words": (
            (c.cluster, rank, word, count)
            for c in clusters
            for rank, (word, count) in enumerate(c.words or [], 1)
        ),
        "cluster_means": (
            (c.cluster, place, names[place] if names else None, mean)
            for c in clusters
            for place, mean in enumerate(c.mean or [])
        ),
        "cluster_samples": (
            (c.cluster, rank, text) for c in clusters for rank, text in enumerate(c.samples, 1)
        ),
        "records": _records(engine),
        "record_words": _words(engine),
        "record_values": _values(engine, names),
        "settings": ((name, msgspec.json.encode(value).decode()) for name, value in sorted(settings.items())),
    }


def _row_of(cluster: ClusterSummary) -> Row:
    values = msgspec.structs.asdict(cluster)
    row = [values[name] for name in COLUMNS["clusters"]]
    return tuple(None if value is msgspec.UNSET else value for value in row)


def _records(engine: Engine) -> Iterator[Row]:
    """The records that are retained, with their newest labels."""
    held = engine.retained()
    if held is None:
        return
    labels, times = engine.lately()
    known = [None] * len(labels) if times is None else times.tolist()
    for i, (label, time) in enumerate(zip(labels.tolist(), known, strict=True)):
        yield held.first + i, label, time


def _words(engine: Engine) -> Iterator[Row]:
    """The words of the records that are retained, and how often each has them."""
    held, stream = engine.retained(), engine.stream()
    encoder = None if stream is None else stream.encoded.encoder
    words = None if encoder is None else encoder.words
    if held is None or words is None:
        return
    batch, first = held.batch, encoder.vocabulary.fixed if isinstance(encoder, WordEncoder) else 0
    for row, word, count in zip(
        batch.rows.tolist(), batch.words.tolist(), batch.counts.tolist(), strict=True
    ):
        if word >= first:
            yield held.first + row, words[word], count


def _values(engine: Engine, names: list[str] | None) -> Iterator[Row]:
    """The numbers of the vectors that are retained."""
    held = engine.retained()
    if held is None or held.batch.vectors is None:
        return
    for (row, place), value in np.ndenumerate(held.batch.vectors):
        if not np.isnan(value):  # of a record without a vector
            yield held.first + row, place, names[place] if names else None, float(value)
