"""``streamdp correct``, and a run that takes corrections while records flow, crashes included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import call, fail, go_on_killed, parsed, succeed, write_headlines

from streamdp.state.corrections import (
    MOST_BYTES,
    Correction,
    CorrectionError,
    CorrectionRequest,
    CorrectionsFile,
)
from streamdp.state.lock import FolderLock

RECORDS = 3000
RUN = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")
SETTINGS = {"snapshot_every": "500", "beam": "4"}


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the state of 1,500 records, and all of them in ``in.jsonl``."""
    folder = tmp_path_factory.mktemp("half")
    write_headlines(folder / "in.jsonl", RECORDS)
    whole = (folder / "in.jsonl").read_bytes()
    (folder / "in.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:1500]))
    succeed(folder, *RUN, **SETTINGS)
    (folder / "in.jsonl").write_bytes(whole)
    return folder


def copied(half: Path, folder: Path) -> Path:
    """The same in another folder."""
    import shutil

    shutil.copytree(half, folder, dirs_exist_ok=True)
    return folder


def stories(folder: Path) -> list[dict[str, Any]]:
    return parsed(succeed(folder, "stories", "state", "--json"))


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return parsed((folder / "state" / "corrections").read_bytes())


def test_a_correction_is_seen_at_once_and_taken_by_the_next_run(half: Path, tmp_path: Path) -> None:
    folder = copied(half, tmp_path)
    a, b, c = (story["label"] for story in stories(folder)[:3])
    done = call(folder, "correct", "state", "rename", str(a), "All", "about", "it", "--who", "ann")
    assert done.returncode == 0, done.stderr
    assert b"correction 1: rename" in done.stderr
    assert b"; the next run takes it, and its store; streamdp stories state shows it now" in done.stderr
    running = FolderLock(folder / "state")
    assert running.take()
    done = call(folder, "correct", "state", "mute", str(b))
    running.close()
    assert b"; the running process takes it with its next records" in done.stderr
    succeed(folder, "correct", "state", "pin", str(c))
    held, first, second, third = lines_of(folder)
    assert held == {"streamdp": "corrections", "version": 1, "after": 0}
    assert first | {"when": ""} == {
        "what": "rename", "stories": [a], "title": "All about it", "number": 1, "who": "ann", "when": ""
    }  # fmt: skip
    assert (second["what"], third["what"]) == ("mute", "pin")
    live = parsed(succeed(folder, "stories", "state", "--json", "--least", "1"))
    assert b not in {story["label"] for story in live}
    assert parsed(succeed(folder, "stories", "state", "--story", str(b), "--json"))[0]["label"] == b
    shown = {story["label"]: story["title"] for story in stories(folder)}
    assert shown[a] == "All about it"
    assert b not in shown
    succeed(folder, *RUN, **SETTINGS)
    assert [line for line in lines_of(folder) if "at" in line] == [
        {"number": number, "at": 1500} for number in (1, 2, 3)
    ]
    events = parsed((folder / "events").read_bytes())
    assert [event["title"] for event in events if event["cluster"] == a and event["seq"] >= 1499][:1] == [
        "All about it"
    ]
    assert not [event for event in events if event["cluster"] == b and event["seq"] > 1500]
    listed = succeed(folder, "correct", "state", "list").decode().splitlines()
    assert listed[0].startswith(f"1  rename {a} All about it  (ann, ")
    assert listed[0].endswith("at record 1,500)")


def test_the_same_records_and_corrections_end_in_the_same_bytes(half: Path, tmp_path: Path) -> None:
    """A new state that is given the file, with its positions, against one that was corrected on its way."""
    folder = copied(half, tmp_path / "a")
    a, b, c, d = (story["label"] for story in stories(folder)[:4])
    succeed(folder, "correct", "state", "merge", str(a), str(b))
    succeed(folder, "correct", "state", "keep-apart", str(c), str(d))
    succeed(folder, *RUN, **SETTINGS)
    again = tmp_path / "b"
    (again / "state").mkdir(parents=True)
    (again / "in.jsonl").write_bytes((folder / "in.jsonl").read_bytes())
    (again / "state" / "corrections").write_bytes((folder / "state" / "corrections").read_bytes())
    succeed(again, *RUN, **SETTINGS)
    newest = sorted(path.name for path in (folder / "state").glob("*.sdp"))[-1]
    assert body(again / "state" / newest) == body(folder / "state" / newest)


def body(path: Path) -> bytes:
    from streamdp.state.snapshot import read

    return read(path)[1]


def test_sigkill_at_any_moment_changes_no_byte(half: Path, tmp_path: Path) -> None:
    """Killed before and after the position was noted: the outputs are those of a quiet run."""
    folder = copied(half, tmp_path / "quiet")
    labels = [story["label"] for story in stories(folder)[:4]]
    given = [("merge", *labels[:2]), ("pin", labels[2]), ("rename", labels[3], "Four")]
    for words in given:
        succeed(folder, "correct", "state", *map(str, words))
    marked = copied(folder, tmp_path / "killed")
    succeed(folder, *RUN, **SETTINGS)
    go_on_killed(marked, *RUN, **SETTINGS)
    for name in ("out", "events", "state/corrections"):
        assert (marked / name).read_bytes() == (folder / name).read_bytes(), name


def refused(folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    a, b = (story["label"] for story in stories(folder)[:2])
    yield ("rename", "99999", "x"), "there is no live story 99999"
    yield ("merge", str(a)), "merge names two stories"
    yield ("burn", str(a)), "'burn' is no correction"
    yield ("pin", "first"), "'first' is no number"
    yield ("split", str(a), "nobody"), "no record of id 'nobody' has an open answer"
    yield ("undo", "7"), "correction 7 is not in force"
    succeed(folder, "correct", "state", "keep-apart", str(a), str(b), "--who", "ann")
    yield ("merge", str(a), str(b)), "correction 1 of ann contradicts it"


def test_what_makes_no_sense_is_refused_and_not_written(half: Path, tmp_path: Path) -> None:
    folder = copied(half, tmp_path)
    for words, why in refused(folder):
        file = folder / "state" / "corrections"
        before = file.read_bytes() if file.exists() else b""
        code, told = fail(folder, "correct", "state", *words)
        assert code == 64
        assert why in told
        assert (file.read_bytes() if file.exists() else b"") == before


def test_what_no_longer_makes_sense_is_refused_by_the_run_which_goes_on(half: Path, tmp_path: Path) -> None:
    folder = copied(half, tmp_path)
    file = CorrectionsFile(folder / "state")
    file.append(Correction(what="mute", stories=(99999,)))
    done = call(folder, *RUN, **SETTINGS)
    assert done.returncode == 0
    assert b"correction 1: there is no live story 99999" in done.stderr


# ---------------------------------------------------------------- the file


def filled(folder: Path) -> CorrectionsFile:
    file = CorrectionsFile(folder)
    file.append(Correction(what="pin", stories=(3,)))
    file.mark(1, 10)
    file.append(Correction(what="undo", undone=1))
    return file


def test_what_is_cut_off_was_never_said(tmp_path: Path) -> None:
    file = filled(tmp_path)
    whole = file.path.read_bytes()
    file.path.write_bytes(whole + b'{"number":3,"wha')
    again = CorrectionsFile(tmp_path)
    again.look()
    assert [c.what for c in again.corrections] == ["pin", "undo"]
    assert again.marks == {1: 10}
    assert again.append(Correction(what="mute", stories=(1,))).number == 3
    assert len(file.path.read_bytes().splitlines()) == len(whole.splitlines()) + 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"apples\n", "is no file of corrections"),
        (b'{"streamdp":"corrections","version":2}\n', "line 1: Invalid "),
        (b'{"what":"pin","stories":[1],"number":2}\n', "line 2: correction 2 comes after 0"),
        (b'{"what":"pin","stories":[],"number":1}\n', "line 2: pin names one story"),
        (b'{"what":"pin","stories":[1],"number":1,"x":1}\n', "line 2: Object contains unknown field"),
        (b'{"number":1,"at":4}\n', "line 2: a position out of order"),
        (b"{]\n", "line 2: JSON is malformed"),
        (b"[" * 100_000 + b"\n", "line 2: "),
        (b"\0" * (MOST_BYTES + 1), "has more than 16 MiB"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    file = CorrectionsFile(tmp_path)
    first = (
        b""
        if data[:1] in (b"a", b"\0") or b"version" in data
        else b'{"streamdp":"corrections","version":1}\n'
    )
    file.path.write_bytes(first + data)
    for use in (file.read, lambda: file.append(Correction(what="pin", stories=(1,)))):
        with pytest.raises(CorrectionError, match="corrections") as caught:
            use()
        assert why in caught.value.message
    assert file.path.read_bytes() == first + data


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"precious")
    (tmp_path / "corrections").symlink_to(tmp_path / "other")
    file = CorrectionsFile(tmp_path)
    for use in (file.read, lambda: file.append(Correction(what="pin", stories=(1,)))):
        with pytest.raises(CorrectionError, match="cannot be used: it is a link"):
            use()
    assert (tmp_path / "other").read_bytes() == b"precious"


def test_lines_of_the_file_are_json(tmp_path: Path) -> None:
    assert [json.loads(line) for line in filled(tmp_path).path.read_bytes().splitlines()] == [
        {"streamdp": "corrections", "version": 1, "after": 0},
        {"what": "pin", "stories": [3], "number": 1},
        {"number": 1, "at": 10},
        {"what": "undo", "undone": 1, "number": 2},
    ]


def test_a_stream_that_begins_with_a_state_goes_on_with_its_numbers(half: Path, tmp_path: Path) -> None:
    folder = copied(half, tmp_path)
    a, b = (story["label"] for story in stories(folder)[:2])
    succeed(folder, "correct", "state", "rename", str(a), "First")
    succeed(folder, *RUN, **SETTINGS)
    new = ["--state", "new", "--output", "more", "--events", "events.2", "--start-from", "state"]
    succeed(folder, "consume", "--file", "in.jsonl", *new, **SETTINGS)
    succeed(folder, "correct", "new", "rename", str(b), "Second")
    assert {"First", "Second"} <= {
        story["title"] for story in parsed(succeed(folder, "stories", "new", "--json"))
    }
    succeed(folder, "correct", "new", "undo", "1")
    told = parsed((folder / "new" / "corrections").read_bytes())
    assert told[0]["after"] == 1
    assert [line["number"] for line in told[1:]] == [2, 3]
    (folder / "new" / "corrections").write_bytes(b'{"streamdp":"corrections","version":1,"after":5}\n')
    done = call(folder, "consume", "--file", "in.jsonl", *new[:6], **SETTINGS)
    assert done.returncode == 65
    assert b"is of another state" in done.stderr


def test_what_somebody_wants_of_a_template_is_a_correction() -> None:
    """Through whatever door it comes."""
    closed = msgspec.json.decode(b'{"what": "close", "stories": [7], "hole": 2}', type=CorrectionRequest)
    assert str(closed.correction("ann")) == "close 7 hole 2"
    assert (closed.correction("ann").who, closed.correction("ann").number) == ("ann", 0)
    with pytest.raises(ValueError, match="a hole belongs to close"):
        CorrectionRequest(what="close", stories=(7,)).correction()
