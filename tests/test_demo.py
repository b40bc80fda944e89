"""``streamdp demo`` while kernels compile: the table is there, the counter counts, the rate leaves it out."""

from __future__ import annotations

import os
import pty
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import command, environment, succeed

from streamdp.cli import demo
from streamdp.cli.display import Display
from streamdp.engine import Engine
from streamdp.kernels.cache import FOLDER, cache_folder
from streamdp.settings import Settings
from streamdp.settings.io_options import Serving


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """A folder of kernels that lacks those of the ledger: they compile in a few seconds."""
    succeed(tmp_path, "demo", "--records", "300")
    kept = cache_folder()
    assert kept is not None
    folder = tmp_path / "part"
    (folder / FOLDER).mkdir(parents=True)
    for path in kept.glob("*.kernel"):
        if not path.name.startswith("streamdp.ledger."):
            (folder / FOLDER / path.name).symlink_to(path)
    return folder


def on_a_terminal(folder: Path, *arguments: str, **settings: str) -> str:
    """What a run writes to a terminal that is all its streams."""
    pid, master = pty.fork()
    if pid == 0:  # pragma: no cover
        os.chdir(folder)
        line = command(*arguments)
        os.execve(line[0], line, environment(**settings) | {"TERM": "xterm", "COLUMNS": "150", "LINES": "50"})
    said = b""
    try:
        while chunk := os.read(master, 65536):
            said += chunk
    except OSError:  # how Linux says that nobody has the terminal any more
        pass
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said.decode()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())


def test_the_table_is_there_while_kernels_compile(part: Path, tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "demo", "--records", "300", cache_dir=str(part))
    counted = re.findall(r"only this once: (\d+) of 11 \(\w+\), (\d+) s, about \d+ s left", shown)
    assert counted
    seen = [(int(number), int(seconds)) for number, seconds in counted]
    assert seen == sorted(seen)
    assert shown.index("growing stories") < shown.index("only this once")
    rate = re.search(r"([\d,]+) records per CPU second", shown)
    assert rate is not None
    assert int(rate[1].replace(",", "")) > 1000, "300 records, and seconds of compiling"


def test_the_line_is_there_while_the_engine_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn from another thread, also between two kernels, and must not wait for the engine."""
    displays: list[Display] = []
    drawn: list[bool] = []

    class Seen(Display):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            displays.append(self)

    class Busy(Engine):
        def advance(self, *given: Any) -> Any:
            thread = threading.Thread(target=displays[0]._render, daemon=True)
            thread.start()
            thread.join(30)
            drawn.append(not thread.is_alive())
            return super().advance(*given)

    monkeypatch.setattr(demo, "Display", Seen)
    monkeypatch.setattr(demo, "Engine", Busy)
    demo.demo(Settings(), demo.BATCH, Serving())
    assert drawn == [True]
