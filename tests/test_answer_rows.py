"""Answers side by side say what their lines say: numbers, ids, positions, kept fields, templates."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from feeds import raws_of, texts
from logs import lines as log_lines

from streamdp.decode.decoder import Decoder
from streamdp.decode.texts import TextReader
from streamdp.encode.encoders import decoder_of
from streamdp.engine import Engine
from streamdp.records import KEPT, PARAMS, POSITION, Assignment, Lines, Record
from streamdp.records.answer_rows import all_rows, answer_rows
from streamdp.records.columns import Columns
from streamdp.settings import Settings


def written(n: int, **more: Any) -> Columns:
    """Texts as columns, with ids of both kinds, letters beyond ASCII, times and kept fields."""
    rows = []
    for i, record in enumerate(texts(n, 3)):
        row: dict[str, Any] = {"text": record.value, "keep": {"from": 'Zoë "x"', "n": i}, **more}
        row |= {"id": i if i % 2 else f"é{i}\n"} if i % 3 else {}
        row |= {"time": 1_700_000_000.1234567 + i} if i % 5 else {}
        rows.append(msgspec.json.encode(row | row.pop("keep")))
    decoder = decoder_of(Settings(keep=("from", "n", "level")), "jsonl")
    assert isinstance(decoder, Decoder)
    return TextReader(decoder).read(raws_of(rows))


def check(lines: Lines) -> int:
    """Whether rows say what the lines say; how many revisions there were."""
    rows, found = answer_rows(lines), [line for line in lines if isinstance(line, Assignment)]
    assert len(rows) == len(found)
    numbers = rows.numbers("seq", "label", "founded", "revision", "probability", "novelty")
    said = [(a.seq, a.cluster, a.new, a.revision, a.probability, a.novelty) for a in found]
    assert [*zip(*numbers, strict=True)] == said
    assert rows.ids() == [a.id for a in found]
    assert rows.times() == [a.time for a in found]
    assert [msgspec.json.decode(place or "") for place in rows.of(POSITION)] == [a.position for a in found]
    templates = [None if a.template is msgspec.UNSET else a.template for a in found]
    assert rows.templates() == templates
    for part, name in ((KEPT, "keep"), (PARAMS, "params")):
        values = [getattr(a, name) for a in found]
        read = [msgspec.json.decode(value) if value else msgspec.UNSET for value in rows.written(part)]
        assert read == values
    assert len(rows.first()) + len(rows.revised()) == len(rows)
    assert all_rows(lines).lines() == lines.encode()
    answers, finality = lines.apart()
    assert answers.encode() == rows.lines()
    assert [*answers] == found
    assert len(finality) == len(lines) - len(found)
    return len(rows.revised())


@pytest.mark.parametrize("final_only", [False, True])
def test_rows_say_what_lines_of_texts_say(final_only: bool) -> None:
    engine, given = Engine(Settings(decay_scale=20.0), final_only=final_only), written(600)
    answers = engine.advance(given)
    assert check(answers.lines) or final_only
    together = Lines(answers.lines)
    together.extend(engine.finish().lines)
    assert len(together) > len(answers.lines)
    assert check(together)


def test_rows_say_what_lines_of_objects_say() -> None:
    engine = Engine()
    records = [Record(r.value, {"line": i}, id=f"ü{i}", keep={"a": None}) for i, r in enumerate(texts(50, 1))]
    answers = engine.advance(records)
    check(answers.lines)
    check(Lines([*answers.lines, *engine.finish().lines]))


def test_rows_say_what_lines_of_logs_say() -> None:
    engine = Engine(Settings(format="log", params=True))
    check(engine.advance(log_lines(400)[0]).lines)


def test_no_lines_are_no_rows() -> None:
    assert len(answer_rows(Lines())) == 0
    assert Lines().encode() == b""
