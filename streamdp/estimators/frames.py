"""A data frame that is clustered: the same kind of frame with labels, and one of stories."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.evidence import Evidence
from streamdp.encode.rows import Rows
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Record, Reject, all_plain, is_missing, seconds_of
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

NO_LABEL = -1
"""The label of a row that could not be clustered."""


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
        is: its own, or a later one that made the model change its mind.

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
            first = rejects[0]
            more = f", and {len(rejects) - 1:,} others" if len(rejects) > 1 else ""
            what = (
                f"row {first.position['record']} cannot be clustered ({first.reason}: {first.detail}){more}"
            )
            warnings.warn(f"{what}: the label is {NO_LABEL}", UserWarning, stacklevel=4)
        self.frame: Any = self._table.with_columns(*self._columns()).to_native()

    def _run(self) -> Iterator[Answers]:
        """Cluster the records by time; one without a time comes behind the row before it that has one.

        The first rows, if they have none, come behind the first that has: a stream whose first record has no
        time would take none of the others'.
        """
        records = self._records
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

        found = [self._newest.get(row) for row in range(len(self._records))]
        lasting = [None if each is None else each.lasting_probability for each in found]
        values = {
            LABEL: [NO_LABEL if each is None else each.cluster for each in found],
            PROBABILITY: [None if each is None else each.probability for each in found],
            LASTING: [None if each is msgspec.UNSET else each for each in lasting],
            SINCE: [self._since.get(row, NO_LABEL) for row in range(len(found))],
        }
        return [
            nw.new_series(
                name,
                column,
                nw.Int64 if name in (LABEL, SINCE) else nw.Float64,
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

    def explain(self, a: int, b: int) -> Evidence:
        """What speaks for two rows being of one cluster, by their numbers from 0.

        IndexError where there is no such row; ValueError where one could not be clustered.
        """
        return self._engine.together(self._record(a), self._record(b))

    def _record(self, row: int) -> Record:
        if not 0 <= row < len(self._records):
            raise IndexError(f"there is no row {row}: there are {len(self._records):,}, from 0 on")
        record = self._records[row]
        if isinstance(record, Reject):
            raise ValueError(f"row {row} cannot be clustered ({record.reason}: {record.detail})")
        return record

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "frame" not in vars(self):
            raise AttributeError(name)
        return getattr(self.frame, name)

    def __getitem__(self, what: Any) -> Any:
        return self.frame[what]

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


def cluster_frame(X: Any, columns: str | Sequence[str], settings: Settings) -> Clustering:
    """Cluster the rows of a data frame by a column of texts or vectors, or by several of features.

    ValueError where it has no such column, or has one that is to be added already.
    """
    table = frame_of(X)
    if table is None or not hasattr(table, "columns"):
        need = "" if table is not None else " (of pandas, polars or pyarrow, with: pip install narwhals)"
        raise ValueError(f"columns are named of a data frame{need}, and this is a {type(X).__name__}")
    names = [columns] if isinstance(columns, str) else list(columns)
    if missing := [name for name in names if name not in table.columns]:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {', '.join(table.columns)}")
    if taken := [name for name in COLUMNS if name in table.columns]:
        raise ValueError(f"the frame has a column {taken[0]!r} already: rename or drop it")
    time = settings.time_field if settings.time_field in table.columns else None
    if time is None and settings.time_field != Settings().time_field:
        raise ValueError(f"the frame has no column {settings.time_field!r} for times (time_field)")
    if isinstance(columns, str):
        settings = _reading(settings, columns, table[columns].to_list())
    read = [*names, *([time] if time is not None and time not in names else [])]
    rows = list(table.select(read).iter_rows(named=True))
    if settings.of_lines or not isinstance(columns, str):
        rows = [_timed(row, names, time, alone=isinstance(columns, str), n=n) for n, row in enumerate(rows)]
    return Clustering(table, all_plain(rows, form=Rows(settings).read), settings)


def _reading(settings: Settings, column: str, values: list[Any]) -> Settings:
    """The settings under which a column of a row is its text or its vector."""
    first = next((each for each in values if isinstance(each, str) or not is_missing(each)), "")
    if isinstance(first, str):
        return msgspec.structs.replace(settings, text_field=column)
    if hasattr(first, "__len__"):
        return msgspec.structs.replace(settings, vector_field=column)
    raise ValueError(f"column {column!r} holds neither texts nor vectors: name features as [{column!r}]")


def _timed(row: dict[str, Any], names: list[str], time: str | None, *, alone: bool, n: int) -> Record:
    """A record of features, or of a line, with the time of its row."""
    value: Any = row[names[0]] if alone else {name: row[name] for name in names if name != time}
    try:
        at = None if time is None else seconds_of(row[time])
    except TypeError as error:
        raise ValueError(f"row {n}, column {time!r}: {error}") from None
    return Record(value if value is not None else "", {"record": n}, at)
