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
from commands import call
from serving import Served, stored
from streamdp_connectors.journal.writer import Journal

from benchmarks.drifting import demo_stream

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


@pytest.mark.parametrize("before", [0, 30])
@pytest.mark.parametrize("others", [0, 20, 200])
def test_a_store_ahead_of_its_journal_is_refused(tmp_path: Path, before: int, others: int) -> None:
    """The journal is lost, or another one (of so many records) is there: new records would be in no store."""
    if before:
        served = Served(tmp_path)
        served.send(*({"id": f"a{n}", "text": f"storm over coast {n}"} for n in range(before)))
        assert served.stop() == 0
    served = Served(tmp_path)
    served.send(*({"id": f"b{n}", "text": f"parliament votes {n}"} for n in range(51)))
    assert served.stop(signal.SIGKILL) == -signal.SIGKILL
    journal = tmp_path / "st" / "journal"
    if before:  # what the snapshot covers is there
        first, *rest = sorted(journal.iterdir())
        assert rest or first.read_bytes().count(b"\n# ") >= 1
        whole = b"".join(path.read_bytes() for path in (first, *rest))
        for path in (first, *rest):
            path.unlink()
        first.write_bytes(whole[: whole.index(b'{"id": "b0"')].rpartition(b"# ")[0])
    else:
        shutil.rmtree(journal)
    written = Journal(journal)
    if others:
        written.append([b'{"id": "c%d", "text": "the bank raises rates %d"}' % (n, n) for n in range(others)])
    written.close()
    held = stored(tmp_path / "news.db")
    for _ in range(2):
        done = call(tmp_path, "serve", "--state", "st", "--store", "news.db", "--port", "0")
        assert done.returncode == 65
        message = done.stderr.splitlines()[-1]
        assert message.startswith(b"streamdp: news.db holds ")
        assert message.endswith(b": restore that input, or begin anew with another --state and --store")
    assert stored(tmp_path / "news.db") == held
