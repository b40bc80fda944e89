"""The command line: what was asked for is read, a run is made of it, and what comes out is printed.

Heavy imports happen inside the commands, so that ``--help`` is quick. What is wrong is one line, and an exit
code.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys


def main() -> None:
    """Run the command line; every foreseen error is one line on stderr and an exit code (docs/formats.md)."""
    gc.set_threshold(20_000, 20, 20)  # most of what is made lasts: imports, then the state of a stream
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else a thread a core is started, and spins a while
    _need_locks()
    _occupy_standard_streams()
    sys.exit(_run())


def _need_locks() -> None:
    try:
        import fcntl  # noqa: F401
    except ModuleNotFoundError:
        print(
            "streamdp: this system has no fcntl, which locks files: use Linux, macOS, or WSL on Windows",
            file=sys.stderr,
        )
        sys.exit(69)


def _run() -> int:
    from streamdp.cli.app import app
    from streamdp.cli.errors import print_messages, report

    before = os.umask(0o077)  # what is written holds records: it is the user's alone
    os.umask(before | 0o077)
    print_messages()
    try:
        code = app(prog_name="streamdp", standalone_mode=False)
        if sys.stdout is not None:  # closed
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        found = report(error)
        if found is None:
            raise
        _give_up_output()
        return found
    finally:
        os.umask(before)
    return code if isinstance(code, int) else 0


def _give_up_output() -> None:
    """Keep the interpreter from writing again, at its end, what could not be written."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _occupy_standard_streams() -> None:
    """Occupy the numbers of closed standard streams, so that no other file gets them."""
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number
