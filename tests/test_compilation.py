"""A clock that stands still while kernels are compiled, however compilations nest."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np

from streamdp.kernels import compilation
from streamdp.kernels.jit import Entry, cache_folder


def swap(pair: np.ndarray) -> None:
    pair[0], pair[1] = pair[1], pair[0]


def begin(watch: compilation._Watch, name: str) -> None:
    watch.on_start(
        SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__name__=name))})
    )


def test_the_clock_stands_still() -> None:
    watch = compilation._Watch()
    told: list[int] = []
    watch.begun.append(lambda: told.append(1))
    before = watch.working_time()
    begin(watch, "outer")
    begin(watch, "inner")
    time.sleep(0.05)
    assert watch.working_time() - before < 0.04
    watch.on_end(None)
    now = watch.now()
    assert now is not None
    assert (now.kernel, now.functions, now.seconds >= 0.05) == ("outer", 1, True)
    watch.on_end(None)
    assert watch.now() is None
    assert told == [1]
    at = watch.working_time()
    assert at - before < 0.04
    time.sleep(0.02)
    assert watch.working_time() - at >= 0.02


def test_threads_place_what_is_compiled_in_the_cache() -> None:
    """numba has one folder for all threads: none may see another's while it is put aside."""
    folder = cache_folder()
    assert folder is not None
    before, interval = numba.config.CACHE_DIR, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: Entry(swap)._current(), range(400)))
    finally:
        sys.setswitchinterval(interval)
    assert before == numba.config.CACHE_DIR
    assert {Path(each._cache.cache_path).parent for each in made} == {Path(folder)}
