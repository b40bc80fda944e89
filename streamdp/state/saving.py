"""Bringing a snapshot to the disk while the stream goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Saving:
    """A snapshot of the first ``seq`` records, on its way to the disk in a thread."""

    def __init__(self, save: Callable[[], None], seq: int) -> None:
        self.seq = seq
        self._save = save
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="streamdp-snapshot", daemon=True)
        self._thread.start()

    def done(self, timeout: float) -> bool:
        """Whether it is written, after at most so many seconds. Raises what went wrong."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def end(self, timeout: float = 10.0) -> None:
        """Wait for the thread, whatever comes of it."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._save()
        except BaseException as error:
            self._error = error
