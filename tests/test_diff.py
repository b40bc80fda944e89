"""``streamdp diff`` and ``mark``: what has changed since a moment, and what has not."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import fail, succeed

from benchmarks.diffs import bursty, diff_at, engine_of, mixed, steady, zipf
from streamdp.errors import Exit
from streamdp.story.changes import SURPRISING, excess, log_tails

START = "2026-01-05T"


def log(changed: int = 540) -> bytes:
    """Ten hours of lines, of which four things change at a minute."""
    draw, lines = random.Random(3), []
    for minute in range(600):
        later, own = minute >= changed, []
        for _ in range(draw.randrange(20, 30)):
            if draw.random() < 0.6:
                status = 500 if later and draw.random() < 0.3 else 404 if draw.random() < 0.05 else 200
                own.append(
                    f"INFO request {draw.randrange(9999)} done with {status} in {draw.randrange(90)} ms"
                )
            else:
                own.append(f"INFO cache miss for key {draw.randrange(9999)}")
        if not later and minute % 3 == 0:
            own.append("INFO heartbeat of node 3 seen")
        if later and draw.random() < 0.6:
            own.append(f"ERROR pool {draw.randrange(9)} exhausted: giving up")
        own += [f"WARN retry of upstream number {draw.randrange(5)}"] * (4 * later + (draw.random() < 0.3))
        draw.shuffle(own)
        seconds = sorted(draw.randrange(60) for _ in own)
        lines += [
            f"{START}{minute // 60:02}:{minute % 60:02}:{second:02} {text}"
            for second, text in zip(seconds, own, strict=True)
        ]
    return "\n".join(lines).encode() + b"\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff")
    (folder / "app.log").write_bytes(log())
    (folder / "same.log").write_bytes(log(600))
    for name in ("app", "same"):
        run = ("consume", f"{name}.log", "--keep", "level", "--output", f"{name}.jsonl", "--state", name)
        succeed(folder, *run)
    succeed(folder, "diff", "app", "--mark", "deploy", "--time", f"{START}09:00:00")
    return folder


def changes(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in succeed(folder, "diff", *arguments, "--json").splitlines()]
    keys = [(news(each), each["surprise"]) for each in found]
    assert keys == sorted(keys, reverse=True)
    return found


def news(change: dict[str, Any]) -> int:
    """How large it is, where it is new and came more than once."""
    return int(change["after"]) * (change["kind"] == "new" and change["after"] > 1)


def refused(folder: Path, code: Exit, *arguments: str) -> str:
    found, line = fail(folder, *arguments)
    assert found == code
    return line


def test_what_has_changed_is_found_and_nothing_else(folder: Path) -> None:
    found = [each for each in changes(folder, "app", "--since", "deploy") if each["surprising"]]
    kinds = {(each["kind"], each["title"].split()[0]) for each in found}
    assert kinds == {("changed", "request"), ("new", "pool"), ("silent", "heartbeat"), ("surged", "retry")}
    by_kind = {each["kind"]: each for each in found}
    value, before, after = by_kind["changed"]["values"][0]
    assert (value, before) == ("500", 0.0)
    assert after == pytest.approx(0.3, abs=0.05)
    new = by_kind["new"]
    assert new["before"] == 0 < new["after"]
    assert new["levels"] == {"ERROR": new["after"]}
    lines = [line.split(" ", 2)[2] for line in log().decode().splitlines()]
    at = lines.index(new["line"])
    assert [lines[at - 1], lines[at + 1]] == [new["line_before"], new["line_after"]]
    assert by_kind["silent"]["after"] == 0


def test_a_table_shows_it(folder: Path) -> None:
    shown = succeed(folder, "diff", "app", "--since", "1h").decode()
    assert "compared with 2026-01-05T00:00:00Z" in shown
    assert "pool <num> exhausted: giving up" in shown
    assert "500: 0.0% before" in shown


@pytest.mark.parametrize("since", ["deploy", "2h", f"{START}05:00:00"])
def test_where_nothing_changes_nothing_is_found(folder: Path, since: str) -> None:
    if since == "deploy":
        succeed(folder, "diff", "same", "--mark", "deploy", "--time", f"{START}09:00:00")
    assert b"nothing is new, and chance explains the rest" in succeed(
        folder, "diff", "same", "--since", since
    )


def test_two_states_are_compared(folder: Path) -> None:
    early = [line for line in log().splitlines(keepends=True) if line < f"{START}08:58".encode()]
    (folder / "early.log").write_bytes(b"".join(early))
    succeed(folder, "consume", "early.log", "--output", "early.jsonl", "--state", "early", "--keep", "level")
    found = [each for each in changes(folder, "app", "--since-state", "early") if each["surprising"]]
    assert {(each["kind"], each["title"].split()[0]) for each in found} >= {
        ("new", "pool"),
        ("surged", "retry"),
    }


def test_marks_are_refused_where_they_are_none(folder: Path) -> None:
    assert "nor a mark (there are: deploy)" in refused(
        folder, Exit.USAGE, "diff", "app", "--since", "release"
    )
    assert "1 to 100" in refused(folder, Exit.USAGE, "diff", "app", "--mark", "\x1b[2J")
    for time in ("6h", "41", "2026-11-20", "2026-11-20T08:00:00Z"):
        assert "reads as a time" in refused(folder, Exit.USAGE, "diff", "app", "--mark", time)
    assert "one of --since" in refused(folder, Exit.USAGE, "diff", "app")
    link = folder / "linked"
    (folder / "linked.marks.jsonl").symlink_to(folder / "app.log")
    link.symlink_to(folder / "app")
    refused(folder, Exit.CANNOT_CREATE, "diff", "linked", "--mark", "deploy")


def test_answers_do_not_say_what_has_changed(tmp_path: Path) -> None:
    records = "".join(json.dumps(each) + "\n" for each in headlines(100)).encode()
    succeed(tmp_path, "consume", "-", "--output", "w.jsonl", stdin=records)
    for options in (("--since", "6h"), ("--mark", "deploy")):
        code, said = fail(tmp_path, "diff", "w.jsonl", *options)
        assert (code, "answers do not say what has changed: ask a state or a store" in said) == (65, True)


def test_the_newest_record_is_the_mark_of_an_old_log(folder: Path) -> None:
    succeed(folder, "diff", "app", "--mark", "end")
    assert b'{"name":"end","time":17676' in (folder / "app.marks.jsonl").read_bytes()
    (folder / "app.marks.jsonl").open("ab").write(b"garbage\n")
    succeed(folder, "diff", "app", "--since", "deploy")


def test_news_are_compared_too(tmp_path: Path) -> None:
    draw, lines = random.Random(1), []
    for i in range(600):
        words = ("storm coast flood wave" if i % 2 or i < 400 else "vote count ballot poll").split()
        text = " ".join(draw.sample(words, 3))
        lines.append(json.dumps({"time": 1_767_225_600 + 60 * i, "text": text}).encode())
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    succeed(tmp_path, "consume", "in.jsonl", "--state", "st", "--output", "out.jsonl")
    found = changes(tmp_path, "st", "--since", "200m")
    assert found[0]["kind"] == "new"
    assert found[0]["surprising"]
    assert "born since, 2026-01-01T0" in succeed(tmp_path, "diff", "st", "--since", "200m").decode()
    assert {"vote", "count", "ballot", "poll"} & set(found[0]["title"].split())


def test_an_error_never_seen_before_is_listed_however_few_units_there_are(tmp_path: Path) -> None:
    """The mark lies an hour before the end: one unit after it says nothing by chance alone."""
    draw, lines = random.Random(5), []
    for second in range(0, 6 * 3600, 5):
        texts = [f"INFO request {draw.randrange(9999)} done in {draw.randrange(90)} ms"]
        if second >= 5 * 3600 and second % 30 == 0:
            texts.append(f"ERROR disk {draw.randrange(9)} is full: write refused")
        when = f"{START}{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        lines += [f"{when} {text}\n" for text in texts]
    (tmp_path / "app.log").write_text("".join(lines))
    run = ("consume", "app.log", "--format", "log", "--output", "out", "--state", "st", "--store", "app.db")
    succeed(tmp_path, *run)
    for where in ("st", "app.db"):
        first = changes(tmp_path, where, "--since", f"{START}05:00:00")[0]
        assert (first["kind"], first["before"], first["after"]) == ("new", 0, 120)
        assert first["title"].startswith("disk <num> is full")
        shown = succeed(tmp_path, "diff", where, "--since", f"{START}05:00:00").decode()
        assert "disk <num> is full" in shown
    late = changes(tmp_path, "st", "--since", f"{START}05:10:00")
    assert [each for each in late if news(each)] == []  # it was seen ten minutes before


STORIES = {"storm coast flood wave": 0, "vote count ballot poll": 500, "striker goal cup final": 560}
"""Words of stories, and the record from which they come; the last come a few times each."""
VOTE, CUP = ("vote", "count", "ballot", "poll"), ("striker", "goal", "cup", "final")


def headlines(n: int = 600) -> list[dict[str, Any]]:
    draw, found = random.Random(1), []
    for i in range(n):
        tale = [words for words, begin in STORIES.items() if begin <= i]
        text = " ".join(draw.sample(tale[i % len(tale)].split(), 3))
        found.append({"id": i, "time": 1_767_225_600 + 60 * i, "text": text})
    return found


@pytest.mark.parametrize("dated", [True, False])
def test_stories_born_since_come_first_by_size(tmp_path: Path, dated: bool) -> None:
    given = headlines()
    for record in given:
        if not dated:
            del record["time"]
    lines = [json.dumps(record) + "\n" for record in given]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    (tmp_path / "early.jsonl").write_text("".join(lines[:490]))
    succeed(tmp_path, "consume", "early.jsonl", "--state", "early", "--output", "before")
    succeed(tmp_path, "diff", "early", "--mark", "deploy")
    marked = (tmp_path / "early.marks.jsonl").read_bytes()
    for name in ("st", "news.db"):
        (tmp_path / f"{name}.marks.jsonl").write_bytes(marked)
    succeed(tmp_path, "consume", "in.jsonl", "--state", "st", "--store", "news.db", "--output", "out")
    votes = sum(set(record["text"].split()) <= set(VOTE) for record in given)
    for how in ("st --since deploy", "news.db --since deploy", "st --since-state early"):
        first, second, *_ = changes(tmp_path, *how.split())
        assert set(first["title"].split()) <= set(VOTE)
        assert set(second["title"].split()) <= set(CUP)
        assert (first["kind"], first["before"], first["after"]) == ("new", 0, votes)
        assert "born since" in succeed(tmp_path, "diff", *how.split()).decode()


def test_news_are_listed_where_nothing_is_remembered_from_before(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in headlines()))
    succeed(tmp_path, "consume", "in.jsonl", "--state", "st", "--output", "out", retain="64")
    new = [each for each in changes(tmp_path, "st", "--since", "110m") if news(each)]
    assert set(new[0]["title"].split()) <= set(VOTE)


# ---------------------------------------------------------------- figures


def test_what_is_all_on_one_side_has_its_exact_probability() -> None:
    counts = np.ones((1, 40))
    counts[0, :30] = 0.0
    after = np.arange(40) >= 30
    assert log_tails(counts, np.ones(40), after, given=True)[0] == pytest.approx(np.log(2 * 0.25**10))


def test_the_bound_holds_for_counts_that_come_one_by_one() -> None:
    rng = np.random.default_rng(4)
    after = np.arange(50) >= 40
    tails = log_tails(rng.poisson(3.0, (4000, 50)).astype(float), np.ones(50), after, given=True)
    for nats in (1.0, 3.0, 5.0):
        assert np.mean(tails < -nats) <= np.exp(-nats)


def test_bursts_vary_more_than_lines_that_come_one_by_one() -> None:
    rng = np.random.default_rng(4)
    calm, bursts = rng.poisson(3.0, (200, 200)), 30 * rng.poisson(0.1, (200, 200))
    assert excess(calm.astype(float), np.ones(200)).mean() < 1.6
    assert excess(bursts.astype(float), np.ones(200)).mean() > 20.0


@pytest.mark.parametrize("make", [steady, bursty, mixed, zipf])
def test_logs_in_which_nothing_changes_cause_no_alarm(make: Any) -> None:
    """``python -m benchmarks.diffs false`` does it with a million lines."""
    for seed in (1000, 1001):
        engine = engine_of(list(make(random.Random(seed), 400)))
        for minute in (200, 360):
            found = diff_at(engine, 60.0 * minute).changes
            assert [change for change in found if change.surprise >= SURPRISING] == []
