"""Vectors read side by side: they are what the decoder reads, and the answers are the same."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from feeds import changed, raws_of
from hypothesis import example, given
from hypothesis import strategies as st
from side_by_side import KEEP, all_of, check_answers, check_parts, check_read_as_decoded

from streamdp.decode.decoder import Decoder
from streamdp.decode.texts import TextReader
from streamdp.encode.vector_encoder import HUGE, VectorEncoder
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from tests.families import few

VECTORS = [
    b'{"id":12,"time":1700000000.25,"source":"x","n":null,"vector":[1.5,-2,0.30000000000000004]}',
    b'{ "vector" : [ 1e5 , 2.5E-7, -0.0 ] , "time":"2024-05-01T10:00:00Z", "id":"z" }',
    b'{"vector":[123456789012345678,0.00012345678901234567,1.7976931348623157e50],"source":12}',
    b'{"time":12,"vector":[0,0.1,0.2],"id":null,"other":{"vector":[1]}}',
]
FEATURES = [
    b'{"features":{"a":1.5,"b b":-2,"\xc3\xa9":3e2},"id":"q","source":1}',
    b'{"time":5.5,"features":{ "a" : 0.1, "b b":2 , "\xc3\xa9":-7.25 }}',
]
HEADER = ["time", "a", "id", "b b", "cluster", "source", "c"]
ROWS = [
    b"1700000000.5,1.5,x,-2,red,s,3e2",
    b",0.1,, 2 ,,,-7.25",
    "2024-05-01T10:00:00Z,1,ü,2,3,a b,4".encode(),
    b"12,0.30000000000000004,12,1e-7,9,,123456789012345678",
]
ALPHABET = b'{}[]":,;\\0123456789-+.eE \t\r\n_\xc3\xa9\x00\x7fnultrfasvectoridbimx'

Make = Callable[[], Decoder]
SETS: dict[str, tuple[list[bytes], Make]] = {
    "vectors": (VECTORS, lambda: Decoder("jsonl", keep=KEEP)),
    "features": (FEATURES, lambda: Decoder("jsonl", keep=KEEP)),
    "rows": (ROWS, lambda: Decoder("csv", header=HEADER, keep=KEEP)),
    "seconds": (ROWS, lambda: Decoder("csv", header=HEADER, keep=KEEP, time_unit="ms")),
    "tabs": ([row.replace(b",", b"\t") for row in ROWS], lambda: Decoder("tsv", header=HEADER, keep=KEEP)),
}


def reader_of(decoder: Decoder, lines: Sequence[bytes]) -> TextReader:
    """A reader that has seen such lines."""
    reader = TextReader(decoder)
    reader.read(raws_of(lines))
    return reader


def bits(numbers: Sequence[float]) -> bytes:
    return struct.pack(f"{len(numbers)}d", *numbers)


@pytest.mark.parametrize("name", SETS)
def test_a_batch_is_read_as_the_decoder_reads_each_line(name: str) -> None:
    lines, make = SETS[name]
    rng, decoder = random.Random(name), make()
    reader, together = reader_of(decoder, lines[:1]), 0
    for _ in range(600):
        some = [changed(rng, rng.choice(lines), ALPHABET, [0, 0, 0, 1, 1, 2]) for _ in range(6)]
        raws = raws_of([*lines[:2], *some])
        found = reader.read(raws)
        assert list(map(repr, all_of(found))) == [repr(decoder.decode(raw)) for raw in raws]
        together += isinstance(found, Columns)
    assert together > 60


@pytest.mark.parametrize(
    "line",
    [
        b'{"vector":[1,2,3],"vector":[1,2,3]}',
        b'{"vector":[1,2]}',
        b'{"vector":[1,2,3,4]}',
        b'{"vector":[]}',
        b'{"vector":[1,2,3,]}',
        b'{"vector":[1,2,3}',
        b'{"vector":[1,[2],3]}',
        b'{"vector":[1,null,3]}',
        b'{"vector":[1,NaN,3]}',
        b'{"vector":[1,Infinity,3]}',
        b'{"vector":[1,1e999,3]}',
        b'{"vector":[1,"2",3]}',
        b'{"vector":[1,true,3]}',
        b'{"vector":[01,2,3]}',
        b'{"vector":[1.,2,3]}',
        b'{"vector":[.5,2,3]}',
        b'{"vector":[+1,2,3]}',
        b'{"vector":[-,2,3]}',
        b'{"vector":[1e,2,3]}',
        b'{"vector":[1e+,2,3]}',
        b'{"vector":[1,2,-0]}',
        b'{"vector":null}',
        b'{"vector":[1,2,3],"text":"x"}',
        b'{"vector":[1,2,3],"text":null}',
        b'{"vector":[1,2,3],"features":{"a":1}}',
        b'{"vector":[1,2,3]',
        b'{"vector":[1,2',
        b'{"vector":[1,2,0.1234567890123456789]}',
        b'{"vector":[1,2,1e-70]}',
        b'{"vector":{"0":1}}',
    ],
)
def test_what_is_out_of_the_ordinary_is_read_as_the_decoder_reads_it(line: bytes) -> None:
    decoder = Decoder("jsonl", keep=KEEP)
    check_read_as_decoded(decoder, reader_of(decoder, VECTORS), VECTORS[0], line)


def written(draw: st.DataObject, number: float) -> str:
    """One of the ways in which programs write a number."""
    ways = [repr(number), f"{number:.17e}", f"{number:.6f}", f"{number:.3g}", f"{number:.9g}"]
    return draw.draw(st.sampled_from(ways)).replace("inf", "1e400")


@few
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=8, max_size=8), st.data())
def test_numbers_are_read_to_the_last_bit(numbers: list[float], data: st.DataObject) -> None:
    line = ('{"vector":[' + ",".join(written(data, number) for number in numbers) + "]}").encode()
    reader = reader_of(Decoder("jsonl"), [b'{"vector":[1,2,3,4,5,6,7,8]}'])
    (found,) = all_of(reader.read(raws_of([line])))
    expected = Decoder("jsonl").decode(raws_of([line])[0])
    assert repr(found) == repr(expected)


@few
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=9, max_size=9), st.data())
def test_numbers_of_a_table_are_read_to_the_last_bit(numbers: list[float], data: st.DataObject) -> None:
    blank = st.sampled_from(["", " "])
    cells = [data.draw(blank) + written(data, number) + data.draw(blank) for number in numbers]
    lines = [",".join(cells[i : i + 3]).encode() for i in range(0, 9, 3)]
    decoder = Decoder("csv", header="abc")
    found = all_of(TextReader(decoder).read(raws_of(lines)))
    assert repr(found) == repr([decoder.decode(raw) for raw in raws_of(lines)])


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("a", [b"1", b"-2.5e-3", b" 7"]),
        (["time", "a", "b"], [b"1700000000,1,2", b"1700000001500,0.1,-0.0", b"1700000002.5,3,4e5"]),
        (["a", "time", "b"], [b"1,2024-05-01 10:00:00,2", b"3,2024-05-01T10:00:00+02:00,4", b"5,,6"]),
        (["source", "a", "id", "cluster"], ["ü,1,x,red".encode(), b",2,,", b"a b,3,z\\,9"]),
    ],
)
def test_plain_rows_are_read_at_once(header: str, rows: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = Decoder("csv", header=header, keep=KEEP)
    expected = [decoder.decode(raw) for raw in raws_of(rows)]
    monkeypatch.setattr(Decoder, "parts", lambda *_: pytest.fail("the rows were read one by one"))
    assert repr(all_of(TextReader(decoder).read(raws_of(rows)))) == repr(expected)


@pytest.mark.parametrize(
    "odd",
    [
        *(b"", b"1", b"1,2,3", b"1,", b",", b"1,x", b"nan,1", b"1,1e999", b"1_0,2", b'"1",2', b"1,2\n"),
        *(b"1,\xff", b"1 2,3", b"0x1,2", b"1\x00,2", b"\xd9\xa3,1", b"1,inf", b"(1),2", b"1j,2", b"1d5,2"),
        *(b"1;2,3", b"1 ,2"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_row_that_is_not_plain_is_read_as_the_decoder_reads_it(odd: bytes, delimiter: str) -> None:
    decoder = Decoder("csv" if delimiter == "," else "tsv", header="ab")
    cut = delimiter.encode()
    lines = [b"1,2".replace(b",", cut), odd.replace(b",", cut), b"0.5,3".replace(b",", cut)]
    for given_lines in (lines, lines[1:], lines[1:2]):
        raws = raws_of(given_lines)
        found = all_of(TextReader(decoder).read(raws))
        assert repr(found) == repr([decoder.decode(raw) for raw in raws])


@pytest.mark.parametrize("seed", range(4))
def test_numbers_between_two_doubles_go_to_the_nearer(seed: int) -> None:
    """Digits that end just before, at and behind the middle of two doubles, which plain sums get wrong."""
    rng, texts = random.Random(seed), []
    for _ in range(4000):
        low = math.ldexp(rng.random() + 0.5, rng.randrange(-120, 120))
        middle = (Fraction(low) + Fraction(math.nextafter(low, math.inf))) / 2
        exponent = math.floor(math.log10(low)) - 17
        whole = int(middle / Fraction(10) ** exponent) + rng.randrange(-1, 3)
        texts.append(f"{'-' if rng.random() < 0.5 else ''}{whole // 10}e{exponent + 1}")
        digits = str(whole // 10)
        texts.append(f"{digits[:2]}.{digits[2:]}e{exponent + len(digits) - 1}")
    lines = [f'{{"vector":[{",".join(texts[i : i + 8])}]}}'.encode() for i in range(0, len(texts), 8)]
    rows = [",".join(texts[i : i + 8]).encode() for i in range(0, len(texts), 8)]
    table = Decoder("csv", header="abcdefgh")
    for decoder, given_lines in ((Decoder("jsonl"), lines), (table, rows)):
        found = TextReader(decoder).read(raws_of(given_lines))
        assert isinstance(found, Columns)
        assert bits(found.values.vectors.ravel().tolist()) == bits(list(map(float, texts)))


def test_slices_and_choices_hold_the_same_records() -> None:
    for name in ("vectors", "features", "rows"):
        lines, make = SETS[name]
        check_parts(reader_of(make(), lines[:1]).read(raws_of([*lines, b"{}", *lines[:2]])))


def stream(seed: int, n: int, named: bool) -> Iterator[bytes]:
    """Lines of a few clusters; some late, some undated, some that are refused here or there."""
    rng, time = random.Random(seed), 0.0
    centres = [[rng.gauss(0.0, 4.0) for _ in range(3)] for _ in range(5)]
    for i in range(n):
        time += rng.choice([0.0, 0.25, 1.0])
        which = rng.randrange(5)
        vector: list[Any] = [rng.gauss(mean, 1.0) for mean in centres[which]]
        event: dict[str, Any] = {"id": i, "time": time, "source": f"s{which}"}
        match rng.randrange(60) if i else 9:
            case 0:
                event["time"] = max(time - 30.0, 0.0)
            case 1:
                del event["time"]
            case 2:
                vector = vector[:2]
            case 3:
                vector[1] = None
            case 4:
                event["time"] = time + 1e7
            case 5:
                event["n"] = {"of": [1.5, None]}
            case 6:
                vector[0] = 2.0 * HUGE
            case 7:
                vector = [0.0, 0.0, 0.0]
        if named:
            event["features"] = dict(zip("bca", vector, strict=False))
        else:
            event["vector"] = vector
        yield json.dumps(event).encode()


SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "one": {"beam": 1, "second_look": 0, "retain": 0},
    "waits": {"max_lateness": 2.0},
    "unit": {"likelihood": "von-mises-fisher", "normalise": True},
}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("final_only", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_answers_do_not_depend_on_how_vectors_are_read(name: str, final_only: bool, named: bool) -> None:
    settings = Settings(keep=KEEP, **SETTINGS[name])
    sizes = [*[20] * 15, 300, 1, 17, 900, 400, *[20] * 20]
    assert check_answers(settings, list(stream(5, 2300, named)), sizes, final_only, anew=900) > 10


@few
@given(
    st.lists(
        st.lists(st.floats(-1e3, 1e3) | st.sampled_from([0.0, 2e100, 1e-300]), min_size=3, max_size=3),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from([("auto", False), ("auto", True), ("von-mises-fisher", True), ("gamma-poisson", False)]),
    st.booleans(),
)
@example([[1.0, 0.0, 2.0]], ("gamma-poisson", False), False)
def test_vectors_are_encoded_side_by_side_as_one_by_one(
    rows: list[list[float]], how: tuple[str, bool], named: bool
) -> None:
    likelihood, normalise = how
    values: list[Any] = [dict(zip("cab", row, strict=True)) for row in rows] if named else rows
    lines = [json.dumps({"features" if named else "vector": value}).encode() for value in values]
    texts = reader_of(Decoder("jsonl"), lines[:1]).read(raws_of(lines))
    assert isinstance(texts, Columns)
    names = ["a", "b", "c"] if named else None
    together, apart = (VectorEncoder(3, names, likelihood, normalise=normalise) for _ in range(2))
    found, expected = together.add(texts), [*map(apart.add_one, texts)]
    assert found == [(i, reject) for i, reject in enumerate(expected) if reject is not None]
    times = np.zeros(len(rows) - len(found))
    first, second = together.take(times).vectors, apart.take(times).vectors
    assert first is not None
    assert second is not None
    assert first.tobytes() == second.tobytes()
