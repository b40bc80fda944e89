"""Clocks that stand still while kernels are compiled, however compilations nest; what is said meanwhile."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from commands import wait_for

from streamdp.kernels import compilation
from streamdp.kernels.compilation import compiling, elsewhere, working_cpu
from streamdp.kernels.jit import Entry


def begin(watch: compilation._Watch, name: str) -> None:
    watch.on_start(
        SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__name__=name))})
    )


def test_the_clock_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [7.0]
    monkeypatch.setattr(compilation, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    watch = compilation._Watch()
    told: list[int] = []
    watch.begun.append(lambda: told.append(1))
    before = watch.working_time()
    begin(watch, "outer")
    begin(watch, "inner")
    clock[0] += 50.0
    assert watch.working_time() == before
    watch.on_end(None)
    now = watch.now()
    assert now is not None
    assert (now.kernel, now.functions, now.seconds) == ("outer", 1, 50.0)
    watch.on_end(None)
    assert watch.now() is None
    assert told == [1]
    assert watch.working_time() == before
    clock[0] += 2.0
    assert watch.working_time() == before + 2.0


def test_what_is_counted_never_decreases() -> None:
    watch = compilation._Watch()
    seen = []
    for name in ("one", "two"):
        begin(watch, name)
        begin(watch, "inner")
        seen.append(watch.now())
        time.sleep(0.02)
        watch.on_end(None)
        seen.append(watch.now())
        watch.on_end(None)
    counts = [now[1:] for now in seen if now is not None]
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
    with elsewhere("short"):
        assert compiling() is not None
    time.sleep(1.5)
    assert said == []
    with elsewhere("long"):
        wait_for(lambda: len(said) >= 2)
    so_far = len(said)
    with elsewhere("longer"):
        wait_for(lambda: len(said) >= so_far + 2)
    assert said[0].startswith("compiling the kernels for this prior and likelihood: ")
    kernels = [
        re.fullmatch(r"compiling the kernels: (\w+), 0 functions, \d s so far", line) for line in said[1:]
    ]
    named = [found and found[1] for found in kernels]
    assert named == ["long"] * (so_far - 1) + ["longer"] * (len(said) - so_far)


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
