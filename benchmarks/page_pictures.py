"""Pictures of the live page: python -m benchmarks.page_pictures FOLDER [NAME ...].

Names are demo, tweets_t, reuters21578, mixture (vectors), openssh (a log), hands (stories with a store,
corrected by hand) and changes (a log in which something changes); each is drawn at 1280 x 800, 820 x 1180
and 390 x 844, light and dark. The views of the last two are drawn on paper, too. The name docs alone draws
page.png and report.png of the documentation: the page and the report of examples/newsroom.py.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser.process import browser
from ports import free_port
from test_diff import START, log

from benchmarks.drifting import demo_stream

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"
NEWSROOM = str(Path(__file__).parents[1] / "examples" / "newsroom.py")
SIZES = {"wide": (1280, 800), "tablet": (820, 1180), "phone": (390, 844)}
TEXTS = {
    "demo": "second strike of railway staff",
    "tweets_t": "toyota recall",
    "reuters21578": "Opec oil output and crude prices",
    "mixture": "[0, 0, 0, 0]",
    "openssh": "Failed password for root from 10.1.2.3 port 22 ssh2",
}
MORE = {
    "reuters21578": ("--keep", "title"),
    "openssh": ("--format", "log"),
    "hands": ("--state", "st", "--store", "db", "--page-corrections", "--decay-scale", "60"),
    "changes": ("--format", "log", "--keep", "level", "--state", "st"),
}
"""Options of a run."""


def run_of(name: str, port: int, folder: str) -> subprocess.Popen[bytes]:
    """A run with a page; a file is fed at full speed, and its end is not told."""
    base = [sys.executable, "-m", "streamdp"]
    quiet = {"cwd": folder, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    if name == "demo":
        return subprocess.Popen([*base, "demo", "--page", "--page-port", str(port)], **quiet)  # type: ignore[call-overload]
    command = [*base, "consume", "--file", "-", "--output", "out", "--page", str(port), *MORE.get(name, ())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, **quiet)  # type: ignore[call-overload]
    data = records(name)
    process.stdin.write(data if name in VIEWS else data[: int(len(data) * 0.97)])
    process.stdin.flush()
    return process


def records(name: str) -> bytes:
    """What the run is fed."""
    if name == "mixture":
        chance = np.random.default_rng(5)
        centres = chance.normal(0.0, 4.0, (9, 4))
        rows = centres[chance.integers(0, 9, 6000)] + chance.normal(0.0, 0.6, (6000, 4))
        lines = [json.dumps({"vector": row, "time": 1.7e9 + 30.0 * n}) for n, row in enumerate(rows.tolist())]
        return "\n".join(lines).encode() + b"\n"
    if name == "openssh":
        stored = gzip.decompress((DATA / "logs" / "OpenSSH_2k.jsonl.gz").read_bytes())
        return b"".join(json.loads(line)["raw"].encode() + b"\n" for line in stored.splitlines())
    if name == "hands":
        made = ({"time": d.time, "id": d.id, "text": d.text} for d in demo_stream(3000, 7))
        return b"".join(json.dumps(each).encode() + b"\n" for each in made)
    if name == "changes":
        return log()
    return gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes())


UP_TO_DATE = """document.querySelector('#found').textContent.split(',')[0]
    === document.querySelectorAll('#strip dd')[2].textContent"""
"""The table has as many stories as the strip says that there are."""


def answered(page: Any) -> int:
    """Records, by the strip."""
    return int(page.inner_text("#strip dd").replace(",", "") or 0)


def draw_docs(chromium: Any, folder: str) -> None:
    """The pictures of the documentation."""
    port = free_port()
    with tempfile.TemporaryDirectory() as own:
        quiet = {"cwd": own, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([sys.executable, NEWSROOM], check=True, **quiet)
        read = ("--text-field", "headline", "--time-field", "published", "--output", "a.csv", "--state", "st")
        command = [sys.executable, "-m", "streamdp", "consume", "news.csv", *read, "--store", "news.db"]
        process = subprocess.Popen([*command, "--page", str(port), "--page-linger"], **quiet)  # type: ignore[call-overload]
        try:
            page = chromium.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            ready(page, port, "newsroom")
            while not page.evaluate(UP_TO_DATE):
                time.sleep(0.2)
            page.fill("#text", "moon probe launched at dawn")
            page.click("#score button")
            page.wait_for_selector("#scored li")
            page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
            page.screenshot(path=f"{folder}/page.png")
        finally:
            process.kill()
            process.wait()
        report = ["stories", "news.db", "--report", "report.html", "--title", "Three days of news"]
        subprocess.run([sys.executable, "-m", "streamdp", *report], check=True, **quiet)
        page.goto(f"file://{own}/report.html")
        page.screenshot(path=f"{folder}/report.png", clip={"x": 0, "y": 0, "width": 1280, "height": 490})


def main(folder: str, *names: str) -> None:
    """Draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        if names == ("docs",):
            return draw_docs(chromium, folder)
        for name in names or (*TEXTS, *VIEWS):
            port = free_port()
            with tempfile.TemporaryDirectory() as own:
                process = run_of(name, port, own)
                try:
                    draw_all(chromium, port, name, f"{folder}/{name}", own)
                finally:
                    process.kill()
                    process.wait()


def draw_all(chromium: Any, port: int, name: str, path: str, own: str) -> None:
    """All pictures of a run whose folder is ``own``."""
    for scheme in ("light", "dark"):
        for size, (width, height) in SIZES.items():
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            ready(page, port, name)
            if name in VIEWS:
                if name == "changes":
                    mark = ["diff", "st", "--mark", "deploy", "--time", f"{START}09:00:00"]
                    subprocess.run([sys.executable, "-m", "streamdp", *mark], cwd=own, capture_output=True)
                views(page, name, f"{path}-{size}-{scheme}", scheme == "light" and width > 800)
            else:
                draw(page, name, f"{path}-{size}-{scheme}", scheme, width)
            page.close()


def ready(page: Any, port: int, name: str) -> None:
    """Open the page, and wait until its stream has been read, or for some seconds of the demo."""
    for _ in range(600):
        try:
            page.goto(f"http://127.0.0.1:{port}/")
            break
        except Exception:
            time.sleep(0.1)
    page.wait_for_selector("#table tbody tr[data-cluster]", timeout=60_000)
    before = -1
    for _ in range(60):
        time.sleep(2.0)
        now = answered(page)
        if now == before or (name == "demo" and now > 2200):
            break
        before = now


def draw(page: Any, name: str, path: str, scheme: str, width: int) -> None:
    """Two pictures: all clusters, and one of them."""
    page.fill("#text", TEXTS[name])
    page.click("#score button")
    page.wait_for_selector("#scored li", timeout=30_000)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.screenshot(path=f"{path}.png")
    if scheme == "light" and width < 800:
        page.screenshot(path=f"{path}-whole.png", full_page=True)
    page.click("#legend li:nth-child(4) button" if width > 800 else "#table tbody tr:nth-child(1) .open")
    page.wait_for_selector("#cluster h2")
    time.sleep(0.3)
    page.screenshot(path=f"{path}-cluster.png")


def views(page: Any, name: str, path: str, prints: bool) -> None:
    """A picture of each view of a run, and of each on paper."""
    for view, show in VIEWS[name].items():
        show(page)
        page.evaluate("document.activeElement.blur()")
        time.sleep(0.5)
        page.screenshot(path=f"{path}-{view}.png", full_page=True)
        if prints:
            page.emulate_media(media="print")
            page.screenshot(path=f"{path}-{view}-print.png", full_page=True)
            page.emulate_media(media="screen")


def show_level(page: Any, level: str, search: str = "") -> None:
    """What is listed, and what is searched there."""
    if page.is_visible("#cluster .close"):
        page.click("#cluster .close")
    page.fill("#search", "")
    page.click(f"[data-level={level}]")
    page.wait_for_selector("#level-rows tbody tr", timeout=60_000)
    page.fill("#search", search)
    time.sleep(1.0)


def show_changes(page: Any) -> None:
    """What has changed since a mark."""
    show_level(page, "changes")
    page.select_option("#since", "deploy")


def show_holes(page: Any) -> None:
    """What stands in the holes of a template."""
    show_level(page, "changes", "done with")
    page.locator("#level-rows .open", has_text="request").first.click()
    page.wait_for_selector("#cluster .hole", timeout=30_000)


def open_story(page: Any) -> None:
    """One of the largest stories."""
    page.click("[data-level=live]")
    page.fill("#search", "")
    page.locator("#table tbody tr[data-cluster] .open").first.click()
    page.wait_for_selector("#cluster .actions")


def show_corrected(page: Any) -> None:
    """A story that has just been renamed."""
    open_story(page)
    page.click("[data-correct=Rename]")
    page.fill("#cluster .asked input", "Talks in Turin")
    page.press("#cluster .asked input", "Enter")
    page.wait_for_selector("#cluster .note [data-undo]", timeout=30_000)


def show_choice(page: Any) -> None:
    """Which story to merge it with."""
    page.click("[data-correct='Merge…']")
    page.wait_for_selector("#cluster .asked .near li")


def show_records(page: Any) -> None:
    """Two pages of its records."""
    page.locator("#cluster .asked button", has_text="Cancel").click()
    for number in (20, 40):
        page.click("#all")
        page.wait_for_selector(f"#cluster .records > li:nth-child({number})", timeout=30_000)


def show_in_force(page: Any) -> None:
    """All corrections in force."""
    page.click("#cluster .close")
    page.wait_for_selector("#corrected li")


VIEWS: dict[str, dict[str, Callable[[Any], None]]] = {
    "hands": {
        "corrected": show_corrected,
        "choice": show_choice,
        "records": show_records,
        "in-force": show_in_force,
        "themes": partial(show_level, level="themes"),
        "ended": partial(show_level, level="ended"),
        "ended-search": partial(show_level, level="ended", search="railway"),
    },
    "changes": {"changed": show_changes, "holes": show_holes},
}
"""What is looked at besides the stories, one after the other, of runs whose input is given whole."""


if __name__ == "__main__":
    main(*sys.argv[1:])
