"""A run in a process of its own, that goes on while a test does something to what is around it."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commands import command, environment
from inside import fork
from ports import free_port


class Live:
    """``streamdp`` with these arguments; its standard error is read while it runs.

    ``program`` is what is run in its stead.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        port: int = 0,
        program: Sequence[str] = (),
        **settings: str,
    ) -> None:
        self.port = port or free_port()
        self._errors = folder / f"stderr-{self.port}"
        arguments = (*arguments, "--metrics-port", str(self.port))
        with self._errors.open("wb") as errors:
            streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.DEVNULL)
            streams["stderr"] = errors
            if not program and "cache_dir" not in settings:
                self._process = fork(arguments, folder, environment(**settings), **streams)
                return
            self._process = subprocess.Popen(
                [*(program or command()), *arguments], cwd=folder, env=environment(**settings), **streams
            )

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    @property
    def said(self) -> list[str]:
        """The lines on standard error, as far as they are whole."""
        return self._errors.read_text().rpartition("\n")[0].splitlines()

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; 0 where nobody serves."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=60) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float | None:
        """The value of a metric without labels; None where it is not there."""
        lines = [line for line in self.get("metrics")[1].splitlines() if line.startswith(f"{name} ")]
        return float(lines[0].split()[1]) if lines else None

    def hears(self, text: str, seconds: float = 300.0) -> str:
        """Wait for a line on standard error that holds a text, and return it."""
        found: list[str] = []
        self.until(lambda: found.extend(line for line in self.said if text in line) or bool(found), seconds)
        return found[0]

    def until(self, holds: Any, seconds: float = 300.0) -> None:
        """Wait until something holds, while the run goes on."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert self._process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)

    def pause(self) -> None:
        """Let it stand still, in the middle of whatever it does."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def terminate(self, seconds: float = 60.0) -> int:
        """Send SIGTERM, and return the exit code, which must come in time."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds)

    def ends(self, seconds: float = 300.0) -> int:
        """Wait for the end by itself; the exit code."""
        return self._process.wait(seconds)
