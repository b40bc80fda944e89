"""All records of a finite input at once: encoded, in time order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamdp.encode.encoders import Encoded, Encoder, encode_all
from streamdp.errors import ConfigError, Exit
from streamdp.records import Record, Reject, Value, all_plain
from streamdp.settings import Settings
from streamdp.settings.assemble import is_sparse


class NothingLeftError(ConfigError):
    """There is no record to cluster; ``rejects`` are those that were refused."""

    def __init__(self, message: str, rejects: list[Reject]) -> None:
        super().__init__(message, Exit.BAD_DATA)
        self.rejects = rejects


class Collection:
    """Records that could be encoded, sorted by time (stably; those without one follow the last before).

    Parameters
    ----------
    settings
        Which likelihood is meant, and how texts are cut into words.
    records
        What was decoded, in the order of the input, or texts, vectors and features; rejects pass through.

    Raises NothingLeftError (65) where nothing is left to cluster.
    """

    def __init__(self, settings: Settings, records: Iterable[Record | Reject | Value]) -> None:
        self.rejects: list[Reject] = []
        taken, times = self._in_time(all_plain(records))
        self.records: list[Record] = []
        encoder, kept = self._encode(settings, taken, times)
        self.times = kept
        moments = encoder.learn()
        self.encoded = Encoded(encoder, encoder.take(kept), moments)

    def _in_time(self, records: Iterable[Record | Reject]) -> tuple[list[Record], np.ndarray]:
        taken, times, latest = [], [], None
        for record in records:
            if isinstance(record, Reject):
                self.rejects.append(record)
                continue
            if record.time is not None:
                latest = record.time if latest is None else max(latest, record.time)
            taken.append(record)
            times.append(record.time if record.time is not None else latest or 0.0)
        order = np.argsort(times, kind="stable")
        self.in_order = bool((np.diff(order) > 0).all())
        return [taken[i] for i in order], np.array(times)[order]

    def _encode(
        self, settings: Settings, taken: list[Record], times: np.ndarray
    ) -> tuple[Encoder, np.ndarray]:
        encoder, outcomes = encode_all(taken, None, settings, is_sparse(settings))
        kept = []
        for record, time, reject in zip(taken, times.tolist(), outcomes, strict=True):
            if reject is None:
                self.records.append(record)
                kept.append(time)
            else:
                self.rejects.append(reject)
        if encoder is None or not kept:
            why = "there are no records to cluster"
            if self.rejects:
                all_of_them = f"all {len(self.rejects):,} were refused, the first"
                refused = "the only one was refused" if len(self.rejects) == 1 else all_of_them
                why += f": {refused} because {self.rejects[0].detail}"
            raise NothingLeftError(why, self.rejects)
        return encoder, np.array(kept)
