"""The chance that an answer is not revised, against plain Python over the answers."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import pytest
from feeds import feed, headlines, reloaded, texts
from test_lasting import STREAMS

from streamdp.engine import Engine
from streamdp.kernels.sound import UnsoundError
from streamdp.ledger.ledger import Ledger
from streamdp.ledger.table import EARLY, FADE, LEAST, OF_VECTORS, USUAL, WEIGHT
from streamdp.ledger.table import STAYS_AFTER as AFTER
from streamdp.records import Answers, Assignment, Record
from streamdp.settings import Settings

MORE: dict[str, tuple[Settings, list[Record]]] = {**STREAMS, "drifting texts": (Settings(), texts(4000, 8))}


def expected(answers: list[Assignment], usual: np.ndarray = USUAL, early: int = 0) -> list[float]:
    """What is to be said of each record, by the answers and revisions in order."""
    cells: list[tuple[int, int]] = []
    revised: list[bool] = []
    counts, bad = np.zeros(USUAL.shape), np.zeros(USUAL.shape)
    found = []
    for answer in answers:
        if answer.revision:
            revised[answer.seq] = True
            continue
        if answer.seq >= AFTER:
            old = answer.seq - AFTER
            counts, bad = counts * FADE, bad * FADE
            counts[cells[old]] += 1
            bad[cells[old]] += revised[old]
        cell = int(answer.new or answer.seq < early), bisect_right(LEAST.tolist(), answer.probability)
        cells.append(cell)
        revised.append(False)
        found.append(1 - (bad[cell] + WEIGHT * usual[cell]) / (counts[cell] + WEIGHT))
    return found


def said(answers: list[Assignment]) -> list[Any]:
    return [answer.stability for answer in answers if answer.revision == 0]


@pytest.mark.parametrize("name", MORE)
def test_what_is_said_is_what_plain_python_finds(name: str) -> None:
    settings, records = MORE[name]
    engine = Engine(settings)
    told = feed(engine, records, range(0, len(records), 700))
    told.add(engine.finish())
    answers = told.assignments()
    assert len(said(answers)) == len(records)
    cells = (OF_VECTORS, EARLY) if name == "vectors" else (USUAL, 0)
    assert said(answers) == pytest.approx(expected(answers, *cells), abs=2e-6)
    once = {answer.seq: answer.stability for answer in told.first()}
    assert all(answer.stability == once[answer.seq] for answer in answers)


@pytest.mark.parametrize("name", MORE)
def test_batches_and_restarts_change_nothing(name: str) -> None:
    settings, records = MORE[name]
    whole = feed(Engine(settings), records[:2500])
    _, parts = reloaded(settings, records[:2500], (1, 300, 1601, 1803))
    assert said(parts.assignments()) == said(whole.assignments())


def of(answers: Answers) -> list[Any]:
    return [line.stability for line in answers.lines if isinstance(line, Assignment)]


def test_what_is_never_revised_has_none() -> None:
    records = headlines(300, 3)
    engine = Engine(Settings())
    engine.advance(records[:250])
    assert not any(of(engine.score(records[250:])))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("counters", {"seq": -5, "lasted": 0, "expected": 0.0}),
        ("cell", 7),
        ("tallies", {"count": 1.0, "revised": 2.0}),
    ],
)
def test_what_is_no_state_is_refused(name: str, wrong: Any) -> None:
    stored = Ledger(0).dump()
    with pytest.raises(UnsoundError):
        Ledger(0).load(stored | {name: wrong})
