"""A store that is damaged, or made by somebody else to do harm: read, or refused in a line."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import call, fail, succeed, write_headlines

RUN = ("consume", "--file", "in", "--output", "out", "--state", "st", "--store", "news.db")
READERS = (
    ("stories", "news.db", "--json"),
    ("stories", "news.db", "--search", "storm"),
    ("stories", "news.db", "--report", "report.html", "--overwrite"),
)
VALUES: tuple[Any, ...] = (None, -1, 2**62, 0.5, 1e300, "x", "\x1b[2J\0", b"\xff\0", '{"a": []}', "null")
TABLES = ("records", "stories", "events", "meta")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run's store, and more input than was read."""
    folder = tmp_path_factory.mktemp("made")
    write_headlines(folder / "in", 300)
    lines = (folder / "in").read_bytes().splitlines(keepends=True)
    (folder / "in").write_bytes(b"".join(lines[:250]))
    succeed(folder, *RUN)
    (folder / "in").write_bytes(b"".join(lines))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def flipped(path: Path, rng: random.Random) -> None:
    """Some bytes altered, or the end cut off."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 20))):
        data[rng.randrange(16, len(data) if rng.random() < 0.7 else 100)] = rng.randrange(256)
    path.write_bytes(data if rng.random() < 0.8 else data[: rng.randrange(len(data))])


def rewritten(path: Path, rng: random.Random) -> None:
    """Some values altered, by SQLite itself."""
    store = sqlite3.connect(path)
    for _ in range(rng.choice((1, 2, 5))):
        table = rng.choice(TABLES)
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
        (count,) = store.execute(f"SELECT count(*) FROM {table}").fetchone()
        key, column = columns[0], rng.choice(columns)
        chosen = f"{key} IN (SELECT {key} FROM {table} LIMIT 1 OFFSET {rng.randrange(count)})"
        with contextlib.suppress(sqlite3.IntegrityError):
            store.execute(f"UPDATE {table} SET {column} = ? WHERE {chosen}", (rng.choice(VALUES),))
    store.commit()
    store.close()


@pytest.mark.parametrize("alter", [flipped, rewritten])
def test_a_damaged_store_is_read_or_refused_in_a_line(
    folder: Path, alter: Callable[[Path, random.Random], None]
) -> None:
    sound, refused = (folder / "news.db").read_bytes(), 0
    for seed in range(12):
        (folder / "news.db").write_bytes(sound)
        alter(folder / "news.db", random.Random(seed))
        for command in READERS:
            done = call(folder, *command)
            said = done.stderr.decode()
            assert done.returncode in (0, 65, 78), (seed, command, said)
            assert "Traceback" not in said
            refused += done.returncode == 65 and "news.db: the store is damaged: " in said
    assert refused


@pytest.mark.parametrize(
    "program",
    [
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM stories; END",
        "DROP TABLE events; CREATE VIEW events AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n",
    ],
)
def test_nothing_in_a_store_runs(folder: Path, program: str) -> None:
    store = sqlite3.connect(folder / "news.db")
    store.executescript(program)
    store.close()
    for command in READERS:
        code, message = fail(folder, *command)
        assert code == 65
        assert "is not of streamdp, and would run: drop it" in message
    done = call(folder, *RUN)
    assert done.returncode == 73
    assert b"is not of streamdp, and would run: drop it" in done.stderr
    done = call(folder, "erase", "st", "news.db", "out", "--id", "3")
    assert done.returncode > 0
    assert b"Traceback" not in done.stderr


def test_a_store_may_have_any_name(folder: Path) -> None:
    name = "new #1?mode=rw&%41.db"
    (folder / "news.db").rename(folder / name)
    assert succeed(folder, "stories", name, "--json")
