"""The server of a page: what it answers, whom it refuses, and whom it drops."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from commands import wait_for
from feeds import headlines

from streamdp.engine import Engine
from streamdp.page import guard
from streamdp.page.guard import Allowance
from streamdp.page.hub import BEHIND
from streamdp.page.server import Page, PageError
from streamdp.page.view import View
from streamdp.settings import Settings
from streamdp.web import host_of, is_loopback


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine(Settings(beam=2))
    made.advance(headlines(600, 5))
    return made


@pytest.fixture
def page(engine: Engine) -> Iterator[Page]:
    view = View("<script>alert(1)</script>")
    view.begin(engine)
    made = Page(view)
    made.hub.publish(view.look(engine, 0.0, {"state": "running"}))
    yield made
    made.close()


def ask(
    page: Page, path: str, method: str = "GET", body: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=120)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body or None, sent)
    answer = connection.getresponse()
    found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found


def test_what_is_refused(page: Page) -> None:
    assert ask(page, "/api/status")[0] == 200
    assert ask(page, "/api/status", Host=f"localhost:{page.port}")[0] == 200
    assert ask(page, "/api/status", Host=f"[::1]:{page.port}")[0] == 200
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.1.2", "a b"):
        assert ask(page, "/api/status", Host=host)[0] == 421, host
    here = f"http://127.0.0.1:{page.port}"
    assert ask(page, "/api/status", Origin=here)[0] == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert ask(page, "/api/status", Origin=origin)[0] == 403, origin
    assert ask(page, "/api/status", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(page, "/", Sec_Fetch_Site="cross-site")[0] == 200  # a link to the page
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert ask(page, "/api/status", method)[0] == 405
    assert ask(page, "/v1/stories", "POST")[0] == 405
    assert ask(page, "/nothing")[0] == 404
    assert ask(page, "/..%2fserver.py")[0] == 404


def test_no_code_from_elsewhere_may_run(page: Page) -> None:
    for path in ("/", "/main.js", "/api/status", "/nothing"):
        headers = ask(page, path)[1]
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    html = ask(page, "/")[2]
    assert "<script>alert" not in html
    assert "on" not in {name[:2] for name in html.split() if name.startswith("on") and "=" in name}


@contextlib.contextmanager
def answering(page: Page, engine: Engine) -> Iterator[None]:
    """A run that answers questions meanwhile."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.01):
            page.questions.answer(engine)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_table_for_browsers_without_scripts(page: Page, engine: Engine) -> None:
    assert "<table" not in ask(page, "/")[2].partition("<main")[0].partition("<tr>")[2]  # nobody answers
    with answering(page, engine):
        html = ask(page, "/")[2]
    stories = engine.stories(records=False)
    assert html.count("<tr>") == min(len(stories), 50) + 1  # and the head
    assert stories[0].title in html


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/stories?sort=colour", 400),
        ("/v1/stories?reverse=up", 400),
        ("/v1/stories?limit=0", 400),
        ("/v1/stories?limit=1e9", 400),
        ("/v1/stories?start=1.5", 400),
        ("/api/shown?labels=1,x", 400),
        ("/api/shown?labels=", 400),
        ("/api/graph?from=nan", 400),
        ("/api/graph?from=x", 400),
        ("/api/shown/99999999999", 404),
        ("/api/shown/x", 404),
        ("/api/shown?labels=0,99999999999", 200),
        ("/v1/stories?search=%00%ff&limit=500", 200),
        ("/api/graph?from=-1e300&to=1e300", 200),
        ("/v1/events/list?label=0", 200),
    ],
)
def test_what_cannot_be_asked_is_said(page: Page, engine: Engine, path: str, status: int) -> None:
    with answering(page, engine):
        found, _, body = ask(page, path)
    assert found == status
    if status == 400:
        assert json.loads(body)["error"]


def post(page: Page, text: Any) -> tuple[int, dict[str, str], str]:
    return ask(page, "/v1/where", "POST", json.dumps({"text": text}), Content_Type="application/json")


def test_scoring_is_limited_and_answered_by_the_run(page: Page, engine: Engine) -> None:
    assert ask(page, "/v1/where", "POST", '{"text": "a"}', Content_Type="text/plain")[0] == 415
    assert post(page, 3)[0] == 400
    assert post(page, "x" * 10_001)[0] == 400
    assert post(page, "x" * 100_000)[0] == 413
    before = engine.dumps()
    with answering(page, engine):
        status, _, body = post(page, str(headlines(600, 5)[-1].value))
    candidates = json.loads(body)["candidates"]
    assert (status, len(candidates)) == (200, 5)
    titles = {story.label: story.title for story in engine.stories(records=False)}
    assert all(each["title"] == titles.get(each["label"]) for each in candidates)
    assert candidates[0]["probability"] > 0.5
    assert candidates[0]["words"]
    assert engine.dumps() == before
    refused: list[dict[str, str]] = []

    def is_refused() -> bool:
        status, headers, _ = post(page, 3)
        refused.extend([headers] if status == 429 else [])  # one may pass while others wait
        return len(refused) > 1

    wait_for(is_refused)
    assert all(int(headers["retry-after"]) >= 1 for headers in refused)


def test_questions_that_are_sent_ahead_are_bounded(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "ASKS", (5.0, 0.001))
    with socket.create_connection(("127.0.0.1", page.port), 120) as client:
        client.sendall(b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        found = b""
        with contextlib.suppress(ConnectionResetError):  # it was cut off with requests unread
            while part := client.recv(65536):
                found += part
    statuses = [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", found)]
    assert statuses == [200] * 5 + [429]
    assert ask(page, "/api/status")[1]["retry-after"] == "1"
    monkeypatch.setattr(guard, "ADDRESSES", 0)
    assert [ask(page, "/api/status")[0] for _ in range(2)] == [429, 200]  # it was forgotten meanwhile


def test_an_allowance_fills_again() -> None:
    now = [0.0]
    allowance = Allowance(2.0, 4.0, lambda: now[0])
    assert [allowance.take() for _ in range(3)] == [0.0, 0.0, 0.25]
    now[0] = 0.25
    assert [allowance.take(), allowance.take()] == [0.0, 0.25]
    now[0] = 100.0
    assert [allowance.take() for _ in range(3)] == [0.0, 0.0, 0.25]


def test_strangers_need_the_token(engine: Engine) -> None:
    page = Page(View("a stream"), "0.0.0.0", 0, "secret-token-1")
    try:
        assert page.address == f"http://0.0.0.0:{page.port}/"  # it is printed
        assert ask(page, "/")[0] == 401
        assert ask(page, "/api/status", Authorization="Bearer wrong")[0] == 401
        assert ask(page, "/api/status", Authorization="Bearer secret-token-1")[0] == 200
        status, headers, _ = ask(page, "/?token=secret-token-1")
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert ask(page, "/", Cookie=cookie.partition(";")[0])[0] == 200
        assert ask(page, "/?token=wrong")[0] == 401
        assert ask(page, "/", Host="evil.example", Cookie=cookie.partition(";")[0])[0] == 421
    finally:
        page.close()


def test_addresses_and_hosts() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "::", "example.org")))
    assert [host_of(h) for h in ("a:80", "[::1]:8", "A.b", "a b", "", "a:b", "[::1")] == [
        "a", "::1", "a.b", None, None, None, None,
    ]  # fmt: skip
    taken = Page(View("one"))
    with pytest.raises(PageError, match=f"port {taken.port} on 127.0.0.1 is taken"):
        Page(View("two"), port=taken.port)
    taken.close()
    taken.close()
    with pytest.raises(PageError, match="is not a port"):
        Page(View("two"), port=99999)


def listen(page: Page, last: str = "") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", page.port), 120)
    resumed = f"Last-Event-ID: {last}\r\n" if last else ""
    made.sendall(f"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n{resumed}\r\n".encode())
    return made


def read_until(made: socket.socket, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        part = made.recv(65536)
        assert part, found
        found += part
    return found


def test_a_page_that_comes_back_is_told_what_it_missed(page: Page) -> None:
    first = listen(page)
    told = read_until(first, b"event: hello")
    page.hub.publish({"a": 1})
    told = read_until(first, b'{"a":1}')
    last = told.split(b"id: ")[-1].split(b"\n")[0].decode()
    first.close()
    page.hub.publish({"a": 2})
    page.hub.publish({"a": 3})
    again = listen(page, last)
    told = read_until(again, b'{"a":3}')
    assert b'{"a":2}' in told
    assert b"hello" not in told
    assert b'{"a":1}' not in told
    again.close()
    for strange in ("another-5", f"{page.hub.run}-999", f"{page.hub.run}-x", "x"):
        made = listen(page, strange)
        read_until(made, b"event: hello")
        made.close()


def test_a_browser_that_stops_reading_is_dropped_and_the_others_are_not(page: Page) -> None:
    slow, quick = listen(page), listen(page)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for each in (slow, quick):
        read_until(each, b"event: hello")
    deadline = time.monotonic() + 120
    number = 0
    while page.hub.dropped == 0:
        assert time.monotonic() < deadline
        number += 1
        page.hub.publish({"number": number, "more": "x" * 500_000})
        read_until(quick, b'"number":%d,' % number)
    assert number > BEHIND
    assert page.hub.dropped == 1
    page.hub.publish({"end": True})
    read_until(quick, b'{"end":true}')
    wait_for(
        lambda: len(page.connections.crowd) == 1, seconds=120.0
    )  # the connection is gone, and what waited for it
    slow.close()
    quick.close()
