"""The service, killed under load: what was answered is there once, and so is what was sent again."""

from __future__ import annotations

import http.client
import itertools
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving import Served, stored

from streamdp.demo.stream import demo_stream

CLIENTS = 4
KEPT = ("--output", "out.jsonl", "--keep-journal", "1G")


class Client:
    """Sends batches, each again until it is answered, and remembers the answers by id."""

    def __init__(self, number: int, texts: list[str]) -> None:
        self._texts, self._number, self._chance = texts, number, random.Random(number)
        self.answers: dict[str, list[Any]] = {}
        self.again = 0

    def send_until(self, ended: threading.Event, served: list[Served]) -> None:
        """Send to the service that runs, the last, for as long as it takes."""
        batches = self._batches()
        while not ended.is_set():
            batch = next(batches)
            while (found := self._answers(batch, served)) is None:
                self.again += 1
                time.sleep(0.05)
            for answer in found:
                self.answers.setdefault(answer["id"], []).append(answer)

    def _batches(self) -> Iterator[list[dict[str, Any]]]:
        for number in itertools.count():
            names = [f"{self._number}-{number}-{n}" for n in range(self._chance.choice((1, 1, 7, 40)))]
            yield [{"id": name, "text": self._chance.choice(self._texts)} for name in names]

    def _answers(self, batch: list[dict[str, Any]], served: list[Served]) -> list[Any] | None:
        try:
            status, said = served[-1].send(*batch)
        except (OSError, http.client.HTTPException):
            return None
        return said if status == 200 else None


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_what_was_answered_is_there_once_whenever_it_is_killed(tmp_path: Path, kills: int) -> None:
    texts = [record.text for record in demo_stream(2000, 5)]
    served, ended, chance = [Served(tmp_path, *KEPT)], threading.Event(), random.Random(kills)
    clients = [Client(number, texts) for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        sending = [pool.submit(client.send_until, ended, served) for client in clients]
        try:
            for _ in range(kills):
                time.sleep(chance.uniform(0.1, 1.0))
                assert served[-1].stop(signal.SIGKILL) == -signal.SIGKILL
                served.append(Served(tmp_path, *KEPT))
            time.sleep(0.5)
        finally:
            ended.set()
        for each in sending:
            each.result()
    assert served[-1].stop() == 0
    assert sum(client.again for client in clients) >= kills
    told = {name: each[-1] for client in clients for name, each in client.answers.items()}
    held = stored(tmp_path / "news.db")["records"]
    assert Counter(row[1] for row in held) == Counter(told.keys())
    places = {row[1]: row[0] for row in held}
    assert all(answer["seq"] == places[name] for name, answer in told.items() if "seq" in answer)

    quiet = tmp_path / "quiet"
    shutil.copytree(tmp_path / "st" / "journal", quiet / "st" / "journal")
    again = Served(quiet, *KEPT)
    assert again.stop() == 0
    assert (quiet / "out.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert stored(quiet / "news.db") == stored(tmp_path / "news.db")
