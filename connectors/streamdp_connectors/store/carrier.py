"""A store's log goes over into its file in a thread, beside the transactions of a service."""

from __future__ import annotations

import contextlib
import sqlite3
import threading

EVERY = 0.5
"""Seconds between two times: the disk is busy for as long as there is much, and the journal waits for it."""

LONG, PASSES = 4_000, 5
"""Pages of a log that is to be begun anew, and how often it is gone over for that, at most: what transactions
add meanwhile takes another pass."""


class Carrier:
    """Brings the log of a store over into its file, again and again.

    Each answer of a service may be a transaction, so the log fills with the same pages over and over, and
    requests would wait while a transaction brings them over. Once all of it is there, the next transaction
    begins the log anew.
    """

    def __init__(self, path: str) -> None:
        self._path, self._ends = path, threading.Event()
        self._thread = threading.Thread(target=self._carry_on, name="streamdp-store", daemon=True)
        self._thread.start()

    def _carry_on(self) -> None:
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as store:
            while not self._ends.wait(EVERY):
                with contextlib.suppress(sqlite3.Error):  # a full disk, which the next transaction reports
                    self._carry_over(store)

    def _carry_over(self, store: sqlite3.Connection) -> None:
        for _ in range(PASSES):
            _, held, over = store.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if held == over or held < LONG:
                return

    def close(self) -> None:
        """End the thread."""
        self._ends.set()
        self._thread.join()
