"""Clients that drip, stall, flood or send too much: the others are answered, and the stream goes on."""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import wait_for
from feeds import headlines

from streamdp.engine import Engine
from streamdp.monitor.health import HealthServer
from streamdp.monitor.metrics import Metrics
from streamdp.page import server
from streamdp.page.hub import PAGES
from streamdp.page.server import Page
from streamdp.page.view import View
from streamdp.settings import Settings
from streamdp.web import PAGE, ConnectionLimiter, Hosts
from streamdp.web import server as web_server

HTTP = b"Host: localhost\r\n"
POST = b"POST /v1/where HTTP/1.1\r\n" + HTTP + b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine(Settings(beam=2))
    made.advance(headlines(300, 5))
    return made


@pytest.fixture
def page(engine: Engine) -> Iterator[Page]:
    view = View("in")
    view.begin(engine)
    made = Page(view)
    made.hub.publish(view.look(engine, 0.0, {"state": "running"}))
    yield made
    made.close()


@pytest.fixture
def metrics_server() -> Iterator[HealthServer]:
    made = HealthServer(Metrics())
    yield made
    made.close()


def connected(port: int, begin: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=120)
    if begin:
        made.sendall(begin)
    return made


@contextlib.contextmanager
def many(port: int, count: int, begin: bytes) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(connected(port, begin))) for _ in range(count)]


def status(port: int, path: str, headers: dict[str, str] | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def is_cut(one: socket.socket, seconds: float) -> bool:
    """Whether the other side ends a connection within some time."""
    one.settimeout(seconds)
    try:
        while one.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@pytest.mark.parametrize("begin", [b"", b"GET /api/status HTTP/1.1\r\nX-Drip: "])
def test_nine_hundred_that_drip_shut_nobody_out(page: Page, begin: bytes) -> None:
    with many(page.port, 900, begin) as held:
        for _ in range(20):
            assert status(page.port, "/api/status") == 200
        assert len(page.connections.crowd) <= PAGE.connections
        assert is_cut(held[0], 120.0)


def test_who_drips_is_cut(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps no connection open: neither of a head, nor of a body, nor between two."""
    view = View("in")
    view.begin(engine)
    page = Page(view)
    page.connections.patience = 0.6
    post = POST + b"Content-Length: 99\r\n\r\n"
    kept = b"GET /api/status HTTP/1.1\r\n" + HTTP + b"\r\n"
    held = [connected(page.port, begin) for begin in (b"GET / HTTP/1.1\r\nX: ", post, kept)]
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.1):
            for one in held[:2]:
                with contextlib.suppress(OSError):
                    one.send(b"a")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        assert all(is_cut(one, 120.0) for one in held)
    finally:
        stop.set()
        dripping.join()
        page.close()


def test_a_handshake_that_does_not_end_is_cut(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever sends nothing, half of it, or what is no TLS; nothing of that is a traceback."""
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout k.pem -out c.pem"
    subprocess.run(make.split(), cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(web_server, "PATIENCE", 0.6)
    view = View("in")
    view.begin(engine)
    tls = {"ssl_certfile": tmp_path / "c.pem", "ssl_keyfile": tmp_path / "k.pem"}
    page = Page(view, tls=tls)
    try:
        begun = [
            connected(page.port, begin) for begin in (b"", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n")
        ]
        assert all(is_cut(one, 120.0) for one in begun)
        for _ in range(50):  # a reset instead of an end
            with connected(page.port) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    finally:
        page.close()
    assert "Traceback" not in capfd.readouterr().err


def test_a_flood_of_failures_is_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Such as connections for which there is no open file left."""
    loop = web_server.Loop()
    try:
        for _ in range(1000):
            error = OSError(24, "Too many open files")
            loop.call_exception_handler({"message": "accept failed", "exception": error})
    finally:
        loop.close()
    assert [record.getMessage() for record in caplog.records] == [
        "a connection failed: accept failed ([Errno 24] Too many open files)"
    ]
    assert caplog.records[0].exc_info is None


def test_who_does_not_read_is_cut(engine: Engine) -> None:
    view = View("in")
    view.begin(engine)
    page = Page(view)
    page.connections.answer = page.connections.patience = 0.6
    asking = b"".join(b"GET /main.js HTTP/1.1\r\n" + HTTP + b"\r\n" for _ in range(300))
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", page.port))
    one.settimeout(1.0)
    with contextlib.suppress(OSError):
        one.sendall(asking)
    deadline = time.monotonic() + 120.0
    while page.connections.crowd.all() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not page.connections.crowd.all()
    assert status(page.port, "/api/status") == 200
    one.close()
    page.close()


def peeked(client: socket.socket) -> bytes:
    """What has come so far."""
    with contextlib.suppress(OSError):
        return client.recv(1000, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    return b""


def test_a_thousand_event_streams(page: Page, engine: Engine) -> None:
    """So many pages are told; the rest are turned away, and whoever asks is answered."""
    asking = b"GET /api/stream HTTP/1.1\r\n" + HTTP + b"\r\n"
    with many(page.port, 1000, asking) as held:
        for _ in range(5):
            assert status(page.port, "/api/status") == 200
        began = time.monotonic()
        page.hub.publish(page.view.look(engine, 1.0, {"state": "running"}))
        assert time.monotonic() - began < 20.0
        assert 0 < sum(b" 200 OK" in peeked(each) for each in held) <= PAGES
        assert len(page.connections.crowd) <= PAGE.connections


@pytest.mark.parametrize(
    "head",
    [
        b"POST /v1/where HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n",
        b"GET /api/status HTTP/1.1\r\n%sContent-Length: 1073741824\r\n\r\n",
        b"GET /api/status HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n",
        b"POST /v1/where HTTP/1.1\r\n%sContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_large_and_smuggled_bodies_are_refused_before_they_come(page: Page, head: bytes) -> None:
    with contextlib.closing(connected(page.port, head % HTTP)) as one:
        one.settimeout(120)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := one.recv(1 << 16):
                answer += part
        assert answer.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))
        assert answer.count(b"HTTP/1.1") == 1  # nothing that follows is taken for a request


def test_a_body_without_a_length_is_cut_short(page: Page) -> None:
    with contextlib.closing(connected(page.port, POST + b"Transfer-Encoding: chunked\r\n\r\n")) as one:
        chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        sent = 0
        with contextlib.suppress(OSError):
            one.settimeout(1.0)
            for _ in range(16_384):
                sent += one.send(chunk)
        assert sent < 64 << 20
        assert status(page.port, "/api/status") == 200


def test_answers_that_are_worked_out_are_limited(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MADE", (server.MADE[0], 0.001))  # however slowly the questions come
    view = View("in")
    view.begin(engine)
    page = Page(view)
    found = [status(page.port, f"/api/graph?from={i}&to={i + 100}") for i in range(400)]
    assert found[:50] == [200] * 50
    assert 429 in found
    assert status(page.port, "/api/status") in (200, 429)
    assert status(page.port, "/") == 200
    page.close()


def test_the_first_question_that_needs_a_kernel_does_not_hold_up_the_stream(
    page: Page, engine: Engine
) -> None:
    asked, goes_on = list[Engine](), threading.Event()

    def slow(copy: Engine) -> int:
        asked.append(copy)
        goes_on.wait(60.0)
        return copy.seq

    first, second = (page.questions.ask(slow, scores=True) for _ in range(2))
    plain = page.questions.ask(lambda one: one.seq)
    for _ in range(5):
        page.questions.answer(engine)
    assert not first.done()
    assert plain.result(0.0) == engine.seq
    goes_on.set()
    assert (first.result(120.0), second.result(120.0)) == (engine.seq, engine.seq)
    assert engine not in asked

    def by_itself() -> bool:
        third = page.questions.ask(lambda one: one, scores=True)
        page.questions.answer(engine)
        return third.result(120.0) is engine

    wait_for(by_itself, seconds=120.0)


# ------------------------------------------------------------------ metrics


def test_metrics_are_served_beside_many_that_drip(metrics_server: HealthServer) -> None:
    before = threading.active_count()
    with many(metrics_server.port, 900, b"GET /metrics HTTP/1.0\r\nX: ") as held:
        for path in ("/metrics", "/livez"):
            assert status(metrics_server.port, path) == 200
        assert threading.active_count() - before <= 8
        assert is_cut(held[0], 120.0)


def test_who_drips_at_the_metrics_is_cut(metrics_server: HealthServer) -> None:
    metrics_server.connections.patience = 0.5
    with contextlib.closing(connected(metrics_server.port, b"GET /metrics HTTP/1.0\r\nX: ")) as one:
        for _ in range(600):
            time.sleep(0.1)
            try:
                one.send(b"a")
            except OSError:
                break
        else:
            pytest.fail("it was not cut")


@pytest.mark.parametrize(
    ("host", "found"),
    [("localhost", 200), ("127.0.0.1:9", 200), ("[::1]", 200), ("evil.example", 421), ("192.168.1.2", 421)],
)
def test_the_host_is_checked_at_the_metrics(metrics_server: HealthServer, host: str, found: int) -> None:
    for path in ("/metrics", "/livez", "/readyz"):
        got = status(metrics_server.port, path, {"Host": host})
        assert got == (503 if (path, found) == ("/readyz", 200) else found)


def test_metrics_at_an_address_of_a_network_are_for_every_name() -> None:
    made = HealthServer(Metrics(), "0.0.0.0")
    try:
        assert status(made.port, "/livez", {"Host": "streamdp.monitoring.svc"}) == 200
    finally:
        made.close()


# ------------------------------------------------------------------ parts


def test_a_crowd_lets_the_oldest_that_waits_go() -> None:
    busy: set[Any] = set()
    crowd: ConnectionLimiter[int] = ConnectionLimiter(4, 3, lambda one: one not in busy)
    assert [crowd.enter(i, "a") for i in range(3)] == [None] * 3
    assert crowd.enter(3, "a") == 0
    assert crowd.enter(4, "b") is None
    assert crowd.enter(5, "c") == 1  # of the address with most
    busy |= {2, 3, 4, 5}
    assert crowd.enter(6, "a") == 6  # nobody waits: it has to go itself
    crowd.leave(3)
    crowd.leave(3)
    assert crowd.all() == [2, 4, 5]


def test_names_of_a_server() -> None:
    here, anywhere = Hosts("127.0.0.1"), Hosts("0.0.0.0")
    for header in ("localhost", "127.0.0.1:80", "[::1]:80", "LOCALHOST"):
        assert here.have(header)
        assert anywhere.have(header)
    for header in ("", "a b", "evil.example"):
        assert not here.have(header)
        assert not anywhere.have(header)
