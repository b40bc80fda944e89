"""Event-time order: what waits, what is placed, and the one clock that is wrong."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.encode.order import CONFIRM, HELD, Ready, ReorderBuffer
from streamdp.kernels.packed import as_type, encoded
from streamdp.records import Record, Reject
from streamdp.records.columns import Columns

DAY = 86_400.0
Times = list[float | None]


def record(number: int, time: float | None) -> Record:
    return Record("text", {"line": number}, time)


def run(buffer: ReorderBuffer, times: Times) -> tuple[list[tuple[float, int]], list[int]]:
    """Times and numbers of what was released (without the end), and the numbers refused."""
    released, refused = [], []
    for number, time in enumerate(times):
        ready: Ready = []
        buffer.push(record(number, time), ready)
        released += [(at, each.position["line"]) for at, each in ready if isinstance(each, Record)]
        refused += [each.position["line"] for _, each in ready if isinstance(each, Reject)]
    return released, refused


def drained(buffer: ReorderBuffer, *, ended: bool = False) -> list[tuple[float, int]]:
    ready: Ready = []
    buffer.drain(ready, ended=ended)
    return [(at, each.position["line"]) for at, each in ready]


def placing(lateness: float = 0.0, leap: float = 3600.0) -> ReorderBuffer:
    return ReorderBuffer(lateness, DAY, leap, math.inf)


def test_jitter_refuses_nothing_and_times_never_go_back() -> None:
    drawn = random.Random(1)
    times: Times = [i * 0.1 + drawn.uniform(-2.0, 2.0) for i in range(2_000)]
    buffer = placing()
    released, refused = run(buffer, times)
    assert refused == []
    assert [number for _, number in released] == list(range(2_000))
    at = [time for time, _ in released]
    assert at == sorted(at)
    step, kept = buffer.lateness.within()[-1]
    assert (step, kept) == (5, buffer.lateness.total)
    again, none = run(placing(5.0), times)
    assert none == []
    again += drained(placing())
    assert [time for time, _ in again] == sorted(times[number] or 0.0 for _, number in again)


def test_a_lone_leap_does_not_move_the_stream() -> None:
    times: Times = [float(i) for i in range(50)] + [22 * 3600.0] + [50.0 + i for i in range(50)]
    buffer = placing()
    released, refused = run(buffer, times)
    assert refused == []
    assert [number for _, number in released] == [i for i in range(101) if i != 50]
    assert max(time for time, _ in released) == 99.0
    assert buffer.held == 1
    assert drained(buffer) == [(99.0, 50)]


@pytest.mark.parametrize("lateness", [0.0, 5.0])
def test_a_first_record_far_ahead_does_not_make_all_others_late(lateness: float) -> None:
    times: Times = [22 * 3600.0] + [i + (3.0 if i % 5 == 0 else 0.0) for i in range(200)]
    strict = ReorderBuffer(lateness, DAY, 3600.0, 4.0)
    released, refused = run(strict, times)
    released += drained(strict)
    assert len(refused) < CONFIRM
    assert sorted([number for _, number in released] + refused) == list(range(201))
    at = [time for time, _ in released]
    assert at == sorted(at)
    if lateness:  # the first had not been released yet, and nothing had to be placed
        settled = [(time, number) for time, number in released if CONFIRM < number < 190]
        assert settled == sorted((times[number], number) for _, number in settled)
    again = ReorderBuffer(lateness, DAY, 3600.0, 4.0)
    assert run(again, times)[1] == refused
    last: Ready = []
    again.push(record(999, 100.0), last)
    assert isinstance(last[-1][1], Reject)  # and late is late again


@pytest.mark.parametrize("before", [1, 3, 40])
@pytest.mark.parametrize("together", [False, True])
def test_records_without_a_time_before_all_others_hold_nothing_back(before: int, together: bool) -> None:
    buffer = placing()
    times = [None] * before + [50 * DAY + i for i in range(40)]
    if together:
        given = Columns.of(record(number, time) for number, time in enumerate(times))
        at = [time for _, placed in buffer.in_order(given) for time in placed.tolist()]
    else:
        at = [time for time, _ in run(buffer, times)[0]]
    assert at == [time or 0.0 for time in times]
    assert buffer.dated


def test_a_stream_that_has_begun_does_not_go_back() -> None:
    times: Times = [DAY + i for i in range(3 * CONFIRM)] + [float(i) for i in range(50)]
    refused = run(ReorderBuffer(0.0, DAY, 3600.0, 0.0), times)[1]
    assert refused == list(range(3 * CONFIRM, 3 * CONFIRM + 50))


def test_a_bad_clock_among_good_ones() -> None:
    """One record in ten is 22 hours ahead: all are answered, the others at their own times."""
    times: Times = [float(i) + (22 * 3600.0 if i % 10 == 9 else 0.0) for i in range(5_000)]
    buffer = placing()
    released, refused = run(buffer, times)
    assert refused == []
    right = [(time, number) for time, number in released if number % 10 != 9]
    assert right == [(float(i), i) for i in range(5_000) if i % 10 != 9]
    assert buffer.held <= HELD / 10 + 1
    assert len(released) + len(drained(buffer)) == 5_000


def test_a_stream_that_moves_on_is_followed() -> None:
    times: Times = [float(i) for i in range(100)] + [DAY + i for i in range(100)]
    released, refused = run(placing(), times)
    assert refused == []
    assert [number for _, number in released] == list(range(200))
    assert released[-1] == (DAY + 99.0, 199)
    waited = run(placing(), times[: 100 + CONFIRM - 1])[0]
    assert [number for _, number in waited] == list(range(100))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_after_a_pause_the_last_records_have_their_times(count: int) -> None:
    night: Times = [60.0 * i for i in range(60)]
    morning: Times = [DAY + 240.0 * i for i in range(count)]
    buffer = placing()
    assert [number for _, number in run(buffer, night + morning)[0]] == list(range(60))
    assert drained(buffer, ended=True) == [(time, 60 + i) for i, time in enumerate(morning)]


def test_in_silence_a_second_record_confirms_the_first() -> None:
    buffer = placing()
    run(buffer, [60.0 * i for i in range(60)])
    found = []
    for time in (DAY, DAY + 7200.0, DAY + 7500.0):
        found += run(buffer, [time])[0] + drained(buffer)
    assert [time for time, _ in found] == [59 * 60.0, DAY + 7200.0, DAY + 7500.0]
    run(buffer, [3 * DAY])
    assert run(buffer, [DAY + 7600.0])[0] == [(DAY + 7600.0, 0)]
    assert drained(buffer, ended=True) == [(DAY + 7600.0, 0)]  # whom the stream has contradicted


def test_leaps_are_measured_by_what_a_stream_is_used_to() -> None:
    times: Times = [7 * DAY * i for i in range(40)]
    released, refused = run(placing(), times)
    assert refused == []
    late = max(times.index(7 * DAY * number) - number for _, number in released)
    assert (len(released), late) == (40, 0)


def test_late_records_can_be_refused() -> None:
    strict = ReorderBuffer(2.0, DAY, 3600.0, 0.0)
    assert run(strict, [10.0, 9.0, 13.0, 10.5, 12.0])[1] == []
    assert run(strict, [20.0, 12.9])[1] == [1]
    bounded = ReorderBuffer(0.0, DAY, 3600.0, 100.0)
    assert run(bounded, [1000.0, 950.0, 899.0]) == ([(1000.0, 0), (1000.0, 1)], [2])


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e6), st.integers(0, 200).map(float)), max_size=60),
    st.sampled_from([0.0, 3.0, 1e4]),
    st.sampled_from([0.0, 50.0, math.inf]),
    st.integers(0, 60),
)
def test_every_record_is_released_once_or_refused(
    times: Times, lateness: float, place: float, cut: int
) -> None:
    def whole(at: int | None) -> tuple[list[tuple[float, int]], list[int]]:
        buffer = ReorderBuffer(lateness, math.inf, 100.0, place)
        released, refused = run(buffer, times[:at])
        if at is not None:
            again = as_type(msgspec.msgpack.decode(encoded(buffer)), ReorderBuffer)
            later, more = run(again, times[at:])
            start = len(times[:at])
            return released + later + drained(again), refused + [start + n for n in more]
        return released + drained(buffer), refused

    released, refused = whole(None)
    assert sorted([n for _, n in released] + refused) == list(range(len(times)))
    at = [time for time, _ in released]
    assert at == sorted(at)
    resumed = whole(min(cut, len(times)))
    assert [time for time, _ in resumed[0]] == at
    assert resumed[1] == refused


@pytest.mark.parametrize("time", [0.0, 5.0])
def test_a_stream_of_one_time(time: float) -> None:
    assert run(placing(), [time] * 5)[0] == [(time, i) for i in range(5)]
