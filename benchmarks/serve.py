"""Records over HTTP: one at a time at 200 a second, and batches of 100 against ``consume`` of a file.

``python -m benchmarks.serve [SECONDS]``, beside what an fsync takes on the disk where the state is; with
1,000 idle and 100 slow clients, too. ``python -m benchmarks.serve memory [RECORDS [SECONDS]]`` sends records
one by one on several connections, and prints the memory of the service on the way.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import multiprocessing
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.drifting import demo_stream

RATE = 200
"""Records a second, one at a time."""

BATCH, RECORDS = 100, 60_000

IDLE, SLOW = 1000, 100
"""Clients that hold a connection and ask nothing, and that send a body a byte at a time."""

SITTING = 9.0
"""Seconds that an idle client stays: a little less than the service lets it."""

CLIENTS = 8
"""Clients that send at once."""


def percentiles(seconds: Sequence[float]) -> str:
    """Median and 99th percentile in milliseconds."""
    p50, p99 = np.percentile(np.array(seconds) * 1e3, [50, 99])
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def synced(folder: Path, times: int = 500) -> list[float]:
    """How long it takes to bring 150 bytes to the disk, after as many before it."""
    found = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(times):
            began = time.perf_counter()
            file.write(b"x" * 150)
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - began)
    return found


@contextmanager
def served(folder: Path) -> Iterator[http.client.HTTPConnection]:
    """A client of a service in a folder."""
    command = [
        sys.executable,
        "-m",
        "streamdp",
        "serve",
        "--state",
        "st",
        "--store",
        "news.db",
        "--port",
        "0",
    ]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r":(\d+)/", process.stderr.readline())
    assert found is not None
    client = http.client.HTTPConnection("127.0.0.1", int(found[1]))
    try:
        while ask(client, "GET", "/readyz", b"")[0] != 200:
            time.sleep(0.1)
        yield client
    finally:
        client.close()
        process.terminate()
        process.communicate()


def ask(client: http.client.HTTPConnection, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Status and body of an answer."""
    client.request(method, path, body or None, {"content-type": "application/x-ndjson"} if body else {})
    answer = client.getresponse()
    return answer.status, answer.read()


def one_at_a_time(client: http.client.HTTPConnection, lines: Sequence[bytes], seconds: float) -> list[float]:
    """How long single records take at a steady rate; those that come late because others did wait count."""
    found, began = [], time.perf_counter()
    for number in range(int(RATE * seconds)):
        due = began + number / RATE
        if (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        status, _ = ask(client, "POST", "/v1/records", lines[number % len(lines)])
        assert status == 200
        found.append(time.perf_counter() - due)
    return found


def in_batches(client: http.client.HTTPConnection, lines: Sequence[bytes]) -> float:
    """Records a second in batches, one after the other."""
    began = time.perf_counter()
    for at in range(0, len(lines), BATCH):
        status, _ = ask(client, "POST", "/v1/records", b"".join(lines[at : at + BATCH]))
        assert status == 200
    return len(lines) / (time.perf_counter() - began)


def slow_client(port: int, number: int) -> None:
    """Send a body a byte a second, again and again."""
    head = b"POST /v1/records HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\n"
    time.sleep(0.01 * number)
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(head + b"content-length: 1000\r\n\r\n")
            for _ in range(8):
                client.sendall(b" ")
                time.sleep(1.0)


def come_and_sit(port: int) -> None:
    """Idle and slow clients, for ever; those that are cut off come again, one after the other."""
    for number in range(SLOW):
        threading.Thread(target=slow_client, args=(port, number), daemon=True).start()
    held: deque[socket.socket] = deque()
    while True:
        held.append(socket.create_connection(("127.0.0.1", port)))
        if len(held) > IDLE:
            held.popleft().close()
        time.sleep(SITTING / IDLE)


@contextmanager
def crowd(port: int) -> Iterator[None]:
    """Idle and slow clients in a process of their own, for as long as this lasts."""
    process = multiprocessing.get_context("spawn").Process(target=come_and_sit, args=(port,), daemon=True)
    process.start()
    try:
        time.sleep(SITTING + 3.0)
        yield
    finally:
        process.kill()
        process.join()


def memory(records: int, seconds: float) -> None:
    """Print the resident memory of the service as records come one by one, on several connections.

    It ends after so many seconds, if there are more records than that.
    """
    texts = [record.text for record in demo_stream(RECORDS, 1)]
    with tempfile.TemporaryDirectory(dir=".") as name, served(Path(name)) as client:
        sent, began = itertools.count(), time.perf_counter()

        def send() -> None:
            mine = http.client.HTTPConnection("127.0.0.1", client.port)
            while (number := next(sent)) < records and time.perf_counter() - began < seconds:
                body = json.dumps({"text": texts[number % RECORDS]}).encode()
                status, said = ask(mine, "POST", "/v1/records", body)
                assert status == 200, said

        threads = [threading.Thread(target=send) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(20.0)
            looking = http.client.HTTPConnection("127.0.0.1", client.port)  # an idle one would be cut off
            status, body = ask(looking, "GET", "/metrics", b"")
            assert status == 200, body
            found = re.search(rb"^process_resident_memory_bytes ([0-9.e+]+)", body, re.M)
            taken = re.search(rb"^streamdp_records_total ([0-9.e+]+)", body, re.M)
            assert found is not None
            assert taken is not None
            passed, size = time.perf_counter() - began, float(found[1]) / (1 << 20)
            print(f"{passed:6.0f} s, {float(taken[1]):9,.0f} requests: {size:,.0f} MiB", flush=True)


def at_once(port: int, lines: Sequence[bytes]) -> float:
    """Records a second in batches, of several clients at once."""

    def send(mine: Sequence[bytes]) -> None:
        in_batches(http.client.HTTPConnection("127.0.0.1", port), mine)

    size = len(lines) // CLIENTS
    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(send, [lines[n * size : (n + 1) * size] for n in range(CLIENTS)]))
    return CLIENTS * size / (time.perf_counter() - began)


def consumed(folder: Path, lines: Sequence[bytes], more: Sequence[str]) -> float:
    """Records a second from a file to a file, as the run itself says."""
    (folder / "in.jsonl").write_bytes(b"".join(lines))
    command = [sys.executable, "-m", "streamdp", "consume", "in.jsonl", "--output", "out.jsonl", *more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found = re.search(r"([\d,]+) records/s", done.stderr)
    assert found is not None
    return float(found[1].replace(",", ""))


def main(seconds: float) -> None:
    """Print a line for each."""
    stream = demo_stream(RECORDS, 1)
    lines = [json.dumps({"id": record.id, "text": record.text}).encode() + b"\n" for record in stream]
    anonymous = [json.dumps({"text": json.loads(line)["text"]}).encode() + b"\n" for line in lines]
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        print(f"fdatasync of 150 bytes: {percentiles(synced(folder))}")
        with served(folder) as client:
            one_at_a_time(client, anonymous, 2.0)
            print(f"one at a time, {RATE}/s: {percentiles(one_at_a_time(client, anonymous, seconds))}")
            with crowd(client.port):
                fresh = http.client.HTTPConnection("127.0.0.1", client.port)  # an idle one was cut off
                figures = percentiles(one_at_a_time(fresh, anonymous, seconds))
                print(f"the same with {IDLE:,} idle and {SLOW} slow clients: {figures}")
            half = len(lines) // 2
            fresh = http.client.HTTPConnection("127.0.0.1", client.port)
            print(f"batches of {BATCH}: {in_batches(fresh, lines[:half]):,.0f} records/s")
            rate = at_once(client.port, lines[half:])
            print(f"batches of {BATCH}, {CLIENTS} clients at once: {rate:,.0f} records/s")
        for what, more in (
            ("file to file", []),
            ("with state and store", ["--state", "s2", "--store", "2.db"]),
        ):
            inner = folder / what.replace(" ", "-")
            inner.mkdir()
            print(f"consume, {what}: {consumed(inner, lines, more):,.0f} records/s")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {peak:,.0f} MiB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        most = [int(each) for each in sys.argv[2:]]
        memory(*most, *(1_000_000, 86_400)[len(most) :])
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
