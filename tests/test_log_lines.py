"""Lines of a log: their times, levels and components are found, whatever wrote them."""

from __future__ import annotations

import calendar
import time
from datetime import UTC, datetime

import pytest

from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import RefusedError
from streamdp.decode.log import KNOWN, LogLines, moment, written_as
from streamdp.records import JOINED, Raw, Record, Reject
from tests.logs import lines as lines_of

NOW = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
KEEP = ("level", "component")

HEADS = [
    (
        "2015-10-18 18:01:47,978 INFO [main] org.apache.App: Created it",
        "2015-10-18T18:01:47.978",
        "INFO",
        "org.apache.App",
    ),
    (
        "2015-07-29 19:04:12,394 - WARN  [Recv[id=1]:Man$W@765] - Interrupted: now",
        "2015-07-29T19:04:12.394",
        "WARN",
        None,
    ),
    (
        "2017-05-16T00:00:04.500Z 25746 ERROR nova.api: it broke",
        "2017-05-16T00:00:04.500",
        "ERROR",
        "nova.api",
    ),
    ("2017-05-16 02:00:00+02:00 it is told", "2017-05-16T00:00:00", None, None),
    ("Dec 10 06:55:46 LabSZ sshd[24200]: Invalid user: x", "2025-12-10T06:55:46", None, "sshd"),
    ("<34>Feb  1 22:14:15 host su: failed", "2026-02-01T22:14:15", "CRIT", "su"),
    ("[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok", "2005-12-04T04:47:44", "notice", None),
    ("[Sun Dec 04 04:47:44 2005] [error] [client 1.2.3.4] denied", "2005-12-04T04:47:44", "error", None),
    ('1.2.3.4 - bob [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200', "2000-10-10T20:55:36", None, None),
    ("I0102 15:04:05.678901 12345 main.go:123] serving", "2026-01-02T15:04:05.678901", "INFO", "main.go"),
    (
        "03-01 00:00:38.811  1702  2395 D WindowManager: printFreezing",
        "2026-03-01T00:00:38.811",
        "DEBUG",
        "WindowManager",
    ),
    (
        "081109 203615 148 INFO dfs.DataNode$Packet: 5 of them",
        "2008-11-09T20:36:15",
        "INFO",
        "dfs.DataNode$Packet",
    ),
    (
        "17/06/09 20:10:40 INFO executor.Backend: Registered",
        "2017-06-09T20:10:40",
        "INFO",
        "executor.Backend",
    ),
    ("20171223-22:15:29:606|Step_LSC|30002312|onStand 3579", "2017-12-23T22:15:29.606", None, "Step_LSC"),
    (
        "- 1117838570 2005.06.03 R02-M1 2005-06-03-15.42.50.67 R02 RAS KERNEL INFO 63 errors",
        "2005-06-03T22:42:50",
        "INFO",
        None,
    ),
    ("2016/09/28 04:30:30 [warn] 7#7: low", "2016-09-28T04:30:30", "warn", None),
]
"""A line; its time, level and component."""

MESSAGES = [
    "Created it",
    "Interrupted: now",
    "it broke",
    "it is told",
    "Invalid user: x",
    "failed",
    "workerEnv.init() ok",
    "[client 1.2.3.4] denied",
    "GET@/#OK",
    "serving",
    "printFreezing",
    "5 of them",
    "Registered",
    "onStand 3579",
    "63 errors",
    "low",
]


@pytest.mark.parametrize(("head", "message"), list(zip(HEADS, MESSAGES, strict=True)))
def test_what_stands_before_a_message(head: tuple[str, str, str | None, str | None], message: str) -> None:
    line, when, level, component = head
    log = LogLines(None, None, KEEP)
    assert "times are read as" in log.learn([line.encode()])
    found = log.read(line.encode(), NOW)
    assert found is not None
    text, moment, kept = found
    assert text == message
    assert moment == pytest.approx(datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp(), abs=1e-6)
    expected = {name: value for name, value in zip(KEEP, (level, component), strict=True) if value}
    assert (kept or {}) == expected


def test_the_commonest_way_of_the_first_lines_is_meant() -> None:
    log = LogLines(None, None)
    lines = [b"2026/01/02 00:00:00 a", *(b"Dec 10 06:55:%02d h p: b" % n for n in range(20)), b"no time"]
    assert log.learn(lines) == "times are read as syslog; a line without one has that of the line before it"
    assert log.read(lines[1], NOW) == ("b", pytest.approx(NOW - 81 * 86400 + 24946, abs=86400), None)
    moment = log.read(lines[1], NOW)[1]  # type: ignore[index]
    assert [log.read(line, NOW) for line in (lines[0], lines[-1])] == [
        ("2026/01/02 00:00:00 a", moment, None),
        ("no time", moment, None),
    ]


@pytest.mark.parametrize("dated", [2, 100])
def test_a_line_without_a_time_is_a_message_unless_it_is_indented_or_closes_a_bracket(dated: int) -> None:
    log = LogLines(None, None, KEEP)
    lines = [b"2026-01-05 00:00:07 ERROR it broke", b"starting up", b"  and more", b"}, {"]
    lines += [b"=== shop 1.2 ==="]
    said = log.learn([*lines, *[b"2026-01-05 00:00:08 on"] * dated])
    own = "has that of the line before it" if dated == 100 else "is a message of its own"
    assert said == f"times are read as ISO 8601; a line without one {own}"
    assert log.read(lines[1], NOW) == ("starting up", None, None)
    assert log.read(lines[0], NOW) == ("it broke", 1767571207.0, {"level": "ERROR"})
    assert log.read(lines[1], NOW) == ("starting up", 1767571207.0, None)
    assert [log.read(line, NOW) for line in lines[2:4]] == [None, None]
    assert log.read(lines[4], NOW) == ("=== shop 1.2 ===", 1767571207.0, None)


def test_a_number_is_a_time_where_nearly_all_lines_have_one_and_it_rises() -> None:
    few = [b"1117838570 ddr errors", *[b"ddr error corrected"] * 99]
    falling = [b"%d ddr errors" % (1500000000 - 7919 * n) for n in range(100)]
    far = [b"%d ddr errors" % (9000000000 + n) for n in range(100)]
    for lines in (few, falling, far):
        log = LogLines(None, None)
        assert log.learn(lines).startswith("no times are found")
        assert [log.read(line, NOW) for line in lines] == [(line.decode(), None, None) for line in lines]
    log = LogLines(None, None)
    rising = [b"%d ddr errors" % (1500000000 + 7 * n) for n in range(100)]
    assert log.learn(rising).startswith("times are read as seconds since 1970")
    assert log.read(rising[1], NOW) == ("ddr errors", 1500000007.0, None)


def test_a_time_may_be_behind_other_columns() -> None:
    log = LogLines(None, None)
    lines = [
        b"%d node-%d unix.hw state 10778047%02d 1 Component is %s" % (134681 + n, n % 7, n, b"up" * (n % 2))
        for n in range(60)
    ]
    said = log.learn(lines)
    assert said.startswith("times are read as seconds since 1970 behind 4 other columns; a line without one")
    assert log.read(lines[3], NOW) == ("Component is up", 1077804703.0, None)


def test_a_second_time_and_what_is_before_it_are_no_message() -> None:
    log = LogLines(None, None, KEEP)
    lines = [
        b"- 11315664%02d 2005.11.09 dn%d Nov 9 12:01:%02d dn%d/dn%d crond(pam_unix)[29]: session %d closed"
        % (n, n, n, n, n, n)
        for n in range(60)
    ]
    log.learn(lines)
    assert log.read(lines[7], NOW) == ("session 7 closed", 1131566407.0, {"component": "crond(pam_unix)"})


def test_a_program_and_a_dash_are_known_by_most_lines() -> None:
    log = LogLines(None, None, KEEP)
    lines = [b"[10.30 16:49:06] chrome.exe - a.example open", b"[10.30 16:49:07] mail.exe *64 - b.c close"]
    log.learn(lines)
    found = log.read(lines[1], NOW)
    assert found is not None
    assert (found[0], found[2]) == ("b.c close", {"component": "mail.exe"})


def test_a_logger_may_be_before_brackets() -> None:
    log = LogLines(None, None, KEEP)
    line = b"2017-05-16 00:00:00.008 25746 INFO nova.osapi.wsgi [req-3810 113d3a - - -] 10.1.1.1 status: 200"
    log.learn([line])
    assert log.read(line, NOW) == (
        "10.1.1.1 status: 200",
        1494892800.008,
        {"level": "INFO", "component": "nova.osapi.wsgi"},
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_line_of_generated_logs_is_dropped(seed: int) -> None:
    texts = lines_of(2000, seed)[0]
    numbered = [f"{1500000000 - 37 * n} {text}" if n % 600 == 0 else text for n, text in enumerate(texts)]
    indented = ["  " * (n % 2) + text for n, text in enumerate(texts)]
    dated = [f"2026-01-05 10:00:00 INFO {text}" if n % 3 else text for n, text in enumerate(texts)]
    for written in (texts, numbered, indented, dated):
        log = LogLines(None, None)
        log.learn(text.encode() for text in written[:1000])
        assert all(log.read(text.encode(), NOW) is not None for text in written)


def test_a_host_and_a_program_are_known_by_most_lines() -> None:
    log = LogLines(None, None, KEEP)
    log.learn([b"2026-01-05T00:00:00 web1 nginx: up", b"2026-01-05T00:00:01 web2 sshd[7]: key"])
    assert log.read(b"2026-01-05T00:00:02 db1 postgres: went: down", NOW) == (
        "went: down", 1767571202.0, {"component": "postgres"},
    )  # fmt: skip
    other = LogLines(None, None, KEEP)
    other.learn([b"2026-01-05T00:00:00 request failed: x", b"2026-01-05T00:00:00 it is up"])
    assert other.read(b"2026-01-05T00:00:00 request failed: x", NOW) == (
        "request failed: x",
        1767571200.0,
        None,
    )


def test_a_log_without_times_is_its_messages() -> None:
    log = LogLines(None, None)
    assert log.learn([b"one", b"two"]).startswith("no times are found")
    assert log.read(b"one  and two ", NOW) == ("one  and two ", None, None)


@pytest.mark.parametrize(
    ("line", "message", "when", "kept"),
    [
        (
            b'{"__REALTIME_TIMESTAMP":"1420070400123456","MESSAGE":"Started x",'
            b'"PRIORITY":"6","SYSLOG_IDENTIFIER":"systemd"}',
            "Started x",
            1420070400.123456,
            {"level": "INFO", "component": "systemd"},
        ),
        (
            b'{"__REALTIME_TIMESTAMP":"1420070400000000","MESSAGE":[104,105,255]}',
            "hi\ufffd",
            1420070400.0,
            None,
        ),
        (
            b'{"log":"hello\\n","stream":"stdout","time":"2015-01-01T00:00:00.5Z"}',
            "hello",
            1420070400.5,
            None,
        ),
        (
            b'{"log":"2014-12-31 01:00:00,0 INFO a.B: hello\\n","time":"2015-01-01T00:00:00Z"}',
            "hello",
            1420070400.0,
            {"level": "INFO", "component": "a.B"},
        ),
        (
            b'{"ts":1420070400.25,"level":"warn","msg":"slow","logger":"db"}',
            "slow",
            1420070400.25,
            {"level": "warn", "component": "db"},
        ),
    ],
)
def test_lines_that_are_json(line: bytes, message: str, when: float, kept: dict[str, str] | None) -> None:
    log = LogLines(None, None, KEEP)
    log.learn([line])
    assert log.read(line, NOW) == (message, when, kept)


def test_json_without_a_message_is_refused_and_other_braces_are_text() -> None:
    log = LogLines(None, None)
    log.learn([])
    with pytest.raises(RefusedError, match="none of MESSAGE"):
        log.read(b'{"a":1}', NOW)
    assert log.read(b"{not json}", NOW) == ("{not json}", None, None)


def test_a_year_that_is_not_written_is_that_of_the_arrival_or_the_one_before() -> None:
    way = next(way for way in KNOWN if way.name == "syslog")

    def year(line: str, arrival: float) -> int:
        found = way.pattern.match(line)
        assert found is not None
        told = moment(found, arrival)
        assert told is not None
        return datetime.fromtimestamp(told, UTC).year

    assert year("Mar  1 12:00:00 h p: x", NOW) == 2026
    assert year("Dec 31 23:59:59 h p: x", NOW) == 2025
    assert year("Feb 29 00:00:00 h p: x", NOW) == 2024
    assert year("Feb 29 00:00:00 h p: x", calendar.timegm(time.strptime("2028-06-01", "%Y-%m-%d"))) == 2028


def test_times_of_ones_own() -> None:
    log = LogLines("%d.%m.%Y %H:%M:%S,%f", None)
    assert log.read(b"[01.03.2020 00:00:01,5] it is", NOW) == ("it is", 1583020801.5, None)
    assert log.read(b"\tat somewhere", NOW) is None
    for wrong, why in (("%Q", "no directive"), ("%H %H", "twice")):
        with pytest.raises(ValueError, match=why):
            written_as(wrong)


def test_a_pattern_of_ones_own() -> None:
    log = LogLines(None, r"(?P<component>\w+)@(?P<time>\S+) (?P<level>\w+)> (?P<message>.*)", KEEP)
    assert log.read(b"db@1420070400 bad> it broke", NOW) == (
        "it broke",
        1420070400.0,
        {"level": "bad", "component": "db"},
    )
    assert log.read(b"else", NOW) is None
    with pytest.raises(RefusedError, match="what stands for the time is none"):
        log.read(b"db@never bad> it broke", NOW)
    for wrong, why in (("(", "no regular expression"), ("x", "needs a group")):
        with pytest.raises(ValueError, match=why):
            LogLines(None, wrong)


def test_the_decoder_tells_records_from_what_goes_on_with_them() -> None:
    decoder = Decoder("log", keep=("level",))
    assert decoder.log is not None
    lines = [b"2020-01-01 00:00:00 ERROR it broke", b"\tand more", b"2020-01-01 00:00:00", b"\xff"]
    decoder.log.learn(lines)
    record, more, alone, bad = (decoder.decode(Raw(line, {"line": 1}, NOW)) for line in lines)
    assert isinstance(record, Record)
    assert (record.value, record.time, record.keep) == ("it broke", 1577836800.0, {"level": "ERROR"})
    for each in (more, alone):
        assert isinstance(each, Reject)
        assert each.reason == JOINED
    assert isinstance(bad, Reject)
    assert bad.reason == "not_utf8"


def test_a_line_of_colours_alone_is_refused_as_empty() -> None:
    log = LogLines(None, None)
    log.learn([b"INFO: it is up"] * 5)
    with pytest.raises(RefusedError, match="no text"):
        log.read(b"\x1b[0m", NOW)
