"""Stack traces in logs: an exception is told by its type and the first frame of one's own."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from streamdp.decode.decoder import Decoder
from streamdp.decode.log import LogLines
from streamdp.decode.log_traces import Trace
from streamdp.records import JOINED, Raw, Record, Reject

NOW = datetime(2026, 3, 1, tzinfo=UTC).timestamp()

PYTHON = """\
Traceback (most recent call last):
  File "/app/shop/views.py", line 23, in handle
    cart.add(item)
    ^^^^^^^^^^^^^^
  File "/app/shop/cart.py", line {line}, in add
    return self.items[item]
  File "/usr/lib/python3.11/collections/__init__.py", line 3, in __missing__
    raise KeyError(key)
{kind}: 'socks'
During handling of the above exception, another exception occurred:
Traceback (most recent call last):
  File "/app/shop/main.py", line 23, in <module>
    run()
shop.errors.CartBroken"""
JAVA = """\
java.lang.{kind}: cart 5 is empty
\tat java.base/java.util.Optional.get(Optional.java:143)
\tat app//com.acme.shop.Cart.add(Cart.java:{line})
\tat com.acme.shop.Main.main(Main.java:5)
Caused by: java.sql.SQLException: no connection
\tat org.postgresql.Driver.connect(Driver.java:3)
\tat com.acme.db.Pool.get(Pool.java:99)
\t... 12 more"""
GO = """\
panic: {kind}: index out of range [{line}] with length 3
goroutine 1 [running]:
panic({{0x1, 0x2}})
\t/usr/local/go/src/runtime/panic.go:88 +0x1
example.com/shop/cart.(*Cart).Add(0xc000012)
\t/app/cart.go:{line} +0x1d
main.main()
\t/app/main.go:9 +0x2
exit status 2"""
NODE = """\
{kind}: Cannot read properties of undefined (reading 'id')
    at parse (/app/node_modules/parse/index.js:3:1)
    at Cart.add (/app/src/cart.js:{line}:11)
    at async Promise.all (index 0)
    at /app/src/router.js:5:3
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)"""
NET = """\
System.{kind}: Sequence contains no elements
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Shop.Cart.Add(String item, Int32 n) in /src/Shop/Cart.cs:line {line}
   at Shop.Program.Main(String[] args) in /src/Shop/Program.cs:line 5
   --- End of inner exception stack trace ---"""

TRACES = {
    "python": (
        PYTHON,
        ("KeyError", "LookupError"),
        ["{kind}@shop/cart.py#add", "shop.errors.CartBroken@shop/main.py#<module>"],
    ),
    "java": (
        JAVA,
        ("IllegalStateException", "NoSuchMethodError"),
        ["java.lang.{kind}@com.acme.shop.Cart.add", "java.sql.SQLException@com.acme.db.Pool.get"],
    ),
    "go": (
        GO,
        ("runtime error", "cart error"),
        ["panic-{kind}-index-out-of-range@example.com/shop/cart.Cart.Add"],
    ),
    "node": (NODE, ("TypeError", "RangeError"), ["{kind}@src/cart.js#Cart.add"]),
    ".net": (NET, ("InvalidOperationException", "FormatException"), ["System.{kind}@Shop.Cart.Add"]),
}


def told(lines: list[str], log: LogLines) -> list[str]:
    """What is told of some lines."""
    found = []
    for line in lines:
        read = log.read(line.encode(), NOW)
        found += [late[0] for late in log.overdue]
        log.overdue.clear()
        found += [] if read is None else [read[0]]
    return found


def of(language: str, kind: int, line: int = 17) -> tuple[list[str], list[str]]:
    """A trace, and what is told of it."""
    text, kinds, expected = TRACES[language]
    own = [each.format(kind=kinds[kind]).replace(" ", "-") for each in expected]
    return text.format(kind=kinds[kind], line=line).splitlines(), own


HEAD = "2026-01-05 10:00:{:02} ERROR request failed"


@pytest.mark.parametrize("language", TRACES)
def test_an_exception_is_its_type_and_the_first_frame_of_ones_own(language: str) -> None:
    log, lines, expected = LogLines(None, None), [], []
    for number, (kind, line) in enumerate([(0, 17), (0, 99), (1, 17)]):
        trace, own = of(language, kind, line)
        lines += [HEAD.format(number), *trace]
        expected += ["request failed", *own]
    log.learn(line.encode() for line in lines)
    assert told(lines, log) == expected
    assert log.exceptions == len(expected) - 3


@pytest.mark.parametrize("language", TRACES)
def test_a_trace_is_read_in_a_log_without_times(language: str) -> None:
    trace, own = of(language, 0)
    lines = ["starting", *trace, "stopped"]
    log = LogLines(None, None)
    log.learn(line.encode() for line in lines)
    found = told(lines, log)
    assert [text for text in found if "@" in text] == own
    assert (found[0], found[-1]) == ("starting", "stopped")


@pytest.mark.parametrize("language", TRACES)
@pytest.mark.parametrize(
    "prefix",
    [
        "2026-01-05T10:00:00.5Z stderr F ",
        "Jan  5 10:00:00 web1 shop[7]: ",
        '{"log":"%s\\n","time":"2026-01-05T10:00:00Z"}',
    ],
)
def test_a_trace_is_read_under_prefixes(language: str, prefix: str) -> None:
    trace, own = of(language, 0)
    lines = ["starting up", *trace, "stopped now"]
    if "%s" in prefix:
        lines = [prefix % line.replace('"', '\\"').replace("\t", "\\t") for line in lines]
    else:
        lines = [prefix + line for line in lines]
    log = LogLines(None, None)
    log.learn(line.encode() for line in lines)
    assert [text for text in told(lines, log) if "@" in text] == own


@pytest.mark.parametrize("language", TRACES)
def test_lines_of_others_may_stand_within_a_trace(language: str) -> None:
    trace, own = of(language, 0)
    lines = [HEAD.format(0), *trace]
    for at in range(2, len(lines)):
        log = LogLines(None, None)
        mixed = [*lines[:at], "2026-01-05 10:00:01 INFO another request is served", *lines[at:]]
        log.learn(line.encode() for line in mixed)
        found = told(mixed, log)
        assert [text for text in found if "@" in text] == own
        assert "another request is served" in found


def test_a_trace_without_a_frame_of_ones_own_is_told_once_it_is_over() -> None:
    trace = [
        "java.io.IOException: broken",
        "\tat java.io.File.a(File.java:5)",
        "\tat java.io.File.b(File.java:6)",
    ]
    lines = [HEAD.format(0), *trace, *[HEAD.format(n) for n in range(1, 20)]]
    log = LogLines(None, None)
    log.learn(line.encode() for line in lines)
    found = told(lines, log)
    assert found.count("java.io.IOException@java.io.File.a") == 1
    log = LogLines(None, None)
    log.learn(line.encode() for line in lines)
    assert told(lines[:4], log) == ["request failed"]
    log.end()
    assert [text for text, *_ in log.overdue] == ["java.io.IOException@java.io.File.a"]


def test_an_exception_without_frames_is_told() -> None:
    lines = [HEAD.format(0), "java.io.IOException: broken", *[HEAD.format(n) for n in range(1, 12)]]
    log = LogLines(None, None)
    log.learn(line.encode() for line in lines)
    assert told(lines, log).count("java.io.IOException") == 1


def test_a_message_may_name_the_exception() -> None:
    trace = Trace()
    trace.passes("it failed: shop.errors.CartError: empty")
    assert (
        trace.read("    at Cart.add (/app/src/cart.js:17:11)") == "shop.errors.CartError@src/cart.js#Cart.add"
    )
    trace = Trace()
    trace.passes("it failed")
    assert trace.read("    at Cart.get (/app/src/cart.js:17:11)") == "exception@src/cart.js#Cart.get"


def test_messages_are_no_traces() -> None:
    log = LogLines(None, None)
    log.learn([])
    texts = [
        "at noon",
        "goroutine is late",
        "panic attack",
        "  indented",
        "Caused by the cat",
        'File "a" is open',
    ]
    assert told(texts, log) == texts


def test_the_decoder_makes_a_record_of_an_exception() -> None:
    decoder = Decoder("log", keep=("level",))
    assert decoder.log is not None
    lines = [line.encode() for line in (HEAD.format(0), *of("java", 0)[0])]
    decoder.log.learn(lines)
    found = [decoder.decode(Raw(line, {"line": n}, NOW)) for n, line in enumerate(lines, 1)]
    records = [each for each in found if isinstance(each, Record)]
    assert [record.position["line"] for record in records] == [1, 4, 8]
    assert {record.time for record in records} == {1767607200.0}
    assert [record.keep for record in records] == [{"level": "ERROR"}] * 3
    assert {each.reason for each in found if isinstance(each, Reject)} == {JOINED}


@pytest.mark.parametrize("language", TRACES)
def test_a_trace_in_an_object_is_part_of_its_message(language: str) -> None:
    trace, own = of(language, 0)
    log = LogLines(None, None)
    for record in (
        {"msg": "\n".join(["it failed", *trace])},
        {"msg": "it failed", "stack": "\n".join(trace)},
    ):
        found = log.read(json.dumps(record).encode(), NOW)
        assert found == (f"it failed {own[0]}", None, None)
