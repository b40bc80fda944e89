"""A clock that stands still while kernels are compiled, however compilations nest."""

from __future__ import annotations

import time
from types import SimpleNamespace

from streamdp.kernels import compilation


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
