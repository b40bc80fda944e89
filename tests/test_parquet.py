"""Columns of bytes in Parquet files: text where they are UTF-8, else refused where they count."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest
from commands import assignments, call, fail, succeed
from pyarrow import parquet

BINARY = {
    "binary": arrow.binary(),
    "large_binary": arrow.large_binary(),
    "fixed": arrow.binary(24),
    "dictionary": arrow.dictionary(arrow.int32(), arrow.binary()),
}


@pytest.mark.parametrize("kind", BINARY)
def test_bytes_in_parquet_that_are_utf8_are_text(tmp_path: Path, kind: str) -> None:
    texts = ["storm over the coast", "Grüße aus Köln", "storm over a coast"] * 20
    size = 24 if kind == "fixed" else 0

    def column(values: list[bytes | None]) -> Any:
        padded = [value if value is None else value.ljust(size, b"\0") for value in values]
        if kind == "dictionary":
            return arrow.array(padded, arrow.binary()).dictionary_encode()
        return arrow.array(padded, BINARY[kind])

    names = [f"id{i}" for i in range(60)]
    columns = {
        "text": [text.encode() for text in texts],
        "id": [name.encode() for name in names],
        "time": [b"2026-01-05T00:00:%02d" % i for i in range(60)],
        "source": [b"press", None, b"radio"] * 20,
        "picture": [b"\xff\xd8\xff"] * 60,  # in no part of a record
    }
    columns["text"][7] = columns["source"][8] = b"\xff\xfe"
    columns["id"][9] = b"\x80"
    table = arrow.table({name: column(values) for name, values in columns.items()})
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=25)
    run = ("consume", "in.parquet", "--keep", "source", "--output", "out", "--store", "store.db")
    succeed(tmp_path, *run)
    found = {line["position"]["line"] - 1: line for line in assignments((tmp_path / "out").read_bytes())}
    assert sorted(found) == [i for i in range(60) if i not in (7, 8, 9)]
    assert [found[i]["id"] for i in sorted(found)] == [names[i] for i in sorted(found)]
    assert {i: found[i]["keep"]["source"] for i in (0, 1, 2)} == {0: "press", 1: None, 2: "radio"}
    assert found[59]["time"] == 1_767_571_259.0
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as store:
        stored = dict(store.execute("select id, text from records"))
    assert stored == {names[i]: texts[i] for i in found}
    rejects = [json.loads(line) for line in (tmp_path / "out.rejects.jsonl").read_bytes().splitlines()]
    assert [(r["position"]["line"], r["detail"]) for r in rejects] == [
        (8, "column 'text' holds bytes that are not UTF-8"),
        (9, "column 'source' holds bytes that are not UTF-8"),
        (10, "column 'id' holds bytes that are not UTF-8"),
    ]


def test_lists_of_bytes_in_parquet_are_lists_of_text(tmp_path: Path) -> None:
    tags = arrow.array([[b"a", b"b"], None], arrow.list_(arrow.binary()))
    parquet.write_table(arrow.table({"text": ["one", "two"], "tags": tags}), tmp_path / "in.parquet")
    found = assignments(succeed(tmp_path, "consume", "in.parquet", "--keep", "tags"))
    assert [line["keep"]["tags"] for line in found] == [["a", "b"], None]


def test_a_parquet_file_without_text_in_its_bytes_is_refused(tmp_path: Path) -> None:
    pictures = arrow.array([b"\xff\xd8\xff"] * 3, arrow.binary())
    parquet.write_table(arrow.table({"text": pictures}), tmp_path / "in.parquet")
    code, said = fail(tmp_path, "consume", "in.parquet", "--output", "out")
    assert code == 65
    assert "holds bytes that are not UTF-8" in said


def three_blobs() -> tuple[np.ndarray, list[int]]:
    """Rows of three clusters, which come in turn."""
    truth = np.arange(300) % 3
    return np.random.default_rng(0).normal(size=(300, 4)) + 30.0 * np.eye(3, 4)[truth], truth.tolist()


@pytest.mark.parametrize("kind", ["list", "fixed", "half", "doubles", "decimals"])
@pytest.mark.parametrize("command", [("consume",), ("fit", "--budget", "20")])
def test_a_column_of_lists_holds_vectors_and_columns_of_numbers_hold_features(
    tmp_path: Path, kind: str, command: tuple[str, ...]
) -> None:
    rows, truth = three_blobs()
    flat = arrow.array(rows.ravel().astype("f2" if kind == "half" else "f8"))
    if kind in ("list", "half"):
        columns = {"embedding": arrow.ListArray.from_arrays(arrow.array(range(0, 1201, 4), "i4"), flat)}
    elif kind == "fixed":
        columns = {"embedding": arrow.FixedSizeListArray.from_arrays(flat, 4)}
    else:
        columns = {f"x{i}": arrow.array(rows[:, i]) for i in range(4)}
    if kind == "decimals":
        decimal = arrow.decimal128(20, 6)
        columns = {name: column.cast(decimal, safe=False) for name, column in columns.items()}
    parquet.write_table(arrow.table(columns), tmp_path / "in.parquet")
    done = call(tmp_path, command[0], "in.parquet", *command[1:])
    found = [line["cluster"] for line in assignments(done.stdout)]
    assert found[:300] == truth
    assert ("vectors from 'embedding'" in done.stderr.decode()) == ("embedding" in columns)
    lines = [json.dumps({"embedding": row}) for row in rows.tolist()]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    done = call(tmp_path, command[0], "in.jsonl", *command[1:])
    assert [line["cluster"] for line in assignments(done.stdout)][:300] == truth
    shown = call(tmp_path, "check", "in.parquet").stdout.decode()
    assert shown.startswith("in.parquet: parquet, all 300 records")
    assert ("vectors of 4 numbers" if "embedding" in columns else "4 features") in shown


def test_rows_that_are_no_vectors_are_refused_by_line(tmp_path: Path) -> None:
    rows, _ = three_blobs()
    vectors: list[Any] = rows.tolist()
    vectors[4], vectors[6], vectors[8] = None, [1.0, None, 2.0, 3.0], [float("nan")] * 4
    vectors[10] = vectors[10][:3]
    parquet.write_table(arrow.table({"vector": vectors}), tmp_path / "in.parquet")
    succeed(tmp_path, "consume", "in.parquet", "--output", "out")
    rejects = [json.loads(line) for line in (tmp_path / "out.rejects.jsonl").read_bytes().splitlines()]
    assert [r["position"]["line"] for r in rejects] == [5, 7, 9, 11]


def test_whoever_reads_the_answers_of_a_fit_may_have_seen_enough(tmp_path: Path) -> None:
    rows, _ = three_blobs()
    parquet.write_table(arrow.table({"vector": rows.tolist()}), tmp_path / "in.parquet")
    command = [sys.executable, "-m", "streamdp", "fit", "in.parquet", "--budget", "20"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.close()
        assert run.stderr is not None
        assert b"Traceback" not in run.stderr.read()
    assert run.returncode == 0


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_column_of_embeddings_beside_one_of_texts_counts_without_an_option(
    tmp_path: Path, form: str
) -> None:
    """As if both were named. What is too short for an embedding is none."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 120)
    vectors = rng.normal(size=(3, 24))[truth] + 0.2 * rng.normal(size=(120, 24))
    titles = [f"own{k}{rng.integers(6)} word{rng.integers(30)}" for k in truth]
    table = {"title": titles, "embedding": vectors.tolist(), "place": [[7.5, 51.0]] * 120}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    name = f"in.{form}"
    if form == "parquet":
        parquet.write_table(arrow.table(table), tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = call(tmp_path, "consume", name)
    said = done.stderr.decode()
    assert f"{name}: reads texts from 'title', beside them vectors from 'embedding'" in said
    both = ("--texts", "title", "--vector-field", "embedding")
    assert done.stdout == succeed(tmp_path, "consume", name, *both)
    texts = ("--likelihood", "hierarchical-pitman-yor")
    assert done.stdout != succeed(tmp_path, "consume", name, *texts)
    told = succeed(tmp_path, "check", name).decode()
    assert "clustered by: words of 'title'; vector 'embedding'" in told
    alone = succeed(tmp_path, "check", name, *texts).decode()
    assert "clustered by: texts, from 'title'" in alone
