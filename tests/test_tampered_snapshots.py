"""A state whose checksum holds and whose arrays do not: refused in one line, and never a crash."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import call, fail, succeed, write_headlines

from streamdp.demo.stream import demo_stream
from streamdp.engine import Engine
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.state.retained import pack, unpack
from streamdp.state.snapshot import SnapshotError, newest
from streamdp.state.snapshot import pack as snapshot_file

Case = tuple[str, bytes, Settings, list[Record]]
MUTANTS = Path(__file__).with_name("mutants.py")


def of_words(**settings: Any) -> Case:
    records = [Record(x.text, {"line": i}, time=x.time) for i, x in enumerate(demo_stream(1060, 0))]
    return case(Settings(retain=400, second_look=100, **settings), records, 1000)


def of_vectors() -> Case:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 1.0], [0.0, 5.0, -4.0]])
    rows = (centres[np.arange(650) % 3] + rng.normal(0, 0.4, (650, 3))).tolist()
    records = [Record(row, {"line": i}, time=float(i)) for i, row in enumerate(rows)]
    return case(Settings(), records, 600)


def case(settings: Settings, records: list[Record], learned: int) -> Case:
    engine = Engine(settings, with_events=True)
    engine.advance(records[:learned])
    return str(settings.decay), engine.dumps(), settings, records[learned:]


@pytest.fixture(scope="module")
def words() -> Case:
    return of_words()


def test_every_mutant_is_refused_or_runs(words: Case, tmp_path: Path) -> None:
    cases = [words, of_words(decay="window", decay_scale=100.0, distance="records"), of_vectors()]
    (tmp_path / "cases").write_bytes(pickle.dumps(cases))
    command = [sys.executable, str(MUTANTS), str(tmp_path / "cases"), "0", "80"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    counts = eval(done.stdout.splitlines()[-1], {})
    assert counts["refused"] > 100
    assert counts["ran"] > 30


def at(*path: str) -> Callable[[dict[str, Any]], tuple[dict[str, Any], str]]:
    def find(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        for name in path[:-1]:
            body = body[name]
        return body, path[-1]

    return find


INDICES = [
    *(
        ("state", name)
        for name in (
            "founded",
            "leaf",
            "free",
            "slot",
            "closed",
            "lineage",
            "size",
            "last",
            "waiting",
            "founder",
            "label",
            "parent",
            "node",
            "link",
        )
    ),
    *(("state", "clusters", name) for name in ("types", "word", "count", "order", "class_free", "class_of")),
    ("retained", "labels"),
    ("retained", "batch", "words"),
    ("retained", "batch", "offsets"),
]


@pytest.mark.parametrize("path", INDICES, ids=lambda path: "-".join(path))
@pytest.mark.parametrize("value", [-7, 1 << 30])
def test_no_index_leads_astray(words: Case, path: tuple[str, ...], value: int) -> None:
    _, stored, settings, _ = words
    body = msgspec.msgpack.decode(stored)
    holder, name = at(*path)(body)
    array = unpack(holder[name])
    holder[name] = pack(np.full(array.shape, value, np.int64 if path[0] == "state" else array.dtype))
    with pytest.raises(SnapshotError) as caught:
        Engine.loads(msgspec.msgpack.encode(body), settings)
    assert caught.value.exit_code == 65
    assert "\n" not in caught.value.message


def test_a_sound_state_is_taken_as_it_is(words: Case) -> None:
    _, stored, settings, _ = words
    assert Engine.loads(stored, settings).dumps() == stored
    for nonsense in (b"", b"\x01", msgspec.msgpack.encode({}), msgspec.msgpack.encode([1, 2])):
        with pytest.raises(SnapshotError):
            Engine.loads(nonsense, settings)


def test_nothing_is_stored_that_follows_from_facts(words: Case) -> None:
    """No heap, table, posting, free list of an arena or back-pointer."""
    _, stored, _, _ = words
    state = msgspec.msgpack.decode(stored)["state"]
    assert not {"expiry", "members", "trellis", "lineages", "pool"} & set(state)
    assert not {"inverted", "sizes"} & set(state["clusters"])


@pytest.mark.parametrize("name", ["seq", "width", "head", "greedy", "decided", "next_label"])
@pytest.mark.parametrize("value", [-7, 1 << 60, 0.5, None])
def test_no_counter_leads_astray(words: Case, name: str, value: Any) -> None:
    _, stored, settings, _ = words
    body = msgspec.msgpack.decode(stored)
    body["state"]["counters"][name] = value
    with pytest.raises(SnapshotError):
        Engine.loads(msgspec.msgpack.encode(body), settings)


def test_a_counter_that_was_not_stored_begins_as_declared(words: Case) -> None:
    _, stored, settings, records = words
    body = msgspec.msgpack.decode(stored)
    assert body["state"]["counters"].pop("mergers") >= 0
    body["state"]["counters"]["of_a_later_release"] = 3
    engine = Engine.loads(msgspec.msgpack.encode(body), settings)
    assert engine.counters()["clusters_merged"] == 0
    assert len(engine.advance(records).assignments) == len(records)


def test_a_state_that_fit_leaves_is_sound() -> None:
    records = [Record(x.text, {"line": i}, time=x.time) for i, x in enumerate(demo_stream(300, 0))]
    engine = fit(records, Settings(), Plan("beam")).to_engine()
    stored = engine.dumps()
    assert Engine.loads(stored, engine.settings).dumps() == stored


def test_a_run_goes_on_from_the_snapshot_before(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 300)
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--state", "state")
    succeed(tmp_path, *run)
    found = newest(tmp_path / "state", pytest.fail)
    assert found is not None
    header, stored = found
    body = msgspec.msgpack.decode(stored)
    body["state"]["parent"] = pack(np.full(len(unpack(body["state"]["parent"])), 1 << 40))
    path = max((tmp_path / "state").glob("*.sdp"))
    path.write_bytes(snapshot_file(header, msgspec.msgpack.encode(body)))
    code, message = fail(tmp_path, "show", str(path))
    assert code == 65
    assert "parent out of range" in message
    answers = (tmp_path / "out").read_bytes()
    done = call(tmp_path, *run)
    assert done.returncode == 0
    assert done.stderr.count(b"parent out of range); trying the one before it\n") == 1
    assert (tmp_path / "out").read_bytes() == answers
    for path in (tmp_path / "state").glob("*.sdp"):
        path.write_bytes(snapshot_file(header, msgspec.msgpack.encode(body)))
    done = call(tmp_path, *run)
    assert done.returncode == 78
    assert b"none of its 2 snapshots is sound" in done.stderr


@pytest.mark.parametrize("name", ["..", ".", "../../elsewhere", "a/b", "", "x" * 250, "näws"])
def test_a_topic_is_no_path(tmp_path: Path, name: str) -> None:
    for option in ("--topic", "--output-topic", "--rejects-topic"):
        rest = () if option == "--topic" else ("--topic", "news")
        code, message = fail(tmp_path, "consume", option, name, *rest, "--bootstrap", "127.0.0.1:1")
        assert code == 64
        assert option in message
