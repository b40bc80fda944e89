"""Careless commands, tried on real files: whatever streamdp did not write stays as it is."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import assignments, call, fail, succeed, write_headlines

Lines = list[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_headlines(tmp_path / "in.jsonl", 40)
    return tmp_path


def consume(*more: str, beam: str = "1", file: str = "in.jsonl") -> Sequence[str]:
    return ("consume", "--file", file, "--beam", beam, *more)


def grow(folder: Path, lines: int) -> None:
    last = json.loads((folder / "in.jsonl").read_text().splitlines()[-1])
    with (folder / "in.jsonl").open("a") as file:
        for i in range(lines):
            file.write(json.dumps(last | {"time": last["time"] + i, "id": f"more-{i}"}) + "\n")


def test_output_standard_output_and_the_output_again(folder: Path) -> None:
    succeed(folder, *consume("--output", "a.out", "--state", "s"))
    before = (folder / "a.out").read_bytes()
    grow(folder, 5)
    told = call(folder, *consume("--state", "s"))
    assert (told.returncode, len(assignments(told.stdout))) == (0, 5)
    assert "the answers to the first 40 records are in" in told.stderr.decode()
    grow(folder, 5)
    code, message = fail(folder, *consume("--output", "a.out", "--state", "s"))
    assert code == 73
    assert "not what this state wrote to (standard output)" in message
    assert (folder / "a.out").read_bytes() == before
    done = call(folder, *consume("--output", "b.out", "--state", "s"))
    assert len(assignments((folder / "b.out").read_bytes())) == 5
    assert "the first 45 records went to standard output" in done.stderr.decode()


def test_a_run_that_lacks_an_option_of_its_state_is_told_which(folder: Path) -> None:
    wrote, state = ("--output", "a.out"), ("--state", "s")
    succeed(folder, *consume(*wrote, *state, "--store", "n.db"))
    grow(folder, 5)
    again = "or name another --state\n"
    code, message = fail(folder, *consume(*wrote, *state))
    assert code == 78
    assert message == f"streamdp: s: was written with --store {folder / 'n.db'}: say so again, {again}"
    code, message = fail(folder, *consume(*wrote, *state, "--final-only"))
    assert message.count("--store ") == message.count("without --final-only: leave it out, ") == 1
    assert "--events" not in message
    succeed(folder, *consume(*wrote, *state, "--store", "n.db"))
    succeed(folder, *consume("--output", "b.out", "--state", "t", "--final-only"))
    more = ("--events", "e.jsonl", "--store", "m.db")
    code, message = fail(folder, *consume("--output", "b.out", "--state", "t", *more))
    told = "with --final-only: say so again, and without --events and --store: leave them out, "
    assert (code, message) == (78, f"streamdp: t: was written {told}{again}")


def test_what_a_run_leaves_behind_is_named(folder: Path) -> None:
    wrote = ("--output", "a.out", "--state", "s", "--events", "e.jsonl")
    succeed(folder, *consume(*wrote, "--store", "n.db"))
    grow(folder, 5)
    done = call(folder, *consume(*wrote))
    assert done.returncode == 0
    assert f"without --store {folder / 'n.db'} gets nothing of this run" in done.stderr.decode()


@pytest.mark.parametrize("role", ["output", "rejects"])
def test_a_state_of_another_file_gives_no_right_to_cut(folder: Path, role: str) -> None:
    first = ("--output", "s4.jsonl", "--rejects", "r4.jsonl")
    with (folder / "in.jsonl").open("a") as file:
        file.write("no json\n")
    succeed(folder, *consume(*first, "--state", "s"))
    precious = folder / "precious.md"
    precious.write_text("what nobody may lose\n" * 10_000)
    before = precious.read_bytes()
    second = {
        "output": ("--output", "precious.md"),
        "rejects": ("--output", "s4.jsonl", "--rejects", "precious.md"),
    }
    code, message = fail(folder, *consume(*second[role], "--state", "s"))
    assert code == 65
    assert "precious.md is not " in message
    assert precious.read_bytes() == before


def test_a_state_of_standard_output_truncates_no_file(folder: Path) -> None:
    succeed(folder, *consume("--state", "s"))
    precious = folder / "precious.md"
    precious.write_text("mine\n")
    assert fail(folder, *consume("--output", "precious.md", "--state", "s"))[0] == 73
    assert precious.read_text() == "mine\n"


def test_lines_appended_by_hand_are_not_cut(folder: Path) -> None:
    succeed(folder, *consume("--output", "a.out", "--state", "s"))
    with (folder / "a.out").open("a") as file:
        file.write("my notes\n")
    before = (folder / "a.out").read_bytes()
    code, message = fail(folder, *consume("--output", "a.out", "--state", "s"))
    assert (code, "my notes" in message) == (65, True)
    assert (folder / "a.out").read_bytes() == before


def test_a_moved_output_is_gone_on_with_and_a_rotated_one_begun_anew(folder: Path) -> None:
    succeed(folder, *consume("--output", "a.out", "--state", "s"))
    (folder / "elsewhere").mkdir()
    (folder / "a.out").rename(folder / "elsewhere" / "a.1")
    grow(folder, 5)
    code, message = fail(folder, *consume("--output", "a.out", "--state", "s"))
    assert (code, "--new-output" in message, (folder / "a.out").exists()) == (65, True, False)
    succeed(folder, *consume("--output", "elsewhere/a.1", "--state", "s"))
    assert len(assignments((folder / "elsewhere" / "a.1").read_bytes())) >= 45
    grow(folder, 5)
    succeed(folder, *consume("--output", "a.out", "--state", "s", "--new-output"))
    assert {line["seq"] for line in assignments((folder / "a.out").read_bytes())} >= set(range(45, 50))


def test_another_working_directory(folder: Path) -> None:
    succeed(folder, *consume("--output", "a.out", "--state", "s"))
    grow(folder, 5)
    (folder / "deeper").mkdir()
    there = consume("--output", "a.out", "--state", "../s", file="../in.jsonl")
    code, message = fail(folder / "deeper", *there)
    assert code == 65
    assert str(folder) in message or "in.jsonl" in message
    assert not (folder / "deeper" / "a.out").exists()


def test_fit_and_refine_leave_a_streams_snapshots_alone(folder: Path) -> None:
    succeed(folder, *consume("--output", "a.out", "--state", "s"))
    before = {path.name: path.read_bytes() for path in (folder / "s").iterdir()}
    for command in (
        ("fit", "in.jsonl", "--budget", "3", "--state", "s", "--output", "f.out"),
        ("fit", "in.jsonl", "--budget", "3", "--state", "s", "--output", "f.out", "--overwrite"),
        ("fit", "s", "--state", "s", "--budget", "3"),
    ):
        code, message = fail(folder, *command)
        assert (code, "snapshots of a stream" in message) == (73, True)
        assert {path.name: path.read_bytes() for path in (folder / "s").iterdir()} == before
    assert not (folder / "f.out").exists()


def test_the_result_of_a_fit_is_replaced_only_when_asked(folder: Path) -> None:
    fit = ("fit", "in.jsonl", "--budget", "2", "--state", "f", "--output", "f.out")
    succeed(folder, *fit)
    before = sorted(path.name for path in (folder / "f").iterdir())
    code, message = fail(folder, *fit[:-1], "g.out")
    assert (code, "result of fit" in message) == (73, True)
    succeed(folder, *fit, "--overwrite")
    assert sorted(path.name for path in (folder / "f").iterdir()) == before
    code, message = fail(folder, *consume("--output", "a.out", "--state", "f"))
    assert (code, "--start-from" in message) == (78, True)


def test_a_hard_link_to_the_input_is_the_input(folder: Path) -> None:
    os.link(folder / "in.jsonl", folder / "twin.jsonl")
    before = (folder / "in.jsonl").read_bytes()
    for role in ("--output", "--rejects", "--events"):
        code, message = fail(folder, *consume(role, "twin.jsonl", "--overwrite"))
        assert (code, "same file" in message) == (64, True)
    fit = ("fit", "in.jsonl", "--budget", "2", "--output", "twin.jsonl", "--overwrite")
    assert fail(folder, *fit)[0] == 64
    assert (folder / "in.jsonl").read_bytes() == before


def test_a_file_of_the_state_is_no_output(folder: Path) -> None:
    succeed(folder, *consume("--output", "a.out", "--state", "s"))
    held = sorted((folder / "s").glob("*.sdp"))[-1]
    before = held.read_bytes()
    again = consume("--output", str(held), "--state", "s", "--overwrite")
    assert fail(folder, *again)[0] == 64
    assert held.read_bytes() == before


def test_snapshots_that_only_look_so_are_left_alone(folder: Path) -> None:
    (folder / "s").mkdir()
    strange = [folder / "s" / name for name in ("snapshot-mine.sdp", "notes.sdp.tmp", "snapshot-0.sdp")]
    for path in strange:
        path.write_text("mine")
    succeed(
        folder, *consume("--output", "a.out", "--state", "s", "--snapshot-every", "5", "--snapshot-keep", "1")
    )
    assert [path.read_text() for path in strange] == ["mine"] * 3


def test_rejects_of_standard_output_never_share_a_file(folder: Path) -> None:
    with (folder / "in.jsonl").open("a") as file:
        file.write("no json\n")
    for name in ("streamdp-rejects.jsonl", "streamdp-rejects-2.jsonl"):
        told = call(folder, *consume())
        assert told.returncode == 0
        assert f"see {name}" in told.stderr.decode()
    assert all(
        len((folder / name).read_bytes().splitlines()) == 1
        for name in ("streamdp-rejects.jsonl", "streamdp-rejects-2.jsonl")
    )
