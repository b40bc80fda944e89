"""Answers as a Parquet file: the same as lines of JSON, whole or not there."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import hypothesis.strategies as st
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from commands import assignments, call, fail, run_killed, succeed
from hypothesis import given, settings
from pyarrow import parquet
from streamdp_connectors.files.parquet_sink import ParquetSink
from streamdp_connectors.protocol import SinkError

from benchmarks.drifting import demo_stream
from streamdp.errors import Exit
from streamdp.records.arrow import table_of

KEEP = ("--keep", "text,source,cluster")


def write(path: Path, n: int = 300, first: int = 0) -> None:
    """Headlines with a source that is a text, a number or nothing."""
    with path.open("a") as file:
        for i, item in enumerate(demo_stream(n, 11)):
            if i >= first:
                line = {"time": item.time, "id": item.id, "text": item.text, "cluster": item.topic}
                file.write(json.dumps(line | {"source": ("press", 7, None)[i % 3]}) + "\n")


def rows_of(line: dict[str, Any]) -> dict[str, Any]:
    """The columns that a line of JSON is to have."""
    kept = line.pop("keep")
    source = kept.pop("source")
    row = line | line.pop("position") | {"kept_cluster": kept["cluster"], "text": kept["text"]}
    return row | {"source": None if source is None else str(source)}


def refuses(folder: Path, code: Exit, what: str, *command: str) -> None:
    found, told = fail(folder, *command)
    assert (found, what in told) == (code, True), told


def asked(path: Path, what: str, how: str) -> pa.Table:
    """What DuckDB says of a file that a run wrote."""
    with duckdb.connect() as connection:
        return connection.sql(f"select {what} from '{path}' {how}").to_arrow_table()


def same(path: Path, lines: bytes) -> None:
    expected = [rows_of(line) for line in assignments(lines)]
    found = parquet.read_table(path).to_pylist()
    assert [{name: row.get(name) for name in line} for row, line in zip(found, expected, strict=True)] == [
        *expected
    ]
    assert pl.read_parquet(path).to_dicts() == asked(path, "*", "").to_pylist() == found
    assert pd.read_parquet(path)["cluster"].tolist() == [row["cluster"] for row in found]


def test_a_parquet_file_holds_what_lines_hold(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl")
    succeed(tmp_path, "consume", "in.jsonl", *KEEP, "--output", "out.jsonl")
    succeed(tmp_path, "consume", "in.jsonl", *KEEP, "--output", "out.parquet")
    same(tmp_path / "out.parquet", (tmp_path / "out.jsonl").read_bytes())
    assert any(row["revision"] for row in parquet.read_table(tmp_path / "out.parquet").to_pylist())
    kept = "out.jsonl", "out.parquet", "in.jsonl"
    assert {path.name for path in tmp_path.iterdir()} == {*kept}  # nothing is left of the way there
    fit = ("fit", "in.jsonl", *KEEP, "--budget", "40")  # rounds: the clock has no say
    succeed(tmp_path, *fit, "--output", "fit.parquet")
    succeed(tmp_path, *fit, "--output", "fit.jsonl")
    same(tmp_path / "fit.parquet", (tmp_path / "fit.jsonl").read_bytes())


def test_duckdb_counts_as_the_lines_do(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", 900)
    for name in ("out.jsonl", "out.parquet"):
        succeed(tmp_path, "consume", "in.jsonl", *KEEP, "--output", name)
    lines = assignments((tmp_path / "out.jsonl").read_bytes())
    newest = {line["seq"]: line for line in lines}  # the last line of a record is the one that holds
    expected = Counter(line["cluster"] for line in newest.values()).items()
    one_row_each = "qualify row_number() over (partition by seq order by revision desc) = 1"
    path = tmp_path / "out.parquet"
    counted = asked(path, "cluster, count(*) as n", "group by all")
    assert sum(counted["n"].to_pylist()) == len(lines)
    rows = asked(path, "cluster, time, source", one_row_each).to_pylist()
    assert Counter(row["cluster"] for row in rows).items() == expected
    assert min(row["time"] for row in rows) == min(line["time"] for line in newest.values())
    sources = asked(path, "source, count(*) as n", "where revision = 0 group by all order by 1 nulls last")
    assert sources.to_pylist() == [{"source": each, "n": 300} for each in ("7", "press", None)]


def test_a_killed_run_leaves_lines_and_the_next_one_the_same_table(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", 3000)
    succeed(tmp_path, "consume", "in.jsonl", *KEEP, "--output", "out.jsonl")
    run = ("consume", "in.jsonl", *KEEP, "--output", "out.parquet")
    name = "out.parquet.part.jsonl"
    killed = run_killed(tmp_path, *run, "--state", "st", "--snapshot-every", "50", size=40_000, name=name)
    assert killed == -signal.SIGKILL
    assert not (tmp_path / "out.parquet").exists()
    for _ in range(2):  # what has ended goes on, too
        succeed(tmp_path, *run, "--state", "st")
        same(tmp_path / "out.parquet", (tmp_path / "out.jsonl").read_bytes())
    assert run_killed(tmp_path, *run[:-1], "b.parquet", size=40_000, name="b.parquet.part.jsonl") < 0
    in_the_way = "b.parquet.part.jsonl exists: --overwrite replaces it"
    refuses(tmp_path, Exit.CANNOT_CREATE, in_the_way, *run[:-1], "b.parquet")
    succeed(tmp_path, *run[:-1], "b.parquet", "--overwrite")
    same(tmp_path / "b.parquet", (tmp_path / "out.jsonl").read_bytes())


def test_no_file_of_anybody_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", 20)
    run = ("consume", "in.jsonl", "--output", "out.parquet")
    (tmp_path / "out.parquet").write_bytes(b"mine")
    refuses(tmp_path, Exit.CANNOT_CREATE, "out.parquet exists: --overwrite", *run)
    (tmp_path / "out.parquet").unlink()
    succeed(tmp_path, *run, "--state", "st")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "out.parquet")
    what = "out.parquet exists, and is no Parquet file that this state wrote"
    refuses(tmp_path, Exit.CANNOT_CREATE, what, *run, "--state", "st")
    assert pl.read_parquet(tmp_path / "out.parquet").to_dicts() == [{"a": 1}]
    (tmp_path / "out.parquet").unlink()
    succeed(tmp_path, *run, "--state", "st")
    (tmp_path / "out.parquet.part.jsonl").unlink()  # its earlier answers would be gone from the table
    again = *run, "--state", "st", "--new-output"
    refuses(tmp_path, Exit.CANNOT_CREATE, "out.parquet exists", *again)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--output", "-", "--output-format", "parquet"), "name one, as in --output answers.parquet"),
    ],
)
def test_what_no_table_can_be_is_refused(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    write(tmp_path / "in.jsonl", 5)
    refuses(tmp_path, Exit.USAGE, told, "consume", "in.jsonl", *options)


def test_without_pyarrow_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SinkError, match=r"writing it needs one more package: pip install pyarrow") as caught:
        ParquetSink(str(tmp_path / "out.parquet"))
    assert caught.value.exit_code == Exit.UNAVAILABLE
    assert not [*tmp_path.iterdir()]


def test_what_reads_answers_reads_parquet(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl")
    for name in ("out.jsonl", "out.parquet"):
        succeed(tmp_path, "consume", "in.jsonl", *KEEP, "--output", name)
    for command in (("stories", "{}", "--json"), ("diff", "{}", "--truth", "in.jsonl")):
        lines, table = (
            succeed(tmp_path, *(each.format(name) for each in command))
            for name in ("out.jsonl", "out.parquet")
        )
        assert table.replace(b"out.parquet", b"out.jsonl").split() == lines.split() != []
    (tmp_path / "out.parquet").write_bytes(b"PAR1 and no more")
    refuses(tmp_path, Exit.BAD_DATA, "is not valid Parquet", "stories", "out.parquet")


def test_erasing_makes_the_table_anew(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl")
    succeed(tmp_path, "consume", "in.jsonl", *KEEP, "--output", "out.parquet", "--state", "st")
    name = parquet.read_table(tmp_path / "out.parquet").to_pylist()[17]["id"]
    refuses(tmp_path, Exit.USAGE, "st has also written out.parquet", "erase", "st", "--id", name)
    succeed(tmp_path, "erase", "st", "out.parquet", "--id", name)
    (row,) = pl.read_parquet(tmp_path / "out.parquet").filter(seq=17, revision=0).to_dicts()
    assert row["id"] is row["text"] is row["source"] is None
    assert row["line"] == 18
    succeed(tmp_path, "consume", "in.jsonl", *KEEP, "--output", "single.parquet")
    refuses(tmp_path, Exit.BAD_DATA, "Parquet without its lines", "erase", "single.parquet", "--id", name)
    assert call(tmp_path, "stories", "single.parquet").returncode == 0


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(-1e9, 1e9)
    | st.text(max_size=3)
    | st.lists(st.text())
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.fixed_dictionaries({}, optional={"a": VALUES, "": VALUES}), max_size=5))
def test_no_value_is_lost_in_a_column_of_any_values(rows: list[dict[str, Any]]) -> None:
    found = table_of(rows).to_pylist()
    assert len(found) == len(rows) or not any(rows)
    for row, cells in zip(rows, found, strict=False):
        for name, cell in cells.items():
            value = row.get(name)
            if value is None or isinstance(value, str) or not isinstance(cell, str):
                assert cell == value
            else:
                assert json.loads(cell) == value
