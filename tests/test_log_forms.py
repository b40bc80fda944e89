"""Every common form of a log is read without an option: time, level, component and message of each line."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import assignments, call, succeed

from benchmarks.log_forms import WRITERS, Event, iso, write
from benchmarks.logs import read
from streamdp.records import Record

FORMS = Path(__file__).parent / "forms"
BEGAN = datetime(2026, 5, 4, 23, 58, 30, 250_000, tzinfo=UTC).timestamp()
SAID = [
    ("INFO", "shop.Cart", "cart 4711 opened for customer anna-k"),
    ("INFO", "shop.http.Server", "listening on 0.0.0.0:8443 with 8 workers"),
    ("WARN", "shop.Stock", "only 3 of article B-77 left in warehouse 12"),
    ("ERROR", "shop.Pay", "payment 90211 refused: card expired (code 54)"),
    ("DEBUG", "shop.db.Pool", "query took 17.2 ms, 48 rows"),
    ("INFO", "shop.Cart", "cart 4712 opened for customer bert"),
    ("WARN", "shop.mail.Sender", 'retry 2 of 5: "smtp.shop.example" said 421 try again'),
    ("INFO", "shop.Cart", "cart 4711 closed after 93 s; total=129.90 EUR"),
    ("ERROR", "shop.Stock", "cannot write /srv/shop/stock.db: No space left on device"),
    ("INFO", "shop.http.Server", "GET /article/77 answered 200 in 12 ms"),
    ("DEBUG", "shop.db.Pool", "query took 3.9 ms, 2 rows"),
    ("INFO", "shop.Pay", "payment 90212 of 18.50 EUR accepted"),
    ("WARN", "shop.Stock", "only 1 of article C-02 left in warehouse 3"),
]
EVENTS = [Event(BEGAN + 17 * n, *said) for n, said in enumerate(SAID)]

LACKS = {
    "syslog 3164": {"fraction", "year"},
    "GitHub Actions": {"level", "component"},
    "uvicorn": {"time", "component"},
    "logback": {"year"},
    "klog": {"year", "component"},
    "AM and PM": {"fraction"},
}
"""What a form does not write, or writes otherwise."""

LEVELS = {"WARN": {"WARN", "WARNING"}, "INFO": {"INFO", "INFORMATION"}}


def agrees(form: str, found: list[tuple[str, float | None, dict[str, str]]]) -> None:
    lacks = LACKS.get(form, set())
    assert [message for message, _, _ in found] == [event.message for event in EVENTS]
    for event, (_, time, keep) in zip(EVENTS, found, strict=True):
        if "time" in lacks:
            assert time is None
        else:
            assert time is not None
            off = (time - event.time) % 86_400 if "year" in lacks else time - event.time
            assert min(off, abs(off - 86_400)) < (0.3 if "fraction" in lacks else 1e-3)
        if "level" not in lacks:
            assert keep["level"].upper() in LEVELS.get(event.level, {event.level})
        if "component" not in lacks:
            assert keep["component"] == event.component


def read_as(path: Path, lines: str, encoding: str) -> list[Record]:
    """What is read of lines in a file of their own, in an encoding; no object has colours around it."""
    if encoding == "colours" and not lines.startswith("{"):
        lines = "".join(f"\x1b[0;32m{line}\x1b[0m\n" for line in lines.splitlines())
    if encoding == "CRLF":
        lines = lines.replace("\n", "\r\n")
    form = {"BOM": "utf-8-sig", "UTF-16": "utf-16"}.get(encoding, "utf-8")
    path.write_bytes(lines.encode(form))
    os.utime(path, (BEGAN + 300, BEGAN + 300))
    return read(path)


ENCODINGS = ("UTF-8", "colours", "CRLF", "BOM", "UTF-16")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", WRITERS)
def test_what_a_line_says_is_read(form: str, encoding: str, tmp_path: Path) -> None:
    lines = "".join(write(form, event) + "\n" for event in EVENTS)
    found = read_as(tmp_path / "app.txt", lines, encoding)
    agrees(form, [(str(each.value), each.time, each.keep or {}) for each in found])


def told(records: list[Record]) -> list[tuple[str | None, str | None, str | None, str]]:
    """Time, level, component and message of each record."""
    found = []
    for record in records:
        at = None if record.time is None else iso(record.time)[:-1].removesuffix(".000")
        keep = record.keep or {}
        found.append((at, keep.get("level"), keep.get("component"), str(record.value)))
    return found


READ = {
    "nginx": ["GET@/#OK", "GET@/static/app.js#OK", "POST@/cart/4711/items#Created",
                      "POST@/cart/4712/items#InternalServerError", "GET@/wp-login.php#NotFound"],
    "nginx-errors": [
        ("2026-05-04T12:00:01", "error", None,
         'open() "/srv/www/favicon.ico" failed (2: No such file or directory)'),
        ("2026-05-04T12:00:02", "warn", None, "an upstream response is buffered to a temporary file"),
        ("2026-05-04T12:00:03", "notice", None, "signal 1 (SIGHUP) received, reconfiguring")],
    "postgresql": [
        ("2026-05-04T12:00:01.123", "LOG", None, "checkpoint starting: time"),
        ("2026-05-04T12:00:02.004", "ERROR", None,
         'duplicate key value violates unique constraint "orders_pkey"'),
        ("2026-05-04T12:00:02.004", "DETAIL", None, "Key (id)=(4711) already exists."),
        ("2026-05-04T12:00:02.004", "STATEMENT", None, "INSERT INTO orders"),
        ("2026-05-04T12:00:03.900", "LOG", None, "checkpoint complete: wrote 59 buffers (0.4%)"),
        ("2026-05-04T12:00:04.100", "LOG", None, "connection received: host=10.0.0.8 port=40112"),
        ("2026-05-04T12:00:05", "FATAL", None, "the database system is starting up")],
    "redis": [
        ("2026-05-04T12:00:00.123", "WARNING", None, "WARNING Memory overcommit must be enabled!"),
        ("2026-05-04T12:00:00.125", "NOTICE", None, "Ready to accept connections tcp")],
    "iis": [
        ("2026-05-04T12:00:01", None, None, "GET@/default.aspx#OK"),
        ("2026-05-04T12:00:02", None, None, "POST@/api/orders#InternalServerError"),
        ("2026-05-04T12:00:03", None, None, "GET@/img/logo.png#NotModified")],
    "cloudfront": [
        ("2026-05-04T12:00:01", None, None, "GET@/img/a.png#OK"),
        ("2026-05-04T12:00:02", None, None, "GET@/img/b.png#Forbidden")],
    "alb": [
        ("2026-05-04T12:00:01.186", None, None, "GET@/article/77#OK"),
        ("2026-05-04T12:00:02", None, None, "POST@/cart#ServiceUnavailable")],
    "haproxy": ["GET@/article/77#OK", "POST@/cart#ServiceUnavailable",
                          "Server shop/web2 is DOWN, reason: Layer4 timeout"],
    "github-actions": [
        ("2026-05-04T12:00:01.123", None, None, "##[group]Run actions/checkout@v4"),
        ("2026-05-04T12:00:01.130", None, None, "with:"),
        ("2026-05-04T12:00:01.130", None, None, "  fetch-depth: 1"),
        ("2026-05-04T12:00:02", None, None, "##[endgroup]"),
        ("2026-05-04T12:00:03", None, None, "pytest -q"),
        ("2026-05-04T12:00:04.500", "warning", None, "Node.js 16 is deprecated"),
        ("2026-05-04T12:00:05", "error", None, "Process completed with exit code 1.")],
    "docker-compose": [
        ("2026-05-04T12:00:01", None, "web-1", "GET@/article/77#OK"),
        ("2026-05-04T12:00:02.004", "LOG", "db-1", "checkpoint starting: time"),
        ("2026-05-04T12:00:03.500", "error", "shop.pay", "payment 9 refused"),
        ("2026-05-04T12:00:04", "WARN", "api-1", "slow answer"),
        ("2026-05-04T12:00:04", "INFO", "api-1", "Application startup complete."),
        ("2026-05-04T12:00:04", None, "job-1", "nothing to do for 300 seconds")],
    "cri": [
        ("2026-05-04T12:00:01", "WARN", "shop.Cart", "slow"),
        ("2026-05-04T12:00:02", None, None, "between them"),
        ("2026-05-04T12:00:02", "info", None, "a long line of 3 parts")],
    "docker-json-file": [
        ("2026-05-04T12:00:01.500", "WARN", "shop.Cart", "slow"),
        ("2026-05-04T12:00:02.600", None, None, "other"),
        ("2026-05-04T12:00:02.500", None, None, "one of two parts")],
    "logfmt-among-others": [
        (None, None, None, "starting shop 3.1"),
        ("2026-05-04T12:00:01", "INFO", None, 'listening on "0.0.0.0:80"'),
        ("2026-05-04T12:00:02", "error", None, "disk full"),
        ("2026-05-04T12:00:03.250", "debug", "tsdb", "compacted"),
        ("2026-05-04T12:00:03.250", None, None, "a line of another library")],
    "journald-export": [
        ("2026-05-04T12:00:01.250", "ERROR", "kernel", "Out of memory: Killed process 912 (java)"),
        ("2026-05-04T12:00:02", "INFO", "sshd",
         "Accepted publickey for deploy from 203.0.113.9 port 33318")],
    "java-util-logging": [
        ("2026-05-04T12:00:01", "INFO", "com.shop.Cart", "cart 4711 opened"),
        ("2026-05-04T12:00:02", "WARNING", "com.shop.Stock", "only 3 left of B-77"),
        ("2026-05-04T12:00:03", "SEVERE", "com.shop.Pay", "payment 9 refused"),
        (
            "2026-05-04T12:00:03",
            "SEVERE",
            "com.shop.Pay",
            "java.io.IOException@com.shop.Pay.charge: connection reset",
        ),
        ("2026-05-04T12:00:04", "INFO", "com.shop.Cart", "cart 4712 opened")],
    "kafka": [
        ("2026-05-04T12:00:01.250", "INFO", None, "opened ledger 4711 (shop.server.Broker)"),
        ("2026-05-04T12:00:02.004", "WARN", None, "ledger 4711 is slow (shop.server.Broker)"),
        ("2026-05-04T12:00:03.900", "ERROR", None,
         "cannot read 00042.index (shop.server.Log)")],
    "others": [
        ("2026-05-04T12:00:01", "WARN", "shop_core", "stock is low"),
        ("2026-05-04T12:00:02", "INFO", "shop::http", "listening"),
        ("2026-05-04T12:00:03", "ERROR", None, "Worker failed to boot."),
        ("2026-05-04T12:00:04.125", "WARN", "o.e.n.Node", "[node-1] cluster is yellow"),
        ("2026-05-04T12:00:05", "INFO", None, "Started GET"),
        ("2026-05-04T12:00:06", "Warning", "Server", "CA certificate is self signed."),
        ("2026-05-04T12:00:07.125", "ERROR", None, "it broke")],
}  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", READ)
def test_lines_as_programs_write_them(form: str, encoding: str, tmp_path: Path) -> None:
    expected, lines = READ[form], (FORMS / f"{form}.log").read_text()
    found = told(read_as(tmp_path / "app.txt", lines, encoding))[: len(expected)]
    assert [each if isinstance(expected[0], tuple) else each[3] for each in found] == expected


@pytest.mark.parametrize("name", ["app.log", "app.json", "app.jsonl", "app.txt", "-"])
@pytest.mark.parametrize("form", ["plain", "logfmt of slog", "zap", "nginx"])
def test_any_name_or_none_is_read_without_an_option(name: str, form: str, tmp_path: Path) -> None:
    if form == "nginx":
        lines = (FORMS / "nginx.log").read_text()
    else:
        lines = "".join(write(form, event) + "\n" for event in EVENTS)
    if name != "-":
        (tmp_path / name).write_text(lines)
    done = call(tmp_path, "consume", name, "--output", "out", stdin=lines.encode() if name == "-" else b"")
    assert done.returncode == 0
    assert "is read as a log, by templates (--format names another)" in done.stderr.decode()
    found = assignments((tmp_path / "out").read_bytes())
    assert len(found) == lines.count("\n")
    wanted = {"GET@/article/<num>#OK"} if form == "nginx" else {"cart <num> opened for customer anna-k"}
    assert wanted <= {answer["template"] for answer in found}


def test_a_talk_with_times_is_no_log(tmp_path: Path) -> None:
    talk = "".join(
        f"04.05.26, 12:{n:02}:07 - Anna: shall we meet at the harbour at {n}?\n" for n in range(50)
    )
    (tmp_path / "talk.txt").write_text(talk)
    assert ": text, all 50 records looked at" in succeed(tmp_path, "check", "talk.txt").decode()


def test_texts_that_come_through_a_pipe_are_no_log(tmp_path: Path) -> None:
    texts = b'{"text": "storm at the coast"}\n{"text": "a second storm"}\n'
    done = call(tmp_path, "consume", "-", "--output", "out", stdin=texts)
    assert "is read as a log" not in done.stderr.decode()
    assert len(assignments((tmp_path / "out").read_bytes())) == 2


def test_a_method_a_path_and_a_status_split_requests_and_a_browser_does_not(tmp_path: Path) -> None:
    request = '10.0.0.7 - - [04/May/2026:12:00:{:02} +0000] "{} {} HTTP/1.1" {} 17 "-" "{}"\n'
    asked = [("GET", "/a/{}", 200), ("PUT", "/a/{}", 200), ("GET", "/b/{}", 200), ("GET", "/a/{}", 404)]
    lines = [
        request.format(n % 60, method, path.format(n), status, f"agent {n * 7} of word{n}")
        for n in range(300)
        for method, path, status in asked
    ]
    (tmp_path / "access.log").write_text("".join(lines))
    succeed(tmp_path, "consume", "access.log", "--output", "out")
    found = {answer["template"] for answer in assignments((tmp_path / "out").read_bytes())}
    assert found == {"GET@/a/<num>#OK", "PUT@/a/<num>#OK", "GET@/b/<num>#OK", "GET@/a/<num>#NotFound"}
