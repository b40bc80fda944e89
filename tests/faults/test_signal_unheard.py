"""A signal comes where nobody looks at it: the process ends all the same, and says so."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from commands import environment

from streamdp.kernels.compilation import Compiling
from streamdp.run import interrupt
from streamdp.run.interrupt import Interrupt

WAITS = """
import time
from streamdp.cli.errors import print_messages
from streamdp.run.interrupt import Interrupt
print_messages()
with Interrupt(limit=1.0, resumable={resumable}) as interrupt:
    interrupt.opened = True
    print("ready", flush=True)
    while True:
        time.sleep(0.1)
"""


@pytest.mark.parametrize(("resumable", "code"), [(True, 0), (False, 128 + signal.SIGTERM)])
def test_a_run_that_does_not_end_is_ended(resumable: bool, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS.format(resumable=resumable)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code
    assert errors.splitlines()[-1] == b"streamdp: stopped without waiting any longer"


def test_when_it_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Interrupt(limit=8.0)
    assert asked._hindrance(0.0) == "stopped before anything was read"
    asked.opened = True
    assert asked._hindrance(7.9) == ""
    assert asked._hindrance(8.1) == "stopped without waiting any longer"
    assert Interrupt()._hindrance(1000.0) == ""  # files are not waited for
    monkeypatch.setattr(interrupt, "compiling", lambda: Compiling("advance", 1, 1.0))
    assert asked._hindrance(0.0) == "stopped while kernels were being compiled"
    asked.under_way = lambda: True
    assert asked._hindrance(7.9) == ""
    assert asked._hindrance(8.1) == "stopped without waiting any longer"
