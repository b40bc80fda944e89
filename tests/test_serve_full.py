"""The service on a disk that is full, of a small file system; and with a client that reads nothing."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import wait_for
from serving import Served

from streamdp.serve import ingest
from streamdp.web import server

SIZE = 96 << 20
NDJSON = "application/x-ndjson"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which only root may make."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(made, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, but: int) -> Path:
    """Fill a disk but for so many bytes."""
    found = os.statvfs(folder)
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        file.write(bytes(max(found.f_bavail * found.f_frsize - but, 0)))
    return ballast


def ids(served: Served) -> list[str]:
    with sqlite3.connect(served.folder / "news.db") as store:
        return [name for (name,) in store.execute("SELECT id FROM records ORDER BY seq")]


def test_a_disk_that_is_nearly_full_takes_nothing_until_there_is_room(disk: Path) -> None:
    served = Served(disk)
    assert served.send({"id": "a", "text": "storm over the coast"})[0] == 200
    ballast = fill(disk, ingest.RESERVE // 2)
    status, said = served.send({"id": "b", "text": "coast storm"})
    assert (status, "no room" in said["error"]) == (507, True)
    assert served.ask("GET", "/readyz")[0] == 503
    assert served.ask("GET", "/livez")[0] == 200
    ballast.unlink()
    wait_for(lambda: served.ask("GET", "/readyz")[0] == 200, served.process)
    assert served.send({"id": "b", "text": "coast storm"})[0] == 200
    assert ids(served) == ["a", "b"]
    assert served.stop() == 0


def test_a_store_without_room_waits_for_it_and_loses_nothing(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last room of the disk is gone although the journal has got its part of it."""
    monkeypatch.setattr(ingest, "RESERVE", 0)
    served = Served(disk)
    assert served.send({"id": "a", "text": "storm over the coast"})[0] == 200
    (ballast,) = [fill(disk, 256 << 10)]
    told: list[Any] = []
    records = [{"id": f"b{i}", "text": f"storm {i} " + "over the coast " * 30} for i in range(300)]
    asking = threading.Thread(target=lambda: told.append(served.send(*records)))
    asking.start()
    wait_for(lambda: b"disk is full" in served.said, served.process)
    wait_for(lambda: served.ask("GET", "/readyz")[0] == 503, served.process)
    status, said = served.send({"id": "c", "text": "coast"})
    assert (status, said["error"]) == (507, "no room for the store: nothing was taken")
    assert served.ask("GET", "/livez")[0] == 200
    ballast.unlink()
    asking.join(300)
    ((status, answers),) = told
    assert (status, {each["status"] for each in answers}) == (200, {"answered"})
    wait_for(lambda: served.ask("GET", "/readyz")[0] == 200, served.process)
    assert served.send({"id": "c", "text": "coast"})[0] == 200
    assert ids(served) == ["a", *(f"b{i}" for i in range(300)), "c"]
    assert served.stop() == 0


def test_a_service_killed_on_a_full_disk_goes_on_with_what_was_accepted(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "RESERVE", 0)
    served = Served(disk, "--answer-within", "1")
    ballast = fill(disk, 256 << 10)
    records = [{"id": f"b{i}", "text": f"storm {i} " + "over the coast " * 30} for i in range(300)]
    status, said = served.send(*records)
    assert (status, {each["status"] for each in said}) == (200, {"pending"})
    assert served.stop(signal.SIGKILL) == -signal.SIGKILL
    ballast.unlink()
    again = Served(disk)
    status, answers = again.send(*records)
    assert (status, {each["status"] for each in answers}) == (200, {"answered"})
    assert ids(again) == [f"b{i}" for i in range(300)]
    assert again.stop() == 0


def test_a_client_that_sends_and_never_reads_is_cut_off_and_hinders_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 2.0)
    monkeypatch.setattr(server, "ANSWER", 3.0)
    served = Served(tmp_path)
    record = b'{"text": "storm over the coast"}\n'
    body = record * 2000
    head = f"POST /v1/records HTTP/1.1\r\nhost: localhost\r\ncontent-type: {NDJSON}\r\n"
    request = head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(120.0)

        def send() -> None:
            for _ in range(1000):  # more than the buffers of any system hold
                client.sendall(request)
                assert served.send({"text": "coast"})[0] == 200

        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            send()
    assert len(ids(served)) < 100 * 2000
    assert served.send({"id": "after", "text": "coast"})[0] == 200
    assert served.stop() == 0
