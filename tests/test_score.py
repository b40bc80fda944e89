from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from commands import succeed

from streamdp.scoring.agreement import agreement
from streamdp.scoring.score import ScoreError, score


def assignment(seq: int, cluster: int, revision: int = 0, **other: Any) -> dict[str, Any]:
    return {
        "seq": seq,
        "id": None,
        "position": {"file": "in.jsonl", "line": seq + 1},
        "time": float(seq),
        "cluster": cluster,
        "probability": 0.5,
        "new_probability": 0.25,
        "new": False,
        "link": None,
        "log_predictive": -3.5,
        "novelty": 0.5,
        "revision": revision,
        **other,
    }


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_first_and_newest_labels(tmp_path: Path, suffix: str) -> None:
    out = write(
        tmp_path / f"out.jsonl{suffix}",
        [
            assignment(0, 4),
            assignment(1, 5),
            {"final_through": 0},
            assignment(2, 5),
            assignment(1, 4, revision=1),
            assignment(3, 5),
            assignment(1, 6, revision=2),
        ],
    )
    truth = write(tmp_path / f"in.jsonl{suffix}", [{"text": "x", "cluster": name} for name in "aabb"])
    report = score(out, truth)
    assert report.first == agreement([4, 5, 5, 5], [0, 0, 1, 1])
    assert report.newest == agreement([4, 6, 5, 5], [0, 0, 1, 1])
    assert (report.by, report.revised) == ("line", 1)
    assert (report.unlabelled, report.unassigned, report.unknown) == (0, 0, 0)


def test_the_highest_revision_wins_in_any_order(tmp_path: Path) -> None:
    lines = [
        assignment(0, 2, revision=1),
        assignment(0, 3, revision=2),
        assignment(0, 1),
        assignment(0, 2, revision=1),
        assignment(7, 9, revision=1),
    ]
    truth = write(tmp_path / "in.jsonl", [{"cluster": 1 if i in (0, 7) else None} for i in range(8)])
    report = score(write(tmp_path / "out.jsonl", lines), truth)
    assert report.first == agreement([1, 9], [1, 1])
    assert report.newest == agreement([3, 9], [1, 1])
    assert (report.revised, report.unassigned) == (1, 0)


def test_ids_are_preferred_and_numbers_equal_their_digits(tmp_path: Path) -> None:
    position = {"topic": "t", "partition": 0, "offset": 3}
    out = write(
        tmp_path / "out.jsonl",
        [
            assignment(0, 1, id="a", position=position),
            assignment(1, 1, id=17, position=position),
            assignment(2, 2, id="18"),
            assignment(3, 2, id="null"),
            assignment(4, 2, id="never seen"),
            assignment(5, 2),
        ],
    )
    truth = write(
        tmp_path / "truth.jsonl",
        [
            {"id": 18, "topic": 2.5},
            {"id": "null", "topic": None},
            {"id": "17", "topic": 1},
            {"topic": 7},
            {"id": "a", "topic": "one"},
            {"id": "a", "topic": "one"},
            {"id": "late", "topic": "one"},
            {"id": "without"},
        ],
    )
    report = score(out, truth, field="topic")
    assert report.by == "id"
    assert report.first == agreement([1, 1, 2], [0, 1, 2])
    assert (report.unlabelled, report.unassigned, report.unknown) == (2, 1, 2)


def test_the_truth_may_be_the_id_itself(tmp_path: Path) -> None:
    out = write(tmp_path / "out.jsonl", [assignment(0, 1, id="a"), assignment(1, 1, id="b")])
    truth = write(tmp_path / "truth.jsonl", [{"id": "a"}, {"id": "b"}])
    assert score(out, truth, field="id").first == agreement([1, 1], [0, 1])


def test_blank_lines_count_and_ids_of_any_kind_do_no_harm_by_line(tmp_path: Path) -> None:
    out = write(tmp_path / "out.jsonl", [assignment(1, 1), assignment(2, 2)])
    truth = tmp_path / "truth.jsonl"
    truth.write_text('\n{"id": [1], "cluster": 1}\n{"cluster": 2, "id": {}}')
    assert score(out, truth).first == agreement([1, 2], [1, 2])


def test_a_last_line_cut_short_is_left_out(tmp_path: Path) -> None:
    out = write(tmp_path / "out.jsonl", [assignment(0, 1)])
    with out.open("ab") as file:
        file.write(b'{"seq": 1, "clus')
    truth = write(tmp_path / "in.jsonl", [{"cluster": "a"}, {"cluster": "b"}])
    assert score(out, truth).first == agreement([1], [0])


def fails(out: Path, truth: Path, field: str = "cluster") -> tuple[str, int]:
    with pytest.raises(ScoreError) as caught:
        score(out, truth, field)
    message = str(caught.value).replace(f"{out.parent}/", "")
    assert "\n" not in message
    return message, caught.value.exit_code


def test_errors_are_one_clear_line(tmp_path: Path) -> None:
    out = write(tmp_path / "out.jsonl", [assignment(0, 1), assignment(1, 1)])
    truth = write(tmp_path / "truth.jsonl", [{"cluster": 1}, {"cluster": 2}])
    missing, bad = tmp_path / "missing.jsonl", tmp_path / "bad.jsonl"
    assert fails(missing, truth) == ("missing.jsonl: cannot be read: No such file or directory", 66)
    assert fails(out, missing) == ("missing.jsonl: cannot be read: No such file or directory", 66)
    assert fails(out, tmp_path)[1] == 66
    assert fails(out, truth, "topic") == ("truth.jsonl: no record has a value in the field 'topic'", 65)

    bad.write_bytes(b'{"cluster": 1}\n{"cluster": true}\n')
    assert fails(out, bad)[0].startswith("bad.jsonl, line 2: Expected `int | float | str | null`, got `bool`")
    bad.write_bytes(b'{"cluster": 1}\n{"cluster": 2')
    assert fails(out, bad)[0].startswith("bad.jsonl, line 2: ")
    bad.write_bytes(b'{"cluster": "\xff"}\n')
    assert fails(out, bad)[0].startswith("bad.jsonl, line 1: ")
    bad.write_bytes(b'{"seq": 1}\n')
    said, code = fails(bad, truth)
    assert code == 65
    assert said.startswith("bad.jsonl, line 1: not an assignment of streamdp: cluster the file first")
    bad.write_bytes(b'{"seq": 1, "cluster": "x"}\n')
    assert fails(bad, truth)[0].startswith("bad.jsonl, line 1: Expected `int | null`, got `str`")
    bad.write_bytes(b"")
    assert fails(bad, truth) == (
        "bad.jsonl: none of 0 assignments matches a record of truth.jsonl by line",
        65,
    )
    broken = tmp_path / "broken.gz"
    for data in (b"no gzip", gzip.compress(b'{"cluster": 1}\n' * 99)[:-9]):
        broken.write_bytes(data)
        message, code = fails(out, broken)
        assert message.startswith("broken.gz: not a whole gzip file")
        assert code == 65


def test_what_cannot_be_matched(tmp_path: Path) -> None:
    truth = write(tmp_path / "truth.jsonl", [{"id": "a", "cluster": 1}, {"id": "b", "cluster": 2}])
    out = write(tmp_path / "out.jsonl", [assignment(0, 1, id="x")])
    assert fails(out, truth) == (
        "out.jsonl: none of 1 assignments matches a record of truth.jsonl by id in the field 'id' "
        "(--id-field names another)",
        65,
    )
    write(out, [assignment(0, 1, position={"topic": "t", "partition": 0, "offset": 0})])
    assert fails(out, truth)[1] == 65
    write(out, [assignment(0, 1), assignment(1, 1, position={"file": "b", "line": 1})])
    assert "assignments from 2 files cannot be matched by line" in fails(out, truth)[0]
    write(out, [assignment(0, 1, id="a")])
    write(truth, [{"id": "a", "cluster": 1}, {"id": "a", "cluster": "1"}])
    assert fails(out, truth) == (
        "truth.jsonl, line 2: id 'a' has the cluster '1', but 1 in an earlier line",
        65,
    )


def test_fast_enough_for_long_streams(tmp_path: Path) -> None:
    n = 50_000
    out = write(tmp_path / "out.jsonl", [assignment(i, i % 90, id=f"{i:06}") for i in range(n)])
    truth = write(
        tmp_path / "in.jsonl", [{"id": f"{i:06}", "text": "x " * 40, "cluster": i % 80} for i in range(n)]
    )
    start = time.process_time()
    assert score(out, truth).first.n == n
    # Ten times what it takes on an idle machine: 10^6 lines in about five seconds.
    assert time.process_time() - start < 2.5


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_ids_are_in_the_field_that_consume_recognises(tmp_path: Path, form: str) -> None:
    lines = [{"guid": f"g{i}", "title": "storm", "topic": "ab"[i % 2]} for i in range(6)]
    truth = tmp_path / f"truth.{form}"
    if form == "csv":
        truth.write_text("guid,title,topic\n" + "".join(",".join(line.values()) + "\n" for line in lines))
    else:
        write(truth, lines)
    out = write(tmp_path / "out.jsonl", [assignment(i, i % 2, id=f"g{i}") for i in range(6)])
    found = score(out, truth, "topic")
    assert (found.by, found.newest.n, found.newest.nmi) == ("id", 6, 1.0)


def test_another_field_of_ids_can_be_named(tmp_path: Path) -> None:
    truth = write(tmp_path / "truth.jsonl", [{"key": i, "n": i, "topic": "a"} for i in range(3)])
    out = write(tmp_path / "out.jsonl", [assignment(i, 0, id=str(i)) for i in range(3)])
    with pytest.raises(
        ScoreError, match=r"no record has an id in the field 'id' \(--id-field names another\)"
    ):
        score(out, truth, "topic")
    assert score(out, truth, "topic", "key").newest.n == 3
    with pytest.raises(ScoreError, match=r"by id in the field 'topic' \(--id-field"):
        score(out, truth, "topic", "topic")
    named = ("--field", "topic", "--id-field", "key")
    done = succeed(tmp_path, "diff", "out.jsonl", "--truth", "truth.jsonl", *named, "--json")
    assert json.loads(done)["by"] == "id"
