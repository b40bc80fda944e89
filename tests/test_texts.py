"""Texts read side by side are what the decoder reads, and the answers are the same."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from feeds import changed, raws_of
from hypothesis import given
from hypothesis import strategies as st
from side_by_side import KEEP, all_of, check_answers, check_parts, check_read_as_decoded

from streamdp.beam.data.state import ANSWER, REVISION
from streamdp.decode.decoder import Decoder
from streamdp.decode.texts import FEW, TextReader
from streamdp.encode.order import ReorderBuffer
from streamdp.engine import Engine
from streamdp.kernels.packed import encoded
from streamdp.kernels.rows import new_rows
from streamdp.ledger.ledger import Ledger
from streamdp.ledger.table import NUMBERS
from streamdp.records import Answers, Assignment, Final, Lines, Raw, Record, Reject
from streamdp.records.answer_rows import all_rows
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch
from streamdp.run.reading import Reader
from streamdp.settings import Settings
from streamdp.settings.io_options import Input
from tests.families import few

LINES = [
    b'{"text":"a b","id":12,"time":1700000000.25,"source":"x","n":null,"deep":{"a":[1,{"b":"c\\n"}],"e":1}}',
    b'{"text":"h\\ud83d\\ude00i \\u00e9","id":"z","time":1.7e9,"source":true}',
    b'{ "text" : "x\\ty" , "id" : null , "time" : -5.125, "source":123456789012345678 }',
    '{"text":"Grüße aus Köln 😀","id":"ü","time":1700000000123,"source":"ä"}'.encode(),
    b'{"text":"only","source":[1,2]}',
    b'{"text":"iso","time":"2024-05-01T10:00:00Z","id":123456789012345678901234567890}',
    b'{"text":"plain words here","time":12,"id":"a"}',
    b'{"text":"a date","time":"2024-02-29 23:59:59.125+05:30"}',
    b'{"text":"a date","time":"1969-12-31T23:59:59.999999Z"}',
    b'{"text":"a date","time":"2023-11-05T01:02:03"}',
]
ODD = [
    b'{"text":"a date","time":"2023-11-05T24:00:00Z","id":17.0}',
    b'{"text":"a date","time":"2023-11-05T23:59:60Z","source":"\\ud83d"}',
    b'{"text":"a \\ud800","time":"1700000000","deep":[NaN,-Infinity]}',
]
ALPHABET = (
    b'{}[]":,\\u0123456789abcdefnrt-+.eE \t\n\xc3\xa9\xf0\x9f\x98\x80\xed\xa0\x80textidimesourcnulltrufals'
)


def mutated(rng: random.Random, line: bytes) -> bytes:
    return changed(rng, line, ALPHABET, [0, 0, 1, 1, 2, 3])


@pytest.mark.parametrize("unit", ["auto", "s", "ms"])
def test_a_batch_is_read_as_the_decoder_reads_each_line(unit: Any) -> None:
    rng, decoder = random.Random(unit), Decoder("jsonl", keep=KEEP, time_unit=unit)
    side_by_side = 0
    for _ in range(600):
        raws = raws_of([mutated(rng, rng.choice(LINES + ODD)) for _ in range(10)])
        found = TextReader(decoder).read(raws)
        assert list(map(repr, all_of(found))) == [repr(decoder.decode(raw)) for raw in raws]
        side_by_side += isinstance(found, Columns)
    assert side_by_side > 100


@pytest.mark.parametrize(
    ("decoder", "lines"),
    [
        (Decoder("text"), [b"plain words", "Grüße 😀".encode(), b"  ", b"\xff", b"more"]),
        (
            Decoder("csv", header=["time", "text", "id", "n"], keep=("n",)),
            [b'1700000000.5,"a, ""b""",x,1', b",only text,,", b"1,2", b"noon,a,b,c", b"3,words,12,"],
        ),
    ],
)
def test_texts_that_are_no_json_are_read_as_the_decoder_reads_them(
    decoder: Decoder, lines: list[bytes]
) -> None:
    raws = raws_of(lines)
    found = TextReader(decoder).read(raws)
    assert isinstance(found, Columns)
    assert list(map(repr, found.all())) == [repr(decoder.decode(raw)) for raw in raws]


@pytest.mark.parametrize("seed", range(3))
def test_dates_are_read_as_the_decoder_reads_them(seed: int) -> None:
    rng, decoder = random.Random(seed), Decoder("jsonl")
    dates = []
    for _ in range(400):
        day = f"{rng.randrange(3000):04}-{rng.randrange(14):02}-{rng.randrange(33):02}"
        second = rng.choice(["", f".{rng.randrange(10 ** rng.randrange(1, 9))}"])
        clock = f"{rng.randrange(25):02}:{rng.randrange(61):02}:{rng.randrange(61):02}"
        zone = rng.choice(["", "Z", "+00:00", f"-{rng.randrange(25):02}:{rng.randrange(61):02}", "+01", "z"])
        dates.append(f"{day}{rng.choice('T T_')}{clock}{second}{zone}")
    lines = [json.dumps({"text": "word", "time": date}).encode() for date in dates]
    found = all_of(TextReader(decoder).read(raws_of(lines)))
    assert list(map(repr, found)) == [repr(decoder.decode(raw)) for raw in raws_of(lines)]
    assert sum(isinstance(each, Record) for each in found) > 100


@pytest.mark.parametrize(
    "line",
    [
        b'{"text":"a","text":"b"}',
        b'{"text":"a","source":1,"source":2}',
        b'{"text":"\xed\xa0\x80 x"}',
        b'{"text":"x \xc0\x80"}',
        b'{"text":"x"}}',
        b'{"text":"x","y":[1,]}',
        b'{"text":"x","y":01}',
        b'{"text":"x","y":"\\q"}',
        b'{"text":"x\\ud800 y"}',
        b'{"text":null}',
        b'{"text":"  "}',
        b'{"text":"x","vector":[1.0]}',
        b'{"te\\u0078t":"x"}',
        b'{"text":"x"',
        b"",
        b'{"text":"x\x01"}',
        b'{"text":"x","y":' + 40 * b"[" + 40 * b"]" + b"}",
    ],
)
def test_what_is_out_of_the_ordinary_is_read_as_the_decoder_reads_it(line: bytes) -> None:
    decoder = Decoder("jsonl", keep=KEEP)
    check_read_as_decoded(decoder, TextReader(decoder), LINES[6], line)


def test_a_record_that_the_source_could_not_read_stays_refused() -> None:
    raws = raws_of([LINES[6], LINES[6], LINES[6]])
    raws.refused[1] = "it is torn"
    found = TextReader(Decoder("jsonl")).read(raws)
    assert isinstance(found, Columns)
    assert [type(each) for each in found.all()] == [Record, Reject, Record]
    assert [record.value for record in found] == ["plain words here"] * 2


def test_positions_are_written_whatever_a_file_is_called() -> None:
    settings = Settings(beam=1)
    one, other = Engine(settings), Engine(settings)
    for at in (1, 33, 65):
        raws = raws_of([LINES[6]] * 32, 'null "é" {null}')
        raws.places = list(range(at, at + 32))
        texts = TextReader(Decoder("jsonl")).read(raws)
        assert isinstance(texts, Columns)
        assert one.advance(texts).lines.encode() == other.advance(texts.all()).lines.encode()


def test_slices_and_choices_hold_the_same_records() -> None:
    raws = raws_of([*LINES, b"{}", *LINES[:3]])
    check_parts(TextReader(Decoder("jsonl", keep=KEEP)).read(raws))


def stream(seed: int, n: int) -> Iterator[bytes]:
    """Lines of a few topics; some late, some undated, some that are refused here or there."""
    rng, words = random.Random(seed), [f"w{i}" for i in range(60)]
    time = 0.0
    for i in range(n):
        time += rng.choice([0.0, 0.25, 1.0])
        topic = rng.randrange(6)
        text = " ".join(rng.choices(words[10 * topic : 10 * topic + 10], k=rng.randrange(1, 8)))
        event: dict[str, Any] = {"id": i, "text": text, "time": time, "source": f"s{topic}"}
        match rng.randrange(40):
            case 0:
                event["time"] = max(time - 30.0, 0.0)
            case 1:
                del event["time"]
            case 2:
                event["text"] = "a"  # no word of it counts
            case 3:
                event["text"] = 7
            case 4:
                event["time"] = time + 1e7
            case 5:
                event["n"] = {"of": [1.5, None]}
        yield json.dumps(event).encode()


SETTINGS = {
    "usual": {},
    "decided late": {"beam": 8, "retain": 0, "second_look": 0},
    "links": {"prior": "distance-dependent", "distance": "records", "beam": 4},
    "by seconds": {
        "prior": "distance-dependent",
        "distance": "seconds",
        "decay_scale": 50.0,
        "late": "refuse",
    },
    "waits": {"max_lateness": 2.0},
    "stems": {"stem": "english", "ngrams": 2},
}


@pytest.mark.parametrize("final_only", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_answers_do_not_depend_on_how_texts_are_read(name: str, final_only: bool) -> None:
    settings = Settings(keep=KEEP, **SETTINGS[name])
    sizes = [300, 1, 17, 1000, 600, 400, 182]
    assert check_answers(settings, list(stream(5, 2500)), sizes, final_only, anew=1000) >= 6


numbers = st.integers(-(10**15), 10**15).map(lambda millionths: millionths / 1e6) | st.sampled_from(
    [0.0, -0.0, 1e-6, -9e-6, 1e-5, 0.999999, 7.9e9, 8e9, -1e12, float("inf"), float("nan")]
)


@few
@given(
    numbers,
    numbers,
    st.floats(0, 1).map(lambda p: round(p, 6)),
    st.booleans(),
    st.none() | st.integers(0, 10**9),
)
def test_lines_are_written_as_they_are_encoded(
    log_predictive: float, novelty: float, probability: float, new: bool, link: int | None
) -> None:
    answer = Assignment(
        seq=0,
        id='a"b',
        position={"file": "é", "line": 3},
        time=1.5,
        cluster=7,
        probability=probability,
        new_probability=1.0 - probability,
        new=new,
        link=link,
        log_predictive=log_predictive,
        novelty=novelty,
        revision=1,
        keep={"k": [1.5, None]},
    )
    answer = msgspec.structs.replace(answer, new_probability=round(answer.new_probability, 6))
    assert written(answer, linked=True) == msgspec.json.encode(answer) + b"\n"


def written(answer: Assignment, *, linked: bool) -> bytes:
    """The line of an answer that was revised once, as a ledger writes it."""
    ledger, lines = Ledger(10, linked=linked), Lines()
    record = Record("storm", answer.position, answer.time, answer.id, keep=answer.keep or None)
    ledger.keep_open(10)
    ledger.put(new_rows(1, ANSWER, decided=-1), np.ones(1, np.int64), Columns.of([record]))
    row = ledger.table.records[0]
    for name in NUMBERS:
        number = getattr(answer, name)
        row[name] = math.nan if number is msgspec.UNSET else number
    link = -1 if answer.link is None else answer.link
    revision = new_rows(1, REVISION, label=answer.cluster, link=link, founded=answer.new)
    revision["probability"] = answer.probability
    lines.add(ledger.written(ledger.move(revision)))
    return lines.encode()


@pytest.mark.parametrize("name", ["probability", "new_probability", "lasting_probability"])
@pytest.mark.parametrize("number", [1e300, -1e300, float("inf")])
def test_a_share_that_somebody_has_tampered_with_is_written(name: str, number: float) -> None:
    """A kernel wrote its digits without end."""
    plain = {"probability": 0.5, "new_probability": 0.5, "log_predictive": -1.0, "novelty": 1.0, name: number}
    place = {"id": None, "position": {"line": 3}, "time": 1.5}
    answer = Assignment(seq=0, cluster=7, new=False, link=None, revision=1, **place, **plain)
    assert written(answer, linked=False) == msgspec.json.encode(answer) + b"\n"


@pytest.mark.parametrize("position", [{}, {"key": "a"}, {"key": "a", "line": 3}])
def test_positions_that_count_nothing_are_written(position: dict[str, Any]) -> None:
    """Those that a source of one's own may give: they made lines that nobody could read."""
    found = [Raw(b'{"text": "storm over the coast"}', position, 0.0)] * 20
    decoder, raws = Decoder("jsonl"), RawBatch.of(found)
    given = TextReader(decoder).read(raws) if raws else [*map(decoder.decode, found)]
    answers = Engine(Settings()).advance(given)
    lines = [msgspec.json.decode(line) for line in answers.lines.encode().splitlines()]
    assert [line["position"] for line in lines] == [position] * 20


def test_what_is_written_and_what_is_not_stay_in_order() -> None:
    lines = Lines([Final(3)])
    lines.add(all_rows(Lines([Final(4)])))
    lines.extend([Final(5), Final(6)])
    assert [line.final_through for line in lines] == [3, 4, 5, 6]  # type: ignore[union-attr]
    assert [line.final_through for line in reversed(lines)] == [6, 5, 4, 3]  # type: ignore[union-attr]
    assert (len(lines), lines[1], lines[-1]) == (4, Final(4), Final(6))
    both = Lines()
    both.extend(lines)
    both.append(Final(7))
    assert (len(both), len(lines), both == [*lines, Final(7)]) == (5, 4, True)
    assert Answers(lines, [], []).final_through == 6
    assert [part.encode() for part in lines.apart()] == [b"", lines.encode()]


@few
@given(
    st.lists(st.none() | st.integers(0, 4000).map(float), min_size=20, max_size=80),
    st.sampled_from([0.0, 3.0, float("inf")]),
    st.sampled_from([50.0, 3600.0]),
)
def test_many_pass_as_they_would_one_by_one(times: list[float | None], place: float, leap: float) -> None:
    one, other = ReorderBuffer(0.0, 1000.0, leap, place), ReorderBuffer(0.0, 1000.0, leap, place)
    for buffer in (one, other):
        for i in range(20):
            buffer.push(Record("x", {"line": i}, 0.1 * i), [])
    arrivals = np.full(len(times), 2500.0)
    placed = one.pass_through(np.array([np.nan if time is None else time for time in times]), arrivals)
    ready: Any = []
    for time in times[: len(placed)]:
        other.push(Record("x", {}, time, arrival=2500.0), ready)
    assert [time for time, record in ready if isinstance(record, Record)] == placed.tolist()
    assert len(ready) == len(placed)
    assert (encoded(one), one.lateness.counts) == (encoded(other), other.lateness.counts)


def test_few_and_many_are_answered_alike(tmp_path: Path) -> None:
    path, written = tmp_path / "in.jsonl", []
    path.write_bytes(b"".join(b'{"text": "storm %d of %d", "id": %d}\n' % (i % 5, i, i) for i in range(200)))
    for sizes in ((1,), (3 * FEW,), (1, FEW, 2)):
        reader, engine, size = Reader(Settings(), Input(file=str(path))), Engine(), cycle(sizes)
        data = b""
        while batch := reader.batch(next(size), 0.0):
            data += engine.advance(batch).lines.encode()
        written.append((data, engine.dumps()))
    assert written[0] == written[1] == written[2]
