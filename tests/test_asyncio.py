"""An engine inside a loop of asyncio: batches in a thread, the loop free, the same answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from benchmarks.drifting import demo_stream
from streamdp import Engine

BATCHES = [[record.text for record in demo_stream(6000, 1)][at : at + 1500] for at in range(0, 6000, 1500)]


async def answered(engine: Engine) -> AsyncIterator[list[int]]:
    """The labels of each batch, as docs/python.md shows it."""
    for batch in BATCHES:
        answers = await asyncio.to_thread(engine.advance, batch)
        yield [each.cluster for each in answers.assignments]


async def beats(found: list[float]) -> None:
    """How long the loop let each of many short waits wait."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        found.append(time.perf_counter() - began)


async def run() -> tuple[list[list[int]], list[float], bytes]:
    engine, found = Engine(), list[float]()
    beating = asyncio.create_task(beats(found))
    labels = [each async for each in answered(engine)]
    beating.cancel()
    return labels, found, engine.dumps()


def test_batches_in_a_thread_leave_the_loop_free_and_answers_as_they_are() -> None:
    engine = Engine()
    began = time.perf_counter()
    alone = [[each.cluster for each in engine.advance(batch).assignments] for batch in BATCHES]
    took = time.perf_counter() - began
    labels, found, stored = asyncio.run(run())
    assert (labels, stored) == (alone, engine.dumps())
    assert len(found) >= 4 * len(BATCHES)  # it beat many times in each batch
    assert sorted(found)[len(found) // 2] < took / len(BATCHES)
