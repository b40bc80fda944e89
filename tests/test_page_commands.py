"""The commands that serve a page: what they write is as without it, and what they say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from commands import environment, fail, linked, start, succeed

from streamdp.reports.source import open_snapshot

RUN = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")


def address(process: subprocess.Popen[bytes]) -> str:
    """Where the page of a run is, by what it says."""
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(rb"the page is at (http://\S+)", line)
        if found:
            return found[1].decode()
    raise AssertionError("it ended")


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return json.load(answer)


def score(url: str, text: str) -> Any:
    asked = urllib.request.Request(
        f"{url}v1/where", json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=600) as answer:
        return json.load(answer)


def until(url: str, state: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while True:
        found: dict[str, Any] = get(f"{url}api/status")
        if found["state"] == state:
            return found
        assert time.monotonic() < deadline
        time.sleep(0.1)


def stop(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    return process.returncode


def test_a_page_changes_no_byte_of_what_a_run_writes(learned: Path, tmp_path: Path) -> None:
    process = start(linked(learned, tmp_path), *RUN, "--page", "0", "--page-linger")
    url = address(process)
    for i in range(3):
        score(url, f"storm over the coast {i}")
    status = until(url, "ended")
    assert status["records"] == 3000
    assert get(f"{url}v1/events/list?limit=200")["events"]
    assert stop(process) in (0, 128 + signal.SIGTERM)
    for name in ("out", "events"):
        assert (tmp_path / name).read_bytes() == (learned / name).read_bytes()
    assert open_snapshot(str(tmp_path / "state"))[1] == open_snapshot(str(learned / "state"))[1]


def test_a_state_that_nobody_runs(learned: Path, tmp_path: Path) -> None:
    process = start(tmp_path, "stories", str(learned / "state"), "--page", "0")
    url = address(process)
    status = until(url, "snapshot")
    assert status["records"] == 3000
    stories = get(f"{url}v1/stories?limit=500")["stories"]
    shown = succeed(tmp_path, "stories", str(learned / "state"), "--json").splitlines()
    told = {story["label"]: (story["records"], story["now"]) for story in map(json.loads, shown)}
    assert {each["label"]: (each["records"], each["now"]) for each in stories} == told
    assert get(f"{url}api/shown/{stories[0]['label']}")["against_base"]
    assert score(url, "storm")["candidates"]
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130


def test_the_demo_can_be_looked_at(tmp_path: Path) -> None:
    process = start(tmp_path, "demo", "--page", "--page-port", "0", "--records", "400")
    url = address(process)
    assert until(url, "ended")["records"] == 400
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130


def test_what_is_wrong_is_said_in_a_line(learned: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short")
    page = ("stories", str(learned / "state"), "--page", "0", "--page-host", "0.0.0.0")
    code, line = fail(tmp_path, *page, "--page-token", "token")
    assert (code, line) == (
        78,
        "streamdp: token: a token is 8 to 200 letters, digits, - and _, and nothing else\n",
    )
    code, line = fail(tmp_path, "consume", str(learned / "in.jsonl"), "--page", "99999")
    assert (code, line) == (
        69,
        "streamdp: cannot serve the page: 99999 is not a port: choose another\n",
    )


def test_without_its_packages_it_says_what_to_install(learned: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from streamdp.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "stories", str(learned / "state"), "--page", "0"],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        capture_output=True,
        text=True,
    )
    assert done.stderr == "streamdp: the page needs two more packages: pip install starlette uvicorn\n"
    assert done.returncode == 69
