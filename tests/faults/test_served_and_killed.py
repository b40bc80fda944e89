"""A service killed under load, hostile bodies among it: what it acknowledged is there once, as it was."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import random
import shutil
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from commands import wait_for
from hostile import BODIES, sent
from serving import Served, stored

from benchmarks.drifting import demo_stream
from streamdp.state.snapshot import newest

CLIENTS = 4
SETTINGS = {"snapshot_every": "300", "snapshot_keep": "2"}
HOW = ("--output", "out.jsonl", "--keep-journal", "1G")


class Client(threading.Thread):
    """Sends its records, each until it is acknowledged, to whatever service runs."""

    def __init__(self, records: list[dict[str, Any]], running: list[Served]) -> None:
        super().__init__(daemon=True)
        self.records, self.running, self.again = records, running, 0
        self.told: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        """Send them, in batches of several sizes."""
        chance, at = random.Random(len(self.records[0]["id"])), 0
        while at < len(self.records):
            some = self.records[at : at + chance.choice((1, 1, 5, 40))]
            try:
                status, found = self.running[-1].send(*some)
            except (OSError, http.client.HTTPException):
                status, found = 0, []
            if status == 200 and all(each["status"] == "answered" for each in found):
                self.told |= {each["id"]: each for each in found}
                at += len(some)
            else:
                self.again += 1
                time.sleep(0.02)


class Hostile(threading.Thread):
    """Sends bodies that are much larger than they look, one after another, to whatever service runs."""

    def __init__(self, running: list[Served]) -> None:
        super().__init__(daemon=True)
        self.running, self.refused, self.ended = running, 0, threading.Event()
        self.bodies = [body for body in BODIES.values() if body.status == 413]
        self.data = [body.data() for body in self.bodies]

    def run(self) -> None:
        """Send them in turn."""
        for at in itertools.cycle(range(len(self.bodies))):
            if self.ended.wait(0.3):
                return
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.refused += sent(self.running[-1], self.bodies[at], self.data[at])[413]


@pytest.mark.parametrize(("kills", "records"), [(3, 1600), pytest.param(20, 8000, marks=pytest.mark.slow)])
def test_every_acknowledged_record_is_there_once_and_as_without_a_kill(
    tmp_path: Path, kills: int, records: int
) -> None:
    given = [{"id": f"r{i}", "text": record.text} for i, record in enumerate(demo_stream(records, 11))]
    running = [Served(tmp_path, *HOW, **SETTINGS)]
    clients, hostile = (
        [Client(given[number::CLIENTS], running) for number in range(CLIENTS)],
        Hostile(running),
    )
    hostile.start()
    wait_for(lambda: hostile.refused > 0, running[-1].process)
    for client in clients:
        client.start()
    chance = random.Random(3)
    for kill in range(kills):
        wanted = records * (kill + 1) / (kills + 2)
        while sum(len(client.told) for client in clients) < wanted:
            time.sleep(0.005)
        time.sleep(0.05 * chance.random())
        assert running[-1].stop(signal.SIGKILL) == -signal.SIGKILL
        running.append(Served(tmp_path, *HOW, ready=False, **SETTINGS))
    for client in clients:
        client.join(300)
        assert not client.is_alive()
    assert sum(client.again for client in clients) >= kills
    assert hostile.is_alive()
    hostile.ended.set()
    hostile.join(60)
    assert hostile.refused > 0
    assert running[-1].stop() == 0
    told = {name: answer for client in clients for name, answer in client.told.items()}
    assert len(told) == records
    with sqlite3.connect(tmp_path / "news.db") as store:
        held = store.execute("SELECT id, first_label, seq, text FROM records").fetchall()
    assert sorted((name, text) for name, _, _, text in held) == sorted((r["id"], r["text"]) for r in given)
    first = {name: (label, seq) for name, label, seq, _ in held}
    for name, answer in told.items():
        if answer.get("revision", 0) == 0:
            assert first[name] == (answer["label"], answer["seq"]), name
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    shutil.copytree(tmp_path / "st" / "journal", quiet / "st" / "journal")
    assert Served(quiet, *HOW, **SETTINGS).stop() == 0
    assert (quiet / "out.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert stored(quiet / "news.db") == stored(tmp_path / "news.db")
    ours, theirs = newest(tmp_path / "st", pytest.fail), newest(quiet / "st", pytest.fail)
    assert ours is not None
    assert theirs is not None
    assert ours[1] == theirs[1]
    assert ours[0].positions == theirs[0].positions
