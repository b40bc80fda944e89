"""Corrections over HTTP, and what the page asks of the past: against the store and a replay."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import call, parsed, start, succeed, wait_for, write_headlines

from tests.test_page_commands import address, get

RUN = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")
SETTINGS = {"snapshot_every": "500", "beam": "4", "decay_scale": "100"}
PAGE = ("--follow", "--page", "0", "--page-corrections", "--store", "db")


class Live(NamedTuple):
    """A run with a page."""

    url: str
    folder: Path
    process: subprocess.Popen[bytes]

    def send(self, body: Any, **headers: str) -> tuple[int, Any]:
        """What a correction is answered."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        asked = urllib.request.Request(f"{self.url}v1/corrections", data, sent)
        try:
            with urllib.request.urlopen(asked, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, text

    def largest(self, most: int) -> list[int]:
        """Labels of the largest stories."""
        return [row["label"] for row in get(f"{self.url}v1/stories?least=1&limit={most}")["stories"]]

    def records(self) -> int:
        """Records that were answered, by what the page says."""
        return int(get(f"{self.url}api/status").get("records", 0))

    def end(self) -> None:
        """Stop it in order."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=120)


def run(folder: Path, *more: str) -> Live:
    process = start(folder, *RUN, *more, **SETTINGS)
    return Live(address(process), folder, process)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    write_headlines(folder / "in.jsonl", 2000)
    made = run(folder, *PAGE)
    wait_for(lambda: made.records() == 2000)
    yield made
    made.process.kill()
    made.process.communicate()


def test_corrections_over_http(live: Live) -> None:
    a, b, c, d = live.largest(4)
    status, made = live.send({"what": "rename", "stories": [a], "title": "Talks in Turin"})
    assert (status, made["number"], made["title"]) == (200, 1, "Talks in Turin")
    assert live.send({"what": "pin", "stories": [b], "who": "ann"})[1]["who"] == "ann"
    assert live.send({"what": "keep-apart", "stories": [b, c]})[0] == 200
    status, why = live.send({"what": "merge", "stories": [b, c]})
    assert status == 409
    assert b"correction 3 of program contradicts it" in why
    assert live.send({"what": "mute", "stories": [d]})[0] == 200
    wait_for(lambda: d not in live.largest(500))
    titles = {row["label"]: row["title"] for row in get(f"{live.url}v1/stories?limit=500")["stories"]}
    assert titles[a] == "Talks in Turin"
    wait_for(lambda: get(f"{live.url}api/status")["in_force"] == [1, 2, 3, 4])
    shown = get(f"{live.url}api/shown?labels={','.join(map(str, titles))}")["shown"]
    assert [label for label, own in shown.items() if own["pinned"]] == [str(b)]
    told = get(f"{live.url}v1/corrections")["corrections"]
    assert [(row["number"], row["at"]) for row in told] == [(number, 2000) for number in (1, 2, 3, 4)]
    assert live.send({"what": "undo", "undone": 3})[0] == 200
    wait_for(lambda: get(f"{live.url}api/status")["corrections"] == 3)
    assert live.send({"what": "undo", "undone": 3})[0] == 409
    lines = parsed((live.folder / "state" / "corrections").read_bytes())
    assert [line["what"] for line in lines if "what" in line] == [
        "rename", "pin", "keep-apart", "mute", "undo"
    ]  # fmt: skip


def test_who_may_not_correct(live: Live) -> None:
    before = (live.folder / "state" / "corrections").read_bytes()
    (a,) = live.largest(1)
    body = {"what": "rename", "stories": [a], "title": "Mine"}
    assert live.send(body, Content_Type="text/plain")[0] == 415
    assert live.send(body, Content_Type="application/x-www-form-urlencoded")[0] == 415
    assert live.send(body, Origin="http://evil.example")[0] == 403
    assert live.send(body, Sec_Fetch_Site="cross-site")[0] == 403
    assert live.send(body, Host="evil.example")[0] == 421
    for wrong in (b"{", b"[]", {"what": "burn"}, {"what": "rename", "stories": [a]}, {**body, "at": 3}):
        assert live.send(wrong)[0] == 400
    assert live.send({"what": "rename", "stories": [10**9], "title": "x"})[0] == 409
    assert live.send(b'"' + b"x" * 70_000 + b'"')[0] == 413
    wait_for(lambda: live.send({"what": "rename", "stories": [10**9], "title": "x"})[0] == 429)
    assert (live.folder / "state" / "corrections").read_bytes() == before


def test_all_records_of_a_story_and_those_that_ended(live: Live) -> None:
    store = sqlite3.connect(live.folder / "db")
    label = live.largest(1)[0]
    seqs = [
        seq for (seq,) in store.execute("SELECT seq FROM records WHERE label = ? ORDER BY -seq", (label,))
    ]
    first = get(f"{live.url}v1/stories/{label}/records?latest=true&limit=30")
    second = get(f"{live.url}v1/stories/{label}/records?latest=true&limit=100&after={first['next']}")
    assert first["lacking"] == ""
    assert [row["seq"] for row in first["records"] + second["records"]] == seqs[:130]
    assert all(row["text"] for row in first["records"])
    gone = "SELECT label, title FROM stories WHERE ended IN ('closed', 'retired') AND size > 0"
    titles = dict(store.execute(f"{gone} ORDER BY last_seq DESC, label").fetchall())

    def ended(search: str = "", most: int = 1000) -> Any:
        query = urllib.parse.urlencode({"search": search, "limit": most})
        return get(f"{live.url}v1/stories?which=ended&sort=last&least=1&{query}")

    assert ended()["total"] == len(titles) > 3
    assert [row["label"] for row in ended(most=100)["stories"]] == list(titles)[:100]
    label, title = next((label, title) for label, title in titles.items() if title)
    assert label in [row["label"] for row in ended(" ".join(title.split()[:2]))["stories"]]
    (text,) = store.execute("SELECT text FROM records WHERE label = ? LIMIT 1", (label,)).fetchone()
    assert label in [row["label"] for row in ended(text.split()[-1])["stories"]]
    assert label in [row["label"] for row in ended(str(label))["stories"]]
    assert ended("nosuchword")["total"] == 0


def test_themes_of_the_live_stories(live: Live) -> None:
    told = get(f"{live.url}v1/themes?themes=3")
    assert len(told["themes"]) == min(3, told["live"])
    assert sum(len(theme["stories"]) for theme in told["themes"]) == told["live"]
    stories = get(f"{live.url}v1/stories?least=1&limit=500")["stories"]
    assert sum(theme["records"] for theme in told["themes"]) == sum(row["records"] for row in stories)
    titles = {row["label"]: row["title"] for row in stories}
    for theme in told["themes"]:
        assert theme["titles"] == [titles[label] for label in theme["stories"][:5]]


def test_a_replay_of_what_the_page_corrected_is_the_same(live: Live, tmp_path: Path) -> None:
    write_headlines(live.folder / "more.jsonl", 2600)
    grown = (live.folder / "more.jsonl").read_bytes().splitlines(keepends=True)[2000:]
    with (live.folder / "in.jsonl").open("ab") as file:
        file.writelines(grown)
    wait_for(lambda: live.records() == 2600)
    live.end()
    (tmp_path / "state").mkdir()
    shutil.copy(live.folder / "in.jsonl", tmp_path)
    shutil.copy(live.folder / "state" / "corrections", tmp_path / "state")
    other = run(tmp_path, "--follow", "--page", "0")
    wait_for(lambda: other.records() == 2600)
    assert not get(f"{other.url}api/status")["corrects"]
    assert other.send({"what": "undo", "undone": 1})[0] == 403
    label = other.largest(1)[0]
    told = get(f"{other.url}v1/stories/{label}/records?latest=true")  # without a store
    assert told["records"][0]["text"]
    assert get(f"{other.url}v1/stories?which=ended")["stories"]
    assert get(f"{other.url}v1/events/list?label={label}")["events"][0]["event"] == "born"
    other.end()
    for name in ("out", "events", "state/corrections"):
        assert (tmp_path / name).read_bytes() == (live.folder / name).read_bytes(), name


def test_a_state_that_nobody_runs_is_corrected(learned: Path, tmp_path: Path) -> None:
    shutil.copytree(learned / "state", tmp_path / "state")
    process = start(tmp_path, "stories", "state", "--page", "0", "--page-corrections")
    page = Live(address(process), tmp_path, process)
    wait_for(lambda: page.records() == 3000)
    a, b = page.largest(2)
    assert page.send({"what": "merge", "stories": [a, b]})[0] == 200
    wait_for(lambda: len({a, b} & {*page.largest(500)}) == 1)
    process.send_signal(signal.SIGINT)
    process.wait(120)
    stories = {story["label"] for story in parsed(succeed(tmp_path, "stories", "state", "--json"))}
    assert len({a, b} & stories) == 1


def test_a_page_that_stays_after_the_end_corrects_the_state(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 500)
    page = run(tmp_path, "--page", "0", "--page-corrections", "--page-linger")
    wait_for(lambda: get(f"{page.url}api/status").get("state") == "ended")
    assert get(f"{page.url}api/status")["corrects"]
    a, b = page.largest(2)
    status, made = page.send({"what": "merge", "stories": [a, b]})
    assert (status, made["number"], made["who"]) == (200, 1, "program")
    wait_for(lambda: len({a, b} & {*page.largest(500)}) == 1)
    assert (page.records(), get(f"{page.url}api/status")["state"]) == (500, "ended")
    status, made = page.send({"what": "undo", "undone": 1})
    assert (status, made["number"]) == (200, 2)
    assert page.send({"what": "rename", "stories": [a], "title": "By hand"})[0] == 200
    page.end()
    told = parsed(succeed(tmp_path, "stories", "state", "--json"))
    assert "By hand" in {story["title"] for story in told}
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write('{"text": "what a later run reads"}\n')
    succeed(tmp_path, *RUN, **SETTINGS)
    told = parsed(succeed(tmp_path, "stories", "state", "--json"))
    assert "By hand" in {story["title"] for story in told}


def test_without_a_state_nothing_is_corrected(learned: Path, tmp_path: Path) -> None:
    run = ("consume", "--file", str(learned / "in.jsonl"), "--output", "out", "--page", "0")
    done = call(tmp_path, *run, "--page-corrections")
    assert done.returncode == 64
    assert done.stderr.decode().endswith("streamdp: --page-corrections: corrections are kept in a --state\n")
