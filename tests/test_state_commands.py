"""``streamdp state``: info, verify, migrate, export; and what a new release keeps of the old one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import call, fail, parsed, succeed, write_headlines

from streamdp._version import READS_SINCE, __version__
from streamdp.engine import Engine
from streamdp.settings.load import stored_settings
from streamdp.state import migrate
from streamdp.state.kept import keep_of_another_release
from streamdp.state.migrate import PARTS, Step
from streamdp.state.snapshot import Header, StateFolder, newest, pack, read, snapshots

RUN = ("consume", "in.jsonl", "--output", "out", "--state", "st")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A folder in which a stream of headlines has run."""
    write_headlines(tmp_path / "in.jsonl", 200)
    succeed(tmp_path, *RUN, "--retain", "100", "--second-look", "0")
    return tmp_path


def of_another_release(folder: Path, monkeypatch: pytest.MonkeyPatch, release: str) -> Path:
    """Have the newest snapshot of a folder written by another release."""
    path = snapshots(folder)[0]
    with monkeypatch.context() as other:
        other.setattr(migrate, "__version__", release)
        path.write_bytes(pack(*read(path)))
    return path


def test_info(state: Path) -> None:
    told = succeed(state, "state", "info", "st").decode()
    rows = {line[:11].strip(): line[12:] for line in told.splitlines()}
    assert rows["written by"].startswith(f"streamdp {__version__}, consume, ")
    assert rows["holds"].startswith("200 records, ended; ")
    assert rows["versions"] == ", ".join(
        f"{part} {PARTS[part]}"
        for part in ("announced", "beam", "header", "retained", "stories", "texts", "waiting")
    )
    assert (rows["to convert"], rows["settings"]) == ("nothing", "second_look 0; retain 100")
    found = json.loads(succeed(state, "state", "info", "st", "--json"))
    assert (found["seq"], found["release"], found["versions"]["texts"]) == (200, __version__, PARTS["texts"])
    assert found["positions"] == json.loads(rows["position"])


def test_verify_tells_which_is_sound(state: Path) -> None:
    folder = StateFolder(state / "st")
    found = newest(state / "st", pytest.fail)
    assert found is not None
    folder.write(msgspec.structs.replace(found[0], seq=201), found[1][:-3])
    folder.write(msgspec.structs.replace(found[0], seq=202), found[1])
    folder.close()
    torn = state / "st" / f"snapshot-{202:015}.sdp"
    torn.write_bytes(torn.read_bytes()[:-1])
    done = call(state, "state", "verify", "st")
    assert done.returncode == 65
    lines = done.stdout.decode().splitlines()
    assert "202.sdp: damaged" in lines[0]
    assert "201.sdp: the state is damaged" in lines[1]
    assert "200.sdp: sound, 200 records of texts" in lines[2]
    one = succeed(state, "state", "verify", f"st/snapshot-{200:015}.sdp").decode()
    assert one == lines[2] + "\n"


def test_nothing_is_converted_where_nothing_is_old(state: Path) -> None:
    before = {path: path.read_bytes() for path in (state / "st").glob("*")}
    done = call(state, "state", "migrate", "st")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == (
        f"streamdp: st: nothing to convert, all is in the versions of streamdp {__version__}\n"
    )
    assert {path: path.read_bytes() for path in (state / "st").glob("*")} == before


def from_the_last(stored: dict[str, Any]) -> dict[str, Any]:
    """A made-up step: the first version counted what is final, the second has the last of it."""
    announced = stored["announced"]
    return {**stored, "announced": {**announced, "final": announced["final"] - 1}}


@pytest.fixture
def later(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state as version 1 of the made-up step has it, in a release that writes version 2."""
    path = snapshots(state / "st")[0]
    header, body = read(path)
    stored = msgspec.msgpack.decode(body)
    stored["announced"]["final"] += 1
    path.write_bytes(pack(header, msgspec.msgpack.encode(stored | {"release": "0.9.0"})))
    monkeypatch.setattr(migrate, "PARTS", {**PARTS, "announced": 2})
    monkeypatch.setattr("streamdp.cli.state.PARTS", migrate.PARTS)
    monkeypatch.setattr(migrate, "STEPS", (Step("announced", 1, from_the_last),))
    return state


def test_migrate_converts_and_keeps_the_file_before(later: Path) -> None:
    before = snapshots(later / "st")[0].read_bytes()
    told = succeed(later, "state", "info", "st").decode()
    assert "to convert  announced 1 to 2\n" in told
    clusters = parsed(succeed(later, "show", "st", "--json"))
    done = call(later, "state", "migrate", "st")
    assert done.returncode == 0, done.stderr
    (kept,) = (later / "st").glob("*.sdp.of-*")
    assert kept.read_bytes() == before
    assert done.stderr.decode() == (
        f"streamdp: st: converted from streamdp 0.9.0 (announced 1 to 2); before: {kept.relative_to(later)}\n"
    )
    assert "to convert  nothing\n" in succeed(later, "state", "info", "st").decode()
    assert parsed(succeed(later, "show", "st", "--json")) == clusters
    assert parsed(succeed(later, "show", str(kept), "--json")) == clusters
    assert len(snapshots(later / "st")) == 2  # the first, before any record, is not the newest
    done = call(later, *RUN)
    assert done.returncode == 0, done.stderr
    assert kept.read_bytes() == before


def test_what_is_unsound_after_its_steps_replaces_nothing(
    later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "STEPS", (Step("announced", 1, lambda stored: {**stored, "announced": 7}),))
    before = {path: path.read_bytes() for path in (later / "st").glob("*")}
    assert fail(later, "state", "migrate", "st")[0] == 65
    assert {path: path.read_bytes() for path in (later / "st").glob("*")} == before


def test_a_state_in_use_and_what_is_no_state(state: Path) -> None:
    found = newest(state / "st", pytest.fail)
    assert found is not None
    (state / "copy").write_bytes(pack(*found))
    assert fail(state, "state", "migrate", "copy")[0] == 64
    assert fail(state, "state", "migrate", "nowhere")[0] == 66
    assert not (state / "nowhere").exists()
    assert fail(state, "state", "info", "in.jsonl")[0] == 65
    for command in ("info", "verify"):
        assert fail(state, "state", command, "nowhere")[0] == 66


def test_a_state_in_use_is_not_converted(later: Path) -> None:
    folder = StateFolder(later / "st")
    assert fail(later, "state", "migrate", "st")[0] == 73
    folder.close()


def test_the_last_snapshot_of_another_release_is_kept(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = of_another_release(state / "st", monkeypatch, "0.8.7")
    before = path.read_bytes()
    write_headlines(state / "in.jsonl", 400)
    done = call(state, *RUN, "--snapshot-every", "50")
    assert done.returncode == 0, done.stderr
    (kept,) = (state / "st").glob("*.of-*")
    assert kept.name == f"{path.name}.of-0.8.7"
    assert kept.read_bytes() == before
    assert b"going on with a state of streamdp 0.8.7; its last snapshot is kept: " in done.stderr
    again = call(state, *RUN)
    assert b"going on with a state of" not in again.stderr


@pytest.mark.parametrize("release", ["../..", "a/b/c", "x\0yz.", ""])
def test_a_release_is_no_path(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StateFolder(tmp_path)
    folder.write(Header({}, 3, {}, {}, {}, 1.5), b"")
    header, _ = read(of_another_release(tmp_path, monkeypatch, release))
    assert header.release == release
    kept = keep_of_another_release(tmp_path, header)
    assert kept == tmp_path / f"snapshot-{3:015}.sdp.of-another"
    folder.close()


# ---------------------------------------------------------------- tables


def tables(folder: Path, form: str = "jsonl") -> dict[str, list[dict[str, Any]]]:
    """Tables by name, cells of CSV as texts."""
    if form == "csv":
        return {
            path.stem: list(csv.DictReader(path.read_text("utf-8").splitlines())) for path in folder.iterdir()
        }
    return {path.stem: parsed(path.read_bytes()) for path in folder.iterdir()}


def loaded(folder: Path) -> Engine:
    found = newest(folder / "st", pytest.fail)
    assert found is not None
    return Engine.loads(found[1], stored_settings(found[0].settings))


def test_export_of_texts(state: Path) -> None:
    done = call(state, "state", "export", "st", "--into", "tables")
    assert done.returncode == 0, done.stderr
    assert b"records (100 rows)" in done.stderr
    found, engine = tables(state / "tables"), loaded(state)
    shown = parsed(succeed(state, "show", "st", "--json"))
    sizes = {c.cluster: c.size for c in engine.clusters()}
    assert {row["cluster"]: row["size"] for row in found["clusters"]} == sizes
    assert [row["seq"] for row in found["records"]] == list(range(100, 200))
    held = engine.retained()
    assert held is not None
    assert [row["cluster"] for row in found["records"]] == held.labels.tolist()
    assert sum(row["count"] for row in found["record_words"]) == held.batch.counts.sum()
    assert {type(cell) for rows in found.values() for row in rows for cell in row.values()} <= {
        int, float, str, type(None)
    }  # fmt: skip
    assert {row["name"]: json.loads(row["value"]) for row in found["settings"]}["retain"] == 100
    first = found["clusters"][0]["cluster"]
    words = [(row["word"], row["count"]) for row in found["cluster_words"] if row["cluster"] == first]
    assert [list(pair) for pair in words] == next(c["words"] for c in shown if c["cluster"] == first)
    succeed(state, "state", "export", "st", "--into", "csv", "--format", "csv")
    cells = tables(state / "csv", "csv")
    assert cells.keys() == found.keys()
    for name, rows in found.items():
        as_text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
        assert cells[name] == as_text, name
    assert fail(state, "state", "export", "st", "--into", "tables")[0] == 73


def test_export_of_vectors_and_lines(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(3).tolist()
    data = "".join(
        json.dumps({"features": {"b": x, "a": y}, "time": i}) + "\n" for i, (x, y) in enumerate(rows)
    )
    (tmp_path / "in.jsonl").write_text(data)
    succeed(tmp_path, *RUN, "--warmup", "20", "--prior", "crp")
    succeed(tmp_path, "state", "export", "st", "--into", "tables")
    found = tables(tmp_path / "tables")
    values = {(row["seq"], row["name"]): row["value"] for row in found["record_values"]}
    assert values == {(i, name): row["ba".index(name)] for i, row in enumerate(rows) for name in "ab"}
    assert {row["name"] for row in found["cluster_means"]} == {"a", "b"}
    (tmp_path / "in.log").write_text("".join(f"GET /cart/{i} 200 ok\n" for i in range(30)))
    succeed(tmp_path, "consume", "in.log", "--format", "log", "--output", "o", "--state", "lines")
    succeed(tmp_path, "state", "export", "lines", "--into", "log")
    found = tables(tmp_path / "log")
    assert [row["template"] for row in found["clusters"]] == ["GET /cart/<num> <num> ok"]
    assert len(found["records"]) == 30
    assert "record_words" not in found


def test_the_version_says_which_states_are_read(tmp_path: Path) -> None:
    told = succeed(tmp_path, "--version").decode()
    assert (
        told == f"streamdp {__version__} (reads states of {READS_SINCE} and later releases up to its own)\n"
    )
