"""Stack traces in logs: each is one event, the line that names the exception with a frame of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from streamdp import Engine
from streamdp.decode.decoder import Decoder
from streamdp.decode.log import LogLines
from streamdp.decode.log_reader import LogReader
from streamdp.decode.log_traces import ENDS
from streamdp.lines.base import NAMED
from streamdp.records import Raw, Record

NOW = datetime(2026, 3, 1, tzinfo=UTC).timestamp()

TRACES = {
    "java": (
        """\
Exception in thread "main" java.lang.IllegalStateException: cart 5 is empty
\tat java.base/java.util.Optional.get(Optional.java:143)
\tat app//com.acme.shop.Cart.add(Cart.java:17)
\tat com.acme.shop.Jni.call(Native Method)
\tat com.acme.shop.Main$$Lambda$14/0x0000.run(Unknown Source)
\tSuppressed: java.io.IOException: not closed
\t\tat com.acme.shop.Cart.close(Cart.java:33)
Caused by: java.sql.SQLException: no connection
\tat org.postgresql.Driver.connect(Driver.java:3)
\t... 12 more""",
        "java.lang.IllegalStateException@com.acme.shop.Cart.add: cart 5 is empty",
    ),
    "java, nested and wrapped": (
        """\
org.acme.mail.SendFailed: three addresses;
  nested exception is:
org.acme.mail.NoSuchUserException: 550 nobody
tried twice

\tat org.acme.mail.Sender.send(Sender.java:9)
Caused by: org.acme.mail.NoSuchUserException: 550 nobody
\tat org.acme.mail.Smtp.rcpt(Smtp.java:7)
\t... 3 common frames omitted""",
        "org.acme.mail.SendFailed-Error@org.acme.mail.Sender.send: three addresses; "
        "org.acme.mail.NoSuchUserException: 550 nobody tried twice",
    ),
    "kotlin": (
        """\
kotlinx.coroutines.TimeoutException: Timed out after 5 ms
\tat shop.CartKt$add$1.invokeSuspend(Cart.kt:12)
\tat _COROUTINE._BOUNDARY._(CoroutineDebugging.kt:42)
\t(Coroutine boundary)
\tat shop.MainKt.main(Main.kt:3)""",
        "kotlinx.coroutines.TimeoutException@shop.CartKt$add$1.invokeSuspend: Timed out after 5 ms",
    ),
    "node": (
        """\
TypeError: Cannot read properties of undefined (reading 'id')
    at parse (/app/node_modules/parse/index.js:3:1)
    at Cart.add (/app/src/cart.js:17:11)
    at async Promise.all (index 0)
    at new Shop [as of] (/app/src/shop.js:2:3)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)""",
        "TypeError@src/cart.js#Cart.add: Cannot read properties of undefined (reading 'id')",
    ),
    "node, uncaught": (
        """\
/app/src/cart.js:17
    throw new RangeError('too many');
    ^

RangeError: too many
    at Object.<anonymous> (/app/src/cart.js:17:11)
    at Module._compile (node:internal/modules/cjs/loader:1105:14) {
  code: 'EMANY',
}

Node.js v20.1.0""",
        "RangeError@src/cart.js#Object.<anonymous>: too many",
    ),
    "firefox": (
        """\
TypeError: cart is undefined
add@https://shop.example/js/cart.js:17:5
@https://shop.example/js/main.js:3:1""",
        "TypeError@js/cart.js#add: cart is undefined",
    ),
    "safari": (
        """\
TypeError: undefined is not an object (evaluating 'cart.id')
forEach@[native code]
add@https://shop.example/js/cart.js:17:5
global code@https://shop.example/:9:3""",
        "TypeError@js/cart.js#add: undefined is not an object (evaluating 'cart.id')",
    ),
    "clr": (
        """\
Unhandled exception. System.InvalidOperationException: Sequence contains no elements
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Shop.Cart.Add(String item, Int32 n) in /src/Shop/Cart.cs:line 17
   at Shop.Cart.<Load>d__2.MoveNext()
   --- End of inner exception stack trace ---
--- End of stack trace from previous location ---
   at Shop.Program.Main(String[] args) in /src/Shop/Program.cs:line 5""",
        "System.InvalidOperationException@Shop.Cart.Add: Sequence contains no elements",
    ),
    "clr, inner": (
        """\
System.AggregateException: One failed
 ---> System.IO.IOException: disk full
   at Shop.Disk.Write(Byte[] data) in /src/Shop/Disk.cs:line 7
   --- End of inner exception stack trace ---
   at Shop.Program.Main()""",
        "System.AggregateException@Shop.Disk.Write: One failed",
    ),
    "mono": (
        """\
System.FormatException: Input string was not in a correct format.
  at System.Int32.Parse (System.String s) [0x00000] in <filename unknown>:0
  at Shop.Cart.Add (System.String item, System.List`1[T] all) [0x00007] in /src/my shop/Cart.cs:9
  at Shop.Main+<Run>c__0.<>m__0 () [0x00006] in <1f2e>:0""",
        "System.FormatException@Shop.Cart.Add: Input string was not in a correct format.",
    ),
    "python": (
        """\
Traceback (most recent call last):
  File "/app/shop/views.py", line 23, in handle
    cart.add(item)
    ~~~~~~~~^^^^^^
  File "/app/shop/cart.py", line 17, in add
    return self.items[item]
  File "/usr/lib/python3.11/collections/__init__.py", line 3, in __missing__
    raise KeyError(key)
KeyError: 'socks'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/shop/main.py", line 23, in <module>
    run()
shop.errors.CartBroken

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/shop/main.py", line 25, in <module>
    run()
  [Previous line repeated 3 more times]
ValueError: no""",
        "KeyError@shop/cart.py#add: 'socks'",
    ),
    "python, group": (
        """\
  + Exception Group Traceback (most recent call last):
  |   File "/app/shop/main.py", line 4, in <module>
  |     raise ExceptionGroup("two", found)
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/app/shop/cart.py", line 17, in add
    |     raise ValueError("a")
    | ValueError: a
    +---------------- 2 ----------------
    | TypeError: b
    +------------------------------------""",
        "ExceptionGroup-Error@shop/main.py#<module>: two (2 sub-exceptions)",
    ),
    "python, syntax": (
        """\
Traceback (most recent call last):
  File "/app/shop/main.py", line 4, in load
    exec(code)
  File "/app/shop/rules.py", line 3
    if cart
           ^
SyntaxError: expected ':'""",
        "SyntaxError@shop/rules.py: expected ':'",
    ),
    "go": (
        """\
panic: runtime error: index out of range [5] with length 3 [recovered]
\tpanic: again
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x7fd34f]

goroutine 1 [running]:
panic({0x1, 0x2})
\t/usr/local/go/src/runtime/panic.go:88 +0x1
example.com/shop/cart.(*Cart).Add(0xc000012)
\t/app/cart.go:17 +0x1d
runtime.goexit()
\t/usr/local/go/src/runtime/asm_amd64.s:2337 +0x1 fp=0xc42003f7e0
created by main.main in goroutine 7
\t/app/main.go:9 +0x2

goroutine 7 [chan receive, 3 minutes]:
main.main()
\t/app/main.go:11 +0x6f
exit status 2""",
        "panic@example.com/shop/cart.Cart.Add: runtime error: index out of range [5] with length 3"
        " [recovered]",
    ),
    "go, deadlock": (
        """\
fatal error: all goroutines are asleep - deadlock!

goroutine 1 [chan receive]:
main.wait(...)
\t/app/main.go:17 +0x1d
exit status 2""",
        "fatal-Error@main.wait: all goroutines are asleep - deadlock!",
    ),
    "go, of a server": (
        """\
http: panic serving 10.0.0.7:54143: no such cart
goroutine 24 [running]:
net/http.(*conn).serve.func1(0xc00007eaa0)
\t/usr/local/go/src/net/http/server.go:1746 +0xd0
panic(0x12472a0, 0x12ece10)
\t/usr/local/go/src/runtime/panic.go:513 +0x1b9
main.findCart(0x12f0ea0, 0xc00010e1c0)
\t/home/kim/go/src/shop/carts.go:8 +0x39
created by net/http.(*Server).Serve
\t/usr/local/go/src/net/http/server.go:2851 +0x2f5""",
        "panic@main.findCart: no such cart",
    ),
    "rust": (
        """\
thread 'main' panicked at src/cart.rs:17:5:
index out of bounds: the len is 3 but the index is 5
stack backtrace:
   0: rust_begin_unwind
             at /rustc/79e9716c/library/std/src/panicking.rs:597:5
   1: core::panicking::panic_fmt
   2: <shop::Cart as shop::Add>::add::h0123456789abcdef
             at ./src/cart.rs:17:5
   3: shop::main
             at ./src/main.rs:3:9
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.""",
        "panic@<shop::Cart_as_shop::Add>::add: index out of bounds: the len is 3 but the index is 5",
    ),
    "rust, short": (
        """\
thread 'worker 3' panicked at 'no such cart: 5', src/cart.rs:17:5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace""",
        "panic@src/cart.rs: no such cart: 5",
    ),
    "ruby": (
        """\
/app/lib/cart.rb:17:in `add': divided by 0 (ZeroDivisionError)
\tfrom /var/lib/gems/3.0.0/gems/rack-2.2.4/lib/rack/call.rb:42:in `block in call'
\tfrom /app/bin/shop:1:in `<main>'""",
        "ZeroDivisionError@lib/cart.rb#add: divided by 0",
    ),
    "ruby, the other way": (
        """\
Traceback (most recent call last):
\t2: from /app/bin/shop:1:in `<main>'
\t1: from /app/lib/shop.rb:5:in `run'
/app/lib/cart.rb:17:in `add': divided by 0 (ZeroDivisionError)""",
        "ZeroDivisionError@lib/cart.rb#add: divided by 0",
    ),
    "rails": (
        """\
ActionView::Template::Error (undefined method `id' for nil):

app/views/carts/show.html.erb:3:in `_show'
app/controllers/carts_controller.rb:17:in `show'""",
        "ActionView::Template::Error@carts/show.html.erb#_show (undefined method `id' for nil)",
    ),
    "php": (
        """\
PHP Fatal error:  Uncaught ShopException: cart 5 is empty in /var/www/src/Cart.php:17
Stack trace:
#0 /var/www/src/Shop.php(23): Acme\\Cart->add(Object(Closure), 5)
#1 [internal function]: Acme\\Shop->{closure}()
#2 {main}
  thrown in /var/www/src/Cart.php on line 17""",
        "ShopException@src/Cart.php#Acme\\Cart->add: cart 5 is empty",
    ),
    "php, of old": (
        """\
exception 'Acme\\Broken' with message 'cart 5 is empty' in /var/www/src/Cart.php:17
Stack trace:
#0 /var/www/src/Shop.php(23): add()
#1 {main}""",
        "Acme\\Broken-Error@src/Cart.php#add: cart 5 is empty",
    ),
    "dart": (
        """\
Unhandled exception:
Bad state: no cart
#0      List.first (dart:core-patch/growable_array.dart:151)
#1      Cart.add (package:shop/cart.dart:17:5)
<asynchronous suspension>
#2      main.<anonymous closure> (file:///app/bin/main.dart:3:7)""",
        "exception@Cart.add: Bad state: no cart",
    ),
    "dart, with the source": (
        """\
Unhandled exception:
FormatException: Invalid number (at character 3)
12x4
  ^

#0      Cart.add (package:shop/cart.dart:17:5)
#1      main (file:///app/bin/main.dart:3:7)""",
        "FormatException@Cart.add: Invalid number (at character 3) 12x4 ^",
    ),
    "swift": (
        """\
Fatal error: Index out of range: file Swift/ContiguousArrayBuffer.swift, line 600
Current stack trace:
0    libswiftCore.so                    0x00007f1f5ff8f1c0 _swift_stdlib_reportFatalErrorInFile + 112
1    shop                               0x000055d0c8d0a1b2 Cart.add + 18""",
        "Fatal-Error@Cart.add: Index out of range: file Swift/ContiguousArrayBuffer.swift, line 600",
    ),
    "c++": (
        """\
terminate called after throwing an instance of 'shop::Empty'
  what():  cart 5 is empty
#0  __GI_raise (sig=6) at ../sysdeps/raise.c:50
#1  0x0000555555555189 in shop::Cart::add (this=0x7ffe) at cart.cpp:17
#2  main () at main.cpp:3""",
        "shop::Empty-Error@shop::Cart::add: cart 5 is empty",
    ),
    "elixir": (
        """\
** (ArithmeticError) bad argument in arithmetic expression: 1 / 0
    :erlang./(1, 0)
    (stdlib 5.0) gen_server.erl:1077: :gen_server.try_handle_call/4
    (shop 0.1.0) lib/shop/cart.ex:17: Shop.Cart.add/2""",
        "ArithmeticError@Shop.Cart.add/2: bad argument in arithmetic expression: 1 / 0",
    ),
}
HEAD = "2026-01-05 10:00:{:02} ERROR request failed"


def events(lines: Iterable[str]) -> list[str]:
    """The messages and traces of a log, each behind the number of its line."""
    lines = list(lines)
    decoder = Decoder("log")
    assert decoder.log is not None
    decoder.log.learn(line.encode() for line in lines if line)
    reader = LogReader(decoder, decoder.log, decoder.decode)
    raws = [Raw(line.encode(), {"line": n}, NOW) for n, line in enumerate(lines, 1) if line]
    records = [*reader.read(raws, together=False), *reader.end()]
    assert len(records) + reader.joined == len(raws)
    assert all(isinstance(record, Record) for record in records)
    return [f"{record.position['line']} {record.value}" for record in records]  # type: ignore[union-attr]


@pytest.mark.parametrize("head", ["", HEAD])
@pytest.mark.parametrize("language", TRACES)
def test_a_trace_is_one_event(language: str, head: str) -> None:
    trace, expected = TRACES[language]
    before = [head.format(n) or f"user {n} did something" for n in range(20)]
    lines = [*before, *trace.split("\n"), *before]
    found = events(lines)
    others = [line for line in found if line.endswith(("request failed", "did something"))]
    assert len(others) == 40
    assert [line for line in found if line not in others] == [f"21 {expected}"]


@pytest.mark.parametrize("language", TRACES)
def test_two_traces_are_two_events(language: str) -> None:
    trace, expected = TRACES[language]
    found = events([HEAD.format(0), *trace.split("\n"), *trace.split("\n"), HEAD.format(1)])
    said = sorted(line.split(" ", 1)[1] for line in found)
    assert said == sorted(["request failed", expected, expected, "request failed"])


@pytest.mark.parametrize("language", TRACES)
@pytest.mark.parametrize("prefix", ["2026-01-05T10:00:00.5Z stderr F ", "json"])
def test_a_trace_is_read_behind_the_prefix_of_a_container(language: str, prefix: str) -> None:
    trace, expected = TRACES[language]
    lines = [line for line in ("starting up", *trace.split("\n"), "stopped now") if line.strip()]
    if prefix == "json":
        lines = [json.dumps({"log": f"{line}\n", "time": "2026-01-05T10:00:00Z"}) for line in lines]
    else:
        lines = [prefix + line for line in lines]
    if language == "java, nested and wrapped":  # there, each line of a wrapped message may be a message
        lines = [line for line in lines if "tried twice" not in line]
        expected = expected.removesuffix(" tried twice")
    said = sorted(line.split(" ", 1)[1] for line in events(lines))
    assert said == sorted(["starting up", expected, "stopped now"])


@pytest.mark.parametrize("language", ["java", "python", "go", "node", "clr", "rust"])
def test_lines_of_others_may_stand_within_a_trace(language: str) -> None:
    trace, expected = TRACES[language]
    lines = [HEAD.format(0), *trace.split("\n")]
    for at in range(3, len(lines)):
        found = events([*lines[:at], "2026-01-05 10:00:01 INFO another request is served", *lines[at:]])
        found = sorted(line.split(" ", 1)[1] for line in found)
        assert found == sorted([expected, "another request is served", "request failed"])


@pytest.mark.parametrize(
    "heads",
    [
        ("2026-01-05 10:00:0{} [pool-1] ERROR Cart: ", "2026-01-05 10:00:0{} [pool-2] ERROR Cart: "),
        ("Jan  5 10:00:0{} web1 shop[7]: ", "Jan  5 10:00:0{} web2 shop[7]: "),
    ],
)
def test_traces_whose_lines_alternate_are_told_apart_by_what_is_before_them(heads: tuple[str, str]) -> None:
    pairs = [("python", "go, deadlock"), ("go, of a server", "clr"), ("python", "python, syntax")]
    for one, other in pairs:
        traces = [[line for line in TRACES[name][0].split("\n") if line] for name in (one, other)]
        mixed = [
            heads[k].format(n % 10) + trace[n]
            for n in range(max(map(len, traces)))
            for k, trace in enumerate(traces)
            if n < len(trace)
        ]
        found = sorted(line.split(" ", 1)[1] for line in events([heads[0].format(0) + "up"] * 20 + mixed))
        assert found == sorted(["up"] * 20 + [TRACES[one][1], TRACES[other][1]])


def test_a_message_may_name_the_exception_of_a_trace() -> None:
    lines = [
        "2026-01-05 10:00:00 ERROR request 7 failed: java.io.IOException: disk full",
        "\tat java.io.File.write(File.java:7)",
        "\tat com.acme.shop.Cart.save(Cart.java:23)",
        "2026-01-05 10:00:01 WARN KeyError: 'x' was no trace",
        "2026-01-05 10:00:02 ERROR it broke",
        "\tat com.acme.shop.Cart.load(Cart.java:29)",
        "\t... 3 more",
    ]
    assert events(lines) == [
        "1 request 7 failed: java.io.IOException@com.acme.shop.Cart.save: disk full",
        "4 KeyError: 'x' was no trace",
        "5 it broke",
    ]


@pytest.mark.parametrize("heads", [("[pod/web-1/app] ", "[pod/web-2/app] "), ("web-1  | ", "db-1   | ")])
def test_traces_of_two_containers_are_told_apart(heads: tuple[str, str]) -> None:
    traces = [[line for line in TRACES[name][0].split("\n") if line] for name in ("java", "python")]
    mixed = [
        head + line for pair in zip(*traces, strict=False) for head, line in zip(heads, pair, strict=True)
    ]
    mixed += [heads[1] + line for line in traces[1][len(traces[0]) :]]
    lines = [f"{heads[0]}user {n} is in" for n in range(20)]
    assert events([*lines, *mixed])[20:] == [f"21 {TRACES['java'][1]}", f"22 {TRACES['python'][1]}"]


def test_the_message_of_an_exception_of_python_may_have_further_lines() -> None:
    trace = ["Traceback (most recent call last):", '  File "/app/x.py", line 3, in load', "    read()"]
    wrapped = ["shop.ShapeError: 2 errors", "name", "  is missing", "age", "  is missing"]
    dated = [HEAD.format(n) for n in range(20)]
    assert events([*dated, *trace, *wrapped, *dated])[20:22] == [
        "21 shop.ShapeError@app/x.py#load: 2 errors",
        "29 request failed",
    ]


def test_messages_are_no_traces() -> None:
    texts = [
        "at noon",
        "goroutine is late",
        "panic attack",
        "  indented",
        "Caused by the cat",
        'File "a" is open',
        "java.io.IOException: broken",
        "panic: none",
        "and on",
        "Error: 7 is no number",
        "com.acme.Cart: saved",
        "app.js:17",
        "#7 is done",
    ]
    assert events(texts) == [f"{n} {text}" for n, text in enumerate(texts, 1)]


def test_what_may_begin_a_trace_is_told_where_it_was_if_it_begins_none() -> None:
    lines = [HEAD.format(0), "java.io.IOException: broken", *[HEAD.format(n) for n in range(1, 12)]]
    found = events(lines)
    assert found.count("2 java.io.IOException: broken") == 1
    assert len(found) == 13


@pytest.mark.parametrize("language", TRACES)
def test_hostile_lines_take_no_longer_than_their_length(language: str) -> None:
    """Nothing is tried twice: else the longest of these would take minutes."""
    trace = TRACES[language][0].split("\n")
    for unit in ("a.", "a b ", "(", "a(b) ", ":1", " in a:1", "#0 ", "at a.b(", "a/", "@", " + 1", "Error"):
        long = unit * (20_000 // len(unit)) + "\x00"
        assert events([*trace[:1], long, *trace[1:3], f"  at {long}", long])


def test_lines_that_no_program_has_dated_are_messages_or_traces_of_their_own() -> None:
    dated = [HEAD.format(n) for n in range(40)]
    printed = ["=== shop 1.2 ===", "loaded 7 rules", "SELECT 1", "ValueError: no"]
    found = events([*dated[:9], *printed, *dated[9:]])
    assert found[9:13] == [f"{n} {text}" for n, text in enumerate(printed, 10)]


@pytest.mark.parametrize("language", TRACES)
def test_a_trace_in_an_object_is_part_of_its_message(language: str) -> None:
    trace, expected = TRACES[language]
    log = LogLines(None, None)
    for record, said in (
        ({"msg": "\n".join(["it failed", trace])}, f"it failed {expected}"),
        ({"msg": "it failed", "stack": trace}, f"it failed {expected}"),
        ({"msg": trace}, expected),
    ):
        read = log.read(json.dumps(record).encode(), NOW)
        log.end()
        found = [*(held[:3] for held in log.overdue), *([] if read is None else [read])]
        assert found == [(said, None, None)]
        log.overdue.clear()


def test_a_trace_has_the_time_and_the_level_of_the_line_before_it() -> None:
    decoder = Decoder("log", keep=("level",))
    assert decoder.log is not None
    lines = [line.encode() for line in (HEAD.format(0), *TRACES["java"][0].split("\n"))]
    decoder.log.learn(lines)
    found = [decoder.decode(Raw(line, {"line": n}, NOW)) for n, line in enumerate(lines, 1)]
    records = [each for each in found if isinstance(each, Record)]
    records += [late for _, late in decoder.overdue()]
    assert [record.position["line"] for record in records] == [1, 2]
    assert {record.time for record in records} == {1767607200.0}
    assert [record.keep for record in records] == [{"level": "ERROR"}] * 2


def crash(kind: str, place: str) -> str:
    """A crash as a debugger shows it, or one of Ruby."""
    if kind.startswith("SIG"):
        return f"Program received signal {kind}, it broke.\n#0  0x7f01 in {place} () at {place}.c:7"
    return f"/srv/app/{place}.rb:7:in `{place}': no such row ({kind})\n\tfrom /srv/app/main.rb:9:in `<main>'"


@pytest.mark.parametrize("kinds", [("SIGSEGV", "SIGABRT", "SIGBUS"), ("RecordNotFound", "Timeout", "Empty")])
def test_crashes_of_any_name_and_place_are_never_one_template(kinds: tuple[str, ...]) -> None:
    assert [bytes(end.tolist()).decode() for end in NAMED] == list(ENDS)
    log, engine = LogLines(None, None), Engine(likelihood="template")
    places = ("main", "find", "load", "save", "send", "open", "wait", "draw")
    texts = [crash(kind, place) for _ in range(3) for kind in kinds for place in places]
    for text in texts:
        for line in text.split("\n"):
            log.read(line.encode(), NOW)
        log.end()
    engine.advance([held.message for held in log.overdue])
    found = {str(cluster.template).split()[0].rstrip(":") for cluster in engine.clusters()}
    frames = [each if kinds[0] == "SIGSEGV" else f"app/{each}.rb#{each}" for each in places]
    assert found == {f"{kind}-Error@{frame}" for kind in kinds for frame in frames}


def test_an_exception_without_a_frame_has_an_unknown_one() -> None:
    log = LogLines(None, None)
    for line in ("Traceback (most recent call last):", "KeyError: 'socks'"):
        log.read(line.encode(), NOW)
    log.end()
    assert [held.message for held in log.overdue] == ["KeyError@unknown: 'socks'"]
