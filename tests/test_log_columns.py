"""Lines of logs read side by side: they are what the decoder reads, and the answers are the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from feeds import changed, raws_of
from hypothesis import given
from hypothesis import strategies as st
from logs import HEADS, program, worded

from streamdp.decode.decoder import Decoder
from streamdp.decode.log_reader import LogReader
from streamdp.engine import Engine
from streamdp.ledger.lines import HeldTemplates
from streamdp.ledger.samples import Samples, lasting_samples
from streamdp.records import JOINED, Answers, Record, Reject
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch
from streamdp.settings import Settings

KEEP = ("level", "component", "other")
STYLES = {
    "iso": [
        b"2026-01-05 10:00:00 INFO session opened for user root",
        b"2026-01-05T10:00:01.250Z [main] WARN  com.shop.Cart - 12 items left",
        b"[2026-01-05 10:00:02,125] ERROR core.db: java.io.IOException: disk full",
        "2026-01-05 10:00:03.5+05:30 DEBUG größer als 3".encode(),
        b"2026-01-05 10:00:04 - 17 - shop.Cart - INFO - saved",
    ],
    "syslog": [
        b"Jan  5 10:00:00 host sshd[1234]: Failed password for root from 1.2.3.4 port 22",
        b"<34>Feb 29 23:59:59 host cron: job done",
        b"Dec 31 23:59:59.5 mail post fix[12]: queue is full",
    ],
    "glog": [b"I0105 10:00:00.125 12 store.cc:99] wrote 3 blocks", b"E0229 10:00:01.5 7 a.cc:1] Error: none"],
    "access": [b'1.2.3.4 - - [05/Jan/2026:10:00:00 +0200] "GET /a HTTP/1.1" 200 17'],
    "epoch": [b"1767607200.125 INFO [x] up", b"1767607201 core: down", b"1767607202.0000000005 late"],
    "apache": [b"[Mon Jan 05 10:00:00 2026] [error] [client 1.2.3.4] File does not exist: /x"],
    "behind": [b"- 1117838570 2005.06.03 R02 2005-06-03-15.42.50 R02 RAS KERNEL INFO cache parity error"] * 2,
    "spring": [
        b"2026-01-05 10:00:00.125  INFO 7 --- [           main] c.shop.Cart    : 12 items left",
        b"2026-01-05 10:00:01.125  WARN 7 --- [shop] [exec-1] c.shop.Pay     : refused (code 3)",
    ],
    "postgres": [
        b"2026-01-05 10:00:00.125 UTC [88] LOG:  checkpoint starting: time",
        b"2026-01-05 10:00:01.125 UTC [91] shop@orders ERROR:  duplicate key",
    ],
    "levels": [b"INFO:     Started server process [7]", b"ERROR:    it broke", b"WARNING:root:it is late"],
    "day": [b"10:00:00.125 [main] INFO  shop.Cart - 12 items left", b"[23:59:59 ERR] it broke"],
    "none": [b"plain words without a time", "Köln calling".encode(), b"12 more"],
}
TRACE = [
    b"java.io.IOException: disk full",
    b"\tat java.io.File.write(File.java:7)",
    b"\tat shop.Cart.save(Cart.java:23)",
    b"Caused by: shop.Lost: x",
    b"Traceback (most recent call last):",
    b'  File "/srv/app.py", line 7, in run',
    b"    go()",
    b"ValueError: no",
    b'{"log": "from a container", "stream": "stdout", "time": "2026-01-05T10:00:00.123456789Z"}',
    b"",
]
ALPHABET = b'[]{}()<>|:;,.-_+/ \t0123456789aeinorstEIWDT"\\\x1c\x00\x7f\xc3\xa9\xa0\xff$#@*'


ARRIVED = 1767700000.0


def mutated(rng: random.Random, line: bytes) -> bytes:
    return changed(rng, line, ALPHABET, [0, 0, 0, 1, 1, 2, 3])


def log_decoder(lines: Sequence[bytes], keep: tuple[str, ...]) -> Decoder:
    decoder = Decoder("log", keep=keep)
    assert decoder.log is not None
    decoder.log.learn(lines)
    return decoder


def one_by_one(decoder: Decoder, raws: RawBatch) -> list[Record | Reject]:
    found: list[Record | Reject] = []
    for raw in raws:
        decoded = decoder.decode(raw)
        found += [late for _, late in decoder.overdue()]
        if isinstance(decoded, Record) or decoded.reason != JOINED:
            found.append(decoded)
    return found


def compare(lines: Sequence[bytes], learned: Sequence[bytes], keep: tuple[str, ...], step: int) -> int:
    """Read lines both ways; how many batches stayed side by side."""
    decoder, slow = log_decoder(learned, keep), log_decoder(learned, keep)
    assert decoder.log is not None
    reader, together = LogReader(decoder, decoder.log, decoder.decode), 0
    for first in range(0, len(lines), step):
        raws = raws_of(lines[first : first + step], first=first + 1, arrival=ARRIVED)
        found = reader.read(raws, together=True)
        assert list(map(repr, found.all() if isinstance(found, Columns) else found)) == list(
            map(repr, one_by_one(slow, raws))
        )
        together += isinstance(found, Columns)
    return together


@pytest.mark.parametrize("keep", [(), ("component",), KEEP])
@pytest.mark.parametrize("style", STYLES)
def test_what_is_ordinary_is_read_as_the_decoder_reads_it(style: str, keep: tuple[str, ...]) -> None:
    rng, lines = random.Random(style), STYLES[style]
    given = []
    for _ in range(400):
        given += [mutated(rng, rng.choice(lines)) for _ in range(8)]
        if rng.random() < 0.2:
            at = rng.randrange(len(TRACE))
            given += [mutated(rng, line) for line in TRACE[at : at + rng.randrange(5)]]
    some = (
        0 if style == "none" else 20
    )  # there, the time of an object from a container is that of all after it
    assert compare(given, lines * 20, keep, 11) > some


@pytest.mark.parametrize("style", STYLES)
def test_most_lines_are_read_side_by_side(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        line
        for line in STYLES[style]
        if line.isascii() and all(odd not in line for odd in (b"0000000005", b"29", b"Exception"))
    ]
    decoder = log_decoder(STYLES[style] * 20, KEEP)
    assert decoder.log is not None
    monkeypatch.setattr(Decoder, "decode", lambda _, raw: pytest.fail(f"{raw.data} was read alone"))
    assert isinstance(
        LogReader(decoder, decoder.log, decoder.decode).read(raws_of(lines, arrival=ARRIVED), together=True),
        Columns,
    )


@pytest.mark.parametrize("name", HEADS)
def test_logs_of_programs_are_read_as_the_decoder_reads_them(name: str) -> None:
    lines = [line.encode() for line in program(name, 1000)[0]]
    assert compare(lines, lines[:1000], KEEP, 100) > 0


@pytest.mark.parametrize("style", [*STYLES, "dashed"])
def test_hostile_heads_take_no_longer_than_their_length(style: str) -> None:
    """Nothing is tried twice: else the longest of these would take minutes."""
    lines = STYLES.get(style, [b"2026-01-05 10:00:00 shop.Cart - saved"])
    begins = [b"", lines[0][:24], lines[0][:24] + b" ", lines[0][:24] + b" [A] [A] [A] [A] [A] [A] [A] "]
    units = [
        b"a",
        b"A ",
        b"[",
        b"[A] ",
        b"[[A] ",
        b"[a b] ",
        b"a.b ",
        b"-",
        b" - ",
        b"(1",
        b"a: ",
        b"|a",
        b" 1",
    ]
    given = [begin + unit * (200_000 // len(unit)) for begin in begins for unit in units]
    compare(given, lines * 20, KEEP, len(given))


def log_texts(lines: Sequence[bytes], keep: tuple[str, ...], step: int) -> list[Columns]:
    decoder = log_decoder(lines[:1000], keep)
    assert decoder.log is not None
    reader = LogReader(decoder, decoder.log, decoder.decode)
    read = (
        reader.read(raws_of(lines[at : at + step], first=at + 1, arrival=ARRIVED), together=True)
        for at in range(0, len(lines), step)
    )
    return [found for found in read if isinstance(found, Columns) and len(found)]


def told_of(answers: Answers) -> tuple[bytes, bytes]:
    return answers.lines.encode(), msgspec.json.encode([answers.events, answers.rejects])


@pytest.mark.parametrize(
    ("name", "settings", "modes", "step"),
    [
        ("hdfs", {}, {}, 100),
        ("supercomputer", {"keep": ("level",), "params": True}, {"with_events": True}, 100),
        ("zookeeper", {"retain": 50}, {"with_events": True}, 7),
        ("syslog", {"retain": 300}, {"final_only": True}, 64),
        ("java", {"retain": 0, "params": True}, {}, 500),
        ("words", {"keep": KEEP}, {"with_events": True}, 250),
        ("words", {"max_clusters": 60, "max_lines": 200, "retain": 400}, {"with_events": True}, 250),
        ("words", {"params": True, "rate_window": 0.5}, {"final_only": True, "with_events": True}, 250),
    ],
)
def test_answers_are_those_to_records_one_by_one(
    name: str, settings: dict[str, Any], modes: dict[str, bool], step: int
) -> None:
    if name == "words":
        rng, texts = random.Random(3), worded(3000)[0]
        times = [1767607200 + i / 50 + rng.random() for i in range(len(texts))]
        lines = [f"{time:.6f} INFO {text}".encode() for time, text in zip(times, texts, strict=True)]
    else:
        lines = [line.encode() for line in program(name, 2000)[0]]
    made = Settings(format="log", **settings)
    together, alone = Engine(made, **modes), Engine(made, **modes)
    batches = log_texts(lines, settings.get("keep", ()), step)
    assert batches
    for number, batch in enumerate(batches):
        if number % 5 == 3:  # by objects in between
            assert told_of(together.advance(batch.all())) == told_of(alone.advance(batch.all()))
        else:
            assert told_of(together.advance(batch)) == told_of(alone.advance(batch.all()))
        if number % 7 == 2:
            assert together.dumps() == alone.dumps()
    assert together.open_answers() == alone.open_answers()
    assert together.dumps() == alone.dumps()
    loaded = Engine.loads(together.dumps(), made, **modes)
    again = batches[-1]
    assert told_of(loaded.advance(again)) == told_of(alone.advance(again.all()))
    assert told_of(loaded.finish()) == told_of(alone.finish())


@given(st.lists(st.integers(0, 400), min_size=1, max_size=300), st.integers(1, 90))
def test_templates_are_held_once_and_forgotten(drawn: list[int], step: int) -> None:
    held, said, numbers = HeldTemplates(), list[bytes](), np.zeros(0, np.int64)
    for at in range(0, len(drawn), step):
        new = [b"" if number == 400 else b"%d" % number * (number + 1) for number in drawn[at : at + step]]
        said = [*said[-step:], *new]
        numbers = np.concatenate([held.keep(numbers[-step:]), held.numbers(new)])
        assert [held.of(number) for number in numbers.tolist()] == said


def test_open_answers_keep_their_templates_where_others_are_forgotten() -> None:
    """New templates were numbered before old ones were forgotten: later ones were written over them."""
    for long in range(11, 17):
        engine, texts = Engine(Settings(likelihood="template", retain=100)), list[str]()
        rng = random.Random(1)
        for batch in range(20):
            size = 4000 if batch == long else 7
            for _ in range(20):
                texts.append(" ".join("".join(rng.choices("ghijklmn", k=size)) for _ in range(5)))
            engine.advance([Record(text, {"line": 1}, None) for text in texts[-20:]])
            held = engine.open_answers()
            assert [answer.template for answer in held] == texts[-len(held) :]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(-9, 9)), min_size=1, max_size=60), st.integers(1, 20)
)
def test_samples_are_those_of_all_records(drawn: list[tuple[int, int]], step: int) -> None:
    labels, novelties = (np.array(each) for each in zip(*drawn, strict=True))
    some, every = Samples(), Samples()
    for at in range(0, len(labels), step):
        part = slice(at, at + step)
        typical = (-novelties[part]).tolist()
        joined = [
            (label, (seq, float(nats), "x"))
            for seq, (label, nats) in enumerate(zip(labels[part].tolist(), typical, strict=True), at)
        ]
        every.extend(joined)
        some.extend(joined[i] for i in lasting_samples(labels[part], novelties[part]).tolist())
        assert some.dump() == every.dump()
