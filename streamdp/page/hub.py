"""Ticks for pages that listen, and questions that they ask the engine.

A tick is encoded once and sent to all pages; the last ones are kept for those that come back. Questions are
answered by the thread that runs the engine, between two batches.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from streamdp.engine import Engine
from streamdp.kernels.compilation import beside

HELD = 60
"""Ticks that are kept for pages which were away for a moment."""

BEHIND = 12
"""Ticks that may wait for a page; one that is further behind is dropped."""

PAGES = 64
"""Pages that may listen at once."""

ALIVE = 5.0
"""Seconds of silence after which pages hear that the run is still there."""


class FullError(Exception):
    """Too many pages listen already."""


class _Listener:
    def __init__(self, drop: Callable[[], None]) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(BEHIND)
        self.drop = drop


class Hub:
    """Pages that listen, and the ticks sent last; lives in the loop of the server, but for ``publish``.

    Parameters
    ----------
    run
        Distinguishes this run from those before and after it.
    first
        Gives the first tick of a page that was not here before.
    """

    def __init__(self, run: str, first: Callable[[], dict[str, Any]]) -> None:
        self.run, self._first = run, first
        self._held: deque[tuple[int, bytes]] = deque(maxlen=HELD)
        self._listeners: set[_Listener] = set()
        self._encode = msgspec.json.Encoder().encode
        self.number = self.dropped = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._woken = False

    def begin(self) -> None:
        """The loop of the server runs, and is this one."""
        self._loop = asyncio.get_running_loop()

    def call(self, what: Callable[..., object], *given: Any) -> None:
        """Have the loop call something, from any thread, in order; nothing where it runs no more.

        The loop is woken once for whatever has come until it runs: each time costs a system call.
        """
        if self._loop is not None:
            self._calls.append((what, given))
            if not self._woken:
                self._woken = True
                with contextlib.suppress(RuntimeError):  # closed
                    self._loop.call_soon_threadsafe(self._run_calls)

    def _run_calls(self) -> None:
        assert self._loop is not None
        self._woken = False  # before the first look: what comes from now on wakes the loop again
        try:
            for _ in range(len(self._calls)):
                what, given = self._calls.popleft()
                what(*given)
        finally:
            if self._calls:  # one has failed
                self._loop.call_soon(self._run_calls)

    @property
    def heard(self) -> bool:
        """Whether any page listens; from any thread."""
        return bool(self._listeners)

    def publish(self, tick: dict[str, Any]) -> None:
        """Send a tick to all pages, from any thread."""
        self.call(self._spread, self._encode(tick))

    def _spread(self, data: bytes) -> None:
        self.number += 1
        message = self._message("tick", self.number, data)
        self._held.append((self.number, message))
        for listener in list(self._listeners):
            try:
                listener.queue.put_nowait(message)
            except asyncio.QueueFull:
                self.dropped += 1
                self._listeners.discard(listener)
                listener.drop()

    def _message(self, kind: str, number: int, data: bytes) -> bytes:
        return b"event: %s\nid: %s-%d\ndata: %s\n\n" % (kind.encode(), self.run.encode(), number, data)

    def _missed(self, last: str | None) -> list[bytes] | None:
        """Ticks that a page has missed since that id; None where they are not held any more."""
        run, _, number = (last or "").rpartition("-")
        if run != self.run or not number.isdecimal() or int(number) > self.number:
            return None
        known = int(number)
        if known < self.number and (not self._held or self._held[0][0] > known + 1):
            return None
        return [message for n, message in self._held if n > known]

    def close(self) -> None:
        """Tell all pages to go, from any thread."""
        self.call(self._end)

    def _end(self) -> None:
        for listener in list(self._listeners):
            if listener.queue.full():
                listener.queue.get_nowait()
            listener.queue.put_nowait(None)

    def join(self, last: str | None, drop: Callable[[], None]) -> AsyncIterator[bytes]:
        """Listen, from the tick after ``last`` on where that is known; ``drop`` cuts off a page that stalls.

        Raises FullError.
        """
        if len(self._listeners) >= PAGES:
            raise FullError
        missed, listener = self._missed(last), _Listener(drop)
        self._listeners.add(listener)
        if missed is None:
            missed = [self._message("hello", self.number, self._encode(self._first()))]
        return self._listen(listener, missed)

    async def _listen(self, listener: _Listener, missed: list[bytes]) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 1000\n\n" + b"".join(missed)
            while listener in self._listeners:
                try:
                    message = await asyncio.wait_for(listener.queue.get(), ALIVE)
                except TimeoutError:
                    message = b": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            self._listeners.discard(listener)


T = TypeVar("T")

WAITING = 32
"""Questions that may wait; more are turned away."""


class BusyError(Exception):
    """Too many questions wait already."""


Question = tuple[Callable[[Engine], Any], Future[Any]]


class Questions:
    """A line of questions. They only read: none may change the engine.

    The first of those that need a kernel (``scores``) are answered by a copy of the engine, in a thread of
    its own: it may have to be compiled, which takes half a minute, and the stream goes on meanwhile.
    """

    def __init__(self) -> None:
        self._line: queue.Queue[tuple[bool, Question]] = queue.Queue(WAITING)
        self._aside: queue.SimpleQueue[Question] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, question: Callable[[Engine], T], *, scores: bool = False) -> Future[T]:
        """Join the line. Raises BusyError."""
        answer: Future[T] = Future()
        if self._aside.qsize() >= WAITING:
            raise BusyError
        try:
            self._line.put_nowait((scores, (question, answer)))
        except queue.Full:
            raise BusyError from None
        return answer

    def answer(self, engine: Engine, seconds: float = 0.02) -> None:
        """Answer what waits, at least one question, and no further one after so many seconds."""
        end = time.monotonic() + seconds
        while True:
            try:
                scores, question = self._line.get_nowait()
            except queue.Empty:
                return
            if scores and not self._prepared:
                self._aside.put(question)
                self._prepare(engine)
            else:
                _answer(engine, *question)
            if time.monotonic() >= end:
                return

    @property
    def _prepared(self) -> bool:
        return self._thread is not None and not self._thread.is_alive() and self._aside.empty()

    def _prepare(self, engine: Engine) -> None:
        """Answer what was put aside by a copy of the engine."""
        if self._thread is None or not self._thread.is_alive():
            make, state = engine.__reduce__()

            def run() -> None:
                with beside():
                    copy = make(*state)
                    while not self._aside.empty():
                        _answer(copy, *self._aside.get())

            self._thread = threading.Thread(target=run, name="streamdp-questions", daemon=True)
            self._thread.start()


def _answer(engine: Engine, question: Callable[[Engine], Any], answer: Future[Any]) -> None:
    if answer.set_running_or_notify_cancel():
        try:
            answer.set_result(question(engine))
        except Exception as error:  # the run goes on; the asker gets the error
            answer.set_exception(error)
