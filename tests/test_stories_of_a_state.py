"""``streamdp stories`` of a state, ``diff`` with a truth, and ``demo``, on the result of a run."""

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
    clusters = parsed(succeed(learned, "stories", "state", "--json", "--least", "1"))
    last = {line["cluster"] for line in newest_lines((learned / "out").read_bytes())}
    assert clusters
    assert {cluster["label"] for cluster in clusters} <= last
    assert [c["records"] for c in clusters] == sorted((c["records"] for c in clusters), reverse=True)
    assert all(c["keywords"] for c in clusters if c["records"] > 3)
    table = succeed(learned, "stories", "state", "--limit", "3").decode()
    assert "3,000 records" in table
    assert "2026-01" in table
    assert clusters[0]["keywords"][0] in table
    snapshot = max((learned / "state").glob("snapshot-*"))
    assert parsed(succeed(learned, "stories", str(snapshot), "--json", "--least", "1")) == clusters


@pytest.mark.parametrize("count", [12, 150])
def test_few_vectors_are_counted_as_stories_exported_and_drawn(count: int, tmp_path: Path) -> None:
    rows = ({"vector": [i % 3 * 5.0, i % 7 / 10, 1.0]} for i in range(count))
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    succeed(tmp_path, "consume", "v.jsonl", "--state", "st", "--output", "out.jsonl")
    assert succeed(tmp_path, "stories", "st").decode().startswith(f"{count} records; ")
    succeed(tmp_path, "state", "export", "st", "--into", "tables")
    exported = parsed((tmp_path / "tables" / "clusters.jsonl").read_bytes())
    stories = parsed(succeed(tmp_path, "stories", "st", "--json", "--least", "1"))
    assert [(c["cluster"], c["size"]) for c in exported] == [(s["label"], s["records"]) for s in stories]
    assert len((tmp_path / "tables" / "records.jsonl").read_bytes().splitlines()) == count
    succeed(tmp_path, "plot", "st")
    assert (tmp_path / "st-streamgraph.png").exists()


def test_stories_vectors_and_an_empty_state(tmp_path: Path) -> None:
    succeed(tmp_path, "consume", "--file", "-", "--state", "empty")
    assert succeed(tmp_path, "stories", "empty", "--json", "--least", "1") == b""
    shown = succeed(tmp_path, "stories", "empty")
    assert b"0 records" in shown
    assert b"live stories: there are no records yet" in shown
    assert b"record -1" not in shown
    data = b"".join(b'{"vector": [%d, 0.5]}\n' % (9 * (i % 2)) for i in range(250))
    succeed(tmp_path, "consume", "--file", "-", "--state", "state", stdin=data)
    clusters = parsed(succeed(tmp_path, "stories", "state", "--json", "--least", "1"))
    assert sorted(int(c["title"].split()[0]) for c in clusters) == [0, 9]
    assert b"mean" in succeed(tmp_path, "stories", "state")


@pytest.mark.parametrize("time", ["1e33", "1e39", "-1e39"])
def test_stories_of_times_beyond_the_calendar(tmp_path: Path, time: str) -> None:
    data = b'{"text": "a good text", "time": %s}\n' % time.encode()
    succeed(tmp_path, "consume", "--file", "-", "--state", "state", "--max-ahead", "1e31", stdin=data)
    assert b"1 record;" in succeed(tmp_path, "stories", "state")


def test_stories_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no snapshot\n")
    assert fail(tmp_path, "stories", "none")[0] == 66
    assert fail(tmp_path, "stories", ".")[0] == 66
    assert fail(tmp_path, "stories", "file")[0] == 65
    wrong = ("no snapshot", "storm, coast", '{"text": "storm', '{"text": "storm"}', '{"event":"born","se')
    for text in (*wrong, "storm, coast\n"):
        (tmp_path / "file").write_text(text)
        assert fail(tmp_path, "stories", "file")[0] == 65
    for text in ('{"seq":0,"clus', "seq,id,ti", "seq,cluster\n"):  # which a run is about to write
        (tmp_path / "file").write_text(text)
        assert succeed(tmp_path, "stories", "file", "--json") == b""


def test_score(learned: Path) -> None:
    report = json.loads(succeed(learned, "diff", "out", "--truth", "in.jsonl", "--json"))
    assert report["newest"]["n"] == 3000
    assert report["newest"]["nmi"] > 0.8
    assert (report["unassigned"], report["unknown"]) == (0, 0)
    table = succeed(learned, "diff", "out", "--truth", "in.jsonl").decode()
    assert f"{report['newest']['nmi']:.4f}" in table
    assert fail(learned, "diff", "none", "--truth", "in.jsonl")[0] == 66
    assert fail(learned, "diff", "in.jsonl", "--truth", "in.jsonl")[0] == 65


def test_demo_and_help(tmp_path: Path) -> None:
    shown = succeed(tmp_path, "demo", "--records", "300").decode()
    assert "NMI" in shown
    for arguments in (("--help",), ("consume", "--help"), ("--version",)):
        assert succeed(tmp_path, *arguments)
    assert not list(tmp_path.iterdir())


def test_stories_what_is_new_growing_and_closed(tmp_path: Path) -> None:
    """Three stories, one after the other; the first has closed under its window."""
    words = ("storm coast wave flood", "election vote count ballot", "goal match striker cup")
    data = b"".join(
        json.dumps({"text": f"{words[i // 60]} {i % 7}", "time": i}).encode() + b"\n" for i in range(180)
    )
    run = ("consume", "-", "--state", "s", "--output", "out", "--decay", "window", "--decay-scale", "70")
    succeed(tmp_path, *run, "--events", "events", stdin=data)
    clusters = parsed(succeed(tmp_path, "stories", "s", "--json", "--least", "1"))
    newest = parsed(succeed(tmp_path, "stories", "s", "--json", "--least", "1", "--sort", "new"))
    assert newest == sorted(clusters, key=lambda c: -c["label"])
    growing = parsed(succeed(tmp_path, "stories", "s", "--json", "--least", "1", "--sort", "growing"))
    assert growing[0]["now"] == max(c["now"] for c in clusters)
    assert all(1 <= len(c["samples"]) <= 3 for c in clusters)
    closed = parsed(succeed(tmp_path, "stories", "s", "--json", "--least", "1", "--closed"))
    ended = [e for e in parsed((tmp_path / "events").read_bytes()) if e["event"] == "closed"]
    assert [(c["label"], c["records"]) for c in closed] == [
        (e["cluster"], e["size"]) for e in reversed(ended)
    ]
    shown = succeed(tmp_path, "stories", "s", "--closed", "--samples").decode()
    assert "storm" in shown
    assert "· storm coast wave flood" in shown
    table = succeed(tmp_path, "stories", "s", "--sort", "growing").decode()
    assert "180 records;" in table
    assert "↑" in table


@pytest.mark.parametrize(
    "options",
    [
        ("--report", "r.html", "--records"),
        ("--report", "r.html", "--csv"),
        ("--title", "News"),
        ("--page", "0", "--least", "1"),
        ("--page-host", "0.0.0.0"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(learned: Path, options: tuple[str, ...]) -> None:
    assert fail(learned, "stories", "state", *options)[0] == 64
    assert not (learned / "r.html").exists()
