"""What is counted of lines hour by hour, and what stands in the holes of templates."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest
from feeds import reloaded

import streamdp.lines.history as history_module
from streamdp import Engine, Settings
from streamdp.lines.holes import Past
from streamdp.lines.values import ALWAYS, ONE_IN
from streamdp.records import Record
from streamdp.state.snapshot import SnapshotError

SETTINGS = Settings(likelihood="template", keep=("level",))
USERS = ("ann", "bob", "eve", "joe")


def made(count: int, seed: int = 1, step: float = 10.0, *, dated: bool = True) -> list[Record]:
    """Lines of three templates, the third of which comes late."""
    draw = random.Random(seed)
    found = []
    for i in range(count):
        kind = draw.choice((0, 0, 1)) if i < count // 2 else draw.choice((0, 0, 1, 2))
        text = (
            f"request took {draw.randrange(10, 90)} ms for user={draw.choice(USERS)}",
            f"cache miss for key {i}",
            "disk is full, giving up",
        )[kind]
        keep = {"level": ("INFO", "DEBUG", "ERROR")[kind]}
        found.append(Record(text, {"line": i}, time=step * i if dated else None, keep=keep))
    return found


def past_of(engine: Engine) -> Past:
    past = engine.past()
    assert past is not None
    return past


def engine_of(records: list[Record], step: int = 1000) -> Engine:
    engine = Engine(SETTINGS)
    for start in range(0, len(records), step):
        engine.advance(records[start : start + step])
    return engine


def test_lines_are_counted_by_the_minute_and_then_by_more() -> None:
    records = made(2000)
    engine = engine_of(records)
    past = past_of(engine)
    assert past.dated
    assert past.length == 300.0  # 334 minutes
    answers = Engine(SETTINGS).advance(records).assignments
    wanted = Counter((answer.cluster, int(answer.time or 0) // 300) for answer in answers)
    sizes = {cluster.cluster: cluster.size for cluster in engine.clusters()}
    counts = dict(zip(past.labels.tolist(), past.counts, strict=True))
    assert {label: int(row.sum()) for label, row in counts.items()} == sizes
    late = next(label for label, size in sizes.items() if size < 400)
    assert counts[late].tolist() == [wanted[late, past.first + i] for i in range(past.counts.shape[1])]


def test_lines_without_times_are_counted_by_their_numbers() -> None:
    past = past_of(engine_of(made(1050, dated=False)))
    assert not past.dated
    assert past.length == 100.0
    assert past.counts.sum(axis=0).tolist() == [100.0] * 10 + [50.0]


@pytest.mark.parametrize("dated", [True, False])
def test_the_state_is_the_same_however_lines_come_and_over_restarts(dated: bool) -> None:
    records = made(1500, dated=dated)
    whole = engine_of(records).dumps()
    assert engine_of(records, 7).dumps() == whole
    engine, _ = reloaded(SETTINGS, records, range(250, 1500, 250))
    assert engine.dumps() == whole


def holes_of(engine: Engine, start: str) -> list[Any]:
    past = past_of(engine)
    label = next(c.cluster for c in engine.clusters() if str(c.template).startswith(start))
    return past.holes[label]


def test_holes_have_their_values() -> None:
    engine = engine_of(made(100))
    took, user, level = holes_of(engine, "request")
    values = [record.value for record in made(100) if str(record.value).startswith("request")]
    numbers = sorted(int(str(value).split()[2]) for value in values)
    assert (took.lines, took.least, took.most) == (len(values), numbers[0], numbers[-1])
    assert took.median == pytest.approx(float(np.median(numbers)), rel=0.15)
    assert took.decile == pytest.approx(float(np.quantile(numbers, 0.9)), rel=0.15)
    assert took.distinct == pytest.approx(len(set(numbers)), rel=0.4)
    counted = Counter(str(value).split("=")[1] for value in values)
    assert user.distinct == len(counted)
    assert len(values) - 3 <= user.lines <= len(values)  # at first it was a constant
    for text, share in user.common:
        assert share * user.lines == pytest.approx(counted[text], abs=3)
    order = list(dict.fromkeys(str(value).split("=")[1] for value in values))
    assert user.newest == order[-1]
    assert (level.kind, level.common) == ("level", [("INFO", 1.0)])


def test_places_of_known_classes_are_told_as_such_with_their_counts() -> None:
    draw = random.Random(2)
    given = []
    for i in range(250):
        status, state = draw.choice([200, 200, 200, 404, 500]), draw.choice(["up", "down"])
        lines = (
            f"GET /cart/{i} {status} {i}ms",
            f"code={status + 1} after {i} tries",
            f"link={state} of {i}",
        )
        given += [Record(text, {"line": len(given) + n}) for n, text in enumerate(lines)]
    engine = Engine(Settings(likelihood="template"))
    engine.advance(given)
    kinds = {start: [hole.kind for hole in holes_of(engine, start)] for start in ("GET", "code", "link")}
    assert kinds == {
        "GET": ["<num>", "<status>", "<num>"],
        "code": ["<status>", "<num>"],
        "link": ["<state>", "<num>"],
    }
    status = holes_of(engine, "GET")[1]
    counted = Counter(str(record.value).split()[2] for record in given[::3]).most_common()
    assert [(text, n) for (text, _), n in zip(status.common, status.counts, strict=True)] == counted
    assert status.least is None
    told = ", ".join(f"{text}: {n}" for text, n in counted)
    assert status.said(2).startswith(f"hole 2 <status>: 3 values; {told}; newest ")


def test_what_stands_where_no_status_does_is_a_number() -> None:
    engine = Engine(Settings(likelihood="template"))
    engine.advance([Record(f"waited for {200 + i % 3} of them", {"line": i}) for i in range(40)])
    (hole,) = holes_of(engine, "waited")
    assert (hole.kind, hole.most) == ("<num>", 202.0)


def test_distinct_values_are_estimated() -> None:
    key, _ = holes_of(engine_of(made(6000)), "cache")
    assert key.lines > ALWAYS
    assert key.distinct == pytest.approx(key.lines, rel=0.4)
    assert key.common == []  # none has come twice


def test_not_every_line_of_a_busy_template_is_looked_at() -> None:
    records = made(20_000, step=0.01)
    took, *_ = holes_of(engine_of(records), "request")
    lines = sum(str(record.value).startswith("request") for record in records)
    assert ALWAYS + (lines - ALWAYS) / ONE_IN == pytest.approx(took.lines, rel=0.15)


def test_the_lines_around_a_first_line_are_remembered() -> None:
    records = made(300)
    first = next(i for i, record in enumerate(records) if str(record.value).startswith("disk"))
    for step in (1, 300):
        engine = engine_of(records, step)
        around = past_of(engine).around[
            next(c.cluster for c in engine.clusters() if "disk" in str(c.template))
        ]
        assert around == tuple(records[i].value for i in (first - 1, first, first + 1))


def test_a_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "CELLS", 300)
    monkeypatch.setattr(history_module, "ROWS", 100)
    monkeypatch.setattr(history_module, "HOLES", 70)
    draw = random.Random(3)
    syllables = ["".join((a, b, c)) for a in "bdkm" for b in "aeiou" for c in "lnrs"]
    records = []
    for i in range(4000):
        kind = random.Random(i * 60 // 4000)
        words = " ".join(kind.choice(syllables) + kind.choice(syllables) for _ in range(4))
        text = f"{words} {draw.randrange(99)} of {draw.randrange(9)}"
        records.append(Record(text, {"line": i}, time=900.0 * i))
    engine = engine_of(records)
    past = past_of(engine)
    assert past.first > 0
    assert np.count_nonzero(past.counts) <= 300 + 60
    assert sum(map(len, past.holes.values())) <= 70
    assert engine_of(records, 13).dumps() == engine.dumps()
    assert past.counts[:, -1].sum() > 0


def test_a_history_that_is_none_is_refused() -> None:
    engine = engine_of(made(100))
    stored = msgspec.msgpack.decode(engine.dumps())
    plain, held = (stored["templates"]["history"][part] for part in ("plain", "arrays"))
    held["past"]["keys"] = held["past"]["units"]
    plain["units"] = ["x", 1, 0]
    with pytest.raises(SnapshotError):
        Engine.loads(msgspec.msgpack.encode(stored), SETTINGS)
