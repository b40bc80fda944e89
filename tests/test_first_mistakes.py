"""Each mistake of the page is made, and is one line: what was wrong, where, and what to do."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import shutil
import socket
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest
from commands import call, fail, succeed

import streamdp
from streamdp.state import snapshot, stamp

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "troubleshooting.md").read_text("utf-8")
TEXTS = (
    "storm over the coast",
    "vote on taxes in parliament",
    "storm hits coast",
    "late goal wins the match",
)
NOT_TOLD = ("compiling ", "times: none")
"""How lines begin that depend on what ran before, or come with any file."""


def rows(section: str) -> list[list[str]]:
    """The cells of the rows of a section's table, without the signs of code."""
    part = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


COMMANDS = [
    row
    for section in ("The wrong file", "A misspelt name", "Where it goes, and who is there")
    for row in rows(section)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the commands name."""
    folder = tmp_path_factory.mktemp("mistakes")
    news = b"".join(
        json.dumps({"time": 1_700_000_000 + 60 * n, "text": text}).encode() + b"\n"
        for n, text in enumerate(TEXTS)
    )
    latin = "".join(f"{text} über Köln\n" for text in TEXTS[:2])
    files: dict[str, bytes] = {
        "news.jsonl": news,
        "news.csv": b"id,headline\n" + b"".join(f"{n},{text}\n".encode() for n, text in enumerate(TEXTS)),
        "folder/a.csv": b"text\na storm\n",
        "folder/b.txt": b"a storm\n",
        "empty.csv": b"",
        "empty.jsonl": b"",
        "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
        "cut.jsonl.gz": gzip.compress(news, mtime=0)[:-20],
        "plain.jsonl.gz": news,
        "array.json": b'[{"text": "storm over the coast"}, {"text": "coast storm"}]\n',
        "pretty.json": b'{\n  "text": "storm over the coast"\n}\n',
        "latin.jsonl": b"".join(
            b'{"text": "' + line + b'"}\n' for line in latin.encode("cp1252").splitlines()
        ),
        "latin.csv": b"text\n" + latin.encode("cp1252"),
        "lines.jsonl": b"storm over the coast\ncoast storm\n",
        "headless.csv": b"17,storm over the coast\n18,late goal\n",
        "numbers.jsonl": b'{"text": 5}\n{"text": 7.5}\n',
        "numbers.csv": b"text\n5\n7\n5\n",
        "days.csv": b"time,text\n03/04/2026,storm over the coast\n05/06/2026,late goal wins\n",
        "tabs.csv": b"id\ttext\n1\tstorm over the coast\n2\tcoast storm\n",
        "notes.md": b"# Notes\n- a storm\n",
        "box.mbox": b"From ann@example.org Mon Dec  1 08:00:00 2025\nSubject: a storm\n",
        "feed.xml": b'<?xml version="1.0"?>\n<rss></rss>\n',
        "trades.csv": b"goods,amount\n" + b"fuel,5\nfood,7\nfuel,6\n" * 3,
        "torn.jsonl": news + b'{"text": "storm\n',
        "quoted.csv": b'text\n"storm, over\nthe ""coast"""\n"coast\nstorm"\n',
        "marked.txt": "storm over the coast\ncoast storm\n".encode("utf-16"),
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "nothing").mkdir()
    for name, inside in (("news.zip", "news.jsonl"), ("news.xlsx", "[Content_Types].xml")):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr(inside, news)
    with contextlib.closing(sqlite3.connect(folder / "other.db")) as database:
        database.execute("create table news (text)")
        database.commit()
    succeed(folder, "consume", "news.jsonl", "--output", "answers.jsonl", "--store", "news.db")
    succeed(folder, "consume", "news.jsonl", "--output", "more.jsonl", "--state", "state")
    (folder / "old").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        for module in (snapshot, stamp):
            patched.setattr(module, "FORMAT", stamp.FORMAT - 1)
        theirs = snapshot.pack(snapshot.Header({"beam": 4}, 4, {"line": 4}, {}, {}, 1.5), b"body")
    (folder / "old" / "snapshot-000000000000004.sdp").write_bytes(theirs)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The same for one command."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def port() -> Iterator[str]:
    """A port that is in use."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield str(taken.getsockname()[1])


def agrees(printed: str, told: str) -> bool:
    """Whether a line is as the page has it, which writes ``...`` for what differs."""
    return re.fullmatch(".+".join(map(re.escape, told.split("..."))), printed) is not None


@pytest.mark.parametrize(("said", "told", "code"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_a_mistake_is_one_line(folder: Path, port: str, said: str, told: str, code: str) -> None:
    found, line = fail(folder, *said.replace("PORT", port).split())
    printed = line.removeprefix("streamdp: ").removesuffix("\n").replace(port, "PORT")
    assert (agrees(printed, told), found) == (True, int(code)), printed


@pytest.mark.parametrize("source", ["http://nowhere.example", "news.jsonl"])
def test_a_refused_run_leaves_nothing(folder: Path, source: str) -> None:
    """Neither a state with nothing but a lock nor an empty output; a folder that was there stays."""
    (folder / "out.jsonl.rejects.jsonl").write_text("kept\n")
    (folder / "there").mkdir()
    before = sorted(folder.rglob("*"))
    for state in ("fresh", "there"):
        fail(folder, "consume", source, "--output", "out.jsonl", "--state", state)
        (folder / "there" / "lock").unlink(missing_ok=True)
        assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("said", "told"), rows("Read all the same"), ids=lambda cell: str(cell)[:40])
def test_what_is_read_all_the_same_is_said(folder: Path, said: str, told: str) -> None:
    done = call(folder, *said.split())
    lines = [line.removeprefix("streamdp: ") for line in done.stderr.decode().splitlines()]
    assert done.returncode == 0
    assert sum(agrees(line, told) for line in lines) == 1, lines
    assert len([line for line in lines if not line.startswith(NOT_TOLD)]) <= 2, lines


@pytest.mark.parametrize("name", ["quoted.csv", "marked.txt"])
def test_what_needs_no_word_is_read(folder: Path, name: str) -> None:
    done = call(folder, "consume", name)
    assert done.returncode == 0
    assert done.stdout.count(b'"revision":0') == 2
    assert b"refused" not in done.stderr


@pytest.mark.parametrize(("said", "told", "kind"), rows("In Python"), ids=lambda cell: str(cell)[:40])
def test_a_mistake_in_python_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str, kind: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises((streamdp.StreamdpError, TypeError, ValueError)) as caught:
        eval(said, {"pandas": pandas, **{name: getattr(streamdp, name) for name in streamdp.__all__}})
    assert type(caught.value).__name__ == kind
    assert agrees(str(caught.value), told), str(caught.value)


def test_there_are_enough_of_them() -> None:
    found = len(COMMANDS) + len(rows("Read all the same")) + len(rows("In Python"))
    assert found > 50
    assert PAGE.count("\n| `") == found
