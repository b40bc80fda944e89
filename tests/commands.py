"""Running the command line: inside the tests' process, or in one of its own where that is what matters."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from inside import fork, run_inside

from benchmarks.drifting import demo_stream


def environment(**settings: str) -> dict[str, str]:
    """This environment without settings of streamdp, but for those given."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("STREAMDP_") or k == "STREAMDP_CACHE_DIR"}
    return kept | {f"STREAMDP_{name.upper()}": value for name, value in settings.items()}


def command(*arguments: str) -> list[str]:
    """The command line with arguments."""
    return [sys.executable, "-m", "streamdp", *arguments]


def start(folder: Path, *arguments: str, process: bool = False, **settings: str) -> subprocess.Popen[bytes]:
    """Begin a run in a folder, all its streams piped; with ``process`` in no fork of this process."""
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    if not process:
        return fork(arguments, folder, environment(**settings), **streams)
    return subprocess.Popen(command(*arguments), cwd=folder, env=environment(**settings), **streams)


def call(
    folder: Path, *arguments: str, stdin: bytes = b"", process: bool = False, **settings: str
) -> subprocess.CompletedProcess[bytes]:
    """A whole run in a folder; with ``process`` in a process of its own."""
    if not process:
        return run_inside(arguments, folder, environment(**settings), stdin)
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(**settings),
        input=stdin,
        capture_output=True,
        timeout=600,
    )


def succeed(
    folder: Path, *arguments: str, stdin: bytes = b"", process: bool = False, **settings: str
) -> bytes:
    """What a run that must succeed writes to its standard output."""
    done = call(folder, *arguments, stdin=stdin, process=process, **settings)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done.stdout


def fail(
    folder: Path, *arguments: str, stdin: bytes = b"", process: bool = False, **settings: str
) -> tuple[int, str]:
    """Exit code and the one line on stderr of a run that must fail for a foreseen reason.

    Another line may say that kernels are compiled: it depends on what ran before.
    """
    done = call(folder, *arguments, stdin=stdin, process=process, **settings)
    lines = done.stderr.decode().splitlines(keepends=True)
    message = "".join(line for line in lines if not line.removeprefix("streamdp: ").startswith("compiling "))
    assert done.returncode > 0, message
    assert message.startswith("streamdp: "), message
    assert message.count("\n") == 1, message
    assert message.endswith("\n")
    return done.returncode, message


def parsed(lines: bytes) -> list[dict[str, Any]]:
    """JSON lines, each with its newline."""
    assert not lines or lines.endswith(b"\n")
    return [json.loads(line) for line in lines.splitlines()]


def assignments(lines: bytes) -> list[dict[str, Any]]:
    """The assignments among the output's lines."""
    return [line for line in parsed(lines) if "seq" in line]


def wait_for(
    holds: Callable[[], object], process: subprocess.Popen[bytes] | None = None, seconds: float = 300.0
) -> None:
    """Wait until something holds; a process must not end before."""
    deadline = time.monotonic() + seconds
    while not holds():
        if process is not None and process.poll() is not None:
            raise AssertionError((process.communicate()[1] or b"").decode())
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)


def wait_for_size(process: subprocess.Popen[bytes], path: Path, size: int) -> bool:
    """Wait until a process has written so much; False when it ended before."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if path.exists() and path.stat().st_size >= size:
            return True
        time.sleep(0.001)
    raise TimeoutError(f"{path} does not grow to {size} bytes")


def run_killed(
    folder: Path, *command: str, size: int, name: str = "out", later: float = 0.0, **settings: str
) -> int:
    """A run that is killed when an output has grown to a size, or some seconds ``later``; its exit code.

    A thread of its own process kills it: on a busy machine another process may come when it has ended.
    """

    def kill() -> None:
        path = folder / name
        while not path.exists() or path.stat().st_size < size:
            time.sleep(0.001)
        time.sleep(later)
        os.kill(os.getpid(), signal.SIGKILL)

    streams: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    process = fork(command, folder, environment(**settings), thread=kill, **streams)
    _, errors = process.communicate(timeout=600)
    assert b"Traceback" not in errors, errors.decode()
    return process.returncode


def go_on_killed(folder: Path, *command: str, **settings: str) -> None:
    """Go on with a run that writes ``out``, killed three times as that grows, to its end."""
    grown = (folder / "out").stat().st_size
    for size in (0, 30_000, 90_000):
        assert run_killed(folder, *command, size=grown + size, **settings) in (-signal.SIGKILL, 0)
    succeed(folder, *command, **settings)


def survives_sigkill(folder: Path, write: Callable[[Path], object], *command: str) -> None:
    """A run over what ``write`` puts in its folder makes the same ``out`` where it is killed and goes on."""
    quiet, killed = folder / "quiet", folder / "killed"
    for each in (quiet, killed):
        each.mkdir()
        write(each)
    succeed(quiet, *command)
    assert run_killed(killed, *command, size=1000) == -signal.SIGKILL
    go_on_killed(killed, *command)
    assert (killed / "out").read_bytes() == (quiet / "out").read_bytes()


def write_headlines(path: Path, n: int, seed: int = 1) -> None:
    """The demo stream as JSON lines, with the true story as cluster."""
    with path.open("w") as file:
        for item in demo_stream(n, seed):
            line = {"time": item.time, "id": item.id, "text": item.text, "cluster": item.topic}
            file.write(json.dumps(line) + "\n")


def linked(learned: Path, folder: Path) -> Path:
    """A fresh folder with the same stream."""
    (folder / "in.jsonl").symlink_to(learned / "in.jsonl")
    return folder


def newest_lines(output: bytes) -> list[dict[str, Any]]:
    """The newest line of every record, in order."""
    newest = {line["seq"]: line for line in assignments(output)}
    return [newest[seq] for seq in sorted(newest)]


def loaded(path: Path) -> ModuleType:
    """A program that is in no package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
