"""Clocks that stand still while kernels are compiled, however compilations nest; what is said meanwhile."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import wait_for

from streamdp.demo.stream import demo_stream
from streamdp.engine import Engine
from streamdp.kernels import compilation
from streamdp.kernels.compilation import PLANS, compiling, under_way, working_cpu
from streamdp.kernels.jit import Entry
from streamdp.records import Value
from streamdp.settings import Settings


def end(watch: compilation._Watch) -> None:
    watch.count()
    watch.end()


def test_the_clock_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [7.0]
    monkeypatch.setattr(compilation, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    watch = compilation._Watch()
    told: list[int] = []
    watch.begun.append(lambda: told.append(1))
    before = watch.working_time()
    watch.begin("outer")
    watch.begin("inner")
    clock[0] += 50.0
    assert watch.working_time() == before
    end(watch)
    now = watch.now()
    assert now is not None
    assert now == ("outer", 1, 50.0, 0, 0, 0.0)
    end(watch)
    assert watch.now() is None
    assert told == [1]
    assert watch.working_time() == before
    clock[0] += 2.0
    assert watch.working_time() == before + 2.0


def test_what_is_counted_never_decreases() -> None:
    watch = compilation._Watch()
    seen = []
    for name in ("one", "two"):
        watch.begin(name)
        watch.begin("inner")
        seen.append(watch.now())
        time.sleep(0.02)
        end(watch)
        seen.append(watch.now())
        end(watch)
    counts = [now[1:3] for now in seen if now is not None]
    assert counts == sorted(counts)
    assert [functions for functions, _ in counts] == [0, 1, 2, 3]
    assert str(seen[-1]) == "two, 3 functions, 0 s"


def test_how_far_it_is_is_said_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several kernels: once what it is about, then how far it is; and nothing of a short one."""
    for name, seconds in (("MOMENT", 2.0), ("EVERY", 0.2)):
        monkeypatch.setattr(compilation, name, seconds)
    watch = compilation._Watch()
    monkeypatch.setattr(compilation, "_watch", watch)
    said: list[str] = []
    compilation.announce(said.append)
    with under_way("short"):
        assert compiling() is not None
    time.sleep(1.5)
    assert said == []
    with under_way("long"):
        wait_for(lambda: len(said) >= 2)
    so_far = len(said)
    with under_way("longer"):
        wait_for(lambda: len(said) >= so_far + 2)
    assert said[0].startswith("compiling kernels, only this once: long, 0 functions, ")
    kernels = [re.fullmatch(r"compiling kernels: (\w+), 0 functions, \d s", line) for line in said[1:]]
    named = [found and found[1] for found in kernels]
    assert named == ["long"] * (so_far - 1) + ["longer"] * (len(said) - so_far)


def test_how_much_is_left_is_said_of_streams_whose_kernels_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seconds of those to come, times how much slower than planned those before were."""
    clock = [7.0]
    monkeypatch.setattr(compilation, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(
        compilation, "PLANS", ({"m.a": 1.0, "m.b": 4.0, "m.c": 2.0}, {"m.a": 9.0, "m.d": 9.0})
    )
    watch = compilation._Watch()
    watch.begin("m.a")
    clock[0] += 3.0
    assert str(watch.now()) == "1 of 3 (a), 3 s, about 6 s left"
    end(watch)
    watch.begin("m.b")
    assert str(watch.now()) == "2 of 3 (b), 3 s, about 12 s left"
    clock[0] += 7.0
    assert str(watch.now()) == "2 of 3 (b), 10 s, about 5 s left"
    clock[0] += 7.0
    assert str(watch.now()) == "2 of 3 (b), 17 s, about 4 s left"
    end(watch)
    watch.loaded("m.c")
    watch.begin("m.d")
    assert str(watch.now()) == "d, 2 functions, 17 s", "no stream has all of these"


def test_what_was_loaded_need_not_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "PLANS", ({"m.a": 1.0, "m.b": 4.0, "m.c": 2.0},))
    watch = compilation._Watch()
    watch.loaded("m.a")
    watch.loaded("m.c")
    watch.begin("m.b")
    assert str(watch.now()) == "3 of 3 (b), 0 s, about 4 s left"


def of_texts() -> list[Value]:
    return [record.text for record in demo_stream(5000, 0)]


def of_vectors() -> list[Value]:
    generator = np.random.default_rng(0)
    centres = generator.uniform(-9.0, 9.0, (20, 2))
    found: list[Value] = (
        centres[generator.integers(0, 20, 3000)] + generator.normal(size=(3000, 2)) * 0.2
    ).tolist()
    return found


def of_lines() -> list[Value]:
    return [f"request {i} answered with {i % 7}" for i in range(300)]


@pytest.mark.parametrize(("plan", "records"), [*zip(PLANS, (of_texts, of_vectors, of_lines), strict=True)])
def test_the_plans_name_what_a_first_run_needs(
    monkeypatch: pytest.MonkeyPatch, plan: dict[str, float], records: Callable[[], list[Value]]
) -> None:
    asked = set()
    of = Entry.of

    def noted(entry: Entry, *arguments: Any) -> Any:
        asked.add(f"{entry._function.__module__}.{entry._function.__qualname__}")
        return of(entry, *arguments)

    monkeypatch.setattr(Entry, "of", noted)
    engine = Engine(Settings(likelihood="template") if records is of_lines else Settings())
    engine.advance(records())
    engine.finish()
    assert asked == plan.keys()


def add_up(values: np.ndarray) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def test_the_clock_of_a_thread_stands_still_too(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMDP_CACHE_DIR", str(tmp_path))
    entry, values = Entry(add_up), np.ones(10)
    before, all_before = working_cpu(), time.thread_time()
    assert entry(values) == 10.0
    spent, all_spent = working_cpu() - before, time.thread_time() - all_before
    assert spent < all_spent / 2
    before = working_cpu()
    sum(range(2_000_000))
    assert working_cpu() - before > 0.005
