"""A file whose newest records come first is read from its end, whole records in their order."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import assignments, call, fail, parsed, start, succeed, wait_for_size
from hypothesis import given, settings
from hypothesis import strategies as st
from streamdp_connectors.files import backwards
from streamdp_connectors.files.backwards import BackwardsSource
from streamdp_connectors.files.source import FileSource
from streamdp_connectors.protocol import SourceError

from streamdp.records.raw_batch import RawBatch
from streamdp.run.reading import Reader
from streamdp.settings import Settings
from streamdp.settings.io_options import Input

WORDS = ("storm", "coast", "goal", "cup", "bank", "rate", "vote", "court", "fire", "train", "strike", "film")


def objects(n: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=6)) for _ in range(n)]
    return [
        json.dumps({"id": i, "time": 1e9 + 60.0 * i, "text": text}) + "\n" for i, text in enumerate(texts)
    ]


def without_places(lines: bytes) -> list[dict[str, Any]]:
    found = parsed(lines)
    for line in found:
        line.pop("position", None)
    return found


@pytest.mark.parametrize("packed", [False, True])
def test_the_answers_are_those_of_the_file_turned_round(tmp_path: Path, packed: bool) -> None:
    lines, name = objects(500), "in.jsonl.gz" if packed else "in.jsonl"
    (tmp_path / "turned.jsonl").write_text("".join(lines))
    data = "".join(reversed(lines)).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
    wanted = succeed(tmp_path, "consume", "turned.jsonl")
    done = call(tmp_path, "consume", name)
    assert without_places(done.stdout) == without_places(wanted)
    assert [line["position"]["line"] for line in assignments(done.stdout) if not line["revision"]] == list(
        range(500, 0, -1)
    )
    said = done.stderr.decode()
    assert f"{name} has its newest records first: it is read backwards (--read-order forwards" in said
    assert "out of order" not in said
    assert "it is read backwards" in call(tmp_path, "check", name).stderr.decode()
    forwards = call(tmp_path, "consume", name, "--read-order", "forwards").stderr.decode()
    assert "499 records came out of order" in forwards


def test_a_killed_run_goes_on_where_its_snapshot_was(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(reversed(objects(9_000))))
    run = ("consume", "in.jsonl", "--snapshot-every", "1000")
    succeed(tmp_path, *run, "--output", "whole.jsonl")
    size, resumed = (tmp_path / "whole.jsonl").stat().st_size, 0
    for share in (0.2, 0.5, 0.8):
        process = start(tmp_path, *run, "--output", "out.jsonl", "--state", "st")
        wait_for_size(process, tmp_path / "out.jsonl", int(share * size))
        process.kill()
        resumed += b"resuming from record" in process.communicate()[1]
    done = call(tmp_path, *run, "--output", "out.jsonl", "--state", "st")
    assert done.returncode == 0, done.stderr
    assert resumed + (b"resuming from record" in done.stderr) >= 2
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


GROUPS = st.lists(st.integers(1, 5), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(GROUPS, st.integers(1, 9), st.integers(1, 9), st.integers(0, 90), st.sampled_from(["lines", "rows"]))
def test_records_stay_whole_and_positions_go_on(
    tmp_path_factory: pytest.TempPathFactory, groups: list[int], block: int, most: int, cut: int, kind: str
) -> None:
    """For any length of blocks and batches, and whichever line a position is taken after."""
    path = tmp_path_factory.mktemp("in") / "in"
    if kind == "lines":
        written = [
            [f"* {i}".encode(), *(f" {i}.{j}".encode() for j in range(1, n))] for i, n in enumerate(groups)
        ]
        data, begins = (
            b"".join(line + b"\n" for group in written for line in group),
            lambda line: line[:1] == b"*",
        )
    else:
        written = [[b'%d,"%s"' % (i, b"\n".join([b"x"] * n))] for i, n in enumerate(groups)]
        data, begins = b"a,b\n" + b"".join(group[0] + b"\n" for group in written), None
    path.write_bytes(data)
    wanted = [line for group in reversed(written) for line in group]

    def opened() -> BackwardsSource:
        return BackwardsSource(FileSource(str(path), "text" if kind == "lines" else "csv"), begins)

    def taken(source: BackwardsSource, count: int) -> list[bytes]:
        found: list[bytes] = []
        while len(found) < count and not source.at_end:
            found += source.read(min(most, count - len(found)), 0.0).data
        return found

    before, backwards.BLOCK = backwards.BLOCK, block
    try:
        cut = min(cut, len(wanted))
        source = opened()
        first = taken(source, cut)
        again = opened()
        assert again.seek(source.positions())
        assert again.positions() == source.positions()
        assert first + taken(again, len(wanted)) == first + taken(source, len(wanted)) == wanted
        path.write_bytes(data + b"* more\n")
        with pytest.raises(SourceError, match="is not what was read backwards"):
            opened().seek(again.positions())
    finally:
        backwards.BLOCK = before


def test_traces_of_a_log_stay_behind_their_lines(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: no {}\n'
    events = [
        f"2026-01-05 00:{i:02}:00 INFO web: request {i} took {3 * i} ms\n"
        + (trace.format(i) if i % 9 == 4 else "")
        for i in range(60)
    ]
    (tmp_path / "new.log").write_text("".join(reversed(events)))
    (tmp_path / "old.log").write_text("".join(events))
    done = call(tmp_path, "consume", "new.log")
    assert without_places(done.stdout) == without_places(succeed(tmp_path, "consume", "old.log"))
    assert b"it is read backwards" in done.stderr
    assert b"out of order" not in done.stderr


@pytest.mark.parametrize(
    "mix",
    [
        lambda lines: [*reversed(lines[:150]), *lines[150:]],
        lambda lines: [*reversed(lines[:150]), *reversed(lines[150:])],
        lambda lines: [*reversed(lines[200:]), *random.Random(1).sample(lines[:200], 200)],
    ],
)
def test_a_file_only_partly_so_is_read_forwards(
    tmp_path: Path, mix: Callable[[list[str]], list[str]]
) -> None:
    (tmp_path / "in.jsonl").write_text("".join(mix(objects(300))))
    done = call(tmp_path, "consume", "in.jsonl")
    assert b"backwards" not in done.stderr
    assert b"came out of order" in done.stderr
    assert assignments(done.stdout)[0]["position"]["line"] == 1


def test_one_wrong_clock_does_not_hide_the_order(tmp_path: Path) -> None:
    lines = objects(300)
    lines[40] = lines[40].replace('"time": 1', '"time": 2')
    (tmp_path / "in.jsonl").write_text("".join(reversed(lines)))
    assert b"it is read backwards" in call(tmp_path, "consume", "in.jsonl").stderr


def test_what_cannot_be_read_backwards_is_refused_with_what_to_do(tmp_path: Path) -> None:
    data = "".join(reversed(objects(50))).encode()
    (tmp_path / "in.jsonl").write_bytes(data)
    help_ = "write it to a file, turn it round with tac, or say --read-order forwards"
    for arguments in (("-",), ("in.jsonl", "--follow"), ("-", "--read-order", "backwards")):
        code, message = fail(tmp_path, "consume", *arguments, "--output", "out.jsonl", stdin=data)
        assert code in (64, 65)
        assert help_ in message
    done = call(tmp_path, "consume", "-", "--read-order", "forwards", stdin=data)
    assert done.returncode == 0
    assert b"49 records came out of order" in done.stderr


def test_a_state_that_has_read_forwards_is_told_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(reversed(objects(50))))
    place = FileSource(str(path)).positions()
    with pytest.raises(SourceError, match="go on with --read-order forwards"):
        BackwardsSource(FileSource(str(path))).seek(place)


def test_the_advice_on_lateness_is_true(tmp_path: Path) -> None:
    """As many records are late no longer as it says, whatever the order they come in."""
    lines = objects(400)
    rng = random.Random(3)
    order = sorted(range(400), key=lambda i: i + rng.uniform(0, 30))
    (tmp_path / "in.jsonl").write_text("".join(lines[i] for i in order))
    said = call(tmp_path, "consume", "in.jsonl").stderr.decode()
    line = next(line for line in said.splitlines() if "out of order" in line)
    total = int(line.split("streamdp: ")[1].split()[0])
    for part in line.split("--max-lateness ")[1:]:
        seconds, count = part.split()[0], int(part.split("put ")[1].split()[0])
        again = call(
            tmp_path, "consume", "in.jsonl", "--max-lateness", seconds, "--max-leap", "1e6"
        ).stderr.decode()
        left = [each for each in again.splitlines() if "out of order" in each]
        late = int(left[0].split("streamdp: ")[1].split()[0]) if left else 0
        assert total - late >= count


def test_files_that_show_no_order_are_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one without times, nor one whose times are all alike, nor one whose times rise."""
    taken: list[int] = []
    read = FileSource.read

    def counting(source: FileSource, most: int, timeout: float) -> RawBatch:
        found = read(source, most, timeout)
        taken.append(len(found))
        return found

    monkeypatch.setattr(FileSource, "read", counting)
    for time, most in (('"n": 1', 100), ('"time": 5', 16_100), ('"time": %d', 100)):
        lines = ('{"text": "storm over the coast", ' + time + "}\n") * 40_000
        (tmp_path / "in.jsonl").write_text(lines % tuple(range(40_000)) if "%" in time else lines)
        taken.clear()
        Reader(Settings(), Input(file=str(tmp_path / "in.jsonl"))).source.close()
        assert 100 <= sum(taken) <= most
