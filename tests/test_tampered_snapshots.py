"""A state whose checksum holds and whose arrays do not: refused in one line, and never a crash."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import call, fail, succeed, write_headlines

from benchmarks.drifting import demo_stream
from streamdp.engine import Engine
from streamdp.kernels.packed import pack, unpack
from streamdp.kernels.sound import UnsoundError
from streamdp.offline.adopt import Proposal
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.state.snapshot import SnapshotError, newest
from streamdp.state.snapshot import pack as snapshot_file

Case = tuple[bytes, Settings, list[Record]]
MUTANTS = Path(__file__).with_name("mutants.py")


def of_words() -> Case:
    records = [Record(x.text, {"line": i}, time=x.time) for i, x in enumerate(demo_stream(1060, 0))]
    settings = Settings(retain=400, second_look=100)
    engine = Engine(settings, with_events=True)
    engine.advance(records[:1000])
    return engine.dumps(), settings, records[1000:]


@pytest.fixture(scope="module")
def words() -> Case:
    return of_words()


def mutants(*arguments: str) -> dict[str, int]:
    """What becomes of mutants."""
    command = [sys.executable, str(MUTANTS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    counts: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counts


def test_every_mutant_is_refused_or_runs() -> None:
    counts = mutants("--count", "160")
    assert counts["refused"] > 80
    assert counts["ran"] > 20
    assert counts["mebibytes"] < 500


def test_a_refinement_that_would_take_days_is_refused() -> None:
    """This mutant asks for 2^40 moves, for which the run waits."""
    assert mutants("--seed", "1939", "--case", "refined")["refused"] == 1


def altered(stored: bytes, *path: Any, to: Any) -> bytes:
    """A body with another value somewhere."""
    body = holder = msgspec.msgpack.decode(stored)
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = to
    return msgspec.msgpack.encode(body)


def test_records_that_wait_are_of_the_length_of_the_others() -> None:
    engine = Engine(Settings())
    engine.advance([[1.0, float(i)] for i in range(50)])
    wrong = altered(engine.dumps(), "pending", 7, 1, "value", to=[1.0])
    with pytest.raises(SnapshotError, match="records that wait are refused"):
        Engine.loads(wrong, engine.settings)


def test_no_retained_vector_is_longer_than_one_that_is_read() -> None:
    """Its square would leave the range of a double, in a look back."""
    engine = Engine(Settings(warmup=20))
    engine.advance([[float(i % 3), float(i % 7)] for i in range(60)])
    vectors = unpack(msgspec.msgpack.decode(engine.dumps())["retained"]["batch"]["vectors"])
    vectors[7, 1] = 1e150
    wrong = altered(engine.dumps(), "retained", "batch", "vectors", to=pack(vectors))
    with pytest.raises(SnapshotError, match="a vector out of range"):
        Engine.loads(wrong, engine.settings)


def test_the_shares_of_a_refinement_are_shares() -> None:
    shares = np.array([0.5, 2.0**1000])
    seqs = np.array([3, 4])
    found = Proposal(seqs, np.array([0, 0]), np.array([1, 1]), shares, 2)
    with pytest.raises(UnsoundError, match="a share of a refinement out of range"):
        found.check(10, 2)
    found._replace(shares=np.array([0.0, 1.0])).check(10, 2)


def test_what_is_retained_is_not_nothing(words: Case) -> None:
    stored, settings, _ = words
    batch = msgspec.msgpack.decode(stored)["retained"]["batch"]
    batch |= {name: pack(unpack(batch[name])[: name == "offsets"]) for name, each in batch.items() if each}
    none = {"first": 1000, "batch": batch}
    with pytest.raises(SnapshotError, match="retained records are missing"):
        Engine.loads(altered(stored, "retained", to=none), settings)


@pytest.mark.parametrize("final", [-2, 0.5, None, {}])
def test_what_is_final_while_a_stream_warms_up(final: Any) -> None:
    engine = Engine(Settings())
    engine.advance([[1.0, float(i)] for i in range(40)])
    wrong = altered(engine.dumps(), "ledger", "counters", "final", to=final)
    with pytest.raises(SnapshotError, match="final is out of range"):
        Engine.loads(wrong, engine.settings)


def test_times_of_retained_lines_are_numbers() -> None:
    engine = Engine(Settings(likelihood="template"))
    engine.advance([Record(f"user {i} logged in", {"line": i}, time=float(i)) for i in range(20)])
    times = unpack(msgspec.msgpack.decode(engine.dumps())["retained"]["batch"]["times"])
    for wrong in (float("nan"), float("inf")):
        times[7] = wrong
        stored = altered(engine.dumps(), "retained", "batch", "times", to=pack(times))
        with pytest.raises(SnapshotError, match="a time not finite"):
            Engine.loads(stored, engine.settings)


def test_no_record_has_a_word_more_often_than_may_be(words: Case) -> None:
    """Refinements would ask for tables of 16 GiB."""
    stored, settings, _ = words
    counts = unpack(msgspec.msgpack.decode(stored)["retained"]["batch"]["counts"])
    counts[:] = 2**31 - 1
    with pytest.raises(SnapshotError, match="the count of a word"):
        Engine.loads(altered(stored, "retained", "batch", "counts", to=pack(counts)), settings)


def test_what_a_base_measure_has_learned_of_tokens(words: Case) -> None:
    stored, settings, _ = words
    clusters = msgspec.msgpack.decode(stored)["state"]["clusters"]
    repeats = unpack(clusters["repeats"])
    assert repeats.max() > 0
    for evidence in (float("nan"), -float("inf"), 1, None):
        with pytest.raises(SnapshotError, match="the evidence for the base measure is no number"):
            Engine.loads(altered(stored, "state", "clusters", "base_evidence", to=evidence), settings)
    for wrong in (repeats[:-1], -1 - repeats):
        with pytest.raises(SnapshotError, match="repeats"):
            Engine.loads(altered(stored, "state", "clusters", "repeats", to=pack(wrong)), settings)
    never = unpack(clusters["learned"])
    never[repeats.argmax()] = 0
    with pytest.raises(SnapshotError, match="never seen"):
        Engine.loads(altered(stored, "state", "clusters", "learned", to=pack(never)), settings)


def test_a_field_that_has_another_name_in_the_vocabulary_is_none() -> None:
    settings = Settings(likelihood="categorical", fields=("a", "b"))
    engine = Engine(settings)
    records: list[Any] = [{"a": "xyz"[i % 3], "b": "uv"[i % 2]} for i in range(60)]
    engine.advance(records)
    stored = engine.dumps()
    known = msgspec.msgpack.decode(stored)["encoder"]["vocabulary"]["words"]
    wrong = altered(stored, "encoder", "vocabulary", "words", known.index("b"), to="other")
    assert len(Engine.loads(wrong, settings).advance(records).assignments) == 60


def test_a_label_that_is_far_out_takes_no_memory(words: Case) -> None:
    stored, settings, _ = words
    wrong = altered(stored, "state", "counters", "next_label", to=1 << 34)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    Engine.loads(wrong, settings)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 << 10


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
    ("ledger", "label"),
    ("retained", "batch", "words"),
    ("retained", "batch", "offsets"),
]


@pytest.mark.parametrize("path", INDICES, ids=lambda path: "-".join(path))
@pytest.mark.parametrize("value", [-7, 1 << 30])
def test_no_index_leads_astray(words: Case, path: tuple[str, ...], value: int) -> None:
    stored, settings, _ = words
    body = msgspec.msgpack.decode(stored)
    holder, name = at(*path)(body)
    array = unpack(holder[name])
    holder[name] = pack(np.full(array.shape, value, np.int64 if path[0] != "retained" else array.dtype))
    with pytest.raises(SnapshotError) as caught:
        Engine.loads(msgspec.msgpack.encode(body), settings)
    assert caught.value.exit_code == 65
    assert "\n" not in caught.value.message


def test_a_sound_state_is_taken_as_it_is(words: Case) -> None:
    stored, settings, _ = words
    assert Engine.loads(stored, settings).dumps() == stored
    for nonsense in (b"", b"\x01", msgspec.msgpack.encode({}), msgspec.msgpack.encode([1, 2])):
        with pytest.raises(SnapshotError):
            Engine.loads(nonsense, settings)


def test_nothing_is_stored_that_follows_from_facts(words: Case) -> None:
    """No heap, table, posting, free list of an arena or back-pointer."""
    stored, _, _ = words
    state = msgspec.msgpack.decode(stored)["state"]
    assert not {"expiry", "members", "trellis", "lineages", "pool"} & set(state)
    assert not {"inverted", "sizes"} & set(state["clusters"])


@pytest.mark.parametrize("name", ["seq", "width", "head", "greedy", "decided", "next_label"])
@pytest.mark.parametrize("value", [-7, 1 << 60, 0.5, None])
def test_no_counter_leads_astray(words: Case, name: str, value: Any) -> None:
    stored, settings, _ = words
    body = msgspec.msgpack.decode(stored)
    body["state"]["counters"][name] = value
    with pytest.raises(SnapshotError):
        Engine.loads(msgspec.msgpack.encode(body), settings)


def test_a_counter_that_was_not_stored_begins_as_declared(words: Case) -> None:
    stored, settings, records = words
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
    code, message = fail(tmp_path, "stories", str(path))
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
