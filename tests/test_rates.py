"""How often lines of a template come: what is told of silence and surges, and what is not."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as few
from hypothesis import strategies as st

from streamdp import Engine, Settings
from streamdp.answers.rates import LINES, QUIET, Rates, Turn
from streamdp.errors import ConfigError
from streamdp.kernels.packed import as_type, encoded, pack
from streamdp.kernels.sound import UnsoundError
from streamdp.records import Event, Record


def lines_of(rates: np.ndarray, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Labels and times of lines that come at random, ``rates[w, k]`` of label k in minute w on average."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rates)
    labels = np.repeat(np.tile(np.arange(rates.shape[1]), len(rates)), counts.reshape(-1))
    minutes = np.repeat(np.arange(len(rates)), counts.sum(axis=1))
    times = 60.0 * (minutes + rng.random(len(labels)))
    order = np.argsort(times, kind="stable")
    return labels[order], times[order]


def turns_of(labels: np.ndarray, times: np.ndarray, rates: Rates | None = None, *, dated: bool = True) -> Any:
    """What is told: silent or not, label, and the minute of the line that ended the window."""
    found = (rates or Rates()).take(labels, times, 0, dated=dated)
    return [(turn.silent, turn.label, int(times[turn.at] // 60)) for turn in found]


def test_nothing_is_told_of_templates_that_come_as_ever() -> None:
    usual = np.tile(np.random.default_rng(2).lognormal(1.0, 1.5, 40), (1000, 1))
    assert turns_of(*lines_of(usual)) == []


def test_of_bursts_that_are_usual_nothing_is_told_once_they_are_known() -> None:
    bursts = np.full((600, 1), 1.0)
    bursts[::5] = 40.0
    told = turns_of(*lines_of(bursts))
    assert all(minute < 60 for _, _, minute in told)


@pytest.mark.parametrize(("rate", "within"), [(5.0, 35), (0.5, 90)])
def test_silence_is_told_once_and_again_after_it_was_broken(rate: float, within: int) -> None:
    usual = np.full((900, 2), rate)
    usual[300:500, 1] = 0.0
    usual[:, 0] = 3.0
    usual[700:, 1] = 0.0
    told = turns_of(*lines_of(usual))
    assert [(silent, label) for silent, label, _ in told] == [(True, 1), (True, 1)]
    assert 300 < told[0][2] <= 301 + within
    assert 700 < told[1][2] <= 701 + 2 * within


def test_a_surge_is_told_once_as_it_begins() -> None:
    usual = np.full((400, 2), 6.0)
    usual[200:215, 1] = 60.0
    assert turns_of(*lines_of(usual)) == [(False, 1, 201)]


def test_a_log_that_stops_is_no_silence_of_its_templates() -> None:
    labels, times = lines_of(np.full((200, 5), 4.0))
    later = np.where(times >= 6000.0, times + 1e6, times)
    assert turns_of(labels, later) == []


def test_a_log_that_is_busier_as_a_whole_is_no_surge_of_its_templates() -> None:
    usual = np.tile([0.5, 3.0, 6.0, 9.0], (300, 1))
    usual[200:210] *= 50.0
    usual[250:260, 0] = 60.0
    assert turns_of(*lines_of(usual)) == [(False, 0, 251)]


def test_a_log_that_is_calmer_as_a_whole_is_no_silence_of_its_templates() -> None:
    usual = np.tile([1.0, 30.0, 60.0], (400, 1))
    usual[200:] *= 0.05
    usual[300:, 1] = 0.0
    told = turns_of(*lines_of(usual))
    assert [(silent, label) for silent, label, _ in told] == [(True, 1)]


def test_a_template_that_is_new_surges_not() -> None:
    usual = np.full((100, 2), 6.0)
    usual[:50, 1] = 0.0
    usual[50:55, 1] = 200.0
    assert turns_of(*lines_of(usual)) == []


def test_lines_without_times_are_counted_by_the_thousand() -> None:
    rng = np.random.default_rng(3)
    labels = np.where(rng.random(100_000) < 0.02, 1, 0)
    labels[60_000:] = 0
    found = list(Rates().take(labels, np.zeros(len(labels)), 0, dated=False))
    assert [(turn.silent, turn.label) for turn in found] == [(True, 1)]
    assert found[0].at % LINES == 0
    assert 60_000 < found[0].at <= 64_000
    assert found[0].size == int((labels == 1).sum())


@few(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=8), st.integers(0, 5))
def test_batches_and_states_do_not_matter(cuts: list[int], seed: int) -> None:
    usual = np.full((120, 3), 8.0)
    usual[50:60, 0], usual[80:, 1] = 90.0, 0.0
    labels, times = lines_of(usual, seed)
    whole = Rates()
    expected = list(whole.take(labels, times, 0, dated=True))
    assert len(expected) == 2
    parts, found = Rates(), []
    bounds = [0, *sorted(min(cut, len(labels)) for cut in cuts), len(labels)]
    for start, stop in itertools.pairwise(bounds):
        parts = as_type(msgspec.msgpack.decode(encoded(parts.settled())), Rates)
        some = parts.take(labels[start:stop], times[start:stop], start, dated=start == 0)
        found += [turn._replace(at=turn.at + start) for turn in some]
    assert found == expected
    assert encoded(parts.settled()) == encoded(whole.settled())


def test_two_labels_that_become_one_are_as_usual_together() -> None:
    labels, times = lines_of(np.full((100, 3), 8.0))
    rates, half = Rates(), int(np.searchsorted(times, 3000.0))
    assert list(rates.take(labels[:half], times[:half], 0, dated=True)) == []
    rates.unite(2, 1)
    later = np.minimum(labels[half:], 1)
    assert list(rates.take(later, times[half:], half, dated=True)) == []
    assert rates.settled().rows["size"][1] == (labels > 0).sum()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("unit", "3"),
        ("units", -1),
        ("lines", 1.5),
        ("dated", 1),
        ("rows", pack(np.zeros((2, 3)))),
        ("rows", pack(np.full((2, 10), np.nan))),
        ("rows", pack(np.full((2, 10), -1.0))),
        ("rows", pack(np.zeros((2, 10), np.int64))),
    ],
)
def test_a_state_that_is_none_is_refused(part: str, value: Any) -> None:
    rates = Rates()
    list(rates.take(np.array([0, 1]), np.array([0.0, 1.0]), 0, dated=True))
    stored = msgspec.msgpack.decode(encoded(rates.settled()))
    with pytest.raises((UnsoundError, msgspec.ValidationError)):
        as_type({**stored, part: value}, Rates)


# ---------------------------------------------------------------- in a stream

KINDS = (
    "GET /cart/{} 200",
    "checkpoint complete: wrote {} buffers",
    "cache miss for key {}",
    "backup done in {} s",
)


def log_of(usual: np.ndarray, seed: int = 1) -> list[Record]:
    """Lines of four templates."""
    labels, times = lines_of(usual, seed)
    rng = np.random.default_rng(seed)
    numbers = rng.integers(10_000, size=len(labels))
    return [
        Record(KINDS[label].format(number), {"line": i}, time=time)
        for i, (label, time, number) in enumerate(
            zip(labels.tolist(), times.tolist(), numbers.tolist(), strict=True)
        )
    ]


def events_of(engine: Engine, records: list[Record], size: int) -> list[Event]:
    found = []
    for start in range(0, len(records), size):
        found += engine.advance(records[start : start + size]).events
    return found


SETTINGS = Settings(likelihood="template")


def test_events_tell_of_silence_and_surges() -> None:
    usual = np.full((200, 4), 25.0)
    usual[100:105, 2], usual[150:, 1] = 400.0, 0.0
    records = log_of(usual)
    told = events_of(Engine(SETTINGS, with_events=True), records, 500)
    turns = [event for event in told if event.event in ("silent", "surged")]
    assert [event.event for event in turns] == ["surged", "silent"]
    surged, silent = turns
    assert surged.template == "cache miss for key <num>"
    assert silent.template == "checkpoint complete: wrote <num> buffers"
    for event in turns:
        before = [r for r in records[: event.seq] if str(r.value)[:5] == str(event.template)[:5]]
        assert event.size == len(before)
        assert (event.first_time, event.last_time) == (before[0].time, before[-1].time)
        assert event.time == records[event.seq].time
        assert 20.0 < float(event.usual) < 30.0
        minute = float(records[event.seq - 1].time or 0.0) // 60
        assert event.lines == sum(float(r.time or 0.0) // 60 == minute for r in before)
    stored = msgspec.json.decode(msgspec.json.encode(silent))
    assert (stored["lines"], stored["other"], stored["moved"]) == (0, None, None)


def test_a_stream_goes_on_with_its_rates() -> None:
    usual = np.full((120, 4), 5.0)
    usual[60:64, 2], usual[90:, 1] = 80.0, 0.0
    records = log_of(usual, 4)
    whole, first = Engine(SETTINGS, with_events=True), Engine(SETTINGS)
    told = events_of(whole, records, 10**6)
    first.advance(records[:1500])
    second = Engine.loads(first.dumps(), SETTINGS, with_events=True)
    later = events_of(second, records[1500:], 7)
    assert later == [event for event in told if event.seq >= 1500]
    assert {event.event for event in later} >= {"silent"}
    assert second.dumps() == whole.dumps()


def test_another_window() -> None:
    usual = np.full((120, 4), 5.0)
    usual[60:, 1] = 0.0
    records = log_of(usual)
    longer = Settings(likelihood="template", rate_window=300.0)
    seqs = [
        next(e.seq for e in events_of(Engine(s, with_events=True), records, 500) if e.event == "silent")
        for s in (SETTINGS, longer)
    ]
    assert seqs[0] < seqs[1]
    with pytest.raises(ConfigError, match="rate_window is of templates"):
        Engine(Settings(rate_window=5.0))


def test_what_is_told_is_remembered() -> None:
    rates = Rates()
    usual = np.full((60, 2), 50.0)
    usual[30:, 1] = 0.0
    labels, times = lines_of(usual)
    found: list[Turn] = list(rates.take(labels, times, 0, dated=True))
    assert [turn.label for turn in found] == [1]
    assert rates.settled().rows["reported"].tolist() == [0.0, QUIET]
