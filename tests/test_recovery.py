"""Runs that are killed, stopped and resumed leave what an undisturbed run leaves, byte for byte."""

from __future__ import annotations

import itertools
import json
import random
import signal
import time
from pathlib import Path

import msgspec
import pytest
from commands import (
    call,
    fail,
    newest_lines,
    parsed,
    run_killed,
    start,
    succeed,
    wait_for,
    wait_for_size,
    write_headlines,
)

from streamdp.engine import Engine
from streamdp.settings import Settings
from streamdp.state.snapshot import Header, newest

N = 30_000
RUN = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")
FILES = ("out", "out.rejects.jsonl", "events")
EVERY = {"snapshot_every": "1500", "max_words": "1000", "retain": "2000", "late": "refuse"}
EVERY |= {"refine_every": "2000", "refine_moves": "2000"}


def spoil(path: Path) -> None:
    """Put late and broken records into a stream of JSON lines."""
    lines = path.read_bytes().splitlines()
    for i in range(50, len(lines), 97):
        late = json.loads(lines[i]) | {"time": 1000.0}
        lines[i] = (b"{broken", json.dumps(late).encode(), b'{"text": "\xff"}', b"")[i % 4]
    path.write_bytes(b"\n".join(lines) + b"\n")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stream and the result of one run over it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write_headlines(folder / "in.jsonl", N)
    spoil(folder / "in.jsonl")
    succeed(folder, *RUN, **EVERY)
    return folder


def beside(undisturbed: Path, folder: Path) -> Path:
    """A fresh folder with the same stream."""
    (folder / "in.jsonl").symlink_to(undisturbed / "in.jsonl")
    return folder


def apart_from_clock_and_folder(header: Header) -> Header:
    """What two runs in different folders have in common."""
    outputs = {name: left | {"path": Path(left["path"]).name} for name, left in header.outputs.items()}
    known = header.positions["known"] | {"inode": 0}
    positions = header.positions | {"known": known}
    return msgspec.structs.replace(header, written=0.0, outputs=outputs, positions=positions)


def assert_same_result(folder: Path, expected: Path) -> None:
    """Files and final state are equal."""
    for name in FILES:
        assert (folder / name).read_bytes() == (expected / name).read_bytes(), name
    ours, theirs = newest(folder / "state", pytest.fail), newest(expected / "state", pytest.fail)
    assert ours is not None
    assert theirs is not None
    assert apart_from_clock_and_folder(ours[0]) == apart_from_clock_and_folder(theirs[0])
    settings = msgspec.convert(ours[0].settings, Settings)
    assert Engine.loads(ours[1], settings).dumps() == Engine.loads(theirs[1], settings).dumps()
    assert ours[1] == theirs[1]


def test_the_undisturbed_run_meets_everything(undisturbed: Path) -> None:
    reasons = {line["reason"] for line in parsed((undisturbed / "out.rejects.jsonl").read_bytes())}
    assert reasons == {"not_json", "late", "not_utf8"}
    events = {line["event"] for line in parsed((undisturbed / "events").read_bytes())}
    assert events >= {"born", "merged", "split", "closed"}
    found = newest(undisturbed / "state", pytest.fail)
    assert found is not None
    engine = Engine.loads(found[1], msgspec.convert(found[0].settings, Settings))
    assert engine.counters()["words_evicted"] > 0


def test_killed_six_times(undisturbed: Path, tmp_path: Path) -> None:
    folder = beside(undisturbed, tmp_path)
    rng = random.Random(20)
    whole = (undisturbed / "out").stat().st_size
    for size in sorted(rng.randrange(whole // 50, whole - whole // 10) for _ in range(6)):
        code = run_killed(folder, *RUN, size=size, later=rng.random() * 0.03, **EVERY)
        assert code == -signal.SIGKILL
    succeed(folder, *RUN, **EVERY)
    assert_same_result(folder, undisturbed)


def test_killed_under_a_small_memory_limit(undisturbed: Path, tmp_path: Path) -> None:
    """What gives way, does so at the same records after a restart."""
    with (undisturbed / "in.jsonl").open("rb") as file:
        lines = b"".join(itertools.islice(file, 9000))
    small = EVERY | {"memory_limit": str(1 << 20), "max_lateness": "1e6", "refine_every": "0"}
    quiet, folder = tmp_path / "quiet", tmp_path / "killed"
    for each in (quiet, folder):
        each.mkdir()
        (each / "in.jsonl").write_bytes(lines)
    succeed(quiet, *RUN, **small)
    found = newest(quiet / "state", pytest.fail)
    assert found is not None
    counts = Engine.loads(found[1], msgspec.convert(found[0].settings, Settings)).counters()
    assert counts["released_early"] > 4000
    assert counts["final_early"] > 4000
    whole = (quiet / "out").stat().st_size
    for share in (0.2, 0.5, 0.8):
        assert run_killed(folder, *RUN, size=int(share * whole), **small) == -signal.SIGKILL
    succeed(folder, *RUN, **small)
    assert_same_result(folder, quiet)


def test_killed_at_the_start(undisturbed: Path, tmp_path: Path) -> None:
    """While modules load, the folder is made and the first snapshot written."""
    folder = beside(undisturbed, tmp_path)
    for delay in (0.2, 0.3, 0.4, 0.5, 0.6):
        process = start(folder, *RUN, process=True, **EVERY)
        time.sleep(delay)
        process.kill()
        process.communicate()
    succeed(folder, *RUN, **EVERY)
    assert_same_result(folder, undisturbed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_and_resumed(undisturbed: Path, tmp_path: Path, number: signal.Signals) -> None:
    folder = beside(undisturbed, tmp_path)
    process = start(folder, *RUN, **EVERY)
    assert wait_for_size(process, folder / "out", (undisturbed / "out").stat().st_size // 3)
    process.send_signal(number)
    began = time.monotonic()
    _, errors = process.communicate(timeout=120)
    assert time.monotonic() - began < 60
    assert process.returncode == 0
    assert b"Traceback" not in errors
    assert (folder / "out").stat().st_size < (undisturbed / "out").stat().st_size
    succeed(folder, *RUN, **EVERY)
    assert_same_result(folder, undisturbed)


def test_a_damaged_snapshot_costs_a_replay_only(undisturbed: Path, tmp_path: Path) -> None:
    folder = beside(undisturbed, tmp_path)
    succeed(folder, *RUN, **EVERY)
    path = max((folder / "state").glob("snapshot-*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    done = call(folder, *RUN, **EVERY)
    assert done.returncode == 0
    assert b"checksum does not hold" in done.stderr
    assert_same_result(folder, undisturbed)


def test_resuming_a_finished_run_and_a_file_that_grew(undisturbed: Path, tmp_path: Path) -> None:
    lines = (undisturbed / "in.jsonl").read_bytes().splitlines(keepends=True)
    for part in (12_345, 12_345, 20_000, len(lines)):
        (tmp_path / "in.jsonl").write_bytes(b"".join(lines[:part]))
        succeed(tmp_path, *RUN, **EVERY)
    assert_same_result(tmp_path, undisturbed)


@pytest.mark.parametrize("kind", ["held back for order", "held back to warm up"])
def test_wall_clock_is_no_part_of_the_state(tmp_path: Path, kind: str) -> None:
    """Two runs over the same records, at different times, leave the same body."""
    if kind == "held back for order":
        write_headlines(tmp_path / "in.jsonl", 500)
        more = {"max_lateness": "3600"}
    else:
        (tmp_path / "in.jsonl").write_text('{"vector": [1, 2]}\n{"vector": [2, 1]}\n')
        more = {}
    bodies = []
    for state in ("a", "b"):
        succeed(
            tmp_path,
            "consume",
            "--file",
            "in.jsonl",
            "--state",
            state,
            "--rejects",
            f"{state}.rejects",
            **more,
        )
        found = newest(tmp_path / state, pytest.fail)
        assert found is not None
        bodies.append(found[1])
    assert bodies[0] == bodies[1]


def test_two_runs_on_one_state_folder(undisturbed: Path, tmp_path: Path) -> None:
    folder = beside(undisturbed, tmp_path)
    with start(folder, "consume", "--file", "-", "--format", "jsonl", "--state", "state") as first:
        wait_for(lambda: list((folder / "state").glob("snapshot-*")), first)
        code, message = fail(folder, *RUN)
        assert code == 73
        assert "another streamdp process" in message
        first.communicate(b'{"text": "still alive"}\n', timeout=120)
        assert first.returncode == 0


def test_resuming_under_other_settings(undisturbed: Path, tmp_path: Path) -> None:
    folder = beside(undisturbed, tmp_path)
    write_headlines(folder / "few.jsonl", 50)
    run = ("consume", "--file", "few.jsonl", "--state", "state", "--output", "out")
    succeed(folder, *run)
    before = (folder / "out").read_bytes()
    code, message = fail(folder, *run, "--beam", "4", "--prior", "crp")
    assert code == 78
    assert "beam: was 8, is 4" in message
    assert "prior: was auto, is crp" in message
    for mode in (("--final-only",), ("--events", "events")):
        code, message = fail(folder, *run, *mode)
        assert code == 78
        assert mode[0] in message
    assert not (folder / "events").exists()
    assert (folder / "out").read_bytes() == before
    succeed(
        folder,
        *run[:-2],
        "--output",
        "-",
        "--snapshot-keep",
        "1",
        "--snapshot-every",
        "7",
        "--keep",
        "cluster",
    )


def test_resuming_where_files_do_not_match(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 50)
    write_headlines(tmp_path / "other.jsonl", 50)
    run = ("consume", "--file", "in.jsonl", "--state", "state", "--output", "out")
    succeed(tmp_path, *run)
    before = (tmp_path / "out").read_bytes()

    def refused(*arguments: str) -> str:
        done = call(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (65, b"")
        assert b"Traceback" not in done.stderr
        return done.stderr.decode().splitlines()[-1]

    assert "use that name again" in refused("consume", "--file", "other.jsonl", *run[3:])
    assert (tmp_path / "out").read_bytes() == before
    (tmp_path / "out").write_bytes(before[:100])
    assert "has changed since" in refused(*run)
    assert (tmp_path / "out").read_bytes() == before[:100]
    (tmp_path / "out").unlink()
    assert "gone" in refused(*run)
    assert not (tmp_path / "out").exists()


def test_no_sound_snapshot(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 5)
    run = ("consume", "--file", "in.jsonl", "--state", "state")
    succeed(tmp_path, *run)
    for path in (tmp_path / "state").glob("snapshot-*"):
        path.write_bytes(b"")
    done = call(tmp_path, *run)
    assert done.returncode == 78
    assert b"is sound" in done.stderr
    assert b"Traceback" not in done.stderr


def test_what_is_not_written_comes_from_the_state(tmp_path: Path) -> None:
    write_headlines(tmp_path / "all.jsonl", 60)
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--state", "state")
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines[:40]))
    succeed(tmp_path, *run, "--beam", "3", urls="false")
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    done = call(tmp_path, *run)
    assert done.returncode == 0
    told = done.stderr.decode().splitlines()
    assert "streamdp: settings of the state that differ from today's defaults: urls false, beam 3" in told
    expected = succeed(tmp_path, "consume", "--file", "in.jsonl", "--beam", "3", "--no-urls")
    assert newest_lines((tmp_path / "out").read_bytes()) == newest_lines(expected)
    for written in ({"beam": "16"}, {"urls": "true"}):
        code, message = fail(tmp_path, *run, **written)
        assert (code, f"was {3 if 'beam' in written else 'false'}, is " in message) == (78, True)
    (tmp_path / "streamdp.toml").write_text("beam = 16\n")
    assert fail(tmp_path, *run)[0] == 78
