"""A data frame that is clustered: the same kind of frame with labels, and one of stories."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from functools import cached_property
from time import time as now
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.evidence import Evidence
from streamdp.decode.log import FIRST
from streamdp.decode.log_times import years_of
from streamdp.encode.encoders import decoder_of
from streamdp.encode.rows import Rows
from streamdp.engine import Engine
from streamdp.records import (
    JOINED,
    Answers,
    Assignment,
    Position,
    Raw,
    Record,
    Reject,
    all_plain,
    is_missing,
    seconds_of,
    shown,
)
from streamdp.records.frames import frame_of
from streamdp.settings import Settings
from streamdp.story.story import TYPES

LABEL, PROBABILITY, LASTING, SINCE = COLUMNS = (
    "label",
    "probability",
    "lasting_probability",
    "stable_since",
)
"""The columns that a frame gets."""

TEMPLATE = "template"
"""The column that a frame of lines of a log gets, too."""

NO_LABEL = -1
"""The label of a row that could not be clustered."""

NAMED = 5
"""Rows that a warning names beside the first, if there are more."""


class Clustering:
    """A data frame with what :func:`streamdp.cluster` found of its rows.

    It can do what its ``frame`` can: ``found["label"]``, ``found.groupby("label")``, ``len(found)``. pyarrow,
    polars and DuckDB take it as a table.

    Attributes
    ----------
    frame
        The frame that was given, of the same kind and in the same order, with four more columns: ``label``
        (-1 for a row that could not be clustered), ``probability`` and ``lasting_probability`` as in an
        assignment, and ``stable_since``, the number of the row (from 0) at which the label came to be what it
        is: its own, or a later one that made the model change its mind. A frame of a log has
        ``template``, too; a line that goes on with the one before, as of a stack trace, has what that has.

    Examples
    --------
    >>> import polars as pl
    >>> from streamdp import cluster
    >>> found = cluster(pl.DataFrame({"text": ["storm over the coast", "coast storm", "late goal"]}), "text")
    >>> found["label"].to_list(), found.stories["title"].to_list()
    ([0, 0, 1], ['coast storm', 'late goal'])
    """

    def __init__(self, table: Any, records: list[Record | Reject], settings: Settings) -> None:
        self._table, self._records, self._settings = table, records, settings
        self._engine = Engine(settings, with_events=True)
        self._newest: dict[int, Assignment] = {}
        self._since: dict[int, int] = {}
        rejects = list[Reject]()
        for answers in self._run():
            self._read(answers)
            rejects += answers.rejects
        if rejects:
            warnings.warn(_refused(rejects), UserWarning, stacklevel=4)
        self.frame: Any = self._table.with_columns(*self._columns()).to_native()

    def _run(self) -> Iterator[Answers]:
        """Cluster the records by time; one without a time comes behind the row before it that has one.

        The first rows, if they have none, come behind the first that has: a stream whose first record has no
        time would take none of the others'.
        """
        records = [each for each in self._records if not _goes_on(each)]
        times = np.array([getattr(each, "time", None) for each in records], float)
        missing = np.isnan(times)
        if not missing.all():
            known = np.maximum.accumulate(np.where(missing, np.argmin(missing), np.arange(len(times))))
            records = [records[row] for row in np.lexsort((missing, times[known])).tolist()]
        yield self._engine.advance(records)
        yield self._engine.finish()

    def _read(self, answers: Answers) -> None:
        """Note answers, and at which row a label changed: revisions come right behind what caused them."""
        latest = max(self._newest, key=lambda row: self._newest[row].seq, default=0)
        for answer in answers.assignments:
            row = answer.position["record"]
            latest = latest if answer.revision else row
            before = self._newest.get(row)
            if before is None or before.cluster != answer.cluster:
                self._since[row] = latest
            self._newest[row] = answer

    def _columns(self) -> list[Any]:
        """The columns that the frame gets."""
        import narwhals.stable.v1 as nw

        rows = list[int]()
        for row, record in enumerate(self._records):
            rows.append(rows[-1] if rows and _goes_on(record) else row)
        found = [self._newest.get(row) for row in rows]
        lasting = [None if each is None else each.lasting_probability for each in found]
        values = {
            LABEL: [NO_LABEL if each is None else each.cluster for each in found],
            PROBABILITY: [None if each is None else each.probability for each in found],
            LASTING: [None if each is msgspec.UNSET else each for each in lasting],
            SINCE: [self._since.get(row, NO_LABEL) for row in rows],
        }
        kinds: dict[str, Any] = {LABEL: nw.Int64, SINCE: nw.Int64}
        if self._settings.of_lines:
            newest = {each.cluster: each.template for each in self._engine.clusters()}
            values[TEMPLATE] = [
                None if each is None else newest.get(each.cluster, each.template) for each in found
            ]
            kinds[TEMPLATE] = nw.String
        return [
            nw.new_series(
                name,
                column,
                kinds.get(name, nw.Float64),
                native_namespace=nw.get_native_namespace(self._table),
            )
            for name, column in values.items()
        ]

    @cached_property
    def stories(self) -> Any:
        """Its stories as a frame of the same kind: the live ones, largest first, then up to 100 that ended.

        The columns are those of a table of stories (``Stories.rows``); ``story`` is the label.
        """
        import narwhals.stable.v1 as nw

        live = self._engine.stories(records=False)
        found = live.like([*live, *self._engine.stories(closed=True, records=False)])
        rows, kinds = found.rows(), {"int64": nw.Int64, "bool": nw.Boolean, "string": nw.String}
        columns = {name: [row[name] for row in rows] for name in TYPES}
        typed = {name: kinds[kind]() for name, kind in TYPES.items()}
        space = nw.get_native_namespace(self._table)
        schema = (
            None if self._table.implementation.is_pandas_like() else typed
        )  # which has no missing integer
        return nw.from_dict(columns, schema, native_namespace=space).to_native()

    @cached_property
    def means(self) -> Any:
        """The means of the live clusters of vectors or numbers, as a frame of the same kind: a row for each.

        ``label`` is the first column; the others are called as those of the numbers, or ``0``, ``1``, and so
        on of a column of vectors. ValueError where nothing has a mean.
        """
        import narwhals.stable.v1 as nw

        found = [each for each in self._engine.clusters() if each.mean is not None]
        if not found:
            raise ValueError("clusters of texts, lines and categories have no means: see stories")
        means = [each.mean or [] for each in found]
        names = found[0].names or [str(place) for place in range(len(means[0]))]
        columns = dict(zip(names, map(list, zip(*means, strict=True)), strict=True))
        order = [str(name) for name in self._table.columns if str(name) in columns] or names
        made = {LABEL: [each.cluster for each in found], **{name: columns[name] for name in order}}
        return nw.from_dict(made, native_namespace=nw.get_native_namespace(self._table)).to_native()

    def explain(self, a: int, b: int) -> Evidence:
        """What speaks for two rows being of one cluster, by their numbers from 0.

        IndexError where there is no such row; TypeError for what is no number; ValueError where one could not
        be clustered.
        """
        return self._engine.together(self._record(a), self._record(b))

    def _record(self, row: int) -> Record:
        if not hasattr(row, "__index__"):
            raise TypeError(f"a row is called by its number, from 0 on, not by {row!r}")
        if not 0 <= row < len(self._records):
            raise IndexError(f"there is no row {row}: there are {len(self._records):,}, from 0 on")
        record = self._records[row]
        if isinstance(record, Reject):
            raise ValueError(f"row {row} cannot be clustered: {record.detail}")
        return record

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "frame" not in vars(self):
            raise AttributeError(name)
        return getattr(self.frame, name)

    def __getitem__(self, what: Any) -> Any:
        return self.frame[what]

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("this is no frame, but has one: use its attribute frame")

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str | None:
        made = getattr(self.frame, "_repr_html_", None)
        return made() if callable(made) else None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the frame over as Arrow does."""
        return self.frame.__arrow_c_stream__(requested_schema)


def _refused(rejects: list[Reject]) -> str:
    """Which rows could not be clustered, and why the first could not."""
    first, *further = sorted(rejects, key=lambda each: int(each.position["record"]))
    row = f"row {first.position['record']} cannot be clustered: {first.detail}"
    if not further:
        return f"{row}; its label is {NO_LABEL}"
    rows = [f"{each.position['record']}" for each in further]
    more = (
        f"rows {', '.join(rows[:NAMED])} and {len(rows) - NAMED:,} more"
        if len(rows) > NAMED
        else (f"row {rows[0]}" if len(rows) == 1 else f"rows {', '.join(rows[:-1])} and {rows[-1]}")
    )
    return f"{row}; nor can {more}; their labels are {NO_LABEL}"


def cluster_frame(X: Any, columns: Any, settings: Settings) -> Clustering:
    """Cluster the rows of a data frame by a column of texts or vectors, or by several of features.

    ValueError where it has no such column, or has one that is to be added already.
    """
    table = _table_of(X)
    alone = isinstance(columns, str) or not isinstance(columns, Iterable)
    names = [columns] if alone else list(dict.fromkeys(columns))
    if missing := [name for name in names if name not in table.columns]:
        has = ", ".join(map(str, table.columns))
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {has}")
    added = (*COLUMNS, TEMPLATE) if settings.of_lines else COLUMNS
    if taken := [name for name in added if name in table.columns]:
        raise ValueError(f"the frame has a column {taken[0]!r} already: rename or drop it")
    time = settings.time_field if settings.time_field in table.columns else None
    if time is None and settings.time_field != Settings().time_field:
        raise ValueError(f"the frame has no column {settings.time_field!r} for times (time_field)")
    read = table.get_column(time).to_list() if time is not None and not (alone and time in names) else None
    times = read or [None] * len(table)
    if not alone and time in names:
        names.remove(time)
    if not names:
        raise ValueError("columns: name a column of texts or vectors, or several of features")
    values = [table.get_column(name).to_list() for name in names]
    if alone and not settings.of_categories:
        return Clustering(table, _of_column(columns, values[0], times, settings), settings)
    fields = [str(name) for name in names]
    rows = [dict(zip(fields, row, strict=True)) for row in zip(*values, strict=True)]
    records = [
        _of_row(n, row, _seconds(n, at, time)) for n, (row, at) in enumerate(zip(rows, times, strict=True))
    ]
    return Clustering(table, records, settings)


def _table_of(X: Any) -> Any:
    """The data frame as narwhals has it. ValueError for what is none, or has two columns of one name."""
    try:
        table = frame_of(X)
    except ValueError as error:  # of narwhals, which says it in several lines
        said = " ".join(str(error).split())
        raise ValueError(
            f"columns of a frame need names of their own: rename or drop some ({said})"
        ) from None
    if table is None or not hasattr(table, "columns"):
        what = "columns are named of a data frame of pandas, polars or pyarrow"
        raise ValueError(f"{what}, and this is a {type(X).__name__}")
    return table


def _of_column(column: Any, values: list[Any], times: list[Any], settings: Settings) -> list[Record | Reject]:
    """The records of a column of texts, lines or vectors; what is mostly there says which."""
    known = [each for each in values if not is_missing(each)]
    texts = 2 * sum(isinstance(each, str) for each in known) >= len(known)
    if not texts and not all(map(_is_vector, known[:1])):
        what = (
            "bytes: decode them" if isinstance(known[0], bytes) else f"numbers: name features as [{column!r}]"
        )
        raise ValueError(f"column {column!r} holds neither texts nor vectors, but {what}")
    wanted, name = ("text", settings.text_field) if texts else ("vector", settings.vector_name)
    read, found = Rows(settings).read, list[Record | Reject]()
    for n, (value, time) in enumerate(zip(values, times, strict=True)):
        position: Position = {"record": n}
        if is_missing(value):
            found.append(Reject(position, "missing_field", f"column {column!r} holds nothing", b""))
        elif not (isinstance(value, str) if texts else _is_vector(value)):
            detail = f"column {column!r} holds {shown(value)}, which is no {wanted}"
            found.append(Reject(position, "wrong_type", detail, b""))
        elif settings.of_lines:
            found += all_plain([Record(value, position, _seconds(n, time, settings.time_field))])
        else:
            (made,) = all_plain([{name: value, settings.time_field: time}], n, read)
            if isinstance(made, Reject):
                detail = made.detail.replace(f"field {name!r}"[:-1], f"column {column!r}"[:-1])
                made = msgspec.structs.replace(made, detail=detail)
            found.append(made)
    return _of_log(found, settings) if settings.of_lines else found


def _of_log(found: list[Record | Reject], settings: Settings) -> list[Record | Reject]:
    """The records of lines, read as those of a file are: a time of its row goes before that in the line."""
    decoder, written = decoder_of(settings, "log"), now()
    lines = [
        str(each.value).encode("utf-8", "replace") if isinstance(each, Record) else b"" for each in found
    ]
    assert decoder.log is not None
    if not decoder.log.given:
        decoder.log.learn(filter(None, lines[:FIRST]))
    decoder.log.years[""] = years_of(decoder.log.dates(enumerate(lines)), written)
    made = list[Record | Reject]()
    for n, (line, given) in enumerate(zip(lines, found, strict=True)):
        raw = Raw(line, {"record": n, "line": n}, written)
        made.append(given if isinstance(given, Reject) else decoder.decode(raw))
    decoder.log.end()
    for raw, late in decoder.overdue():
        made[raw.position["record"]] = late
    for n, (record, given) in enumerate(zip(made, found, strict=True)):
        if isinstance(record, Record) and isinstance(given, Record):
            at = record.time if given.time is None else given.time
            made[n] = msgspec.structs.replace(record, position={"record": n}, time=at, arrival=None)
    return made


def _goes_on(record: Record | Reject) -> bool:
    """Whether it is a line that goes on with the one before it."""
    return isinstance(record, Reject) and record.reason == JOINED


def _is_vector(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def _of_row(n: int, row: dict[str, Any], at: float | None) -> Record | Reject:
    """A record of features."""
    try:
        (made,) = all_plain([Record(row, {"record": n}, at)])
    except TypeError:
        detail = f"a column holds what is no number, category or vector: {shown(row)}"
        return Reject({"record": n}, "wrong_type", detail, b"")
    return made


def _seconds(n: int, time: Any, column: str | None) -> float | None:
    """The time of a row. ValueError where it is none."""
    try:
        return seconds_of(time)
    except TypeError as error:
        raise ValueError(f"row {n}, column {column!r}: {error}") from None
