"""The service: what has changed, and corrections by hand."""

from __future__ import annotations

import itertools
import json
import sqlite3
import subprocess
import sys
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import call, wait_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Served

from streamdp.page import live
from streamdp.reports.store import StoreStories
from streamdp.serve.openapi import document

SCHEMAS = document()
BEGAN = 1_700_000_000


def conforms(path: str, method: str, status: int, value: Any) -> None:
    """An answer is as the document says."""
    responses = SCHEMAS["paths"][path][method]["responses"]
    described = responses[str(status)]["content"]["application/json"]["schema"]
    jsonschema.validate(value, {**described, "components": SCHEMAS["components"]})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Storms in one hour, votes and storms in the next."""
    made = Served(tmp_path_factory.mktemp("asked"), "--max-lateness", "0")
    storms = [{"id": f"s{i}", "text": "storm over the coast", "time": BEGAN + 60 * i} for i in range(120)]
    votes = [
        {"id": f"v{i}", "text": "parliament votes on taxes", "time": BEGAN + 3630 + 20 * i}
        for i in range(160)
    ]
    made.send(*sorted((*storms, *votes), key=lambda record: record["time"]))
    yield made
    assert made.stop() == 0
    assert b"Traceback" not in made.said
    assert b"Error:" not in made.said, made.said


def changes(served: Served, since: str, **more: str) -> tuple[int, Any]:
    status, said = served.ask("GET", "/v1/changes?" + urllib.parse.urlencode({"since": since, **more}))
    conforms("/v1/changes", "get", status, said)
    return status, said


def test_changes_are_those_that_the_command_prints(served: Served) -> None:
    status, found = changes(served, "1h")
    assert (status, found["dated"], found["total"]) == (200, True, len(found["changes"]))
    vote = served.ask("GET", "/v1/answers?id=v0")[1]["label"]
    (new,) = [each for each in found["changes"] if each["label"] == vote]
    assert (new["kind"], new["before"], new["surprise"] > 10) == ("new", 0, True)
    whole = changes(served, "1h", all="true")[1]
    assert whole["total"] >= found["total"]
    page = changes(served, "1h", all="true", limit="1", start="1")[1]
    assert (page["changes"], page["total"]) == (whole["changes"][1:2], whole["total"])
    assert changes(served, "2023-11-14T23:13:20Z", all="true")[0] == 200


def test_the_command_lists_the_stories_of_a_service(served: Served) -> None:
    address = f"http://127.0.0.1:{served.port}"
    table = call(served.folder, "stories", address, "--limit", "1")
    assert table.stdout.decode().startswith(f"stories of {address}: 280 records")
    assert b"1 story not shown (--limit 2 shows all)" in table.stderr
    for words in ((), ("--search", "votes"), ("--sort", "title", "--limit", "1")):
        done = call(served.folder, "stories", address, "--json", *words)
        query = urllib.parse.urlencode([(words[i][2:], words[i + 1]) for i in range(0, len(words), 2)])
        listed = served.ask("GET", f"/v1/stories?{query}")[1]["stories"]
        assert [json.loads(line) for line in done.stdout.splitlines()] == listed
    assert call(served.folder, "stories", address, "--csv").stdout.count(b"\n") == 3


def test_changes_since_a_mark(served: Served) -> None:
    done = call(served.folder, "diff", "st", "--mark", "deploy", "--time", "2023-11-14T23:13:20Z")
    assert done.returncode == 0, done.stderr
    assert changes(served, "deploy")[1] == changes(served, "2023-11-14T23:13:20Z")[1]
    status, said = changes(served, "nowhere")
    assert (status, "nor a mark (there are: deploy)" in said["error"]) == (404, True)


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("since=", 400), ("since=1h&all=yes", 400), ("since=1h&limit=0", 400), ("since=9000d", 404)],
)
def test_questions_without_an_answer(served: Served, query: str, status: int) -> None:
    found, said = served.ask("GET", f"/v1/changes?{query}")
    assert (found, list(said)) == (status, ["error"])


def correct(served: Served, **what: Any) -> tuple[int, Any]:
    status, said = served.ask("POST", "/v1/corrections", json.dumps(what).encode())
    conforms("/v1/corrections", "post", status, said)
    return status, said


def listed(served: Served, query: str = "") -> Any:
    status, said = served.ask("GET", f"/v1/corrections{query}")
    conforms("/v1/corrections", "get", status, said)
    return said


def test_corrections_are_taken_listed_and_undone(served: Served) -> None:
    storm = served.ask("GET", "/v1/answers?id=s0")[1]["label"]
    vote = served.ask("GET", "/v1/answers?id=v0")[1]["label"]
    before = served.ask("GET", f"/v1/stories/{storm}")[1]["title"]
    status, made = correct(served, what="rename", stories=[storm], title="The storm", who="ann")
    assert (status, made["number"], made["who"], made["at"]) == (200, 1, "ann", 280)

    def title() -> str:
        return str(served.ask("GET", f"/v1/stories/{storm}")[1]["title"])

    wait_for(lambda: title() == "The storm")
    (noted,) = listed(served)["corrections"]
    assert noted == made
    assert correct(served, what="keep-apart", stories=[storm, vote])[0] == 200
    assert correct(served, what="undo", undone=1)[1]["number"] == 3
    wait_for(lambda: title() != "The storm")
    assert title() == before
    first = listed(served, "?limit=2")
    assert (len(first["corrections"]), first["next"]) == (2, 2)
    rest = listed(served, "?after=2")
    assert ([each["what"] for each in rest["corrections"]], rest["next"]) == (["undo"], None)
    printed = call(served.folder, "correct", "st", "list").stdout.decode()
    assert [line.split()[:2] for line in printed.splitlines()] == [
        ["1", "rename"],
        ["2", "keep-apart"],
        ["3", "undo"],
    ]


def test_the_page_of_a_service_corrects_at_the_same_place(served: Served) -> None:
    assert served.ask("GET", "/api/status")[1]["corrects"]
    vote, number = served.ask("GET", "/v1/answers?id=v0")[1]["label"], len(listed(served)["corrections"]) + 1
    sent = json.dumps({"what": "rename", "stories": [vote], "title": "The vote", "who": "page"}).encode()
    status, made = served.ask("POST", "/v1/corrections", sent)
    assert (status, made["number"], made["who"]) == (200, number, "page")
    noted = listed(served, f"?after={number - 1}")["corrections"]
    assert [(each["title"], each["who"], each["at"]) for each in noted] == [("The vote", "page", 280)]
    wait_for(lambda: served.ask("GET", "/api/status")[1]["in_force"][-1:] == [number])
    status, made = correct(served, what="undo", undone=number)
    assert (status, made["who"]) == (200, "program")


def test_a_correction_that_cannot_be_is_refused_and_not_written(served: Served) -> None:
    before = listed(served)
    storm = served.ask("GET", "/v1/answers?id=s0")[1]["label"]
    assert correct(served, what="mute", stories=[99_999]) == (409, {"error": "there is no live story 99999"})
    assert correct(served, what="undo", undone=77) == (409, {"error": "correction 77 is not in force"})
    assert correct(served, what="move", ids=["nobody"], stories=[storm])[0] == 409
    assert correct(served, what="merge", stories=[storm]) == (400, {"error": "merge names two stories"})
    assert correct(served, what="rename", stories=[storm], title="two\nlines")[0] == 400
    assert correct(served, what="burn", stories=[storm])[0] == 400
    assert correct(served, what="mute", stories=[storm], more=1)[0] == 400
    assert served.ask("POST", "/v1/corrections", b"{", "application/json")[0] == 400
    assert served.ask("POST", "/v1/corrections", b"{}", "text/plain")[0] == 415
    assert served.ask("POST", "/v1/corrections", b'"' + b"x" * (1 << 20) + b'"')[0] == 413
    assert listed(served) == before


def test_no_path_passes_over_a_field_that_it_does_not_have(served: Served) -> None:
    for path in ("/v1/events", "/v1/openapi.json", "/v1/marks", "/v1/stories/0"):
        status, said = served.ask("GET", f"{path}?least=3")
        assert (status, said["error"].partition(" (")[0]) == (400, "least: there is no such field"), path
    for path in ("/v1/where", "/v1/corrections"):
        status, said = served.ask("POST", f"{path}?text=storm", b'{"text": "storm", "what": "mute"}')
        assert (status, said["error"]) == (400, "text: there is no such field (there are: none)"), path


def test_the_document_allows_no_text_that_is_null_in_a_query() -> None:
    for path, methods in SCHEMAS["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", ()):
            kinds = [kind.get("type") for kind in parameter["schema"].get("anyOf", [parameter["schema"]])]
            assert kinds not in (["string", "null"], ["null", "string"]), (path, parameter["name"])
    kinds = SCHEMAS["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]
    assert list(kinds) == ["text/event-stream"]


ASKED = (
    *(
        "/",
        "/metrics",
        "/readyz",
        "/api/status",
        "/api/graph?bins=7",
        "/v1/themes",
        "/v1/events/list?after={}",
    ),
    "/v1/events/list?after={}",
    *("/v1/stories?which=ended&search=storm", "/v1/stories?sort=growing", "/v1/events/list?label={}"),
    *("/api/shown/{}", "/api/shown?labels={}", "/v1/changes?since=1h", "/v1/corrections", "/v1/marks"),
    *("/v1/stories", "/v1/stories?which=ended", "/v1/stories/{}", "/v1/stories/{}/records"),
    "/v1/answers?id=b{}",
)
READ = "import sqlite3; print(*sqlite3.connect('news.db').execute('SELECT 1 FROM records').fetchone())"


@pytest.mark.parametrize("seconds", [4.0, pytest.param(120.0, marks=pytest.mark.slow)])
def test_whatever_is_asked_while_records_come_is_answered(tmp_path: Path, seconds: float) -> None:
    """Another program reads the store meanwhile, and closes it."""
    served, until = Served(tmp_path), time.monotonic() + seconds

    def rounds(first: int) -> Iterator[int]:
        return itertools.takewhile(lambda _: time.monotonic() < until, itertools.count(first))

    def send(by: int) -> Counter[int]:
        records = ({"id": f"{'abc'[by]}{n}", "text": f"storm {n % 50} over {by}"} for n in rounds(0))
        return Counter(served.send(record)[0] for record in records)

    def ask(by: int) -> Counter[int]:
        paths = (ASKED[n % len(ASKED)].format((n * 7) % 60) for n in rounds(5 * by))
        return Counter(served.ask("GET", path)[0] for path in paths)

    def read(_: int) -> None:
        for _ in rounds(0):
            subprocess.run([sys.executable, "-c", READ], cwd=tmp_path, capture_output=True, check=False)

    with ThreadPoolExecutor(7) as pool:
        reading = pool.submit(read, 0)
        sent, asked = ([pool.submit(task, n) for n in range(3)] for task in (send, ask))
    reading.result()
    assert served.stop() == 0
    sums = [sum((each.result() for each in some), Counter[int]()) for some in (sent, asked)]
    assert (list(sums[0]), set(sums[1]) <= {200, 404, 409, 429}) == ([200], True), sums
    with sqlite3.connect(tmp_path / "news.db") as store:
        found = store.execute("SELECT count(DISTINCT id), count(*) FROM records").fetchone()
    assert found == (sums[0][200], sums[0][200])


def test_stories_that_ended_are_gathered_again_only_where_the_store_was_written(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, gathered = str(tmp_path / "copy.db"), list[bool]()
    with sqlite3.connect(served.folder / "news.db") as store, sqlite3.connect(path) as copy:
        store.backup(copy)
        copy.execute("UPDATE stories SET ended = 'closed'")
    of_store = StoreStories.stories

    def gather(self: StoreStories, *, closed: bool = False, stretch: float | None = None) -> Any:
        gathered.append(closed)
        return of_store(self, closed=closed, stretch=stretch)

    monkeypatch.setattr(StoreStories, "stories", gather)
    stories = live.StoredStories(path)

    def titles() -> list[str]:
        return [story.title for story in stories.stories(closed=True)]

    for title in ("first", "second"):
        with sqlite3.connect(path) as store:
            store.execute("UPDATE stories SET title = ?", (title,))
        assert titles()[0] == titles()[0] == title
    assert gathered == [True] * 2


ANY = (
    st.none()
    | st.integers()
    | st.text(max_size=8)
    | st.lists(st.integers() | st.text(max_size=4), max_size=3)
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    what=st.sampled_from(["rename", "merge", "split", "move", "undo", "pin", "x"]),
    more=st.dictionaries(st.sampled_from(["stories", "ids", "seqs", "title", "undone", "who", "y"]), ANY),
)
def test_whatever_is_corrected_the_answer_is_as_described(
    served: Served, what: str, more: dict[str, Any]
) -> None:
    status, _ = correct(served, what=what, **more)
    assert status < 500


CHECKED = """\
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "422", "429", "503"]
"""
"""What fits its schema may still contradict what is there (409)."""


@pytest.mark.parametrize("examples", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_a_client_that_tries_everything_finds_no_failure(
    served: Served, tmp_path: Path, examples: int
) -> None:
    (tmp_path / "schemathesis.toml").write_text(CHECKED)
    address = f"http://127.0.0.1:{served.port}/v1/openapi.json"
    command = [sys.executable, "-m", "schemathesis.cli", "run", address, "--checks", "all", "--no-color"]
    command += ["--max-examples", str(examples), "--seed", "1", "--exclude-path", "/v1/events"]  # never ends
    command += ["--request-timeout", "120", "--suppress-health-check", "all"]  # other work may run here
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    operations = sum(map(len, SCHEMAS["paths"].values()))
    assert f"Tested: {operations - 2}" in done.stdout  # nor is the document asked for itself
