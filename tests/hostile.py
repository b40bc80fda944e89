"""Bodies of requests that are much larger than they look, or never end: sent to a service, and measured.

    python tests/hostile.py [--only NAME]

Each is sent to a ``streamdp serve`` of its own, which is asked for ``/livez`` a hundred times a second
meanwhile. Prints the answer's status (several, each with how often it came; 0 for none), the service's CPU
seconds, the most MiB that it held above what it held before, and the longest wait for ``/livez`` in
milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import multiprocessing
import signal
import socket
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bombs import MIB, cpu_seconds, most_resident
from serving import Served

PROTOBUF = "application/x-protobuf"
NDJSON = "application/x-ndjson"
JSON = "application/json"


def repeated(begin: bytes, part: bytes, count: int, end: bytes = b"") -> bytes:
    """``begin``, so many times ``part``, and ``end``, packed by gzip without being held unpacked."""
    packer = zlib.compressobj(9, wbits=31)
    at_once = part * 10_000
    made = [packer.compress(begin)]
    made += [packer.compress(at_once) for _ in range(count // 10_000)]
    made += [packer.compress(part * (count % 10_000)), packer.compress(end), packer.flush()]
    return b"".join(made)


def field(number: int, size: int) -> bytes:
    """The head of a field of protobuf that holds so many bytes."""
    found = bytearray([number << 3 | 2])
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    return bytes([*found, size])


def inside(*numbers: int, size: int) -> bytes:
    """The heads of fields, each within the one before, around so many bytes."""
    found = b""
    for number in reversed(numbers):
        found = field(number, size + len(found)) + found
    return found


class Body(NamedTuple):
    """A body, where it is sent and as what, and the answer's status; how many are sent that never end."""

    data: Callable[[], bytes]
    path: str = "/v1/records"
    kind: str = JSON
    status: int = 413
    packed: bool = True
    unfinished: int = 0


def attributes(count: int, *numbers: int) -> Body:
    """So many empty attributes, each two bytes, within these fields."""
    last = bytes([numbers[-1] << 3 | 2, 0])
    return Body(lambda: repeated(inside(*numbers[:-1], size=2 * count), last, count), "/v1/logs", PROTOBUF)


RECORD = b'{"text": "storm over the coast"}\n'

BODIES: dict[str, Body] = {
    "array of 30,000,000 numbers": Body(lambda: repeated(b"[1", b",1", 30_000_000, b"]")),
    "array in an array": Body(lambda: repeated(b"[[1", b",1", 30_000_000, b"]]"), status=422),
    "30,000,000 lines of a number": Body(lambda: repeated(b"", b"1\n", 30_000_000), kind=NDJSON),
    "60,000,000 line ends": Body(lambda: repeated(RECORD, b"\n", 60_000_000), kind=NDJSON, status=200),
    "8,000,000 attributes of a record": attributes(8_000_000, 1, 2, 2, 6),
    "30,000,000 attributes of a record": attributes(30_000_000, 1, 2, 2, 6),
    "30,000,000 attributes of a resource": attributes(30_000_000, 1, 1, 1),
    "30,000,000 values of a body": attributes(30_000_000, 1, 2, 2, 5, 5, 1),
    "30,000,000 log records": attributes(30_000_000, 1, 2, 2),
    "30,000,000 resources": attributes(30_000_000, 1),
    "20,000,000 attributes in JSON": Body(
        lambda: repeated(
            b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{}',
            b",{}",
            20_000_000,
            b"]}]}]}]}",
        ),
        "/v1/logs",
    ),
    "60 records of 500,000 attributes": Body(
        lambda: gzip.compress((inside(1, 2, 2, size=1_000_000) + b"\x32\x00" * 500_000) * 60),
        "/v1/logs",
        PROTOBUF,
    ),
    "3.2 MB of empty members": Body(lambda: gzip.compress(b"", mtime=0) * 160_000),
    "60 bodies that never end": Body(
        lambda: b'[{"text": "' + b"a" * (15 * MIB), status=503, packed=False, unfinished=60
    ),
}
"""By what is in them."""


class Seen(NamedTuple):
    """Statuses, CPU seconds, MiB above those before, the longest wait for ``/livez`` in seconds."""

    statuses: Counter[int]
    cpu: float
    mebibytes: int
    longest: float


def measure(served: Served, body: Body) -> Seen:
    """Send a body, and see what becomes of the service."""
    data, pid = body.data(), served.process.pid
    longest, ended = multiprocessing.Value("d", 0.0), multiprocessing.Event()
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the most that it held is counted from here on
    held, cpu = most_resident(pid), cpu_seconds(pid)
    watching = multiprocessing.Process(target=watch, args=(served.port, longest, ended))
    watching.start()
    try:
        found = unfinished(served.port, body, data) if body.unfinished else sent(served, body, data)
    finally:
        time.sleep(0.3)
        ended.set()
        watching.join()
    return Seen(found, cpu_seconds(pid) - cpu, most_resident(pid) - held, longest.value)


def watch(port: int, longest: Any, ended: Any) -> None:
    """Ask for ``/livez`` until it ends, and note the longest wait."""
    while not ended.is_set():
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
        connection.close()
        longest.value = max(longest.value, time.monotonic() - began)
        time.sleep(0.01)


def sent(served: Served, body: Body, data: bytes) -> Counter[int]:
    """The status of the answer."""
    more = {"content_encoding": "gzip"} if body.packed else {}
    try:
        return Counter([served.ask("POST", body.path, data, body.kind, **more)[0]])
    except OSError:
        return Counter([0])


def unfinished(port: int, body: Body, data: bytes) -> Counter[int]:
    """The statuses of several that say they were one byte longer."""
    head = f"POST {body.path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {body.kind}\r\n"
    head += f"content-length: {len(data) + 1}\r\n\r\n"
    found: Counter[int] = Counter()

    def send() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
            answer = b""
            with contextlib.suppress(OSError):
                one.sendall(head.encode() + data)
            with contextlib.suppress(OSError):
                answer = one.recv(1 << 16)
            found[int(answer[9:12] or b"0")] += 1

    threads = [threading.Thread(target=send) for _ in range(body.unfinished)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    """Measure all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="those whose name has this")
    options = parser.parse_args()
    print("| body | bytes | status | CPU s | MiB more | longest /livez, ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, body in BODIES.items():
        if options.only is not None and options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            served = Served(Path(folder), "--format", "otlp" if body.path == "/v1/logs" else "auto")
            try:
                seen = measure(served, body)
            finally:
                served.stop(signal.SIGKILL)
        statuses = ", ".join(
            f"{n} x {status}" if n > 1 else f"{status}" for status, n in seen.statuses.items()
        )
        size, milliseconds = len(body.data()), round(1000 * seen.longest)
        print(
            f"| {name} | {size:,} | {statuses} | {seen.cpu:.1f} | {seen.mebibytes} | {milliseconds} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
