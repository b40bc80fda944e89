"""From records to what a beam takes: which kind of stream it is, and the warm-up."""

from __future__ import annotations

import itertools
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from streamdp.encode.encoders import (
    STRAYS,
    Encoder,
    choose_encoder,
    kind_of,
    load_encoder,
)
from streamdp.encode.order import size_of, without_arrival
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.kernels.packed import as_type
from streamdp.kernels.sound import require
from streamdp.likelihoods.base import Moments
from streamdp.records import Answers, Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings.blueprint import Blueprint
from streamdp.settings.memory import Shares

Waiting = list[tuple[float, Record]]


def left_of(given: Columns, refused: list[tuple[int, Reject]], answers: Answers) -> np.ndarray:
    """Which records are left; those refused are answered, with what was refused before, in order."""
    found = sorted([*given.refused, *refused], key=itemgetter(0))
    answers.rejects.extend(reject for _, reject in found)
    return np.delete(np.arange(len(given)), [i for i, _ in refused])


class Intake:
    """Encodes records as the settings say, or the first record.

    ``pending`` are encoded, with their times, and not taken yet; ``strays`` are of another kind than the
    vectors of the warm-up, of which the first may be what is wrong.
    """

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint
        self.encoder: Encoder | None = None
        self.moments: Moments | None = None
        self.pending: Waiting = []
        self.strays: Waiting = []
        self.bytes = 0
        """Bytes that the records of the warm-up count for."""

    @property
    def enough(self) -> bool:
        """Whether the warm-up ends: so many records have come, or so much as the memory limit allows."""
        most = Shares.of(self.blueprint.settings).held_back
        known = self.encoder is not None and self.encoder.knows_all
        return known or len(self.pending) >= self.blueprint.warmup or self.bytes > most

    def wait(self, time: float, record: Record, answers: Answers) -> Waiting:
        """Encode a record of the warm-up, which is then ``pending`` or among ``strays``; or refuse it.

        Returns records that are all to be taken again, as of another kind.
        """
        encoder, settings = self.encoder, self.blueprint.settings
        if encoder is None:
            chosen = choose_encoder(record, settings, self.blueprint.sparse)
            if isinstance(chosen, Reject):
                answers.rejects.append(chosen)
                return []
            encoder = chosen
        reject = dict(encoder.add(Columns.of([record]))).get(0)
        if reject is None:
            if self.encoder is None:
                self.encoder = encoder
                self._fit_model_to(encoder)
            self.pending.append((time, without_arrival(record)))
        elif self.encoder is None or not self._may_be_right(record, reject):
            answers.rejects.append(reject)
            return []
        self.bytes += size_of(record)
        if reject is None:
            return []
        self.strays.append((time, without_arrival(record)))
        return self._of_another_kind(record)

    def add(self, given: Columns, times: np.ndarray, answers: Answers) -> tuple[Columns, np.ndarray]:
        """Encode records once the warm-up is over; those that can be clustered, with their times."""
        assert self.encoder is not None
        refused = self.encoder.add(given)
        if not refused and not given.refused:  # as nearly always
            return given, times
        which = left_of(given, refused, answers)
        return (given.take(which), times[which]) if refused else (given, times)

    def _fit_model_to(self, encoder: Encoder) -> None:
        """Take the model for such records, where the settings do not name one."""
        if encoder.beside is not None and not encoder.waits:
            self.moments = encoder.learn()
        self.blueprint = replace(self.blueprint, settings=encoder.meant(self.blueprint.settings))

    def _may_be_right(self, record: Record, reject: Reject) -> bool:
        """Whether a refused record may be of the stream's kind, and the vectors of the warm-up not."""
        known = isinstance(self.encoder, VectorEncoder) and reject.reason in STRAYS
        return known and (self.blueprint.sparse is None or not isinstance(record.value, str))

    def _of_another_kind(self, record: Record) -> Waiting:
        """All records, those like this one first, where they outnumber the vectors of the warm-up."""
        alike = [kind_of(stray) == kind_of(record) for _, stray in self.strays]
        if sum(alike) <= len(self.pending):
            return []
        ours = list(itertools.compress(self.strays, alike))
        others = [waiting for waiting, ours in zip(self.strays, alike, strict=True) if not ours]
        again = [*ours, *self.pending, *others]
        self.encoder, self.pending, self.strays, self.bytes = None, [], [], 0
        return again

    def learn(self, answers: Answers) -> None:
        """The warm-up ends: learn scales from the records held back, refuse what is of another kind."""
        assert self.encoder is not None
        refused = self.encoder.add(Columns.of(record for _, record in self.strays))
        answers.rejects.extend(reject for _, reject in refused)
        self.encoder.recognise(self.blueprint.settings)
        self.strays, self.moments = [], self.encoder.learn()
        self._fit_model_to(self.encoder)

    @property
    def _beside(self) -> bool:
        """Whether the moments say no more than how long the vectors beside other fields are."""
        return self.encoder is not None and self.encoder.beside is not None

    def dump(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {
            "encoder": None if self.encoder is None else self.encoder.dump(),
            "pending": self.pending,
            "strays": self.strays,
            "moments": None if self._beside else self.moments,
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError."""
        encoder, moments = stored["encoder"], stored["moments"]
        self.pending, self.strays = (as_type(stored[name], Waiting) for name in ("pending", "strays"))
        self.bytes = sum(size_of(record) for _, record in [*self.pending, *self.strays])
        self.moments = None if moments is None else as_type(moments, Moments)
        if encoder is not None:
            self.encoder = load_encoder(encoder, self.blueprint.settings)
            refused = self.encoder.add(Columns.of(record for _, record in self.pending))
            require(not refused, "records that wait are refused")
            require(moments is None or not self._beside, "moments beside fields")
            self._fit_model_to(self.encoder)
        if self.encoder is not None:
            self.encoder.check(self.moments)
