"""Erasing records: no byte of them is left in the folder, and what goes on afterwards is sound."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import call, fail, parsed, start, succeed, wait_for, write_headlines
from serving import Served
from streamdp_connectors.store import rewrite as stores

from streamdp.alerts.outbox import Notification, Outbox
from streamdp.state.snapshot import newest

RECORDS = 3000
RUN = (
    "consume", "in.jsonl", "--output", "out.jsonl", "--events", "events.jsonl", "--store", "news.db",
    "--store-answers", "--state", "st", "--keep", "author", "--rejects", "rejects.jsonl",
)  # fmt: skip
EVERY = {"snapshot_every": "700", "retain": "2000", "beam": "4"}
PATHS = ("st", "out.jsonl", "events.jsonl", "rejects.jsonl", "news.db")
GONE = {"early": 20, "middle": 1200, "late": 2980}
"""Records with words of their own, by where they stand."""


def marks(name: str) -> list[bytes]:
    """What must not be found of a record: its id, words of its own, and its author's name."""
    return [f"{what}{name}".encode() for what in ("secretid", "zyxquark", "plimford", "Quillby ")]


def marked(name: str, time: float) -> str:
    text = f"zyxquark{name} plimford{name} zyxquark{name} bridge storm"
    record = {"time": time, "id": f"secretid{name}", "text": text, "author": f"Quillby {name}"}
    return json.dumps(record) + "\n"


def left_of(
    folder: Path, sought: Sequence[bytes], *, but: Sequence[str] = ("in.jsonl",)
) -> dict[str, list[bytes]]:
    """What any byte of any file of a folder still says of it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in but:
            data = path.read_bytes()
            if here := [mark for mark in sought if mark in data]:
                found[str(path.relative_to(folder))] = here
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run over a stream: its state, all that it has written, and more to read."""
    folder = tmp_path_factory.mktemp("run")
    write_headlines(folder / "in.jsonl", RECORDS)
    lines = (folder / "in.jsonl").read_text().splitlines(keepends=True)
    lines = [line[:-2] + ', "author": "somebody"}\n' for line in lines]
    for name, at in GONE.items():
        lines[at] = marked(name, json.loads(lines[at])["time"])
    lines[1500] = json.dumps({"id": "secretidbad", "text": ["zyxquarkbad"], "author": "Quillby bad"}) + "\n"
    (folder / "whole").write_text("".join(lines))
    (folder / "in.jsonl").write_text("".join(lines[:2990]))
    succeed(folder, *RUN, **EVERY)
    return folder


def moved(run: Path, folder: Path) -> Path:
    """The run of a fixture, made anew in a folder of the test's own."""
    shutil.copy2(run / "in.jsonl", folder / "in.jsonl")
    succeed(folder, *RUN, **EVERY)
    return folder


def erase(folder: Path, *more: str, paths: Sequence[str] = PATHS, **settings: str) -> str:
    done = call(folder, "erase", *paths, *more, **settings)
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode()


def vocabulary(folder: Path) -> set[str]:
    """The words that a state knows."""
    found = newest(folder / "st", pytest.fail)
    assert found is not None
    return set(msgspec.msgpack.decode(found[1])["encoder"]["vocabulary"]["words"])


def test_no_byte_is_left_of_a_record(run: Path, tmp_path: Path) -> None:
    folder = moved(run, tmp_path)
    for name in (*GONE, "bad"):
        assert left_of(folder, marks(name)), name
    for name in (*GONE, "bad"):
        said = erase(folder, "--id", f"secretid{name}")
        assert "erased 1 record" in said
        assert "what was counted" in said
        assert left_of(folder, marks(name)) == {}, name
    lines = parsed((folder / "out.jsonl").read_bytes())
    before = parsed((run / "out.jsonl").read_bytes())
    assert len(lines) == len(before)
    for line, was in zip(lines, before, strict=True):
        if str(was.get("id", "")).startswith("secretid"):
            assert (line["id"], "keep" in line) == (None, False)
            assert {**was, "id": None, "keep": None} == {**line, "keep": None}
        else:
            assert line == was
    assert b"sound" in call(folder, "state", "verify", "st").stdout
    # and the run goes on with all of it
    shutil.copy2(run / "whole", folder / "in.jsonl")
    succeed(folder, *RUN, **EVERY)
    newest = {line["seq"]: line for line in parsed((folder / "out.jsonl").read_bytes()) if "seq" in line}
    assert sorted(newest) == list(range(RECORDS - 1))
    with sqlite3.connect(folder / "news.db") as store:
        held = store.execute("SELECT seq, id, label, revision FROM records ORDER BY seq").fetchall()
    assert held == [
        (seq, line["id"], line["cluster"], line["revision"]) for seq, line in sorted(newest.items())
    ]
    for name in (*GONE, "bad"):
        assert left_of(folder, marks(name)) == {}, name


def test_an_erasure_by_a_field_and_from_a_file(run: Path, tmp_path: Path) -> None:
    folder = moved(run, tmp_path)
    assert "erased 1 record" in erase(folder, "--where", "author=Quillby middle")
    assert left_of(folder, marks("middle")) == {}
    (folder / "ids").write_text("secretidearly\nsecretidlate\n")
    assert "erased 2 records" in erase(folder, "--ids", "ids")
    (folder / "ids").unlink()
    for name in ("early", "late"):
        assert left_of(folder, marks(name)) == {}, name
    again = erase(folder, "--id", "secretidearly")  # it is known to have been there
    assert "nothing of them was left" in again or "(0 rows)" in again


def test_a_word_that_only_erased_records_had_goes_with_the_last_of_them(tmp_path: Path) -> None:
    """One after the other; the words of others stay."""
    write_headlines(tmp_path / "in.jsonl", 1500)
    lines = (tmp_path / "in.jsonl").read_text().splitlines(keepends=True)
    for at in (100, 600, 1400):
        record = json.loads(lines[at]) | {"id": f"r{at}", "text": f"zyxquark glorbish storm{at}a"}
        lines[at] = json.dumps(record) + "\n"
    lines[1450] = json.dumps(json.loads(lines[1450]) | {"text": "glorbish bridge storm"}) + "\n"
    (tmp_path / "in.jsonl").write_text("".join(lines))
    succeed(tmp_path, "consume", "in.jsonl", "--output", "out", "--state", "st", retain="500")
    for at in (100, 1400):
        erase(tmp_path, "--id", f"r{at}", paths=("st", "out"))
        assert "zyxquark" in vocabulary(tmp_path)
    erase(tmp_path, "--id", "r600", paths=("st", "out"))
    assert "zyxquark" not in vocabulary(tmp_path)
    assert "glorbish" in vocabulary(tmp_path)


class Killing:
    """Ends a fork of this process by SIGKILL before the call of some number of those that reach the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.own, self.at, self.calls = os.getpid(), 0, 0
        for name in ("fsync", "replace", "unlink"):
            monkeypatch.setattr(os, name, self.counted(getattr(os, name)))
        connect, killing = sqlite3.connect, self

        class Connection(sqlite3.Connection):
            def execute(self, *given: Any) -> sqlite3.Cursor:
                killing.count()
                return super().execute(*given)

        monkeypatch.setattr(
            stores.sqlite3, "connect", lambda *given, **how: connect(*given, factory=Connection, **how)
        )

    def counted(self, call: Any) -> Any:
        def counting(*given: Any, **how: Any) -> Any:
            self.count()
            return call(*given, **how)

        return counting

    def count(self) -> None:
        if os.getpid() != self.own:
            self.calls += 1
            if self.calls == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with a short run, and a copy of it to make it anew from."""
    folder = tmp_path_factory.mktemp("small")
    write_headlines(folder / "in.jsonl", 700)
    lines = (folder / "in.jsonl").read_text().splitlines(keepends=True)
    for name, at in (("early", 20), ("late", 680)):
        lines[at] = marked(name, json.loads(lines[at])["time"])
    (folder / "in.jsonl").write_text("".join(lines) + "{\n")
    succeed(folder, *RUN, snapshot_every="200", retain="300", beam="4")
    shutil.copytree(folder, tmp_path_factory.mktemp("kept"), dirs_exist_ok=True)
    return folder, tmp_path_factory.getbasetemp() / "kept0"


def anew(small: tuple[Path, Path]) -> Path:
    """The folder as its run has left it."""
    folder, kept = small
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    return folder


def everything(folder: Path) -> dict[str, Any]:
    """All that a folder holds, but for what hashes its ids; of the store its rows."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "erased" and not path.name.startswith("news.db"):
            found[str(path.relative_to(folder))] = path.read_bytes()
    with sqlite3.connect(folder / "news.db") as store:
        for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not name.startswith("records_text"):
                found[name] = store.execute(f"SELECT * FROM {name}").fetchall()
        query = "SELECT rowid FROM records_text WHERE records_text MATCH 'bridge'"
        found["search"] = store.execute(query).fetchall()
    store.close()
    return found


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_moment_a_repeat_finishes(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    ids = ("--id", "secretidearly", "--id", "secretidlate")
    erase(anew(small), *ids)
    wanted = everything(small[0])
    killing, kills = Killing(monkeypatch), 0
    for killing.at in range(1, 1000, step):
        folder = anew(small)
        process = start(folder, "erase", *PATHS, *ids)
        said = process.communicate()[1].decode()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said
        kills += 1
        if (folder / "st" / "erasing").exists():
            assert "was interrupted" in fail(folder, *RUN, retain="300")[1]
        assert b"sound" in call(folder, "state", "verify", "st").stdout
        assert "erased 2 records" in erase(folder, *ids)
        assert everything(folder) == wanted, killing.at
        for name in ("early", "late"):
            assert left_of(folder, marks(name)) == {}, (name, killing.at)
    assert kills * step > 40
    succeed(anew_after(folder), *RUN, retain="300", snapshot_every="200", beam="4")


def anew_after(folder: Path) -> Path:
    """The same folder, with more to read, an erased record among it."""
    with (folder / "in.jsonl").open("a") as file:
        file.write(marked("late", 1767780000.0))
        file.write(json.dumps({"id": "next", "text": "another bridge", "author": "x"}) + "\n")
    return folder


def test_what_comes_again_is_refused_and_says_nothing(small: tuple[Path, Path]) -> None:
    folder = anew(small)
    erase(folder, "--id", "secretidlate")
    before = len(parsed((folder / "rejects.jsonl").read_bytes()))
    succeed(anew_after(folder), *RUN, retain="300", snapshot_every="200", beam="4")
    refused = parsed((folder / "rejects.jsonl").read_bytes())[before:]
    assert [(each["reason"], each["data"]) for each in refused] == [("erased", "")]
    assert refused[0]["position"]["line"] == 702
    assert parsed((folder / "out.jsonl").read_bytes())[-2]["id"] == "next"
    assert left_of(folder, marks("late")) == {}


def test_what_is_refused(small: tuple[Path, Path]) -> None:
    folder = anew(small)
    before = everything(folder)
    for more, code, told in (
        (("--id", "nobody"), 66, "nothing is known of nobody"),
        (("--id", "seq:20"), 66, "(the number of a record is --seq 20)"),
        (("--seq", "701"), 66, "nothing is known of record 701"),
        (("--where", "author=Nobody"), 66, "nothing is known of author=Nobody"),
        ((), 64, "say which records"),
        (("--where", "author"), 64, "FIELD=VALUE"),
        (("--ids", "missing"), 66, "cannot be read"),
    ):
        assert fail(folder, "erase", *PATHS, *more)[0] == code
        assert told in fail(folder, "erase", *PATHS, *more)[1]
    assert "has also written" in fail(folder, "erase", "st", "--id", "secretidlate")[1]
    assert "no such file" in fail(folder, "erase", "gone", "--id", "x")[1]
    assert "no output of streamdp" in fail(folder, "erase", "in.jsonl", "--id", "x")[1]
    assert everything(folder) == before
    run = start(folder, *RUN, "--follow", retain="300", snapshot_every="200", beam="4")
    wait_for(lambda: (folder / "news.db-wal").exists(), run)
    code, told = fail(folder, "erase", *PATHS, "--id", "secretidlate")
    assert (code, "in use by another" in told) == (73, True)
    run.send_signal(signal.SIGTERM)
    run.communicate()
    assert run.returncode == 0
    # one that is known is erased, and the other is named
    done = call(folder, "erase", *PATHS, "--id", "secretidlate", "--id", "nobody")
    assert done.returncode == 66
    assert b"nothing is known of nobody" in done.stderr
    assert left_of(folder, marks("late")) == {}


def test_a_store_that_is_ahead_of_its_state_is_left_alone(small: tuple[Path, Path]) -> None:
    folder = anew(small)
    with sqlite3.connect(folder / "news.db") as store:
        store.execute("UPDATE meta SET value = value + 9 WHERE name = 'lines'")
        store.execute("DELETE FROM before_end WHERE place = 'meta'")
    store.close()
    code, told = fail(folder, "erase", *PATHS, "--id", "secretidlate")
    assert (code, "let it go on, and stop it" in told) == (73, True)


def test_a_reader_goes_on_and_one_that_holds_on_is_named(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = anew(small)
    monkeypatch.setattr(stores, "PATIENCE", 0.2)
    reader = sqlite3.connect(f"file:{folder / 'news.db'}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    (count,) = reader.execute("SELECT count(*) FROM records").fetchone()
    code, told = fail(folder, "erase", *PATHS, "--id", "secretidlate")
    assert (code, "a reader holds on" in told) == (69, True)
    assert reader.execute("SELECT count(*) FROM records WHERE text LIKE 'zyx%late%'").fetchone() == (1,)
    reader.execute("COMMIT")
    erase(folder, "--id", "secretidlate")
    assert reader.execute("SELECT count(*) FROM records").fetchone() == (count,)
    assert reader.execute("SELECT count(*) FROM records WHERE text LIKE 'zyx%late%'").fetchone() == (0,)
    reader.close()
    assert left_of(folder, marks("late")) == {}


def test_a_file_alone_and_tables_and_messages(tmp_path: Path) -> None:
    """CSV, and lines of JSON of whatever kind that name records, in the folder of the state."""
    write_headlines(tmp_path / "in.jsonl", 300)
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write(marked("late", 1767780000.0))
    run = ("consume", "in.jsonl", "--output", "out.csv", "--state", "st", "--keep", "author,text")
    succeed(tmp_path, *run)
    names = "secretidlate", "r1"
    told = [
        Notification(alert="ops", key=f"born:{n}@{n}", event="born", at=0.0, record=name)
        for n, name in enumerate(names)
    ]
    told[0] = msgspec.structs.replace(told[0], title="zyxquarklate plimfordlate…")
    Outbox(tmp_path / "st", ["ops"]).add(told)
    whole = (tmp_path / "out.csv").read_bytes().splitlines()
    erase(tmp_path, "--id", "secretidlate", paths=("st", "out.csv"))
    assert left_of(tmp_path, marks("late")) == {}
    assert (tmp_path / "out.csv").read_bytes().splitlines()[:-1] == whole[:-1]
    assert [one.record for one in Outbox(tmp_path / "st", ["ops"]).next("ops", 9)] == [None, "r1"]
    first = json.loads((tmp_path / "in.jsonl").read_bytes().splitlines()[0])
    erase(tmp_path, "--id", first["id"], paths=("out.csv",))
    assert first["text"].encode() not in (tmp_path / "out.csv").read_bytes()
    assert fail(tmp_path, *run)[0] == 65  # a file that is erased from alone is not its state's any more


def test_corrections_by_hand_are_erased_too(small: tuple[Path, Path]) -> None:
    folder = anew(small)
    newest = {
        line["seq"]: line["cluster"] for line in parsed((folder / "out.jsonl").read_bytes()) if "seq" in line
    }
    other = next(label for label in newest.values() if label != newest[680])
    succeed(folder, "correct", "st", "rename", str(newest[680]), "zyxquarklate and plimfordlate")
    succeed(folder, "correct", "st", "move", "secretidlate", str(other), "--who", "ann")
    assert left_of(folder, marks("late"))["st/corrections"]
    erase(folder, "--id", "secretidlate")
    assert left_of(folder, marks("late")) == {}
    last = parsed((folder / "st" / "corrections").read_bytes())[-1]
    assert (last.get("ids"), last["seqs"]) == (None, [680])
    succeed(folder, *RUN, retain="300", snapshot_every="200", beam="4")
    assert left_of(folder, marks("late")) == {}


def test_the_journal_of_a_service_and_its_store(tmp_path: Path) -> None:
    service = Served(tmp_path, "--keep-journal", "1G", "--output", "out.jsonl")
    sent = [{"id": f"r{i}", "text": f"storm over the coast {i}"} for i in range(20)]
    gone = json.loads(marked("late", 1.0)) | {"time": None}
    for record in (*sent[:10], gone, *sent[10:]):
        service.send(record)
    assert service.stop() == 0
    paths = ("st", "out.jsonl", "news.db")
    assert any(name.startswith("st/journal/") for name in left_of(tmp_path, marks("late")))
    erase(tmp_path, "--id", "secretidlate", paths=paths)
    assert left_of(tmp_path, marks("late")) == {}
    service = Served(tmp_path, "--keep-journal", "1G", "--output", "out.jsonl")
    status, (told,) = service.send(gone)  # it comes again
    assert (status, told["status"], told["reason"]) == (422, "refused", "erased")
    assert service.send({"id": "next", "text": "storm again"})[1][0]["status"] == "answered"
    assert service.stop() == 0
    assert left_of(tmp_path, marks("late")) == {}  # it was never written
    with sqlite3.connect(tmp_path / "news.db") as store:
        assert store.execute("SELECT count(*), count(id) FROM records").fetchone() == (22, 21)
    store.close()


USERS = ("ann", "bob", "cid", "dora", "eve", "fay", "gus")
LOG = [f"user {USERS[i % 7]} logged in from 10.0.0.{i % 50}\n" for i in range(300)]
ODD = "zyxquarklate plimfordlate gave up\n"
NAMED = "user zyxquarklate logged in from 99.98.97.96\n"


@pytest.mark.parametrize(("line", "at"), [(ODD, 0), (ODD, 150), (NAMED, 0), (NAMED, 299)])
def test_lines_of_a_log(tmp_path: Path, line: str, at: int) -> None:
    (tmp_path / "in.log").write_text("".join([*LOG[:at], line, *LOG[at:]]))
    run = (
        "consume", "in.log", "--format", "text", "--likelihood", "template", "--output", "out.jsonl",
        "--events", "events.jsonl", "--state", "st", "--store", "log.db", "--params",
    )  # fmt: skip
    succeed(tmp_path, *run)
    sought = [b"zyxquarklate", b"plimfordlate", b"99.98.97.96"]
    assert left_of(tmp_path, sought, but=("in.log",))
    erase(tmp_path, "--seq", str(at), paths=("st", "out.jsonl", "events.jsonl", "log.db"))
    assert left_of(tmp_path, sought, but=("in.log",)) == {}
    assert b"sound" in call(tmp_path, "state", "verify", "st").stdout
    with (tmp_path / "in.log").open("a") as file:
        file.writelines(LOG[:50])
    succeed(tmp_path, *run)
    newest = {each["seq"]: each for each in parsed((tmp_path / "out.jsonl").read_bytes()) if "seq" in each}
    assert len(newest) == 351
    assert newest[350]["template"] == "user <word> logged in from <ip>"


@pytest.mark.parametrize(("at", "params"), [(149, False), (151, False), (299, False), (100, True)])
def test_lines_of_a_log_that_no_sample_shows(tmp_path: Path, at: int, params: bool) -> None:
    """The state has what they say beside the first line of a template, as the latest line, or as values."""
    lines = [*LOG[:150], "somebody gave up\n", *LOG[151:]]
    lines[at] = NAMED
    (tmp_path / "in.log").write_text("".join(lines if at > 200 else [*lines, *LOG[:50]]))
    run = ("consume", "in.log", "--format", "text", "--likelihood", "template", "--output", "out.jsonl")
    succeed(tmp_path, *run, "--state", "st", *["--params"] * params)
    sought = [b"zyxquarklate", b"99.98.97.96"]
    assert left_of(tmp_path, sought, but=("in.log",))
    erase(tmp_path, "--seq", str(at), paths=("st", "out.jsonl"))
    assert left_of(tmp_path, sought, but=("in.log",)) == {}


def test_categories_and_vectors(tmp_path: Path) -> None:
    rows = [{"id": f"r{i}", "fields": {}, "city": f"c{i % 5}", "kind": f"k{i % 3}"} for i in range(200)]
    rows[120] = {"id": "secretidlate", "city": "zyxquarklate", "kind": "k1"}
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = (
        "consume",
        "in.jsonl",
        "--fields",
        "city,kind",
        "--state",
        "st",
        "--output",
        "o",
        "--store",
        "s.db",
    )
    succeed(tmp_path, *run)
    assert left_of(tmp_path, marks("late"))
    erase(tmp_path, "--id", "secretidlate", paths=("st", "o", "s.db"))
    assert left_of(tmp_path, marks("late")) == {}
    assert b"sound" in call(tmp_path, "state", "verify", "st").stdout
    (tmp_path / "v").mkdir()
    vectors = [{"id": f"r{i}", "vector": [9.0 * (i % 2), 0.5 + i / 1000]} for i in range(300)]
    vectors[250] = {"id": "secretidlate", "vector": [9.0, 0.723456789]}
    (tmp_path / "v" / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in vectors))
    succeed(tmp_path / "v", *run[:2], *run[4:])
    sought = [*marks("late"), struct.pack("<d", 0.723456789), b"0.723456789"]
    assert left_of(tmp_path / "v", sought)
    erase(tmp_path / "v", "--id", "secretidlate", paths=("st", "o", "s.db"))
    assert left_of(tmp_path / "v", sought) == {}
    assert b"sound" in call(tmp_path / "v", "state", "verify", "st").stdout


ALERTS = """
[[alert]]
name = "born"
url = "file:born.jsonl"
on = ["born", "split", "titled", "renamed", "closed"]
[[alert]]
name = "wire"
url = "file:wire.jsonl"
on = ["revised"]
"""


@pytest.fixture
def alerted(tmp_path: Path) -> Path:
    """A folder with a run whose alerts went to two files; the record ``secretidlate`` began a story."""
    (tmp_path / "alerts.toml").write_text(ALERTS)
    write_headlines(tmp_path / "in.jsonl", 300)
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write(marked("late", 1767780000.0))
    run = ("consume", "in.jsonl", "--output", "out.jsonl", "--state", "st", "--keep", "author")
    succeed(tmp_path, *run, "--config", "alerts.toml")
    assert left_of(tmp_path, [b"secretidlate"]).keys() >= {"born.jsonl", "out.jsonl", "st/alerts.jsonl"}
    return tmp_path


def test_files_of_alerts_are_erased_from_and_named(alerted: Path) -> None:
    before = parsed((alerted / "born.jsonl").read_bytes())
    code, said = fail(alerted, "erase", "st", "out.jsonl", "--id", "secretidlate")
    assert (code, "also written born.jsonl, wire.jsonl: name" in said) == (64, True), said
    erase(alerted, "--id", "secretidlate", paths=("st", "out.jsonl", "born.jsonl", "wire.jsonl"))
    assert left_of(alerted, marks("late")) == {}
    after = parsed((alerted / "born.jsonl").read_bytes())
    assert [line["key"] for line in after] == [line["key"] for line in before]
    others = [line for line in before if b"late" not in json.dumps(line).encode()]
    assert [line for line in after if "sentence" in line] == others
    assert len(others) < len(before)


def test_a_file_of_alerts_that_comes_later_is_erased_from_too(alerted: Path) -> None:
    (alerted / "born.jsonl").rename(alerted / "elsewhere.jsonl")
    erase(alerted, "--id", "secretidlate", paths=("st", "out.jsonl", "wire.jsonl"))
    assert left_of(alerted, marks("late")).keys() == {"elsewhere.jsonl"}
    erase(alerted, "--id", "secretidlate", paths=("st", "out.jsonl", "wire.jsonl", "elsewhere.jsonl"))
    assert left_of(alerted, marks("late")) == {}


def test_records_of_a_change_are_erased(tmp_path: Path) -> None:
    """A line of a file that corrections were appended to: the records that moved, and what they say."""
    rows: list[dict[str, Any]] = [
        {
            "seq": 3,
            "id": "a",
            "text": "storm at sea",
            "keep": {"by": "Ann"},
            "probability": 0.9,
            "revision": 1,
        },
        {
            "seq": 4,
            "id": "b",
            "text": "votes counted",
            "keep": {"by": "Bo"},
            "probability": 0.9,
            "revision": 1,
        },
    ]
    line = {
        "event": "revised",
        "key": "revised:3.1@9",
        "story": 0,
        "title": "the coast",
        "other": 2,
        "seq": 9,
    }
    line |= {"record": "z", "size": 2, "sources": {"by": {"Ann": 1, "Bo": 1}}, "sentence": "by: Ann 1, Bo 1"}
    (tmp_path / "wire.jsonl").write_text(json.dumps(line | {"records": rows}) + "\n")
    erase(tmp_path, "--id", "a", paths=("wire.jsonl",))
    (left,) = parsed((tmp_path / "wire.jsonl").read_bytes())
    assert left.pop("records") == [{"seq": 3, "probability": 0.9, "revision": 1}, rows[1]]
    del line["sentence"]
    assert left == line | {"sources": {"by": {"Bo": 1}}}
