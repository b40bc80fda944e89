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
        ("2026-05-04T12:00:04.125", "WARN", "o.e.n.Node", "cluster is yellow"),
        ("2026-05-04T12:00:05", "INFO", None, "Started GET"),
        ("2026-05-04T12:00:06", "Warning", "Server", "CA certificate is self signed."),
        ("2026-05-04T12:00:07.125", "ERROR", None, "it broke")],
    "apple-compact": [
        ("2026-05-04T12:00:01.123", "INFO", "kernel", "(Power) sleep states 7"),
        ("2026-05-04T12:00:02.004", "ERROR", "bluetoothd", "[com.example.radio:Server] device 4 is gone")],
    "apple-objects": [
        ("2026-05-04T12:00:01.123", "Error", "com.example.radio", "device 4 is gone"),
        ("2026-05-04T12:00:02.004", "Default", "com.example.power", "sleep states 7")],
    "apple": [
        ("2026-05-04T12:00:01.123", "Default", "kernel", "(Power) sleep states 7"),
        ("2026-05-04T12:00:02", "Error", "bluetoothd", "[com.example.radio:Server] device 4 is gone")],
    "application-insights": [
        ("2026-05-04T12:00:01.123", "INFO", None, "cart 4711 was stored"),
        ("2026-05-04T12:00:02", "ERROR", None, "queue 4 is slow")],
    "asterisk": [
        ("2026-05-04T12:00:01", "NOTICE", "chan_sip.c", "Registration of 10.0.0.7 failed"),
        ("2026-05-04T12:00:02", "WARNING", "pbx.c", "Channel 7 is closed")],
    "auditd": [
        ("2026-05-04T12:00:01.123", None, None,
         'type=CWD msg=audit(1777896001.123:24287): cwd="/home/anna"'),
        ("2026-05-04T12:00:02.004", None, None,
         "node=w type=USER_END msg=audit(1777896002.004:24288): msg='op=PAM:session_close acct=\"anna\"'")],
    "azure": [
        ("2026-05-04T12:00:01.123", "Information", "Administrative", "SHOP.COMPUTE/START/ACTION"),
        ("2026-05-04T12:00:02", "Informational", "Console", "cart 4711 was stored")],
    "caddy": [
        ("2026-05-04T12:00:01.123", "info", "http.log.access", "GET@/article/77#OK"),
        ("2026-05-04T12:00:02.004", "error", "http.log.access", "POST@/cart#BadGateway"),
        ("2026-05-04T12:00:03", "info", "tls", "cleaning storage unit")],
    "cassandra": [
        ("2026-05-04T12:00:01.123", "INFO", "StorageService.java", "Node 10.0.0.7 state jump to NORMAL"),
        ("2026-05-04T12:00:02.004", "WARN", "Memtable.java", "Writing table of 77 bytes")],
    "cef-of-syslog": [
        ("2026-05-04T12:00:01", "CRIT", "Wall", "Port scan blocked src=10.0.0.7"),
        ("2026-05-04T12:00:02", "CRIT", "Wall", "Login failed src=10.0.0.9")],
    "cef": [
        ("2026-05-04T12:00:01.123", "INFO", "Wall",
         "Port scan blocked src=10.0.0.7 dst=10.0.0.8 rt=1777896001123"),
        ("2026-05-04T12:00:02.004", "ERROR", "Wall",
         "Login failed src=10.0.0.9 rt=1777896002004 msg=User could not sign in")],
    "cisco": [
        ("2026-05-04T12:00:01.123", None, None, "%LINK-3-UPDOWN: Interface Gi0/7, changed state to down"),
        ("2026-05-04T12:00:02.004", None, None, "%SYS-5-CONFIG_I: Configured from console by vty0")],
    "clickhouse": [
        ("2026-05-04T12:00:01.123", "Debug", "executeQuery", "(from 10.0.0.7:40112) SELECT 4711"),
        ("2026-05-04T12:00:02", "Error", "Application", "Table cart does not exist")],
    "cloudflare": ["GET@/article/77#OK", "POST@/cart#NotFound"],
    "cloudtrail": [
        ("2026-05-04T12:00:01", None, None, "StartInstances"),
        ("2026-05-04T12:00:02", None, None, "StopInstances")],
    "cockroach-before": [
        ("2026-05-04T12:00:01.123", "INFO", "server/node.go", "node connected via gossip"),
        ("2026-05-04T12:00:02", "ERROR", "kv/queue.go", "queue failed")],
    "cockroach": [
        ("2026-05-04T12:00:01.123", "INFO", "server/node.go", "node connected via gossip"),
        ("2026-05-04T12:00:02", "WARN", "kv/queue.go", "queue took 4s")],
    "dmesg": [
        (None, None, None, "Linux version 6.1.0"),
        (None, None, None, "usb 1-4: new device 7"),
        (None, None, "audit", "backlog limit exceeded")],
    "dotnet": [
        ("2026-05-04T12:00:01.123", "info", "Shop.Cart", "cart 4711 opened"),
        ("2026-05-04T12:00:02.004", "ERROR", "Shop.Pay", "payment 9 refused")],
    "elb-json": ["GET@/article/77#OK", "POST@/cart#NotFound"],
    "esxi": [
        ("2026-05-04T12:00:01.123", "info", "hostd", "Task 77 created"),
        ("2026-05-04T12:00:02.004", "warning", "hostd", "Event 4 : logged out")],
    "fail2ban": [
        ("2026-05-04T12:00:01.123", "NOTICE", "fail2ban.actions", "[sshd] Ban 10.0.0.7"),
        ("2026-05-04T12:00:02.004", "INFO", "fail2ban.filter", "[sshd] Found 10.0.0.8")],
    "fluent-bit": [
        ("2026-05-04T12:00:01.123", "info", "app.web", "cart 4711 opened"),
        ("2026-05-04T12:00:02.004", "warn", "app.web", "retry 2 of 5")],
    "gelf": [
        ("2026-05-04T12:00:01.123", "INFO", None, "cart 4711 opened"),
        ("2026-05-04T12:00:02.004", "WARNING", None, "retry 2 of 5")],
    "gin": ["GET@/article/77#OK", "POST@/cart#NotFound"],
    "home-assistant": [
        ("2026-05-04T12:00:01.123", "WARNING", "home.mqtt", "setup takes over 10 seconds"),
        ("2026-05-04T12:00:02.004", "ERROR", "home.zha", "device 7 is gone")],
    "kernel": [
        ("2026-05-04T12:00:01", None, "kernel",
         "[UFW BLOCK] IN=eth0 OUT= SRC=10.0.0.7 DST=10.0.0.8 LEN=40 PROTO=TCP DPT=22"),
        ("2026-05-04T12:00:02", None, "kernel", "usb 1-4: new device 7")],
    "kubernetes-audit": [
        ("2026-05-04T12:00:01.123", "Metadata", None, "get@/api/v1/pods/web#OK"),
        ("2026-05-04T12:00:02", "Metadata", None, "delete@/api/v1/pods/web#Forbidden")],
    "lambda-tailed": [
        ("2026-05-04T12:00:00.900", None, None,
         "START RequestId: 5f0e1d2c-12ab-4c3d-8e9f-00aa11bb22cc Version: 7"),
        ("2026-05-04T12:00:01.123", "WARN", None, "only 3 left"),
        ("2026-05-04T12:00:02.004", None, None,
         "REPORT RequestId: 5f0e1d2c-12ab-4c3d-8e9f-00aa11bb22cc\tDuration: 10.13 ms")],
    "levels-before-times": [
        ("2026-05-04T12:00:01.123", "INFO", None, "loaded 7 carts"),
        ("2026-05-04T12:00:02.004", "ERROR", None, "no cart 4711")],
    "logplex": [
        ("2026-05-04T12:00:01.123", "INFO", "heroku", "GET@/article/77#OK"),
        ("2026-05-04T12:00:02", "INFO", "app", "cart 4711 opened")],
    "minecraft": [
        ("2026-05-04T23:58:01", "INFO", "Server thread", "anna joined the game"),
        ("2026-05-04T23:58:02", "WARN", "Server thread", "running 2004 ms behind")],
    "mongodb-before": [
        ("2026-05-04T12:00:01.123", "INFO", "NETWORK", "connection accepted from 10.0.0.7:40112 #7"),
        ("2026-05-04T12:00:02.004", "ERROR", "STORAGE", "cannot open file 4711")],
    "nextcloud": [
        ("2026-05-04T12:00:01", "INFO", "core", "Login failed: anna"),
        ("2026-05-04T12:00:02", "ERROR", "files", "File was not found")],
    "nginx-json": ["GET@/article/77#OK", "POST@/cart#NotFound"],
    "nlog": [
        ("2026-05-04T12:00:01.123", "INFO", "Shop.Cart", "cart 4711 opened"),
        ("2026-05-04T12:00:02.004", "ERROR", "Shop.Pay", "payment 9 refused")],
    "nomad": [
        ("2026-05-04T12:00:01.123", "INFO", "client.alloc", "task started: task=web"),
        ("2026-05-04T12:00:02.004", "WARN", "nomad.raft", "heartbeat timeout reached")],
    "php": [
        ("2026-05-04T12:00:01", "error", None, "syntax error in /srv/a.php on line 7"),
        ("2026-05-04T12:00:02", "Warning", None, "Undefined variable $cart in /srv/b.php on line 9"),
        ("2026-05-04T12:00:03", None, None, "Cron reschedule failed for hook check")],
    "pino-http": [
        ("2026-05-04T12:00:01.123", "INFO", None, "GET@/article/77#OK"),
        ("2026-05-04T12:00:02.004", "ERROR", None, "POST@/cart#InternalServerError")],
    "pm2": [
        (None, None, "api", "cart 4711 opened"),
        (None, None, "mail", "retry 2 of 5")],
    "rabbitmq": [
        ("2026-05-04T12:00:01.123", "info", None, "accepting connection of 10.0.0.7"),
        ("2026-05-04T12:00:02", "error", None, "connection of 10.0.0.8 was lost")],
    "sidekiq": [
        ("2026-05-04T12:00:01.123", "INFO", None, "start"),
        ("2026-05-04T12:00:02.004", "WARN", None, "retry 2")],
    "solr": [
        ("2026-05-04T12:00:01.123", "INFO", "o.a.s.Request", "hits=7 QTime=2"),
        ("2026-05-04T12:00:02.004", "WARN", "o.a.s.Update", "log replay finished")],
    "sql-server": [
        ("2026-05-04T12:00:01.120", None, "spid7s", "Starting up database 'cart'."),
        ("2026-05-04T12:00:02", None, "Logon", "Error: 18456, State: 5.")],
    "squid": ["GET@/article/77#OK", "POST@/cart#Forbidden"],
    "traefik": [
        ("2026-05-04T12:00:01", "info", None, "GET@/article/77#OK"),
        ("2026-05-04T12:00:02", "info", None, "POST@/cart#BadGateway")],
    "vector": [
        ("2026-05-04T12:00:01.123", "INFO", "vector::app", "Log level is enabled."),
        ("2026-05-04T12:00:02", "ERROR", "vector::sinks::retries", "Retrying after error.")],
    "weblogic": [
        ("2026-05-04T12:00:01", "Info", "JDBC", "Connection 7 was tested>"),
        ("2026-05-04T12:00:02", "Error", "Security", "Login failed>")],
    "wildfly": [
        ("2026-05-04T23:58:01.123", "INFO", "org.shop.as", "SHOP0049: server 7 starting"),
        ("2026-05-04T23:58:02.004", "WARN", "org.shop.as", "SHOP0050: slow")],
    "windows-events": [
        ("2026-05-04T12:00:01.123", "Information", "Services", "Service 7 is running."),
        ("2026-05-04T12:00:02", "Error", "Services", "Service 7 failed.")],
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


def test_lines_of_a_program_among_those_of_its_platform_are_read(tmp_path: Path) -> None:
    request = "5f0e1d2c-12ab-4c3d-8e9f-00aa11bb22cc"
    (tmp_path / "lambda.log").write_text(
        f"START RequestId: {request} Version: 7\n"
        f"2026-05-04T12:00:01.123Z\t{request}\tINFO\tloaded 7 carts\n"
        f"END RequestId: {request}\nREPORT RequestId: {request}\tDuration: 10.13 ms\n"
    )
    (tmp_path / "pm2.log").write_text("2026-05-04T12:00:01: cart 4711 opened\n2026-05-04T12:00:02: retry 2\n")
    assert told(read(tmp_path / "lambda.log"))[1] == (
        *("2026-05-04T12:00:01.123", "INFO", None),
        "loaded 7 carts",
    )
    assert told(read(tmp_path / "pm2.log"))[0] == ("2026-05-04T12:00:01", None, None, "cart 4711 opened")


def test_a_message_beside_a_request_stays_where_it_says_more(tmp_path: Path) -> None:
    line = '{"level":"info","ts":1777896001,"msg":"%s","method":"GET","url":"/article/77","status":200}\n'
    said = ["handled request", "request completed", "access", "cart 4711 has no owner", "request 7 was late"]
    (tmp_path / "app.log").write_text("".join(line % each for each in said))
    assert [each[3] for each in told(read(tmp_path / "app.log"))] == ["GET@/article/77#OK"] * 3 + said[3:]


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
