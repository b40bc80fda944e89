"""``streamdp show``, ``score``, ``demo`` and the help, on the result of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import (
    fail,
    newest_lines,
    parsed,
    succeed,
)


def test_show(learned: Path) -> None:
    clusters = parsed(succeed(learned, "show", "state", "--json"))
    last = {line["cluster"] for line in newest_lines((learned / "out").read_bytes())}
    assert clusters
    assert {cluster["cluster"] for cluster in clusters} <= last
    assert [c["size"] for c in clusters] == sorted((c["size"] for c in clusters), reverse=True)
    assert all(c["words"] and c["mean"] is None for c in clusters)
    table = succeed(learned, "show", "state", "--top", "3").decode()
    assert "3,000 records" in table
    assert "2026-01" in table
    assert clusters[0]["words"][0][0] in table
    snapshot = max((learned / "state").glob("snapshot-*"))
    assert parsed(succeed(learned, "show", str(snapshot), "--json")) == clusters


@pytest.mark.parametrize("count", [12, 150])
def test_show_of_few_vectors_counts_them(count: int, tmp_path: Path) -> None:
    rows = ({"vector": [i % 3 * 5.0, i % 7 / 10, 1.0]} for i in range(count))
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    succeed(tmp_path, "consume", "v.jsonl", "--state", "st", "--output", "out.jsonl")
    assert succeed(tmp_path, "show", "st").decode().startswith(f"{count} records; ")


def test_show_vectors_and_an_empty_state(tmp_path: Path) -> None:
    succeed(tmp_path, "consume", "--file", "-", "--state", "empty")
    assert succeed(tmp_path, "show", "empty", "--json") == b""
    assert b"0 records" in succeed(tmp_path, "show", "empty")
    data = b"".join(b'{"vector": [%d, 0.5]}\n' % (9 * (i % 2)) for i in range(250))
    succeed(tmp_path, "consume", "--file", "-", "--state", "state", stdin=data)
    clusters = parsed(succeed(tmp_path, "show", "state", "--json"))
    assert sorted(round(c["mean"][0]) for c in clusters) == [0, 9]
    assert b"mean" in succeed(tmp_path, "show", "state")


@pytest.mark.parametrize("time", ["1e33", "1e39", "-1e39"])
def test_show_of_times_beyond_the_calendar(tmp_path: Path, time: str) -> None:
    data = b'{"text": "a good text", "time": %s}\n' % time.encode()
    succeed(tmp_path, "consume", "--file", "-", "--state", "state", "--max-ahead", "1e31", stdin=data)
    assert b"1 record;" in succeed(tmp_path, "show", "state")


def test_show_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no snapshot")
    assert fail(tmp_path, "show", "none")[0] == 66
    assert fail(tmp_path, "show", ".")[0] == 66
    assert fail(tmp_path, "show", "file")[0] == 65


def test_score(learned: Path) -> None:
    report = json.loads(succeed(learned, "score", "out", "--truth", "in.jsonl", "--json"))
    assert report["newest"]["n"] == 3000
    assert report["newest"]["nmi"] > 0.8
    assert (report["unassigned"], report["unknown"]) == (0, 0)
    table = succeed(learned, "score", "out", "--truth", "in.jsonl").decode()
    assert f"{report['newest']['nmi']:.4f}" in table
    assert fail(learned, "score", "none", "--truth", "in.jsonl")[0] == 66
    assert fail(learned, "score", "in.jsonl", "--truth", "in.jsonl")[0] == 65


def test_demo_and_help(tmp_path: Path) -> None:
    shown = succeed(tmp_path, "demo", "--records", "300").decode()
    assert "NMI" in shown
    for arguments in (("--help",), ("consume", "--help"), ("--version",)):
        assert succeed(tmp_path, *arguments)
    assert not list(tmp_path.iterdir())


def test_show_what_is_new_growing_and_closed(tmp_path: Path) -> None:
    """Three stories, one after the other; the first has closed under its window."""
    words = ("storm coast wave flood", "election vote count ballot", "goal match striker cup")
    data = b"".join(
        json.dumps({"text": f"{words[i // 60]} {i % 7}", "time": i}).encode() + b"\n" for i in range(180)
    )
    run = ("consume", "-", "--state", "s", "--output", "out", "--decay", "window", "--decay-scale", "70")
    succeed(tmp_path, *run, "--events", "events", stdin=data)
    clusters = parsed(succeed(tmp_path, "show", "s", "--json"))
    newest = parsed(succeed(tmp_path, "show", "s", "--json", "--sort", "new"))
    assert newest == sorted(clusters, key=lambda c: -c["cluster"])
    growing = parsed(succeed(tmp_path, "show", "s", "--json", "--sort", "growing"))
    assert growing[0]["recent"] == max(c["recent"] for c in clusters)
    assert all(1 <= len(c["samples"]) <= 3 for c in clusters)
    closed = parsed(succeed(tmp_path, "show", "s", "--json", "--closed"))
    ended = [e for e in parsed((tmp_path / "events").read_bytes()) if e["event"] == "closed"]
    assert [(c["cluster"], c["size"]) for c in closed] == [(e["cluster"], e["size"]) for e in reversed(ended)]
    shown = succeed(tmp_path, "show", "s", "--closed").decode()
    assert "storm" in shown
    assert "· storm coast wave flood" in shown
    table = succeed(tmp_path, "show", "s", "--sort", "growing").decode()
    assert "180 records;" in table
    assert "↑" in table
