"""States of earlier releases become those of this one by steps; those of later ones are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from feeds import texts

from streamdp._version import READS_SINCE, __version__
from streamdp.engine import Engine
from streamdp.settings import Settings
from streamdp.sharding import Merger
from streamdp.state import migrate
from streamdp.state.migrate import PARTS, STEPS, Step, upgraded
from streamdp.state.snapshot import Header, SnapshotError, pack, unpack

MODEL = Settings(likelihood="hierarchical-pitman-yor", prior="crp")
RECORDS = texts(80, 3)

Plain = dict[str, Any]


def learned() -> Engine:
    """An engine of texts that has seen half of the records."""
    engine = Engine(MODEL)
    engine.advance(RECORDS[:40])
    return engine


def as_before(body: bytes, part: str, version: int, how: Any) -> bytes:
    """A state as a release before this one would have written it."""
    stored = msgspec.msgpack.decode(body)
    how(stored)
    stored["versions"][part] = version
    return msgspec.msgpack.encode(stored | {"release": "0.9.0"})


def renaming(stored: Plain) -> None:
    """Version 1 of this test: the field has another name, and what it says is counted otherwise."""
    stored["announced"]["through"] = stored["announced"].pop("final") + 1


def with_one_name(stored: Plain) -> Plain:
    announced = dict(stored["announced"])
    announced["final"] = announced.pop("through")
    return {**stored, "announced": announced}


def counted_from_the_last(stored: Plain) -> Plain:
    announced = stored["announced"]
    return {**stored, "announced": {**announced, "final": announced["final"] - 1}}


MADE_UP = (
    Step("announced", 1, with_one_name),
    Step("lines", 1, dict),
    Step("announced", 2, counted_from_the_last),
)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that stores answers and lines otherwise than the first did."""
    monkeypatch.setattr(migrate, "PARTS", {**PARTS, "announced": 3, "lines": 2})
    monkeypatch.setattr(migrate, "STEPS", MADE_UP)


def test_steps_are_chained(later: None) -> None:
    engine = learned()
    body = engine.dumps()
    old = as_before(body, "announced", 1, renaming)
    found = Engine.loads(old, MODEL)
    assert found.dumps() == body
    assert found.open_answers() == engine.open_answers()
    assert found.advance(RECORDS[40:]).lines == engine.advance(RECORDS[40:]).lines


def test_a_state_between_two_versions_takes_the_steps_that_are_left(later: None) -> None:
    def half(stored: Plain) -> None:
        stored["announced"]["final"] += 1

    body = learned().dumps()
    assert Engine.loads(as_before(body, "announced", 2, half), MODEL).dumps() == body


def test_a_change_of_one_part_leaves_states_without_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(stored: Plain) -> Plain:
        raise AssertionError("a state of texts has no lines")

    body = learned().dumps()
    monkeypatch.setattr(migrate, "PARTS", {**PARTS, "lines": 2, "vectors": 5, "shards": 2, "model": 2})
    monkeypatch.setattr(migrate, "STEPS", (Step("lines", 1, never),))
    assert Engine.loads(body, MODEL).dumps() == body


def test_a_state_names_its_parts() -> None:
    stored = msgspec.msgpack.decode(learned().dumps())
    assert stored["release"] == __version__
    assert stored["versions"] == {
        part: PARTS[part] for part in ("announced", "beam", "retained", "stories", "texts", "waiting")
    }
    lines = Engine(Settings(likelihood="template"))
    lines.advance(["a line", "another line"])
    assert set(msgspec.msgpack.decode(lines.dumps())["versions"]) == {
        "announced",
        "lines",
        "retained",
        "stories",
        "waiting",
    }
    begun = msgspec.msgpack.decode(Engine(MODEL).dumps())["versions"]
    assert set(begun) == {"announced", "stories", "waiting"}


@pytest.mark.parametrize("part", ["announced", "texts", "of a later release"])
def test_a_later_version_is_refused_naming_both(part: str) -> None:
    stored = msgspec.msgpack.decode(learned().dumps())
    stored["versions"][part] = 9
    stored["release"] = "7.1.0"
    ours = f"{part} {PARTS[part]}" if part in PARTS else f"no {part}"
    told = rf"streamdp 7\.1\.0 \({part} 9\); this is streamdp {__version__} \({ours}\): upgrade it"
    with pytest.raises(SnapshotError, match=told) as caught:
        Engine.loads(msgspec.msgpack.encode(stored), MODEL)
    assert caught.value.exit_code == 78


@pytest.mark.parametrize("versions", [None, [], {"texts": "1"}, {"texts": 0}, {"texts": True}, {1: 1}])
def test_a_state_without_versions_is_damaged(versions: Any) -> None:
    stored = msgspec.msgpack.decode(learned().dumps())
    with pytest.raises(SnapshotError) as caught:
        Engine.loads(msgspec.msgpack.encode(stored | {"versions": versions}), MODEL)
    assert caught.value.exit_code == 65


def test_headers_have_steps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    header = Header({"beam": 4}, 7, {"line": 7}, {}, {}, 1.5)
    old = pack(header, b"body")

    def with_another_place(stored: Plain) -> Plain:
        return {**stored, "positions": {"file": "x", **stored["positions"]}}

    monkeypatch.setattr(migrate, "PARTS", {**PARTS, "header": 2})
    monkeypatch.setattr(migrate, "STEPS", (Step("header", 1, with_another_place),))
    found, body = unpack(old, "name")
    assert (found.positions, found.seq, body) == ({"file": "x", "line": 7}, 7, b"body")
    newer = pack(header, b"body")
    monkeypatch.undo()
    with pytest.raises(
        SnapshotError, match=r"^name: was written by .*\(header 2\); .*\(header 1\): upgrade"
    ) as told:
        unpack(newer, "name")
    assert told.value.exit_code == 78


def test_parts_of_shards_have_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    merger = Merger(Settings(), with_events=True)
    parts = merger.dump_parts()
    monkeypatch.setattr(migrate, "PARTS", {**PARTS, "shards": 2})
    newer = merger.dump_parts()
    monkeypatch.undo()
    merger.load_parts(parts)
    with pytest.raises(SnapshotError, match=r"\(shards 2\); this is"):
        merger.load_parts(newer)


def test_every_version_has_its_step() -> None:
    assert [step for step in STEPS if step.part not in PARTS] == []
    for part, version in PARTS.items():
        assert [step.before for step in STEPS if step.part == part] == list(range(1, version)), part


def test_the_page_has_all_parts() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "stable.md").read_text("utf-8")
    rows = page.split("\n## Versions of parts\n")[1].split("\n## ")[0].splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    assert sorted(re.findall("`([a-z]+)`", " ".join(cells))) == sorted(PARTS)


def test_every_step_is_a_file() -> None:
    folder = Path(migrate.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {step.convert.__module__.rpartition(".")[2] for step in STEPS} == modules


def test_nothing_is_done_to_what_is_of_this_release() -> None:
    stored = msgspec.msgpack.decode(learned().dumps())
    assert upgraded(stored) == stored
    assert __version__.startswith(READS_SINCE)
