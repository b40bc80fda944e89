"""Signals: the first asks for an orderly end within a limit of time, the second ends the process."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from streamdp.kernels.compilation import compiling
from streamdp.run.messages import say, warn

LIMIT = 8.0
"""Seconds that an orderly end may take with a broker; service managers kill after ten."""

DELIVERY = 4.0
"""Seconds of the limit in which answers are still delivered to a broker."""


class Interrupt:
    """While active, SIGTERM and SIGINT set ``asked``; a second one exits with 128 + its number.

    A compilation spends minutes at worst where nobody looks at ``asked``, and a client of a broker may wait
    somewhere inside. So a thread of its own ends the process: while kernels compile, unless something that
    was written is still on its way (``under_way`` says so); after ``limit`` seconds, None for never; and
    before the run has ``opened``, as a pipe may never be written to. A state is whole at every moment, and
    goes on from its last snapshot: where there is one (``resumable``), the exit code is 0.

    SIGHUP asks for others in the place of output files that were renamed (``hung_up``), unless the terminal
    is gone: that ends a run like SIGTERM.
    """

    def __init__(self, *, limit: float | None = None, resumable: bool = False) -> None:
        self.event = threading.Event()
        self.number = 0
        """The signal that came, 0 for none."""
        self.hung_up = False
        """Whether SIGHUP has come; reset by the caller that sees to it."""
        self.opened = limit is None
        """False while inputs and outputs are opened: a signal ends the process at once then."""
        self.under_way: Callable[[], bool] = lambda: False
        self._limit, self._resumable = limit, resumable
        self._since = 0.0
        self._ending = threading.Lock()
        self._before: dict[int, object] = {}

    @property
    def asked(self) -> bool:
        """Whether an orderly end is asked for."""
        return self.event.is_set()

    def ask(self, number: int = 0) -> None:
        """Ask for an orderly end, as a signal of this number does."""
        self.number, self._since = number, time.monotonic()
        self.event.set()

    @property
    def overdue(self) -> bool:
        """Whether the time for deliveries to a broker is over."""
        return self.asked and time.monotonic() - self._since > DELIVERY

    def code(self) -> int:
        """The exit code of a run that a signal has ended."""
        return 0 if self._resumable else 128 + self.number

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            os._exit(128 + number)
        self.ask(number)
        say("stopping after this batch (a second signal stops at once)")
        self._end_if_hindered(number, 0.0)

    def _hung_up(self, number: int, frame: FrameType | None) -> None:
        if self._terminal and not _has_terminal():
            self._note(number, frame)
            self._writer.send(bytes([signal.SIGTERM]))  # for the listener, to whom SIGHUP is nothing
        else:
            self.hung_up = True

    def _listen(self) -> None:
        """Wait for a signal, also while Python runs no handlers; then guard the end."""
        with contextlib.suppress(OSError):
            while found := self._heard.recv(1):
                if found[0] in self._before:
                    since = time.monotonic()
                    while not self._closed.wait(0.05):
                        self._end_if_hindered(found[0], time.monotonic() - since)
                    return

    def _end_if_hindered(self, number: int, waited: float) -> None:
        """End the process where an orderly end would have to wait; say why."""
        why = self._hindrance(waited)
        if why and self._ending.acquire(timeout=1.0):  # never released: one thread says it
            if sys.stderr is not None and sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h")  # the cursor, which the moving line has hidden
            warn(why)
            self.number = number
            os._exit(self.code())

    def _hindrance(self, waited: float) -> str:
        if compiling() is not None and not self.under_way():
            return "stopped while kernels were being compiled"
        if not self.opened:
            return "stopped before anything was read"
        if self._limit is None:
            return ""
        return "stopped without waiting any longer" if waited > self._limit else ""

    def __enter__(self) -> Interrupt:
        self._heard, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._closed = threading.Event()
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._listen, daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._note)
        self._terminal = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        self._unhung = signal.signal(signal.SIGHUP, self._hung_up)
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.signal(signal.SIGHUP, self._unhung)
        signal.set_wakeup_fd(self._wakeup)
        self._writer.close()
        self._heard.close()


def _has_terminal() -> bool:
    """Whether the process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
