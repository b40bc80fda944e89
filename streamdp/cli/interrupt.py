"""Signals: the first one asks for an orderly end, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType

from streamdp.cli.errors import say


class Interrupt:
    """While active, SIGTERM and SIGINT set ``asked``; a second one exits with 128 + its number."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._before: dict[int, object] = {}

    @property
    def asked(self) -> bool:
        """Whether an orderly end is wanted."""
        return self.event.is_set()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            os._exit(128 + number)
        self.event.set()
        say("stopping after this batch (a second signal stops at once)")

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
