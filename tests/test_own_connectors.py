"""A source and a sink of a package that is installed: named by the scheme of an address, exactly once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import command, environment, fail
from feeds import texts

ENTRIES = """
[streamdp.sources]
shelf = shelves:SlowShelf
nothing = shelves:Neither
gone = shelves_that_are_gone:Source
later = shelves:later
typo = shelves:Shelv

[streamdp.sinks]
shelf = shelves:ShelfSink
nothing = shelves:Neither
"""

NEEDED = "Requires-Dist: numpy>=1\nRequires-Dist: lacking-one>=2\nRequires-Dist: other; extra == 'more'\n"


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the package is installed, and a shelf of records in the folder."""
    site = tmp_path / "site"
    about = site / "shelves-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("shelves.py"), site)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shelves\nVersion: 1.0\n" + NEEDED)
    (about / "entry_points.txt").write_text(ENTRIES)
    entries = [{"id": i, "time": float(i), "text": record.value} for i, record in enumerate(texts(400, 5))]
    (tmp_path / "news").write_text(json.dumps(entries))
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return environment() | {"PYTHONPATH": path}


def run(folder: Path, env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )


def lines_in(path: Path) -> list[str]:
    """The lines that the sink holds; none before there is a table."""
    with sqlite3.connect(path) as store:
        try:
            return [line.decode() for (line,) in store.execute("SELECT line FROM lines ORDER BY number")]
        except sqlite3.OperationalError:
            return []


def consume(folder: Path, out: str) -> list[str]:
    """Arguments of a run from the shelf into a sink."""
    to = ["--output", f"shelf://{folder / out}", "--events", f"shelf://{folder / out}.events"]
    return ["consume", f"shelf://{folder / 'news'}", *to, "--state", f"{out}.state", "--snapshot-every", "60"]


def test_they_are_used_by_their_addresses_and_go_on_after_a_kill(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    done = run(tmp_path, installed, *consume(tmp_path, "whole"))
    assert done.returncode == 0, done.stderr
    whole = lines_in(tmp_path / "whole")
    assert [json.loads(line)["position"]["entry"] for line in whole if '"revision":0' in line] == [
        *range(400)
    ]
    for least in (100, 250):
        process = subprocess.Popen(
            command(*consume(tmp_path, "killed")), cwd=tmp_path, env=installed, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 300
        while process.poll() is None and len(lines_in(tmp_path / "killed")) < least:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
    done = run(tmp_path, installed, *consume(tmp_path, "killed"))
    assert done.returncode == 0, done.stderr
    assert "resuming from record" in done.stderr
    assert lines_in(tmp_path / "killed") == whole
    assert lines_in(tmp_path / "killed.events") == lines_in(tmp_path / "whole.events") != []


def test_a_table_has_the_columns_of_its_positions(tmp_path: Path, installed: dict[str, str]) -> None:
    done = run(tmp_path, installed, "consume", f"shelf://{tmp_path / 'news'}", "--output", "out.csv")
    assert done.returncode == 0, done.stderr
    header, first, *_ = (tmp_path / "out.csv").read_text().splitlines()
    assert header.endswith("shelf,entry")
    assert first.endswith(f"{tmp_path / 'news'},0")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["shelv:///news"],
            64,
            "no source for shelv:// (there are gone://, later://, nothing://, shelf://, typo://, did you",
        ),
        (["file:///news"], 64, "there is no source for file:// (name the file itself)"),
        (["kafka://host/news"], 64, "there is no source for kafka:// (a topic is --topic NAME)"),
        (["sqs://host/news"], 69, "there is no source for sqs:// (there are gone://, later://, nothing://, "),
        (
            ["in.jsonl", "--output", "sqs://x"],
            69,
            "pip install the package that has it (examples/ of",
        ),
        (["gone:///x"], 69, "shelves_that_are_gone:Source does not load: No module named 'shelves_that_are_"),
        (["later:///x"], 69, "later:///x: the source shelves:later does not load: No module named 'lacking_"),
        (["later:///x"], 69, "': pip install lacking-one\n"),
        (["typo:///x"], 78, "typo:///x: the source shelves:Shelv does not load: module 'shelves' has no "),
        (["nothing:///bad"], 64, "nothing:///bad: no shelf is called so"),
        (["nothing:///x"], 78, "what shelves:Neither opens is no source: it lacks at_end, read, positions"),
        (["nothing://me:secret@host/x"], 78, "streamdp: nothing://host/x: what"),
        (["shelf:///none"], 64, "shelf:///none: [Errno 2]"),
        (["shelf:///x", "--format", "csv"], 64, "a source of a package has no header of columns"),
        (["in.jsonl", "--output", "shelve://x"], 64, "there is no sink for shelve:// (there are nothing://"),
        (["in.jsonl", "--rejects", "shelf:///x"], 64, "--rejects is a file"),
        (["in.jsonl", "--store", "shelf:///x"], 64, "--store is a file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, installed: dict[str, str], arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "storm"}\n')
    done = run(tmp_path, installed, "consume", *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_sets_and_logs_are_read_from_them_too(tmp_path: Path, installed: dict[str, str]) -> None:
    news = f"shelf://{tmp_path / 'news'}"
    checked = run(tmp_path, installed, "check", news)
    assert f"{news}: jsonl, all 400 records looked at" in checked.stdout, checked.stderr
    fitted = run(tmp_path, installed, "fit", news, "--budget", "1", "--output", "fit.jsonl")
    assert fitted.returncode == 0, fitted.stderr
    assert len((tmp_path / "fit.jsonl").read_bytes().splitlines()) == 400
    logged = run(tmp_path, installed, "consume", news, "--format", "log", "--output", "log.jsonl")
    assert logged.returncode == 0, logged.stderr
    assert '"template":' in (tmp_path / "log.jsonl").read_text()


def test_a_state_goes_on_with_what_it_wrote_to(tmp_path: Path, installed: dict[str, str]) -> None:
    assert run(tmp_path, installed, *consume(tmp_path, "out")).returncode == 0
    more = ["--output", "answers.jsonl", "--events", "events", "--state", "out.state"]
    done = run(tmp_path, installed, "consume", f"shelf://{tmp_path / 'news'}", *more)
    assert done.returncode == 78
    assert "its output went to a shelf:// address before" in done.stderr
    assert not (tmp_path / "answers.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["redis://host/news"], "source for redis"),
        (["SQS://host/news", "--output", "redis://host/x"], "source for sqs"),
        (["-", "--output", "redis://me:secret@host/x"], "sink for redis"),
        (["-", "--events", "sqs://host/x"], "sink for sqs"),
    ],
)
def test_without_packages_it_says_how_to_get_one(tmp_path: Path, arguments: list[str], what: str) -> None:
    how = "pip install the package that has it (examples/ of streamdp has some), or write one"
    code, said = fail(tmp_path, "consume", *arguments)
    assert (code, said) == (
        69,
        f"streamdp: there is no {what}:// (no package brings one): {how} (docs/connectors.md)\n",
    )


@pytest.mark.parametrize("more", [("--topic", "news", "--output", "out"), ("-", "--output-topic", "answers")])
def test_topics_without_their_package_say_what_to_install(tmp_path: Path, more: tuple[str, ...]) -> None:
    hidden = "import sys; sys.modules['kafka'] = None; from streamdp.cli import main; main()"
    run = [sys.executable, "-c", hidden, "consume", *more, "--state", "st"]
    done = subprocess.run(run, cwd=tmp_path, env=environment(), input=b"", capture_output=True, timeout=300)
    said = b"streamdp: Kafka needs two more packages: pip install kafka-python crc32c\n"
    assert (done.returncode, done.stderr) == (69, said)
