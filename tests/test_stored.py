"""What is stored says its format: another is refused, and a change of what is stored needs another number."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from feeds import texts
from golden.schema import changes
from golden.states import STORED, schema_now

from streamdp import StreamDP, StreamdpError
from streamdp._version import __version__
from streamdp.engine import Engine
from streamdp.settings import Settings
from streamdp.sharding import Merger
from streamdp.state import snapshot, stamp
from streamdp.state.snapshot import Header, SnapshotError, pack, unpack
from streamdp.state.stamp import FORMAT

OTHERS = [
    (FORMAT + 1, "upgrade it"),
    (
        FORMAT - 1,
        "move the state folder away, or name another --state, and start again from the first record",
    ),
]


def learned() -> dict[str, Any]:
    """A state of texts as plain values."""
    engine = Engine(Settings(likelihood="hierarchical-pitman-yor", prior="crp"))
    engine.advance(texts(40, 3))
    stored: dict[str, Any] = msgspec.msgpack.decode(engine.dumps())
    return stored


def test_a_state_says_who_wrote_it() -> None:
    assert {name: learned()[name] for name in ("release", "format")} == {
        "release": __version__,
        "format": FORMAT,
    }


@pytest.mark.parametrize(("other", "advice"), OTHERS)
def test_another_format_is_refused_naming_both(other: int, advice: str) -> None:
    stored = learned() | {"release": "7.1.0", "format": other}
    with pytest.raises(SnapshotError) as caught:
        Engine.loads(msgspec.msgpack.encode(stored), Settings())
    assert caught.value.exit_code == 78
    assert caught.value.message == (
        f"the state was written by streamdp 7.1.0 in format {other}; this is streamdp {__version__}, which "
        f"reads format {FORMAT} only: {advice}"
    )


def test_a_state_of_before_there_was_one_number_is_old() -> None:
    stored = learned() | {"versions": {"texts": 1}}
    del stored["format"]
    with pytest.raises(SnapshotError, match=r"in an older format; this is .* start again from") as caught:
        Engine.loads(msgspec.msgpack.encode(stored), Settings())
    assert caught.value.exit_code == 78


@pytest.mark.parametrize("wrong", [{"format": "13"}, {"format": True}, {"format": -1}, {"release": None}])
def test_a_state_without_a_sound_stamp_is_damaged(wrong: dict[str, Any]) -> None:
    with pytest.raises(SnapshotError) as caught:
        Engine.loads(msgspec.msgpack.encode(learned() | wrong), Settings())
    assert caught.value.exit_code == 65


@pytest.mark.parametrize(("other", "advice"), OTHERS)
def test_a_snapshot_file_of_another_format(other: int, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (snapshot, stamp):
        monkeypatch.setattr(module, "FORMAT", other)
    theirs = pack(Header({"beam": 4}, 7, {"line": 7}, {}, {}, 1.5), b"body")
    monkeypatch.undo()
    with pytest.raises(SnapshotError) as caught:
        unpack(theirs, "name")
    assert caught.value.exit_code == 78
    assert caught.value.message == (
        f"name: was written in format {other}; this is streamdp {__version__}, which reads format {FORMAT} "
        f"only: {advice}"
    )


def test_a_model_of_another_format(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = StreamDP()
    model.learn_one({"a": 1.0, "b": 2.0})
    monkeypatch.setattr(stamp, "FORMAT", FORMAT - 1)
    model.save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(StreamdpError, match=rf"in format {FORMAT - 1}; .*: learn it anew$") as caught:
        StreamDP.load(tmp_path / "model")
    assert caught.value.exit_code == 78


def test_shards_of_another_format(monkeypatch: pytest.MonkeyPatch) -> None:
    merger = Merger(Settings(), with_events=True)
    merger.load_parts(merger.dump_parts())
    monkeypatch.setattr(stamp, "FORMAT", FORMAT + 1)
    newer = merger.dump_parts()
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match=rf"in format {FORMAT + 1}; this is"):
        merger.load_parts(newer)


# ---------------------------------------------------------------- what is stored


def test_what_is_stored_changes_only_with_the_format() -> None:
    committed = json.loads(STORED.read_text("utf-8"))
    advice = "raise FORMAT in streamdp/state/stamp.py, and run python -m tests.golden make"
    assert (committed["format"], changes(committed["stored"], schema_now())) == (FORMAT, []), advice


def test_a_change_is_noticed() -> None:
    before = {"state/seq": "int", "state/words": "array of whole numbers in 1 dimensions"}
    assert changes(before, {**before}) == []
    assert changes(before, {**before, "state/more": "int"}) == ["state/more: was not there, is int"]
    assert changes(before, {"state/seq": "float or int"}) == [
        "state/seq: was int, is float or int",
        "state/words: was array of whole numbers in 1 dimensions, is not there",
    ]
