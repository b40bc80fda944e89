"""The order of merged partitions, without a broker."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from streamdp_connectors.kafka.merge import Merge

from streamdp.records import Raw
from streamdp.records.raw_batch import RawBatch


def add(merge: Merge, partition: int, *times: float | None, cut: int = 99) -> None:
    """Records as they are fetched, so many at once."""
    position = {"topic": "t", "partition": partition}
    raws = [Raw(b"x", {**position, "offset": offset}, 0.0, time) for offset, time in enumerate(times)]
    for begin in range(0, len(raws), cut):
        some = RawBatch.of(raws[begin : begin + cut])
        assert some is not None
        merge.add(partition, some)


def merge_of(queues: list[list[float | None]], cut: int = 99) -> Merge:
    merge = Merge("t")
    for partition, times in enumerate(queues):
        merge.open(partition)
        add(merge, partition, *times, cut=cut)
    return merge


def told(found: Sequence[Raw]) -> list[tuple[int, int]]:
    return [(item.position["partition"], item.position["offset"]) for item in found]


def never(partition: int) -> bool:
    return False


def test_smallest_head_first_and_ties_by_partition() -> None:
    merge = merge_of([[1.0, 5.0], [1.0, 2.0], [0.0, 9.0]])
    assert told(merge.release(9, None, never)) == [(2, 0), (0, 0), (1, 0), (1, 1), (0, 1), (2, 1)]


def test_an_empty_partition_that_is_waited_for_blocks() -> None:
    merge = merge_of([[1.0, 2.0], []])
    assert merge.release(9, None, lambda p: p == 1) == []
    assert told(merge.release(9, None, never)) == [(0, 0), (0, 1)]


def test_a_partition_that_runs_empty_blocks() -> None:
    merge = merge_of([[1.0, 4.0], [2.0]])
    assert told(merge.release(9, None, lambda p: p == 1)) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("strange", [None, float("nan")])
def test_a_record_without_time_goes_at_once(strange: float | None) -> None:
    merge = merge_of([[5.0], [strange, 7.0]])
    assert told(merge.release(9, None, never)) == [(1, 0), (0, 0), (1, 1)]


def test_nothing_at_or_past_the_stop() -> None:
    merge = merge_of([[1.0, 2.0, 3.0], [1.5]])
    assert told(merge.release(9, {0: 2}, never)) == [(0, 0), (0, 1)]
    assert told(merge.release(9, None, never)) == [(1, 0), (0, 2)]


def test_cuts_do_not_change_the_order() -> None:
    rng = random.Random(1)
    queues: list[list[float | None]] = [
        [rng.choice([None, float(rng.randrange(20))]) for _ in range(rng.randrange(30))] for _ in range(4)
    ]
    whole = told(merge_of(queues).release(999, None, never))
    merge, parts = merge_of(queues, rng.randrange(1, 9)), []
    while found := merge.release(rng.randrange(1, 9), None, never):
        parts.extend(told(found))
    assert parts == whole
    assert sorted(whole) == [(p, o) for p, times in enumerate(queues) for o in range(len(times))]


def test_sizes_are_counted() -> None:
    merge = merge_of([[1.0, 2.0], []])
    assert merge.records(0) == 2
    assert merge.exceeds(0, 1, 9)
    assert merge.exceeds(0, 9, 1)
    merge.release(9, None, never)
    assert not merge.exceeds(0, 0, 0)


def always(partition: int) -> bool:
    return True


def in_step(queues: int, seconds: float = 100.0) -> Merge:
    merge = Merge("t", in_step=seconds)
    for partition in range(queues):
        merge.open(partition)
    return merge


def times(found: Sequence[Raw]) -> list[float | None]:
    return [item.time for item in found]


def test_in_step_nobody_runs_ahead_of_who_lives() -> None:
    merge = in_step(3)
    add(merge, 0, 1.0, 60.0)
    add(merge, 1, 2.0)
    assert times(merge.release(9, None, never, always)) == [1.0, 2.0]  # and the third has not begun
    assert merge.holds
    assert merge.release(9, None, never, always) == []
    add(merge, 1, 3.0, 61.0, None)
    assert times(merge.release(9, None, never, always)) == [3.0, 60.0]
    assert merge.release(9, None, never, always) == []
    assert times(merge.release(9, None, never, lambda p: p != 0)) == [61.0, None]
    assert not merge.holds


def test_in_step_a_record_far_ahead_does_not_stop_its_partition() -> None:
    merge = in_step(2)
    add(merge, 0, 1.0)
    add(merge, 1, 1.0, 500.0, 2.0)
    assert times(merge.release(9, None, never, always)) == [1.0, 1.0, 500.0]
    add(merge, 0, 2.0, 3.0)
    assert times(merge.release(9, None, never, always)) == [2.0, 2.0, 3.0]


def test_in_step_goes_on_from_stored_times() -> None:
    merge, again = in_step(2), in_step(2)
    add(merge, 0, 1.0)
    add(merge, 1, 2.0)
    assert len(merge.release(9, None, never, always)) == 1
    assert len(merge.release(9, None, never, never)) == 1
    assert merge.plain() == {"reached": {"0": 1.0, "1": 2.0}}
    again.take_up(merge.plain())
    again.take_up({"reached": [1]})
    again.take_up({})
    add(again, 0, 2.0, 3.0)
    assert times(again.release(9, None, never, always)) == [2.0]
    strange = in_step(2)
    strange.take_up({"reached": {"x": 1.0, "0": "y"}})
    assert strange.plain() == {}
