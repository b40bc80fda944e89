"""Pictures of the live page: python -m benchmarks.page_pictures FOLDER [NAME ...].

Names are demo, tweets_t, reuters21578, mixture (vectors) and openssh (a log); each is drawn at 1440 x 900 and
390 x 844, light and dark, and with a cluster open.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from broker.process import free_ports
from browser.process import browser

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
TEXTS = {
    "demo": "second strike of railway staff",
    "tweets_t": "toyota recall",
    "reuters21578": "Opec oil output and crude prices",
    "mixture": "[0, 0, 0, 0]",
    "openssh": "Failed password for root from 10.1.2.3 port 22 ssh2",
}


def run_of(name: str, port: int) -> subprocess.Popen[bytes]:
    """A run with a page; a file is fed at full speed, and its end is not told."""
    base = [sys.executable, "-m", "streamdp"]
    if name == "demo":
        return subprocess.Popen(
            [*base, "demo", "--page", "--page-port", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    command = [*base, "consume", "--file", "-", "--output", os.devnull, "--page", str(port)]
    more = {"reuters21578": ["--keep", "title"], "openssh": ["--format", "log"]}.get(name, [])
    process = subprocess.Popen(
        [*command, *more, "--overwrite"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    data = records(name)
    assert process.stdin is not None
    process.stdin.write(data[: int(len(data) * 0.97)])
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
    return gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes())


def answered(page: Any) -> int:
    """Records, by the strip."""
    return int(page.inner_text("#strip dd").replace(",", "") or 0)


def main(folder: str, *names: str) -> None:
    """Draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        for name in names or tuple(TEXTS):
            port, _ = free_ports()
            process = run_of(name, port)
            try:
                for scheme in ("light", "dark"):
                    for size, (width, height) in SIZES.items():
                        draw(chromium, port, name, f"{folder}/{name}-{size}-{scheme}", scheme, width, height)
            finally:
                process.kill()
                process.wait()


def draw(chromium: Any, port: int, name: str, path: str, scheme: str, width: int, height: int) -> None:
    """Two pictures: all clusters, and one of them."""
    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    for _ in range(600):
        try:
            page.goto(f"http://127.0.0.1:{port}/")
            break
        except Exception:
            time.sleep(0.1)
    page.wait_for_selector("#table tbody tr[data-cluster]", timeout=60_000)
    before = -1
    for _ in range(60):  # until the file has been read, or for some seconds of the demo
        time.sleep(2.0)
        now = answered(page)
        if now == before or (name == "demo" and now > 2200):
            break
        before = now
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
    page.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
