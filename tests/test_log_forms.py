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
        ("2026-05-04T12:00:01.123", "ERROR", None, "%LINK-3-UPDOWN: Interface Gi0/7, changed state to down"),
        ("2026-05-04T12:00:02.004", "NOTICE", None, "%SYS-5-CONFIG_I: Configured from console by vty0")],
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
        ("2026-05-04T12:00:01", "Info", "JDBC", "Connection 7 was tested"),
        ("2026-05-04T12:00:02", "Error", "Security", "Login failed")],
    "wildfly": [
        ("2026-05-04T23:58:01.123", "INFO", "org.shop.as", "SHOP0049: server 7 starting"),
        ("2026-05-04T23:58:02.004", "WARN", "org.shop.as", "SHOP0050: slow")],
    "windows-events": [
        ("2026-05-04T12:00:01.123", "Information", "Services", "Service 7 is running."),
        ("2026-05-04T12:00:02", "Error", "Services", "Service 7 failed.")],
    "dotnet-console": [
        (None, "info", "Microsoft.Hosting.Lifetime", "Now listening on: http://localhost:5000"),
        (None, "warn", "Shop.Stock", "only 3 of article B-77 left"),
        (None, "ERROR", "Shop.Pay", "payment 9 refused"),
        (None, "ERROR", "Shop.Pay", "System.InvalidOperationException@Shop.Pay.Charge: card expired"),
        (None, "info", "Shop.Cart", "cart 4711 closed")],
    "caddy-console": [
        ("2026-05-04T12:00:01.123", "INFO", "http.log.access.log0", "GET@/article/77#OK"),
        ("2026-05-04T12:00:02.004", "WARN", "admin", "admin endpoint disabled"),
        ("2026-05-04T12:00:03.004", "INFO", "tls.cache.maintenance", "started maintenance")],
    "glassfish": [
        ("2026-05-04T12:00:01.123", "INFO", "javax.enterprise.system.core", "server 7 started"),
        ("2026-05-04T12:00:02.004", "SEVERE", "javax.enterprise.system.std.com.sun", "payment 9 refused"),
        ("2026-05-04T12:00:03.004", "WARNING", "javax.enterprise.web", "pool is low")],
    "payara-odl": [
        ("2026-05-04T12:00:01.123", "INFO", "javax.enterprise.system.core", "server 7 started"),
        ("2026-05-04T12:00:02.004", "WARNING", "javax.enterprise.web", "pool is low")],
    "gitlab-job": [
        ("2026-05-04T12:00:01.123", None, None, "Running with gitlab-runner 16.7.0 (102c81ba)"),
        ("2026-05-04T12:00:01.223", None, None, "  on docker-7 abCdEf, system ID: s_7"),
        ("2026-05-04T12:00:02.004", None, None, "$ make test"),
        ("2026-05-04T12:00:03.004", None, None, "make: *** [Makefile:7: test] Error 2")],
    "postgres-csvlog": [
        ("2026-05-04T12:00:01.123", "LOG", None, "duration: 0.717 ms"),
        ("2026-05-04T12:00:02.004", "ERROR", None, 'duplicate key of "orders_pkey"'),
        ("2026-05-04T12:00:03.004", "LOG", None, "checkpoint starting: time")],
    "greenplum": [
        ("2026-05-04T12:00:01.123", "LOG", None, "statement: SELECT 1;"),
        ("2026-05-04T12:00:02.004", "ERROR", None, 'relation "cart" does not exist')],
    "logcat-brief": [
        (None, "INFO", "ActivityManager", "Start proc 77:com.shop/u0a7 for activity"),
        (None, "WARN", "System.err", "payment refused"),
        (None, "DEBUG", "dalvikvm", "GC_CONCURRENT freed 7K, 9% free"),
        (None, "ERROR", "AndroidRuntime", "FATAL signal in thread 7")],
    "logcat-threadtime": [
        ("2026-05-04T12:00:01.123", "INFO", "ActivityManager", "Start proc 77:com.shop/u0a7 for activity"),
        ("2026-05-04T12:00:02.004", "WARN", "System.err", "payment refused"),
        ("2026-05-04T12:00:03.004", "DEBUG", "OkHttp", "--> GET /article/77")],
    "websphere": [
        ("2026-05-04T12:00:01.123", "INFO", "ServletWrapper", "SHOP0242I: [shop] [Cart]: ready"),
        ("2026-05-04T12:00:02.004", "INFO", "WSChannelFram", "SHOP0019I: chain 7 has started."),
        ("2026-05-04T12:00:03.004", "WARN", "FfdcProvider", "SHOP1003I: incident written")],
    "ros2": [
        ("2026-05-04T12:00:01.123", "INFO", "lidar_node", "scan 77 published"),
        ("2026-05-04T12:00:02.004", "WARN", "nav2.planner", "no path of 7 found"),
        ("2026-05-04T12:00:03.004", "ERROR", "nav2.planner", "goal 9 failed")],
    "elixir-logger": [
        ("2026-05-04T23:58:01.123", "info", None, "GET /article/77"),
        ("2026-05-04T23:58:01.140", "info", None, "Sent 200 in 17ms"),
        ("2026-05-04T23:58:02.004", "error", None, "payment 90211 refused"),
        ("2026-05-04T23:58:02.100", "debug", None, 'QUERY OK source="carts" db=1.7ms queue=0.2ms')],
    "dovecot": [
        ("2026-05-04T12:00:01", "Info", "imap-login", "Login: user=<anna>, rip=10.0.0.7, TLS"),
        ("2026-05-04T12:00:02", "Info", "imap", "Disconnected: Logged out in=77 out=4711"),
        ("2026-05-04T12:00:03", "Error", "auth", "LDAP: binding failed (dn cn=mail)"),
        ("2026-05-04T12:00:04", "Warning", "lmtp", "mailbox is almost full")],
    "npm-debug": [
        (None, "verbose", None, "cli /usr/bin/node /usr/bin/npm"),
        (None, "info", None, "using npm@10.2.3"),
        (None, "info", None, "using node@v20.10.0"),
        (None, "silly", None, "config:load:file:/usr/lib/node_modules/npm/npmrc"),
        (None, "http", None, "fetch GET 200 https://registry.npmjs.org/left-pad 717ms (cache miss)"),
        (None, "error", None, "code ERESOLVE")],
    "hana": [
        ("2026-05-04T12:00:01.123", "INFO", "TraceContext", "UserName=SYSTEM"),
        ("2026-05-04T12:00:02.004", "ERROR", "Statement", "session control command is performed by 7"),
        ("2026-05-04T12:00:03.004", "WARN", "Basis", "no memory for 7")],
    "ceph": [
        ("2026-05-04T12:00:01.123", None, None, "log_channel(cluster) log [DBG] : pgmap v77: 33 pgs"),
        ("2026-05-04T12:00:02.004", None, None, "osd.7 4711 heartbeat_check: no reply from 10.0.0.7"),
        ("2026-05-04T12:00:03.004", None, None, "mon.a@0(leader).osd e77 preprocess_query")],
    "fly": [
        ("2026-05-04T12:00:01", "info", "app", "cart 4711 opened"),
        ("2026-05-04T12:00:02", "error", "proxy", "no candidate within 7 attempts"),
        ("2026-05-04T12:00:03", "info", "runner", "Machine started in 717ms")],
    "bazel": [
        ("2026-05-04T23:58:01", "INFO", None, "Invocation ID: 5f0e1d2c-12ab-4c3d-8e9f-00aa11bb22cc"),
        ("2026-05-04T23:58:02", "INFO", None, "Analyzed 7 targets."),
        ("2026-05-04T23:58:03", "ERROR", None, "/src/BUILD:7:10: Compiling a.cc failed: (Exit 1)")],
    "httperr": [
        ("2026-05-04T12:00:01", None, None, "GET@/article/77#BadRequest"),
        ("2026-05-04T12:00:02", None, None, "POST@/cart#ServiceUnavailable"),
        ("2026-05-04T12:00:03", None, None, "c-ip=10.0.0.7 s-ip=10.0.0.9 cs-method=- cs-uri=- sc-status=-")],
    "gcp-audit": [
        ("2026-05-04T12:00:01.123", "NOTICE", "compute.googleapis.com", "v1.compute.instances.stop"),
        ("2026-05-04T12:00:02", "ERROR", "storage.googleapis.com", "storage.buckets.delete")],
    "trino": [
        ("2026-05-04T12:00:01.123", "INFO", "io.shop.server.Server", "======== SERVER STARTED ========"),
        ("2026-05-04T12:00:02.004", "WARN", "io.shop.client.jetty", "request 7 is late"),
        ("2026-05-04T12:00:03.004", "ERROR", "io.shop.TaskExecutor", "Error processing Split 7")],
    "lager": [
        ("2026-05-04T12:00:01.123", "info", "shop_app", "Application shop started on node 'shop@h1'"),
        ("2026-05-04T12:00:02.004", "error", "shop_pay", "payment 90211 refused"),
        ("2026-05-04T12:00:03.004", "warning", "shop_pay", "payment 90212 is slow")],
    "ansible": [
        ("2026-05-04T12:00:01.123", None, None, "PLAY [web] *****"),
        ("2026-05-04T12:00:02.004", None, None, "TASK [Gathering Facts] ****"),
        ("2026-05-04T12:00:03.004", None, None, "ok: [10.0.0.7]"),
        ("2026-05-04T12:00:04.004", None, None, 'fatal: [10.0.0.8]: UNREACHABLE! => {"changed": false}')],
    "fluent-bit-own": [
        ("2026-05-04T12:00:01", "info", "engine", "started (pid=77)"),
        ("2026-05-04T12:00:02", "warn", "engine", "failed to flush chunk '1-177.4.flb', retry in 7 seconds"),
        ("2026-05-04T12:00:03", "error", "output:es:es.0", "HTTP status=429 URI=/_bulk"),
        ("2026-05-04T12:00:04", "info", "input:tail:tail.0", "inotify_fs_add(): inode=4711 watch_fd=1")],
    "slurm": [
        ("2026-05-04T12:00:01.123", None, "_slurm_rpc_submit_batch_job", "JobId=77 usec=717"),
        ("2026-05-04T12:00:02.004", None, "sched", "Allocate JobId=77 NodeList=n7 #CPUs=4 Partition=main"),
        ("2026-05-04T12:00:03.004", "error", None, "Node n8 has low real_memory size (7 < 64000)")],
    "openstack": [
        ("2026-05-04T12:00:01.123", "INFO", "nova.compute.manager", "[instance: 77] VM Started"),
        ("2026-05-04T12:00:02.004", "WARNING", "oslo_config.cfg", 'Deprecated: Option "x" of 7'),
        ("2026-05-04T12:00:03.004", "ERROR", "neutron.agent.dhcp", "Unable to enable dhcp for 7")],
    "flask": [
        (None, None, None, " * Running on http://127.0.0.1:5000"),
        ("2026-05-04T12:00:01", None, None, "GET@/article/77#OK"),
        ("2026-05-04T12:00:02", None, None, "POST@/cart#InternalServerError"),
        ("2026-05-04T12:00:03", None, None, "GET@/x#NotFound")],
    "asa-host": [
        ("2026-05-04T12:00:01", "INFO", None, "%ASA-6-302013: Built outbound TCP connection 77"),
        ("2026-05-04T12:00:02", "WARNING", None, '%ASA-4-106023: Deny tcp src 10.0.0.7')],
    "ios-syslog": [
        ("2026-05-04T12:00:01", "Notice", "SpringBoard(FrontBoard)", "Front display did change: 77"),
        ("2026-05-04T12:00:02", "Error", "wifid(WiFiPolicy)", "no network of 7 found"),
        ("2026-05-04T12:00:03", "Notice", "kernel", "AppleKeyStore: operation failed (pid: 77 sel: 7)")],
    "otel-collector": [
        ("2026-05-04T12:00:01.123", "info", None, "Everything is ready. Begin running and processing data."),
        ("2026-05-04T12:00:02.004", "error", None, "Exporting failed. Dropping data."),
        ("2026-05-04T12:00:03.004", "warn", None, "Exporting failed. Will retry.")],
    "zerolog": [
        ("2026-05-04T23:58:00", "INFO", None, "starting server addr=:8080"),
        ("2026-05-04T23:58:00", "WARN", None, "only 3 left article=B-77"),
        ("2026-05-04T23:59:00", "ERROR", None, 'payment refused error="card expired" id=9')],
    "winston-simple": [
        (None, "info", None, 'cart 4711 opened {"service":"shop"}'),
        (None, "warn", None, 'only 3 left {"service":"shop"}'),
        (None, "error", None, 'payment 9 refused {"service":"shop"}'),
        (None, "debug", None, 'query took 17 ms {"service":"shop"}')],
    "odoo": [
        ("2026-05-04T12:00:01.123", "INFO", "odoo.modules.loading", "loading 7 modules..."),
        ("2026-05-04T12:00:02.004", "WARNING", "odoo.addons.base", "Missing field 7"),
        ("2026-05-04T12:00:03.004", "ERROR", "odoo.http", "Exception during request")],
    "samba": [
        ("2026-05-04T12:00:01.123", None, "main", "smbd version 4.17.12 started."),
        ("2026-05-04T12:00:02.004", None, "make_connection", "10.0.0.7 connected to share 7")],
    "unbound": [
        ("2026-05-04T12:00:01", "info", "unbound", "start of service (unbound 1.17.1)."),
        ("2026-05-04T12:00:02", "notice", "unbound", "init module 0: validator"),
        ("2026-05-04T12:00:03", "error", "unbound", "SERVFAIL <x.example. A IN>: all 7 servers failed")],
    "zabbix": [
        ("2026-05-04T12:00:01.123", None, None, "server #1 started [main process]"),
        ("2026-05-04T12:00:02.004", None, None, "cannot connect to host 7"),
        ("2026-05-04T12:00:03.004", None, None, "housekeeper deleted 77 records")],
    "icinga2": [
        ("2026-05-04T12:00:01", "information", "Checkable", "Checking for 7 configured notifications"),
        ("2026-05-04T12:00:02", "warning", "ApiListener", "No data received on API connection 7"),
        ("2026-05-04T12:00:03", "critical", "cli", "Found 7 errors")],
    "splunkd": [
        ("2026-05-04T12:00:01.123", "INFO", "TcpOutputProc", "Connected to idx=10.0.0.7:9997"),
        ("2026-05-04T12:00:02.004", "WARN", "DateParserVerbose", "Failed to parse timestamp 7"),
        ("2026-05-04T12:00:03.004", "ERROR", "ExecProcessor", 'message from "/opt/x.py" it broke')],
    "couchdb": [
        ("2026-05-04T12:00:01.123", "info", None, "couchdb@localhost <0.77.0> -------- it has started"),
        ("2026-05-04T12:00:02.004", "notice", None, "couchdb@localhost <0.78.0> 5f0e1d2c7a cart 77 was read"),
        ("2026-05-04T12:00:03.004", "error", None, "couchdb@localhost <0.79.0> -------- it broke 7 times")],
    "filebeat": [
        ("2026-05-04T12:00:01.123", "INFO", "publisher", "Beat name: web1"),
        ("2026-05-04T12:00:02.004", "WARN", "cfgwarn", "BETA: something of 7"),
        ("2026-05-04T12:00:03.004", "ERROR", None, "Exiting: error loading config 7")],
    "karaf": [
        ("2026-05-04T12:00:01.123", "INFO", "FeaturesServiceImpl", "Adding features: 7"),
        ("2026-05-04T12:00:02.004", "WARN", "BundleX", "bundle 7 is slow")],
    "cbs": [
        ("2026-05-04T12:00:01", "Info", "CBS", "Loaded Servicing Stack v10.0.7"),
        ("2026-05-04T12:00:02", "Error", "CSI", "00000007 (F) it broke"),
        ("2026-05-04T12:00:03", "Warning", "DISM", "provider 7 is late")],
    "unreal": [
        ("2026-05-04T12:00:01.123", None, "LogInit", "Display: Running engine for game 7"),
        ("2026-05-04T12:00:02.004", None, "LogNet", "Warning: connection 7 lost"),
        ("2026-05-04T12:00:03.004", None, "LogWorld", "Bringing World 7 up for play")],
    "chromium": [
        ("2026-05-04T12:00:01.123", "ERROR", "gpu_init.cc", "Passthrough is not supported, GL is 7"),
        ("2026-05-04T12:00:02.004", "WARNING", "x_utils.cc", "no display of 7"),
        ("2026-05-04T12:00:03.004", "INFO", "CONSOLE", '"hello 7", source: https://shop.example/a.js (7)')],
    "freeswitch": [
        ("2026-05-04T12:00:01.123", "NOTICE", "switch_channel.c", "New Channel 77@shop.example"),
        ("2026-05-04T12:00:02.004", "WARNING", "sofia_reg.c", "SIP auth failure (REGISTER) from ip 10.0.0.7"),
        ("2026-05-04T12:00:03.004", "ERROR", "mod_x.c", "it broke 7 times")],
    "dotnet-in-compose": [
        (None, "info", "Shop.Cart", "cart 4711 opened"),
        ("2026-05-04T12:00:02.004", "LOG", "db-1", "checkpoint starting: time"),
        ("2026-05-04T12:00:02.004", "ERROR", "Shop.Pay", "payment 9 refused"),
        ("2026-05-04T12:00:02.004", "ERROR", "Shop.Pay", "Shop.CardException@Shop.Pay.Charge: card expired"),
        ("2026-05-04T12:00:03.004", "LOG", "db-1", "checkpoint complete"),
        ("2026-05-04T12:00:03.004", "info", "Shop.Cart", "cart 4712 opened")],
    "mosquitto": [
        ("2026-05-04T12:00:01", None, None, "mosquitto version 2.0.18 starting"),
        ("2026-05-04T12:00:02", None, None, "New connection from 10.0.0.7:40112 on port 1883."),
        ("2026-05-04T12:00:03", None, None, "Client sensor-7 closed its connection.")],
    "intellij": [
        ("2026-05-04T12:00:01.123", "INFO", "c.i.i.StartupUtil", "IDE 7 started"),
        ("2026-05-04T12:00:02.004", "WARN", "c.i.u.x.Y", "slow operation of 7 ms")],
    "bind": [
        ("2026-05-04T12:00:01.123", None, None, "client @0x7f1b2c3d 10.0.0.7: query: shop.example IN A"),
        ("2026-05-04T12:00:02.004", "info", "general", "zone shop.example/IN: loaded serial 77"),
        ("2026-05-04T12:00:03.004", "error", "lame-servers", "connection refused: 10.0.0.7#53")],
    "suricata-fast": [
        ("2026-05-04T12:00:01.123", None, None, "[1:2001219:20] ET SCAN SSH [**] 10.0.0.7:40112"),
        ("2026-05-04T12:00:02.004", None, None, "[1:2001220:20] ET POLICY curl [**] 10.0.0.8:40113")],
    "logstash": [
        ("2026-05-04T12:00:01.123", "INFO", "logstash.runner", 'Starting {"version"=>"8.11.1"}'),
        ("2026-05-04T12:00:02.004", "WARN", "logstash.outputs.elasticsearch", "resurrected 7"),
        ("2026-05-04T12:00:03.004", "ERROR", "logstash.agent", "Failed to execute action 7")],
    "nagios": [
        ("2026-05-04T12:00:01", None, None, "SERVICE ALERT: web1;HTTP;CRITICAL;SOFT;1;10.0.0.7 refused"),
        ("2026-05-04T12:00:02", None, None, "HOST NOTIFICATION: anna;web1;DOWN;PING CRITICAL"),
        ("2026-05-04T12:00:03", None, None, "Auto-save of retention data completed successfully.")],
    "tensorflow": [
        ("2026-05-04T12:00:01.123", "INFO", "tensorflow/core/guard.cc", "This binary is optimized for 7"),
        ("2026-05-04T12:00:02.004", "WARN", "tensorflow/loader.cc", "Could not load library 7")],
    "ray": [
        ("2026-05-04T12:00:01.123", "INFO", "worker.py", "Started a local Ray instance of 7"),
        ("2026-05-04T12:00:02.004", "WARNING", "services.py", "object store of 7 is full")],
    "vllm": [
        ("2026-05-04T12:00:01", "INFO", "llm_engine.py", "Initializing engine 7"),
        ("2026-05-04T12:00:02", "WARNING", "config.py", "cache of 7 is small")],
    "pytorch-rank": [
        ("2026-05-04T12:00:01.123", "WARN", "torch/convert_frame.py", "[0/8] hit limit (7)"),
        ("2026-05-04T12:00:02.004", "INFO", "torch/distributed/run.py", "starting 7 workers")],
    "h2o": [
        ("2026-05-04T12:00:01.123", None, None, "GET@/article/77#OK"),
        ("2026-05-04T12:00:02.004", None, None, "POST@/cart#InternalServerError")],
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
    (tmp_path / "pm2.log").rename(tmp_path / "pm2.txt")
    assert ": a log, all 2 lines" in succeed(tmp_path, "check", "pm2.txt").decode()


def test_lines_of_a_platform_are_no_part_of_the_exception_before_them(tmp_path: Path) -> None:
    first, second = "5f0e1d2c-12ab-4c3d-8e9f-00aa11bb22cc", "6f0e1d2c-12ab-4c3d-8e9f-00aa11bb22cc"
    of_platform = "END RequestId: {0}", "REPORT RequestId: {0}\tDuration: 10.13 ms"
    (tmp_path / "lambda.log").write_text(
        "\n".join(
            [
                f"START RequestId: {first} Version: 7",
                f"2026-05-04T12:00:01.100Z\t{first}\tINFO\tloaded 7 carts",
                f'2026-05-04T12:00:01.123Z\t{first}\tERROR\tError 7\t{{"errorType":"Error"}}',
                *(line.format(first) for line in of_platform),
                f"START RequestId: {second} Version: 7",
                "[ERROR] KeyError: 'socks'",
                "Traceback (most recent call last):",
                '  File "/var/task/app.py", line 7, in handler',
                '    return cart["socks"]',
                *(line.format(second) for line in of_platform),
            ]
        )
        + "\n"
    )
    found = told(read(tmp_path / "lambda.log"))
    at = "2026-05-04T12:00:01.123"
    assert found == [
        (None, None, None, f"START RequestId: {first} Version: 7"),
        ("2026-05-04T12:00:01.100", "INFO", None, "loaded 7 carts"),
        (at, "ERROR", None, "Error 7"),
        *((at, None, None, line.format(first)) for line in of_platform),
        (at, None, None, f"START RequestId: {second} Version: 7"),
        (at, "ERROR", None, "KeyError@task/app.py#handler: 'socks'"),
        *((at, None, None, line.format(second)) for line in of_platform),
    ]


def test_a_time_on_a_line_of_its_own_is_that_of_the_lines_below(tmp_path: Path) -> None:
    (tmp_path / "alert.log").write_text(
        "2026-05-04T12:00:01.123456+00:00\nThread 1 advanced to log sequence 77\n  Current log# 2 seq# 77\n"
        "2026-05-04T12:00:02.004567+00:00\nErrors in file /srv/x_77.trc:\nSHOP-00600: internal error code\n"
    )
    assert told(read(tmp_path / "alert.log")) == [
        ("2026-05-04T12:00:01.123", None, None, "Thread 1 advanced to log sequence 77"),
        ("2026-05-04T12:00:02.004", None, None, "Errors in file /srv/x_77.trc:"),
        ("2026-05-04T12:00:02.004", None, None, "SHOP-00600: internal error code"),
    ]


EVENTS_OF_WINDOWS = {
    "of a shell": '"Message","Id","Level","ProviderName","TimeCreated","LevelDisplayName"\r\n'
    '"Service 7 is running.","7036","4","Services","5/4/2026 12:00:01 PM","Information"\r\n'
    '"An account was logged on.\r\n\r\nSubject:\r\n\tAccount:\tPC7$","4624","0","Security",'
    '"5/4/2026 12:00:02 PM","Information"\r\n'
    '"The service ""print"" failed.","7031","2","Services","5/4/2026 12:00:03 PM","Error"\r\n',
    "of the viewer": "Level,Date and Time,Source,Event ID,Task Category\r\n"
    "Information,5/4/2026 12:00:01 PM,Services,7036,None,Service 7 is running.\r\n"
    'Information,5/4/2026 12:00:02 PM,Security,4624,Logon,"An account was logged on.\r\n\r\nSubject:\r\n'
    '\tAccount:\tPC7$"\r\n'
    'Error,5/4/2026 12:00:03 PM,Services,7031,None,"The service ""print"" failed."\r\n',
}


@pytest.mark.parametrize("name", ["events.csv", "events.txt"])
@pytest.mark.parametrize("by", EVENTS_OF_WINDOWS)
def test_a_table_of_events_of_windows_is_a_log(by: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(EVENTS_OF_WINDOWS[by].encode())
    assert told(read(tmp_path / name)) == [
        ("2026-05-04T12:00:01", "Information", "Services", "Service 7 is running."),
        (
            "2026-05-04T12:00:02",
            "Information",
            "Security",
            "An account was logged on.\nSubject:\n\tAccount:\tPC7$",
        ),
        ("2026-05-04T12:00:03", "Error", "Services", 'The service "print" failed.'),
    ]


def test_a_table_of_texts_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "news.csv").write_text(
        "time,text,level\n"
        + "2026-05-04,a storm at the coast,high\n" * 9
        + "".join(f"2026-05-04,storm {n},low\n" for n in range(9))
    )
    assert ": csv, all 18 records" in succeed(tmp_path, "check", "news.csv").decode()


def test_text_whose_name_says_nothing_is_text(tmp_path: Path) -> None:
    for name in ("notes.md", "notes"):
        (tmp_path / name).write_text("# Notes of the port\n\nThe storm is at the coast\nShips stay in port\n")
        assert ": text, all 3 records" in succeed(tmp_path, "check", name).decode()
    (tmp_path / "news.dump").write_text('{"text": "a storm at the coast"}\n')
    assert ": jsonl, all 1 record" in succeed(tmp_path, "check", "news.dump").decode()


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
