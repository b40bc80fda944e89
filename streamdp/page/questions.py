"""What is asked of the engine by others: answered by the thread that runs it, between two batches."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from streamdp.engine import Engine

T = TypeVar("T")

WAITING = 32
"""Questions that may wait; more are turned away."""


class BusyError(Exception):
    """Too many questions wait already."""


class Questions:
    """A line of questions. They only read: none may change the engine."""

    def __init__(self) -> None:
        self._line: queue.Queue[tuple[Callable[[Engine], Any], Future[Any]]] = queue.Queue(WAITING)

    def ask(self, question: Callable[[Engine], T]) -> Future[T]:
        """Stand in line. Raises BusyError."""
        answer: Future[T] = Future()
        try:
            self._line.put_nowait((question, answer))
        except queue.Full:
            raise BusyError from None
        return answer

    def answer(self, engine: Engine, seconds: float = 0.02) -> None:
        """Answer what waits, at least one question, and no further one after so many seconds."""
        end = time.monotonic() + seconds
        while True:
            try:
                question, answer = self._line.get_nowait()
            except queue.Empty:
                return
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(question(engine))
                except Exception as error:  # the run goes on; whoever asked is told
                    answer.set_exception(error)
            if time.monotonic() >= end:
                return
