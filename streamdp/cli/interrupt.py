"""Signals: the first asks for an orderly end, the second ends at once, as any does while kernels compile."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from types import FrameType, TracebackType

from streamdp.cli.errors import say
from streamdp.kernels.compilation import compiling


class Interrupt:
    """While active, SIGTERM and SIGINT set ``asked``; a second one exits with 128 + its number.

    A compilation spends seconds where Python runs no handlers, so that a thread of its own is told of
    signals: nothing has been written that a compilation could leave unfinished.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.number = 0
        """The signal that came, 0 for none."""
        self._before: dict[int, object] = {}

    @property
    def asked(self) -> bool:
        """Whether an orderly end is wanted."""
        return self.event.is_set()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            os._exit(128 + number)
        self.number = number
        self.event.set()
        say("stopping after this batch (a second signal stops at once)")

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while found := self._heard.recv(1):
                if found[0] in self._before and compiling() is not None:
                    say("stopped while kernels were being compiled")
                    os._exit(128 + found[0])

    def __enter__(self) -> Interrupt:
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._told.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._listen, daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup)
        self._told.close()
        self._heard.close()
