"""``streamdp gate``: logs in which nothing changes pass as often as is stated; planted changes are found."""

from __future__ import annotations

import contextlib
import json
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call, fail, succeed

from benchmarks.diffs import engine_of, line_of, steady
from streamdp.errors import Exit
from streamdp.records import Record
from streamdp.reports.gate import of_records, verdict
from streamdp.story.stretches import chances, stretches

LINES, JUDGED, UNIT = 6_000, 150, 50

Line = tuple[float, str]


def drawn(draw: np.random.Generator, bursts: bool) -> np.ndarray:
    """Labels of a log whose kinds keep their rates, the k-th commonest as 1/k, some of them in bursts."""
    weights = 1.0 / np.arange(1, 2001)
    labels = draw.choice(2000, LINES + JUDGED, p=weights / weights.sum())
    if bursts:
        for begin in draw.integers(0, len(labels), len(labels) // 100):
            labels[begin : begin + draw.geometric(0.2)] = labels[begin]
    return labels


def least_chances(labels: np.ndarray) -> list[float]:
    """Of what is new, has surged and is gone in the last lines, by those before."""
    _, which = np.unique(labels, return_inverse=True)
    counts = np.zeros((which.max() + 1, LINES // UNIT))
    np.add.at(counts, (which[:LINES], np.arange(LINES) // UNIT), 1.0)
    found, _ = chances(counts, np.bincount(which[LINES:], minlength=len(counts)).astype(float))
    return [float(each.min()) for each in found]


@pytest.mark.parametrize("bursts", [False, True])
def test_false_alarms_are_as_often_as_stated(bursts: bool) -> None:
    draw = np.random.default_rng(7)
    least = np.array([least_chances(drawn(draw, bursts)) for _ in range(300)])
    for rate in (0.01, 0.1, 0.3):
        fails = (least <= rate / 3).any(axis=1).mean()
        assert fails <= rate + 2 * (rate * (1 - rate) / 300) ** 0.5
    assert fails >= 0.1


def test_stretches_are_whole_units_counted_from_the_end() -> None:
    counts = np.array([[9.0, 1.0, 1.0, 5.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0, 3.0, 1.0]])
    assert stretches(counts, 6).sum(axis=0).tolist() == [6.0, 8.0, 11.0]
    assert stretches(counts, 1000).sum(axis=0).tolist() == [25.0]
    assert stretches(counts, 6)[0].tolist() == [2.0, 6.0, 10.0]


def test_a_short_baseline_judges_too() -> None:
    found, n = chances(np.array([[3.0, 2.0], [0.0, 1.0]]), np.array([90.0, 10.0]))
    assert n == 2
    assert min(each.min() for each in found) > 0.003
    found, n = chances(np.array([[3.0]]), np.array([90.0]))
    assert n == 1
    assert np.isfinite(found).all()


def generated(seed: int, minutes: int) -> list[Line]:
    """A log in which nothing changes."""
    return sorted(steady(random.Random(seed), minutes))


def judged(before: Sequence[Line], after: Iterable[Line], more: Iterable[str] = ()) -> dict[str, object]:
    """What has changed in lines and some more without times: by the first word of its title."""
    given = [Record(text, time=time) for time, text in after] + [Record(text) for text in more]
    halves, refused = of_records(engine_of(before), [given])
    found = verdict(halves)
    assert not refused
    assert (found.records, found.baseline_records) == (len(given), len(before))
    return {each.title.split()[0]: (each.kind, each.before, each.after) for each in found.changes}


def test_what_is_planted_is_found_with_all_its_lines() -> None:
    draw, lines = random.Random(1), generated(3, 1200)
    before, after = lines[: len(lines) * 79 // 80], lines[len(lines) * 79 // 80 :]
    assert judged(before, after) == {}
    poisoned = [f"cache {draw.randrange(99)} poisoned by key {draw.randrange(999)}" for _ in range(25)]
    assert judged(before, after, poisoned) == {"cache": ("new", 0, 25)}
    words = Counter(text.split()[0] for _, text in before)
    kind = min(range(60), key=lambda kind: abs(words[line_of(kind, draw).split()[0]] - 200))
    word = line_of(kind, draw).split()[0]
    more = [line_of(kind, draw) for _ in range(60)]
    now = sum(word in text for _, text in after) + 60
    assert judged(before, after, more) == {word: ("surged", words[word], now)}
    beats = [(time + 0.1, "heart beats") for time, _ in before[::8]]
    assert judged(sorted(before + beats), after) == {"heart": ("gone", len(beats), 0)}


def written(lines: Iterable[Line]) -> bytes:
    """A log with times."""
    return b"".join(
        f"{datetime.fromtimestamp(1_767_571_200 + time, UTC):%Y-%m-%dT%H:%M:%S} INFO {text}\n".encode()
        for time, text in lines
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, lines = tmp_path_factory.mktemp("gate"), generated(5, 638)
    before = [line for line in lines if line[0] < 630 * 60]
    after = lines[len(before) :]
    draw = random.Random(2)
    errors = [(after[i][0], f"pool {draw.randrange(9)} exhausted: giving up") for i in range(0, 125, 5)]
    for name, own in (("old", before), ("new", after), ("bad", sorted(after + errors)), ("all", lines)):
        (folder / f"{name}.log").write_bytes(written(own))
    (folder / "both.log").write_bytes(written([*before, *sorted(after + errors)]))
    for name in ("old", "bad", "all", "both"):
        files = "--output", f"{name}.jsonl", "--store", f"{name}.db"
        succeed(folder, "consume", f"{name}.log", "--state", name, *files)
    succeed(folder, "diff", "all", "--mark", "deploy", "--time", "2026-01-05T10:30:00")
    return folder


def found_in(folder: Path, path: str, baseline: str) -> tuple[int, int, list[tuple[str, int, int, str]]]:
    """How many lines are judged by how many, and what has changed."""
    found = json.loads(call(folder, "gate", path, "--baseline", baseline, "--json").stdout)
    changes = [(each["kind"], each["before"], each["after"], each["title"]) for each in found["changes"]]
    return found["records"], found["baseline_records"], changes


def test_a_log_a_state_and_a_store_are_judged_alike(folder: Path) -> None:
    lines = {name: (folder / f"{name}.log").read_bytes().count(b"\n") for name in ("old", "bad", "new")}
    new = ("new", 0, 25, "pool <num> exhausted: giving up")
    expected = lines["bad"], lines["old"], [new]
    assert found_in(folder, "bad.log", "old") == expected
    for baseline in ("old", "old.db"):
        for path in ("both", "both.db"):  # which began as the baseline
            assert found_in(folder, path, baseline) == expected, (path, baseline)
        for path in ("bad", "bad.db"):  # where some templates are less general, for there are few lines
            assert found_in(folder, path, baseline) == expected, (path, baseline)
    assert found_in(folder, "all.db", "old") == (lines["new"], lines["old"], [])
    done = call(folder, "gate", "all.db", "--baseline", "all")
    assert (done.returncode, done.stderr.count(b"nothing has come since")) == (Exit.NO_INPUT, 1)


def test_a_store_calls_a_template_as_it_reads_now(tmp_path: Path) -> None:
    draw, people = random.Random(4), ("anna", "bert", "carla", "dmitri", "eve")
    lines = [(float(i), f"order {i} of user {draw.choice(people)} accepted") for i in range(300)]
    lines += [(300.0 + i, f"order {i} of user {draw.choice(people)} taken back") for i in range(20)]
    for name, first in (("one", 0), ("two", 3)):
        (tmp_path / f"{name}.log").write_bytes(written(lines[first:]))
        files = "--output", f"{name}.jsonl", "--store", f"{name}.db"
        succeed(tmp_path, "consume", f"{name}.log", "--state", name, *files)
    told = succeed(tmp_path, "stories", "one", "--json").splitlines()
    titles = {json.loads(line)["title"] for line in told}
    with contextlib.closing(sqlite3.connect(tmp_path / "one.db")) as store:
        found = {title for (title,) in store.execute("SELECT title FROM stories WHERE ended IS NULL")}
    assert found == titles
    assert {title for title in titles if "<word>" in title} == titles
    assert found_in(tmp_path, "two.db", "one") == (317, 320, [])
    succeed(tmp_path, "correct", "one", "rename", "0", "Orders")
    with open(tmp_path / "one.log", "ab") as file:
        file.write(written((400.0 + i, f"order {i} of user eve accepted") for i in range(20)))
    succeed(tmp_path, "consume", "one.log", "--state", "one", "--output", "one.jsonl", "--store", "one.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "one.db")) as store:
        assert store.execute("SELECT title FROM stories WHERE label = 0").fetchone() == ("Orders",)
    assert found_in(tmp_path, "two.db", "one") == (317, 340, [])  # by templates, not by names


def test_templates_are_found_again_that_are_less_general_in_another_log(tmp_path: Path) -> None:
    draw = random.Random(8)

    def orders(begin: float, count: int, people: Sequence[str]) -> list[Line]:
        return [(begin + i, f"order {i} of user {draw.choice(people)} accepted") for i in range(count)]

    many = orders(0.0, 400, ("anna", "bert", "carla", "dmitri", "eve"))
    few = [*orders(200.0, 30, ("anna",)), (230.0, "bye")]  # of the same time, in another place
    for name, lines in (("many", many), ("few", few)):
        (tmp_path / f"{name}.log").write_bytes(written(lines))
        succeed(tmp_path, "consume", f"{name}.log", "--state", name, "--output", f"{name}.jsonl")
    assert b"user anna accepted" in succeed(tmp_path, "stories", "few")
    found = json.loads(succeed(tmp_path, "gate", "few", "--baseline", "many", "--json"))
    assert (found["records"], [each["title"] for each in found["changes"]]) == (31, ["bye"])
    rows = map(json.loads, succeed(tmp_path, "diff", "many", "--since-state", "few", "--json").splitlines())
    assert {each["title"]: each["kind"] in ("new", "gone") for each in rows} == {
        "order <num> of user <word> accepted": False,
        "bye": True,
    }


def test_a_template_that_is_gone_has_its_own_line(folder: Path) -> None:
    draw, lines = random.Random(6), generated(5, 100)
    beats = sorted(lines + [(time + 0.1, f"heart {draw.randrange(9)} beats") for time, _ in lines[::5]])
    for name, own in (("beats", beats), ("still", [line for line in generated(5, 120) if line[0] > 6000])):
        (folder / f"{name}.log").write_bytes(written(own))
        succeed(folder, "consume", f"{name}.log", "--state", name, "--output", f"{name}.jsonl")
    done = call(folder, "gate", "still", "--baseline", "beats", "--json")
    (gone,) = (each for each in json.loads(done.stdout)["changes"] if each["kind"] == "gone")
    assert gone["title"] == "heart <num> beats"
    assert re.search(r"heart \d beats$", gone["line"])


def test_what_was_never_seen_is_named_where_it_is_not_enough_to_fail(folder: Path) -> None:
    errors = [(630 * 60.0 + i, f"disk {i} of 9 is full") for i in range(3)]
    lines = (folder / "new.log").read_bytes() + written(errors).replace(b" INFO ", b" FATAL ")
    (folder / "full.log").write_bytes(lines)
    first, sentence, change, line = (
        succeed(folder, "gate", "full.log", "--baseline", "old").decode().splitlines()
    )
    assert first.startswith("passed: ")
    assert sentence == "there is a template that old never had, not enough to fail by a baseline this long:"
    assert change == "new: 0 before, 3 (1.84%) now: disk <num> of <num> is full"
    assert line == "  > disk 0 of 9 is full"
    found = json.loads(succeed(folder, "gate", "full.log", "--baseline", "old", "--json"))
    assert found["passed"]
    (change,) = found["changes"]
    assert (change["kind"], change["after"], change["surprising"]) == ("new", 3, False)
    (failing,) = json.loads(call(folder, "gate", "both", "--baseline", "old", "--json").stdout)["changes"]
    rows = succeed(folder, "diff", "all", "--since", "deploy", "--json").splitlines()
    assert failing["surprising"]
    assert set(failing) == set(json.loads(rows[0]))


def test_what_could_not_fail_is_refused(folder: Path) -> None:
    (folder / "nothing.log").write_bytes(b"")
    (folder / "one.log").write_bytes((folder / "new.log").read_bytes().splitlines(keepends=True)[0])
    for name in ("nothing", "one"):
        options = ("--format", "log", "--state", name, "--output", f"{name}.jsonl")
        succeed(folder, "consume", f"{name}.log", *options)
    (snapshot,) = (folder / "nothing").glob("snapshot-*")
    for judged, baseline, code, words in (
        ("new.log", "nothing", Exit.NO_INPUT, "the baseline holds no records"),
        ("new.log", f"nothing/{snapshot.name}", Exit.NO_INPUT, "the baseline holds no records"),
        ("old", "nothing", Exit.NO_INPUT, "the baseline holds no records"),
        ("nothing", "old", Exit.NO_INPUT, "the log holds no records"),
        ("one.log", "bad", Exit.BAD_DATA, "whatever they were: some 8 lines are needed"),
        ("new.log", "one", Exit.BAD_DATA, "the baseline needs more lines"),
    ):
        done = call(folder, "gate", judged, "--baseline", baseline)
        assert (done.returncode, done.stdout) == (code, b"")
        assert words in done.stderr.decode().splitlines()[-1]


def test_the_exit_code_says_whether_a_log_passes(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "old").iterdir()}
    assert succeed(folder, "gate", "new.log", "--baseline", "old").startswith(b"passed: ")
    done = call(folder, "gate", "bad.log", "--baseline", "old")
    assert done.returncode == 1
    first, change, line = done.stdout.decode().splitlines()
    assert first.startswith("not passed: ")
    assert change == "new: 0 before, 25 (13.51%) now: pool <num> exhausted: giving up"
    assert "exhausted" in line
    assert {path.name: path.read_bytes() for path in (folder / "old").iterdir()} == before


def test_json_is_one_object(folder: Path) -> None:
    done = call(folder, "gate", "-", "--baseline", "old", "--json", stdin=(folder / "bad.log").read_bytes())
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, found["passed"], found["rate"]) == (1, False, 0.01)
    assert [(each["kind"], each["before"], each["after"]) for each in found["changes"]] == [("new", 0, 25)]
    assert json.loads(succeed(folder, "gate", "new.log", "--baseline", "old", "--json"))["changes"] == []


def test_a_state_is_judged_by_a_state_or_its_own_mark(folder: Path) -> None:
    done = call(folder, "gate", "bad", "--baseline", "old")
    assert (done.returncode, done.stdout.count(b"new: 0 before, 25 (13.51%) now")) == (1, 1)
    assert succeed(folder, "gate", "all", "--baseline", "deploy").startswith(b"passed: ")


def test_what_cannot_be_judged_is_said_in_a_line(folder: Path) -> None:
    def refused(code: int, *arguments: str) -> str:
        found, message = fail(folder, "gate", *arguments)
        assert found == code, message
        return message

    message = refused(Exit.NO_INPUT, "new.log", "--baseline", "r41")
    assert "r41 is no state; make one of a log: streamdp consume r41.log --state r41" in message
    message = refused(Exit.NO_INPUT, "new.log", "--baseline", "old.log")
    assert "old.log is no state; make one of a log: streamdp consume old.log --state baseline" in message
    message = refused(Exit.NO_INPUT, "new.log", "--baseline", "old.db")
    assert "old.db is a store; a log is judged by a state" in message
    assert "nor a mark (there are: deploy)" in refused(Exit.USAGE, "all", "--baseline", "release")
    refused(Exit.NO_INPUT, "gone.log", "--baseline", "old")
    refused(Exit.USAGE, "new.log", "--baseline", "old", "--rate", "1")
    (folder / "empty.log").write_bytes(b"")
    assert "no records" in refused(Exit.NO_INPUT, "empty.log", "--baseline", "old")
    (folder / "texts.jsonl").write_bytes(b'{"text":"storm over the coast"}\n' * 3)
    succeed(folder, "consume", "texts.jsonl", "--state", "texts", "--output", "texts.out.jsonl")
    assert "is for logs" in refused(Exit.USAGE, "new.log", "--baseline", "texts")
    message = refused(Exit.USAGE, "bad", "--baseline", "texts")
    assert "templates cannot be compared with stories" in message
    found, message = fail(folder, "diff", "texts", "--since-state", "old")
    assert (found, "stories cannot be compared with templates" in message) == (Exit.USAGE, True)
