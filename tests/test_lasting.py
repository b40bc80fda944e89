"""The chance that a record founds a cluster that lasts, against plain Python over the answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import parsed, succeed
from feeds import Told, feed, headlines, record, reloaded, texts, vectors

from streamdp.engine import Engine
from streamdp.kernels.sound import UnsoundError
from streamdp.ledger.ledger import Ledger
from streamdp.ledger.table import LASTS_AFTER as AFTER
from streamdp.records import Assignment, Record
from streamdp.settings import Settings
from tests.logs import lines

STREAMS: dict[str, tuple[Settings, list[Record]]] = {
    "stories": (Settings(), headlines(2500, 3)),
    "beam of one": (Settings(beam=1, retain=0), headlines(1500, 4)),
    "hard texts": (Settings(), texts(1500, 5)),
    "vectors": (Settings(), vectors(1200, 6)),
    "log": (
        Settings(likelihood="template"),
        [record(line, i + 1, float(i)) for i, line in enumerate(lines(1500, 7)[0])],
    ),
}


def expected(answers: Iterable[tuple[int, int, bool, float]]) -> list[float]:
    """What is to be said of each record, by the answers in order: number, label, new, mass of a new one.

    An answer to a record that had one is a revision.
    """
    label: dict[int, int] = {}
    new: dict[int, bool] = {}
    mass: dict[int, float] = {}
    lasted, total, found = 0, 0.0, []
    for seq, cluster, founds, of_new in answers:
        if seq not in label:
            old = seq - AFTER
            if old >= 0:
                total += mass[old]
                members = sum(label[other] == label[old] for other in range(old, seq))
                lasted += new[old] and members > 3
            found.append(min(1.0, (lasted + 3.6) / (total + 10.0) * of_new))
            mass[seq] = of_new
        label[seq], new[seq] = cluster, founds
    return found


def of(told: Told) -> list[tuple[int, int, bool, float]]:
    return [(a.seq, a.cluster, a.new, a.new_probability) for a in told.assignments()]


def said(told: Told) -> list[Any]:
    return [line.lasting_probability for line in told.first()]


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_said_is_what_plain_python_finds(name: str) -> None:
    settings, records = STREAMS[name]
    engine = Engine(settings)
    told = feed(engine, records, range(0, len(records), 700))
    told.add(engine.finish())
    assert len(said(told)) == len(records)
    assert said(told) == pytest.approx(expected(of(told)), abs=1e-6)
    once = {line.seq: line.lasting_probability for line in told.first()}
    assert all(line.lasting_probability == once[line.seq] for line in told.assignments())


@pytest.mark.parametrize("name", STREAMS)
def test_batches_and_restarts_change_nothing(name: str) -> None:
    settings, records = STREAMS[name]
    whole = feed(Engine(settings), records[:1200])
    _, parts = reloaded(settings, records[:1200], (1, 300, 301, 803))
    assert said(parts) == said(whole)
    assert any(0.0 < share < 1.0 for share in said(whole))


def test_lines_that_kernels_write_say_the_same(learned: Path) -> None:
    answers = [line for line in parsed((learned / "out").read_bytes()) if "seq" in line]
    first = [line["lasting_probability"] for line in answers if line["revision"] == 0]
    given = [(a["seq"], a["cluster"], a["new"], a["new_probability"]) for a in answers]
    assert first == pytest.approx(expected(given), abs=1e-6)


def test_scoring_teaches_nothing_and_says_what_the_next_record_would_be_told() -> None:
    settings, records = STREAMS["hard texts"]
    engine = Engine(settings)
    engine.advance(records[:1300])
    state = engine.dumps()
    scored = [a for a in engine.score(records[1300:1301]).lines if isinstance(a, Assignment)]
    assert engine.dumps() == state
    told = engine.advance(records[1300:1301]).assignments[0]
    assert scored[0].new_probability == told.new_probability
    assert scored[0].lasting_probability != told.new_probability
    assert scored[0].lasting_probability == pytest.approx(told.lasting_probability, rel=0.01)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("counters", {"seq": 5, "lasted": -1, "expected": 0.0}), ("counters", {"seq": 1.5}), ("label", 7)],
)
def test_what_is_no_state_is_refused(name: str, wrong: Any) -> None:
    stored = Ledger(0).dump()
    with pytest.raises(UnsoundError):
        Ledger(0).load(stored | {name: wrong})


def test_an_answer_without_it_is_written_without() -> None:
    answer = feed(Engine(Settings()), headlines(1, 1)).assignments()[0]
    bare = msgspec.structs.replace(answer, lasting_probability=msgspec.UNSET)
    assert b"lasting" not in msgspec.json.encode(bare)
    assert b'"lasting_probability":0.36,' in msgspec.json.encode(answer)


def test_lines_of_a_log_that_kernels_write_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "in.log").write_text("\n".join(lines(1500, 7)[0]) + "\n")
    answers = [
        line for line in parsed(succeed(tmp_path, "consume", "in.log", "--format", "log")) if "seq" in line
    ]
    first = [line["lasting_probability"] for line in answers if line["revision"] == 0]
    given = [(a["seq"], a["cluster"], a["new"], a["new_probability"]) for a in answers]
    assert len(first) == 1500
    assert first == pytest.approx(expected(given), abs=1e-6)
