"""Tables as others export them are read by one command without an option, and ``check`` says how."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from commands import assignments, call, fail, succeed
from pyarrow import parquet

FIRST = datetime(2014, 3, 10, 16, 52, tzinfo=UTC)
MOMENTS = [FIRST + timedelta(hours=9 * i) for i in range(20)]
TEXTS = [f"storm number {i} reaches the coast of Brittany" for i in range(20)]
PAIRS = list(zip(TEXTS, MOMENTS, strict=True))


def rows(form: str, moments: Sequence[datetime] = MOMENTS) -> list[tuple[str, str]]:
    return [(text, moment.strftime(form)) for text, moment in zip(TEXTS, moments, strict=True)]


def quoted(cells: Sequence[str], delimiter: str = ",") -> str:
    return delimiter.join(f'"{cell}"' for cell in cells)


RFC_822 = "%a, %d %b %Y %H:%M:%S GMT"
DAYS = [moment.replace(hour=0, minute=0) for moment in MOMENTS]


def answered(lines: bytes) -> list[float | None]:
    """The times of all records, in order."""
    return [line["time"] for line in assignments(lines) if line["revision"] == 0]


def table(header: str, lines: Sequence[str]) -> str:
    return "\n".join([header, *lines]) + "\n"


TABLES: dict[str, tuple[str, bytes, Sequence[datetime]]] = {
    "RFC 822": (
        "a.csv",
        table("Title,Published", [quoted(row) for row in rows(RFC_822)]).encode(),
        MOMENTS,
    ),
    "AM and PM": (
        "a.csv",
        table("HEADLINE,PUBLISH_DATE", [quoted(row) for row in rows("%m/%d/%Y %I:%M %p")]).encode(),
        MOMENTS,
    ),
    "German": (
        "a.csv",
        b"\xef\xbb\xbf"
        + table("Schlagzeile;Datum", [";".join(row) for row in rows("%d.%m.%Y %H:%M")]).encode(),
        MOMENTS,
    ),
    "integers": (
        "a.csv",
        table("publish_date,headline_text", [",".join(row[::-1]) for row in rows("%Y%m%d")]).encode(),
        DAYS,
    ),
    "milliseconds": (
        "a.csv",
        table(
            "ID,TITLE,PUBLISHER,TIMESTAMP",
            [f"{i},{t},Daily Mail,{m.timestamp():.0f}000" for i, (t, m) in enumerate(PAIRS)],
        ).encode(),
        MOMENTS,
    ),
    "tabs": (
        "a.tsv",
        table("pubDate\ttitle", ["\t".join(row[::-1]) for row in rows(RFC_822)]).encode(),
        MOMENTS,
    ),
    "two columns": (
        "a.csv",
        table("date,time,headline", [f"{m:%Y-%m-%d},{m:%H:%M},{t}" for t, m in PAIRS]).encode(),
        MOMENTS,
    ),
    "Latin-1": (
        "a.csv",
        table("date,headline", [f"{m:%Y-%m-%d %H:%M},über {t}" for t, m in PAIRS]).encode("latin-1"),
        MOMENTS,
    ),
    "newest first": (
        "a.csv",
        table("created_at,title", [f"{m:%Y-%m-%dT%H:%M:%SZ},{t}" for t, m in PAIRS][::-1]).encode(),
        MOMENTS,
    ),
    "tickets": (
        "a.csv",
        table("Betreff;Erstellt am", [f'"{t}; gut";{m:%d.%m.%Y, %H:%M:%S} Uhr' for t, m in PAIRS]).encode(),
        MOMENTS,
    ),
    "Excel": (
        "a.csv",
        (
            "sep=;\r\nDate Published;Article Title;;\r\n"
            + "".join(f'{m.month}/{m.day}/{m:%y} {m.hour}:{m:%M};"{t}";;\r\n' for t, m in PAIRS)
        ).encode("utf-16"),
        MOMENTS,
    ),
    "comments": (
        "a.csv",
        table(
            "# exported by hand\n# on a Monday, late\ntweet,created_at",
            [",".join(row) for row in rows("%a %b %d %H:%M:%S +0000 %Y")],
        ).encode(),
        MOMENTS,
    ),
    "objects": (
        "a.jsonl",
        "".join(f'{{"Headline": "{t}", "pubDate": "{m:{RFC_822}}", "n": 1}}\n' for t, m in PAIRS).encode(),
        MOMENTS,
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_needs_no_option(tmp_path: Path, name: str) -> None:
    file, data, moments = TABLES[name]
    (tmp_path / file).write_bytes(data)
    done = call(tmp_path, "consume", file, "--output", "out.jsonl")
    said = done.stderr.decode()
    assert done.returncode == 0, said
    assert answered((tmp_path / "out.jsonl").read_bytes()) == [moment.timestamp() for moment in moments]
    assert "refused" not in said
    assert "out of order" not in said
    checked = call(tmp_path, "check", file)
    reads = [line for line in said.splitlines() if "reads texts from" in line]
    assert reads
    assert reads == [line for line in checked.stderr.decode().splitlines() if "reads texts from" in line]
    assert "clustered by: texts, from" in checked.stdout.decode()
    assert f"{moments[0]:%Y-%m-%d %H:%M}" in checked.stdout.decode()


def test_numbers_with_decimal_commas(tmp_path: Path) -> None:
    """Points are between thousands where commas are decimal; in a table with points they are decimal."""
    lines = [f"{m:%d.%m.%Y %H:%M};{i},5;1.0{i:02},25;-{i},0e1" for i, m in enumerate(MOMENTS)]
    (tmp_path / "in.csv").write_text(table("Zeit;Temperatur;Druck;n", lines))
    done = call(tmp_path, "consume", "in.csv", "--output", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert b"reads times from 'Zeit', numbers with decimal commas" in done.stderr
    assert answered((tmp_path / "out.jsonl").read_bytes()) == [moment.timestamp() for moment in MOMENTS]
    shown = call(tmp_path, "check", "in.csv").stdout.decode()
    assert "{'Temperatur': 1.5, 'Druck': 1001.25, 'n': -10.0}" in shown
    (tmp_path / "in.csv").write_text(table("x;y", ["1.013;5", "2.5;7"]))
    assert "{'x': 1.013, 'y': 5.0}" in call(tmp_path, "check", "in.csv").stdout.decode()


def test_days_and_months_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(
        table("Date,Title", [f"0{i}/0{i + 1}/2014,{TEXTS[i]}" for i in (3, 5, 7)])
    )
    code, message = fail(tmp_path, "consume", "in.csv", "--output", "out.jsonl", "--state", "st")
    assert code == 65
    assert "'Date' cannot be told apart: say --time-format day-first or --time-format month-first" in message
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    for form, month in (("day-first", 4), ("month-first", 3), ("%d/%m/%Y", 4)):
        done = call(tmp_path, "consume", "in.csv", "--time-format", form)
        assert answered(done.stdout)[0] == datetime(2014, month, 7 - month, tzinfo=UTC).timestamp()
    code, message = fail(tmp_path, "consume", "in.csv", "--time-format", "monthfirst")
    assert "day-first, month-first or directives" in message


def test_a_utf_8_table_with_a_few_broken_bytes_is_utf_8(tmp_path: Path) -> None:
    lines = [f"{i},über {text}" for i, text in enumerate(TEXTS)]
    (tmp_path / "in.csv").write_bytes(table("time,text", lines).encode() + b"30,broken \xe4\n")
    done = call(tmp_path, "consume", "in.csv")
    assert b"(1 not_utf8)" in done.stderr
    assert "Windows-1252" not in done.stderr.decode()


def test_date_and_time_of_objects_are_in_two_fields(tmp_path: Path) -> None:
    lines = [f'{{"text": "{t}", "Date": "{m:%m/%d/%Y}", "time": "{m:%I:%M %p}"}}\n' for t, m in PAIRS]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    done = call(tmp_path, "consume", "in.jsonl")
    assert answered(done.stdout) == [m.timestamp() for m in MOMENTS]


def test_rows_of_an_array_are_vectors(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(300, 8))
    rows[7, 3] = np.nan
    np.save(tmp_path / "in.npy", rows)
    lines = [json.dumps({"vector": row}) for i, row in enumerate(rows.tolist()) if i != 7]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    done = call(tmp_path, "consume", "in.npy")
    assert b"(1 unreadable)" in done.stderr
    assert "refused: 1 unreadable" in call(tmp_path, "check", "in.npy").stdout.decode()
    wanted = [
        (line["cluster"], line["probability"])
        for line in assignments(call(tmp_path, "consume", "in.jsonl").stdout)
    ]
    found = assignments(done.stdout)
    assert [(line["cluster"], line["probability"]) for line in found] == wanted
    assert found[-1]["position"] == {"file": "in.npy", "line": 300}
    for array in (np.zeros(5), np.zeros((2, 2, 2)), np.array([["a"]]), np.array([[1j]]), np.zeros((3, 0))):
        np.save(tmp_path / "in.npy", array)
        code, message = fail(tmp_path, "consume", "in.npy")
        assert code == 65
        assert "not vectors: save rows of numbers" in message
    np.save(tmp_path / "in.npy", np.array([{}], object), allow_pickle=True)
    assert "no .npy file of numbers" in fail(tmp_path, "consume", "in.npy")[1]
    message = fail(tmp_path, "consume", "in.npy")[1]
    assert "no .npy file of numbers" in message
    (tmp_path / "in.npy").write_bytes(b"no array")
    message = fail(tmp_path, "consume", "in.npy")[1]
    assert "no .npy file of numbers: it is another kind of file" in message
    np.save(tmp_path / "in.npy", np.zeros((50, 8)))
    whole = (tmp_path / "in.npy").read_bytes()
    for size in (0, 20, 300, len(whole) - 1):
        (tmp_path / "in.npy").write_bytes(whole[:size])
        code, message = fail(tmp_path, "consume", "in.npy")
        assert code == 65
        assert "cut off" in message
        assert "pickle" not in message


@pytest.mark.parametrize("kind", ["f2", "f4", ">f8", "i1", "u8", "?"])
def test_numbers_of_any_kind_are_vectors(tmp_path: Path, kind: str) -> None:
    truth = np.arange(300) % 3
    np.save(tmp_path / "in.npy", np.asfortranarray((np.eye(3)[truth]).astype(kind)))
    found = [line["cluster"] for line in assignments(call(tmp_path, "consume", "in.npy").stdout)]
    assert found == truth.tolist()
    assert call(tmp_path, "check", "in.npy").stdout.startswith(b"in.npy: npy, all 300 records")


def test_columns_of_parquet_are_recognised(tmp_path: Path) -> None:
    columns = {"Title": TEXTS, "Published": [f"{m:{RFC_822}}" for m in MOMENTS], "n": list(range(20))}
    parquet.write_table(pyarrow.table(columns), tmp_path / "in.parquet")
    assert answered(succeed(tmp_path, "consume", "in.parquet")) == [m.timestamp() for m in MOMENTS]
    code, message = fail(tmp_path, "consume", "in.parquet", "--keep", "Author")
    assert code == 65
    assert "--keep: there is no column 'Author'; its columns are 'Title', 'Published', 'n'" in message


def test_a_table_without_names_of_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("".join(f"{m:%Y-%m-%d %H:%M},{t}\n" for t, m in PAIRS))
    code, message = fail(tmp_path, "consume", "in.csv")
    assert code == 65
    assert (
        "the first line, which should name the columns, looks like a record: put names before it" in message
    )


def test_newest_first_by_days_alone(tmp_path: Path) -> None:
    lines = [f"{FIRST - timedelta(days=i // 150):%Y-%m-%d},{TEXTS[i % 20]}" for i in range(900)]
    (tmp_path / "in.csv").write_text(table("date,headline", lines))
    done = call(tmp_path, "consume", "in.csv")
    assert b"it is read backwards" in done.stderr
    assert answered(done.stdout)[0] == (FIRST - timedelta(days=5)).replace(hour=0, minute=0).timestamp()
