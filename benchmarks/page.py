"""What the live page costs a run, and a browser: python -m benchmarks.page [SECONDS].

``consume`` at beam 1 over 10,000 topics of words of their own, fed without end: records a second and
microseconds of CPU a record, without --page and, in turn with it, with a page that nobody looks at, that one
and ten browsers elsewhere look at (processes that ask for all that a tab asks for, and draw nothing), and one
and ten tabs of a browser on the same cores; and milliseconds of scripting a second in one tab, by Chromium's
own trace.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser.process import browser
from ports import free_port

TOPICS = 10_000
ROUNDS = 5
"""In which both runs have a turn."""
SETTINGS = ("--beam", "1", "--decay-scale", "100000", "--second-look", "0")
SCRIPTS = {"EvaluateScript", "FunctionCall", "v8.compile", "TimerFire", "FireAnimationFrame", "EventDispatch"}


def lines(count: int) -> bytes:
    """Records as JSON lines, each of a topic drawn at random."""
    rng = random.Random(1)
    found = []
    for _ in range(count):
        topic = rng.randrange(TOPICS)
        words = (f"w{topic}x{i}" for i in rng.sample(range(8), 5))
        found.append(json.dumps({"text": " ".join(words)}))
    return ("\n".join(found) + "\n").encode()


@contextmanager
def run(*more: str) -> Iterator[psutil.Process]:
    """A run that is fed for as long as it is looked at."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "streamdp",
            "consume",
            "--file",
            "-",
            "--output",
            os.devnull,
            *SETTINGS,
            *more,
        ],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    data = lines(100_000)

    def feed() -> None:
        assert process.stdin is not None
        try:
            while True:
                process.stdin.write(data)
        except OSError:
            return

    threading.Thread(target=feed, daemon=True).start()
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


def status(port: int) -> dict[str, Any]:
    """How the run stands; {} before there is a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return {}


def metrics(port: int) -> float:
    """Records answered, by the metrics."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except OSError:
        return 0.0
    found = [line for line in text.splitlines() if line.startswith("streamdp_records_total")]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


class Pace(NamedTuple):
    """Records a second, and microseconds of CPU a record."""

    rate: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.rate:>9,.0f} records/s  {self.cpu:6.1f} us of CPU a record"


def measured(process: psutil.Process, port: int, seconds: float) -> Pace:
    """Rate and CPU over some seconds."""
    began, records, cpu = time.monotonic(), metrics(port), sum(process.cpu_times()[:2])
    time.sleep(seconds)
    more, spent = metrics(port) - records, sum(process.cpu_times()[:2]) - cpu
    return Pace(more / (time.monotonic() - began), 1e6 * spent / max(more, 1))


def side_by_side(
    plain: tuple[psutil.Process, int], paged: tuple[psutil.Process, int], seconds: float
) -> tuple[Pace, Pace]:
    """Medians of both, which run in turn, so that what else the machine does falls on both."""
    found: tuple[list[Pace], list[Pace]] = [], []
    for _ in range(ROUNDS):
        for mine, (process, port), (other, _) in ((0, plain, paged), (1, paged, plain)):
            other.suspend()
            time.sleep(0.3)
            found[mine].append(measured(process, port, seconds / ROUNDS))
            other.resume()
    first, second = (Pace(*map(median, zip(*paces, strict=True))) for paces in found)
    return first, second


def ask(port: int) -> None:
    """All that a tab asks for, for ever."""
    here = f"http://127.0.0.1:{port}/api"
    with urllib.request.urlopen(f"{here}/stream") as stream:
        ticks = 0
        for line in stream:
            if not line.startswith(b"event: "):
                continue
            ticks += 1
            if ticks % 2:
                with urllib.request.urlopen(f"{here}/clusters?limit=25") as answer:
                    answer.read()


@contextmanager
def elsewhere(port: int, browsers: int) -> Iterator[None]:
    """So many browsers look on as if from other machines: nothing is drawn here."""
    code = f"from benchmarks.page import ask; ask({port})"
    asking = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(browsers)]
    try:
        yield
    finally:
        for each in asking:
            each.kill()
            each.wait()


def warm(port: int) -> None:
    """Wait until nearly all topics live."""
    while metrics(port) < 60_000:
        time.sleep(0.5)


def scripting(chromium: Any, page: Any, seconds: float) -> float:
    """Milliseconds a second in which the page's thread runs scripts."""
    chromium.start_tracing(page=page, categories=["devtools.timeline", "v8"])
    time.sleep(seconds)
    events = json.loads(chromium.stop_tracing())["traceEvents"]
    spans: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event.get("ph") == "X" and event["name"] in SCRIPTS:
            spans.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event.get("dur", 0.0))
            )
    busiest = 0.0
    for found in spans.values():
        total, end = 0.0, 0.0
        for start, stop in sorted(found):
            total += max(0.0, stop - max(start, end))
            end = max(end, stop)
        busiest = max(busiest, total)
    return busiest / 1000.0 / seconds


def busy(page: Any, seconds: float) -> float:
    """The same as the browser counts it without a trace."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def spent() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in found if each["name"] == "ScriptDuration"))

    before = spent()
    time.sleep(seconds)
    return 1000.0 * (spent() - before) / seconds


def main(seconds: float = 20.0) -> None:
    """Measure and print."""
    port, watched, alone = free_port(), free_port(), free_port()
    more = "--metrics-port", str(watched), "--page", str(port)
    with run("--metrics-port", str(alone)) as plain, run(*more) as paged, browser() as chromium:
        warm(alone)
        warm(watched)

        def compare(looking: str) -> None:
            time.sleep(3.0)
            without, told = side_by_side((plain, alone), (paged, watched), seconds)
            print(f"{'without --page':<22}{without}", flush=True)
            print(f"{looking:<22}{told}  {told.rate / without.rate:.2f} of the rate", flush=True)

        compare("--page, nobody looks")
        for wanted in (1, 10):
            with elsewhere(port, wanted):
                compare(f"--page, {wanted} elsewhere")
        pages: list[Any] = []
        for wanted in (1, 10):
            while len(pages) < wanted:
                pages.append(chromium.new_context().new_page())
                pages[-1].goto(f"http://127.0.0.1:{port}/")
            compare(f"--page, {wanted} here")
            if wanted == 1:
                traced, counted = scripting(chromium, pages[0], seconds), busy(pages[0], seconds)
                print(f"{'':<22}{traced:9.1f} ms of scripting a second, by the trace", flush=True)
                print(f"{'':<22}{counted:9.1f} ms, by the browser's own counter", flush=True)
        told_of = status(port)
        print(f"{told_of['live']:,} live clusters, {told_of['records']:,} records")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
