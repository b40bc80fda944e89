"""Alerts of answers that have changed: each change is one message, whatever happens to a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import call, fail, succeed, wait_for
from hypothesis import given, settings
from hypothesis import strategies as st
from receiver import Webhook, counts, killed_again_and_again

from streamdp.alerts.changes import RECORDS
from streamdp.alerts.forms import body_of, sentence
from streamdp.alerts.outbox import MovedRecord, Notification, Outbox
from streamdp.alerts.rules import AlertRules
from streamdp.alerts.send import FileReceiver, Sender, receiver_of
from streamdp.demo.stream import demo_stream
from streamdp.engine import Engine
from streamdp.records import Assignment, Record
from streamdp.settings import Settings
from streamdp.settings.alerts import Alert
from streamdp.state.corrections import Correction

PUBLISHERS = ("Coast Post", "Daily", "Wire")


def headlines(n: int, seed: int = 3) -> list[Record]:
    """Headlines of the demo, each of a publisher."""
    return [
        Record(
            item.text,
            {"line": i},
            time=60.0 * i,
            id=f"n{i}",
            keep={"publisher": PUBLISHERS[i % 3], "page": i, "body": item.text * 3},
        )
        for i, item in enumerate(demo_stream(n, seed))
    ]


def changes(
    records: list[Record], at: int, correct: Correction | None = None, **keys: Any
) -> tuple[list[Notification], list[Assignment]]:
    """What is told of the answers to records that come in batches, and these answers."""
    engine = Engine(Settings(beam=4, retain=500, keep=("publisher", "page", "body")), with_events=True)
    rules = AlertRules(
        [Alert(**{"name": "a", "url": "http://h", "on": ("revised",), **keys})], engine.settings
    )
    rules.begin(engine)
    texts = {seq: record.value for seq, record in enumerate(records)}
    found, lines = list[Notification](), list[Assignment]()

    def tell(answers: Any) -> None:
        lines.extend(answers.assignments)
        found.extend(rules.of_answers(answers, engine.muted, lambda seqs: {s: str(texts[s]) for s in seqs}))

    for first in range(0, len(records), at):
        tell(engine.advance(records[first : first + at]))
        if correct is not None and first == 0:
            tell(engine.correct(correct))
    tell(engine.finish())
    return found, lines


def expected_of(lines: list[Assignment]) -> dict[tuple[int, int, int], list[Assignment]]:
    """Which answers each change has revised, by plain bookkeeping: cause, label before, label since."""
    labels, found, by = dict[int, int](), dict[tuple[int, int, int], list[Assignment]](), -1
    for line in lines:
        if line.revision == 0:
            by = line.seq
        elif labels[line.seq] != line.cluster:
            found.setdefault((by, labels[line.seq], line.cluster), []).append(line)
        labels[line.seq] = line.cluster
    return found


@pytest.mark.parametrize("at", [1, 37, 5000])
def test_each_change_is_one_message_of_all_that_it_has_moved(at: int) -> None:
    records = headlines(1500)
    told, lines = changes(records, at)
    wanted = expected_of(lines)
    assert len(wanted) > 20
    assert max(map(len, wanted.values())) > 3
    assert [(each.seq, each.story, each.other) for each in told] == [*wanted]
    unstable = [1.0 - line.stability for line in lines if line.revision == 0]  # type: ignore[operator]
    for each, moved in zip(told, wanted.values(), strict=True):
        assert each.size == len(moved)
        assert [record.seq for record in each.records] == [line.seq for line in moved][:RECORDS]
        for record, line in zip(each.records, moved, strict=False):
            assert (record.id, record.revision, record.probability) == (
                line.id, line.revision, line.probability,
            )  # fmt: skip
            assert record.text == " ".join(str(records[line.seq].value).split())
            assert record.keep["publisher"] == PUBLISHERS[line.seq % 3]
        counted = Counter(PUBLISHERS[line.seq % 3] for line in moved)
        assert each.sources["publisher"] == counted
        assert list(each.sources["publisher"].values()) == sorted(counted.values(), reverse=True)
        assert "body" not in each.sources or len(records[moved[0].seq].keep["body"]) <= 40  # type: ignore[index]
        assert each.probability == pytest.approx(
            sum(line.probability for line in moved) / len(moved), abs=1e-4
        )
        assert each.seq is not None
        mean = sum(unstable[: each.seq + 1]) / (each.seq + 1)
        assert each.expected == pytest.approx(100 * mean, abs=0.006)
        assert each.time == 60.0 * each.seq
    assert len({each.key for each in told}) == len(told)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(1, 500), at=st.integers(1, 200))
def test_messages_do_not_depend_on_batches(seed: int, at: int) -> None:
    records = headlines(400, seed)
    told = [
        [{**each, "at": 0} for each in json.loads(_json(changes(records, size)[0]))] for size in (at, 400)
    ]
    assert told[0] == told[1]


def _json(told: list[Notification]) -> bytes:
    import msgspec

    return msgspec.json.encode(told)


def test_both_stories_have_their_titles_and_one_that_splits_is_said_to_be_two() -> None:
    records = headlines(1500)
    told, lines = changes(records, 100)
    texts = {str(record.value) for record in records}
    first = [each for each in told if (each.seq or 0) < 511]  # no story has a title yet: its founder's text
    assert {name for each in first for name in (each.title, each.other_title)} <= texts
    assert sum(bool(each.title and each.other_title) for each in told) > 0.9 * len(told)
    founded = {line.cluster: line.seq for line in lines if line.new}
    one = first[0]
    assert one.story is not None
    assert one.title == str(records[founded[one.story]].value)
    assert any(each.split for each in told)
    assert all(each.other_title for each in told if each.split)
    assert all("was two" in sentence(each) for each in told if each.split)


def test_only_changes_of_some_stories_or_of_several_records() -> None:
    records = headlines(1500)
    told, _ = changes(records, 100)
    some = max(told, key=lambda each: each.size or 0).story
    assert some is not None
    own, _ = changes(records, 100, stories=(some,))
    assert [each.key for each in own] == [each.key for each in told if some in (each.story, each.other)]
    large, _ = changes(records, 100, least=3)
    assert [each.key for each in large] == [each.key for each in told if (each.size or 0) >= 3]


def test_what_is_corrected_by_hand_is_one_message() -> None:
    records = [
        Record(text, {"line": i}) for i, text in enumerate(["storm over the coast", "late goal wins"] * 6)
    ]
    told, lines = changes(records, 12, Correction(what="merge", stories=(0, 1)))
    assert [(each.seq, each.story, each.other, each.size) for each in told] == [(11, 1, 0, 6)]
    assert [*expected_of(lines)] == [(11, 1, 0)]


def test_a_muted_story_is_left_out() -> None:
    records = headlines(1500)
    told, _ = changes(records, 250)
    after = [each for each in told if (each.seq or 0) >= 250]
    story = Counter(each.story for each in after).most_common(1)[0][0]
    assert story is not None
    muted, _ = changes(records, 250, Correction(what="mute", stories=(story,)))
    assert [each.key for each in muted if (each.seq or 0) >= 250] == [
        each.key for each in after if each.story != story
    ]


def test_nobody_is_told_where_answers_do_not_change() -> None:
    assert changes([Record("storm over the coast", {"line": 1})] * 50, 10)[0] == []


# ---------------------------------------------------------------- forms


def moved(n: int, size: int, **more: Any) -> Notification:
    """Records that have moved."""
    some = [
        MovedRecord(
            seq=i, id=f"n{i}", text=f"storm {i}", keep={"publisher": "<Wire>"}, probability=0.5, revision=1
        )
        for i in range(min(size, RECORDS))
    ]
    return Notification(
        **{
            "alert": "ops", "key": f"revised:{n}.1@90", "event": "revised", "at": 5.0,
            "story": 12, "other": 57, "title": "storm", "other_title": "ships collide",
            "size": size, "probability": 0.93, "expected": 3.42,
            "sources": {"publisher": {"<Wire>": size}}, "records": some, "seq": 90, **more,
        }
    )  # fmt: skip


def test_a_sentence_says_what_was_published_and_what_was_promised() -> None:
    assert sentence(moved(1, 4, split=True)) == (
        "story 12 (storm) was two: 4 records of it are in 57 (ships collide) now, with probability 0.93; "
        "publisher: <Wire> 4; 3.4 of 100 answers were expected to change"
    )
    assert sentence(moved(1, 1, title="", other_title="", sources={})) == (
        "story 12 is corrected: 1 record of it is in 57 now, with probability 0.93; "
        "3.4 of 100 answers were expected to change"
    )


def test_a_chat_reads_some_of_the_records() -> None:
    lines = json.loads(body_of("slack", "ops", [moved(1, 30)], None, 9.0))["text"].splitlines()
    assert lines[2] == "• record n0: storm 0: publisher &lt;Wire&gt;"
    assert lines[-1] == "• and 25 more"
    assert len(lines) == 8


# ---------------------------------------------------------------- files


def file_of(tmp_path: Path) -> FileReceiver:
    """A receiver that appends to a file."""
    made = receiver_of(Alert(name="ops", url=f"file:{tmp_path}/wire.jsonl"))
    assert isinstance(made, FileReceiver)
    return made


def test_a_file_gets_a_line_for_each_and_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "wire.jsonl").write_text('{"event":"theirs"}\n')
    file_of(tmp_path).send([moved(1, 2), moved(2, 3)])
    lines = (tmp_path / "wire.jsonl").read_text().splitlines()
    assert lines[0] == '{"event":"theirs"}'
    found = [json.loads(line) for line in lines[1:]]
    assert [(each["event"], each["size"], "at" in each) for each in found] == [
        ("revised", 2, False), ("revised", 3, False),
    ]  # fmt: skip
    assert found[0]["sentence"] == sentence(moved(1, 2))


@pytest.mark.parametrize("cut", [0, 1, 30, 5000])
def test_what_a_crash_left_in_a_file_is_there_once(tmp_path: Path, cut: int) -> None:
    waiting = [moved(n, 3) for n in range(40)]
    file_of(tmp_path).send(waiting)
    whole = (tmp_path / "wire.jsonl").read_bytes()
    (tmp_path / "wire.jsonl").write_bytes(whole[: len(whole) - cut])  # the outbox did not note it
    box = Outbox(tmp_path, ["ops"])
    box.add(waiting)
    sender = Sender(file_of(tmp_path), box)
    wait_for(lambda: counts(box).waiting == 0)
    sender.end()
    assert (tmp_path / "wire.jsonl").read_bytes() == whole


def test_half_a_line_of_somebody_else_is_not_cut_off(tmp_path: Path) -> None:
    (tmp_path / "wire.jsonl").write_bytes(b"theirs")
    assert file_of(tmp_path).has([moved(1, 1)]) == []
    assert (tmp_path / "wire.jsonl").read_bytes() == b"theirs"


def test_a_file_that_cannot_be_written_is_said_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "wire.jsonl").mkdir()
    box = Outbox(tmp_path, ["ops"])
    box.add([moved(1, 1)])
    sender = Sender(file_of(tmp_path), box)
    wait_for(lambda: counts(box).failures >= 1)
    sender.end()
    where = tmp_path / "wire.jsonl"
    assert f"alert ops: not delivered: {where}: Is a directory; it is tried again" in caplog.text
    assert counts(box).waiting == 1


# ---------------------------------------------------------------- runs


def write_news(path: Path, n: int) -> None:
    """Headlines of the demo as lines of JSON, with their publishers."""
    with path.open("w") as file:
        for i, item in enumerate(demo_stream(n, 3)):
            line = {"id": f"n{i}", "time": item.time, "text": item.text, "publisher": PUBLISHERS[i % 3]}
            file.write(json.dumps(line) + "\n")


def configure(folder: Path, hook: str, wire: str) -> None:
    """A file and a webhook that hear of changes."""
    (folder / "streamdp.toml").write_text(
        'keep = ["publisher"]\n'
        f'[[alert]]\nname = "wire"\nurl = "file:{wire}"\non = ["revised"]\n'
        f'[[alert]]\nname = "desk"\nurl = "{hook}"\non = ["revised", "titled"]\nevery = 0\n'
    )


def test_a_run_that_is_killed_again_and_again_tells_each_change_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamdp.run.alarm.LAST", 120.0)
    write_news(tmp_path / "in.jsonl", 6000)
    common = ("consume", "--file", "in.jsonl", "--output")
    with Webhook() as hook:
        configure(tmp_path, hook.url, "whole.jsonl")
        succeed(tmp_path, *common, "whole", "--state", "whole-st", "--store", "whole.db")
        wanted = hook.keys
    lines = [json.loads(line) for line in (tmp_path / "whole.jsonl").read_text().splitlines()]
    assert [each["key"] for each in lines] == [key for key in wanted if key.startswith("revised")]
    assert len(lines) > 50
    texts = [json.loads(line)["text"] for line in (tmp_path / "in.jsonl").read_text().splitlines()]
    for each in lines:
        assert all(record["text"] == texts[record["seq"]] for record in each["records"])
    with Webhook() as hook:
        configure(tmp_path, hook.url, "wire.jsonl")
        run = (*common, "out", "--state", "st", "--store", "st.db")
        killed_again_and_again(tmp_path, hook, *run, "--snapshot-every", "700")
        assert list(dict.fromkeys(hook.keys)) == wanted
    assert (tmp_path / "wire.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_flag_tells_of_watched_stories_alone(tmp_path: Path) -> None:
    write_news(tmp_path / "in.jsonl", 1000)
    configure(tmp_path, "http://127.0.0.1:9/", "wire.jsonl")
    run = (
        "consume",
        "--file",
        "in.jsonl",
        "--output",
        "out",
        "--state",
        "st",
        "--alert",
        "file:watched.jsonl",
    )
    (story, _), (other, _) = Counter(_stories_of(tmp_path, run)).most_common(2)
    wanted = [
        each
        for line in (tmp_path / "wire.jsonl").read_text().splitlines()
        if {story, other} & {(each := json.loads(line))["story"], each["other"]}
    ]
    for path in ("watched.jsonl", "wire.jsonl"):
        (tmp_path / path).unlink()
    watched = ("--watch-story", str(story), "--watch-story", str(other))
    succeed(tmp_path, *run[:-4], "--state", "again", *run[-2:], *watched, "--overwrite")
    assert [json.loads(line) for line in (tmp_path / "watched.jsonl").read_text().splitlines()] == wanted


def _stories_of(folder: Path, run: tuple[str, ...]) -> list[int]:
    """The stories that corrections were about."""
    assert call(folder, *run).returncode == 0
    lines = map(json.loads, (folder / "wire.jsonl").read_text().splitlines())
    return [label for each in lines for label in (each["story"], each["other"])]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--watch-story", "3"), "--watch-story needs --alert URL"),
        (("--alert", "file:x", "--watch-story", "-3"), "a whole number of at least 0"),
        (("--alert", "file:x", "--watch-story", "storm"), "a whole number of at least 0"),
    ],
)
def test_a_story_that_cannot_be_watched_is_refused(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "storm"}\n')
    code, message = fail(tmp_path, "consume", "--file", "in.jsonl", "--state", "st", *given)
    assert (code in (64, 78), said in message) == (True, True)


def test_the_flag_takes_a_file_and_an_erased_record_leaves_it(tmp_path: Path) -> None:
    write_news(tmp_path / "in.jsonl", 1000)
    configure(tmp_path, "http://127.0.0.1:9/", "wire.jsonl")
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--state", "st", "--alert", "file:new.jsonl")
    done = call(tmp_path, *run)
    assert done.returncode == 0
    assert json.loads((tmp_path / "new.jsonl").read_text().splitlines()[0])["event"] == "born"
    (first, *_) = [json.loads(line) for line in (tmp_path / "wire.jsonl").read_text().splitlines()]
    name = first["records"][0]["id"]
    assert f'"id":"{name}"' in (tmp_path / "st" / "alerts.jsonl").read_text()
    succeed(tmp_path, "erase", "st", "out", "wire.jsonl", "new.jsonl", "--id", name)
    for path in (tmp_path / "wire.jsonl", tmp_path / "st" / "alerts.jsonl"):
        assert f'"id":"{name}"' not in path.read_text()
