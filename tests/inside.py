"""Runs of the command line inside the tests' own process, or in a fork of it.

Both save the second that a process needs to import what it runs and to load its kernels. A run finds what it
would find in a process of its own: standard streams that are pipes, its working directory and environment,
and Python's own loggers, filters of warnings and handlers. A run inside leaves the process as it was.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from streamdp.cli import main
from streamdp.cli.errors import choose_log_format, speak_of

SECONDS = 600
"""How long a run may take."""

LOGGERS = ("", "streamdp", "streamdp.run", "streamdp_connectors", "py.warnings")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUIET = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
"""Warnings that Python ignores outside the main module unless told otherwise."""


def run_inside(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a folder; the result is what a process of its own would have."""
    with _pipes(stdin) as written, _place(folder, environment), _logging(), _interpreter():
        sys.argv = ["streamdp", *arguments]
        code = _exit_code()
    return subprocess.CompletedProcess(sys.argv, code, *(bytes(part) for part in written))


def fork(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    thread: Callable[[], object] | None = None,
    **streams: Any,
) -> subprocess.Popen[bytes]:
    """Begin a run in a fork of this process; its streams are given as to ``Popen``.

    What is given as ``thread`` runs in a thread of the fork.
    """

    def live() -> NoReturn:
        code = 1
        try:
            gc.freeze()  # no finalizer of this process's objects closes a file of the run's
            gc.enable()  # which Popen forbids its function; a client of Kafka leaves cycles behind
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            signal.set_wakeup_fd(-1)
            random.seed()
            _open_streams()
            with _place(folder, environment), _logging():
                sys.argv = ["streamdp", *arguments]
                if thread is not None:
                    threading.Thread(target=thread, daemon=True).start()
                code = _exit_code()
            threading._shutdown()  # type: ignore[attr-defined]
        finally:
            os._exit(code)

    return subprocess.Popen(
        ["streamdp", *arguments],
        cwd=folder,
        **streams,
        preexec_fn=live,  # which never comes to the program
        restore_signals=False,  # Python ignores SIGPIPE
    )


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return 0


@contextlib.contextmanager
def _pipes(stdin: bytes) -> Iterator[tuple[bytearray, bytearray]]:
    """Pipes as standard streams; what is yielded holds in the end what was written to the last two."""
    written = bytearray(), bytearray()
    sys.stdout.flush()
    sys.stderr.flush()
    saved, streams = [os.dup(number) for number in range(3)], (sys.stdin, sys.stdout, sys.stderr)
    ends = [os.pipe() for _ in saved]
    helpers = [
        threading.Thread(target=_feed, args=(ends[0][1], stdin)),
        threading.Thread(target=_drain, args=(ends[1][0], written[0])),
        threading.Thread(target=_drain, args=(ends[2][0], written[1])),
    ]
    for number, end in enumerate((ends[0][0], ends[1][1], ends[2][1])):
        os.dup2(end, number)
        os.close(end)
    _open_streams()
    for helper in helpers:
        helper.start()
    try:
        yield written
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, old in enumerate(saved):
            os.dup2(old, number)
            os.close(old)
        for helper in helpers:
            helper.join()


def _open_streams() -> None:
    """Make standard streams of the first three files, as Python does when it starts."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115


def _feed(fd: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(fd, "wb", 0) as pipe:
        rest = memoryview(data)
        while rest:
            rest = rest[pipe.write(rest) :]


def _drain(fd: int, into: bytearray) -> None:
    with open(fd, "rb", 0) as pipe:
        while part := pipe.read(1 << 16):
            into += part


@contextlib.contextmanager
def _place(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    cwd, kept, path, argv = os.getcwd(), dict(os.environ), list(sys.path), sys.argv
    try:
        os.chdir(folder)
        _become(environment)
        sys.path.insert(0, str(folder))
        yield
    finally:
        sys.path[:], sys.argv = path, argv
        _become(kept)
        os.chdir(cwd)


def _become(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    """Loggers without pytest's handlers; warnings as Python writes them."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    kept = [(log, log.handlers[:], log.level, log.propagate) for log in loggers]
    for log in loggers:
        log.handlers[:] = []
    try:
        with warnings.catch_warnings():
            warnings.resetwarnings()
            for kind in QUIET:
                warnings.simplefilter("ignore", kind)
            yield
            logging.captureWarnings(False)
    finally:
        for log, handlers, level, propagate in kept:
            log.handlers[:], log.level, log.propagate = handlers, level, propagate


@contextlib.contextmanager
def _interpreter() -> Iterator[None]:
    """Signal handlers, locks that end with their process, a limit of time, and what else a run sets."""
    handlers: dict[Any, Any] = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    hook, before = threading.excepthook, set(_locks())
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        choose_log_format("plain")
        speak_of("")
        threading.excepthook = hook
        for lock in set(_locks()) - before:
            os.close(lock)
        gc.unfreeze()


def _locks() -> Iterator[int]:
    """Files of this process that are locks of states."""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.path.basename(os.readlink(f"/proc/self/fd/{fd}")).startswith("lock"):
                yield int(fd)


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"a run of the command line takes more than {SECONDS} s")
