"""Whether a broker answers: told in one line when it stops to, and in one when it does again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from streamdp.errors import Exit
from streamdp_connectors.protocol import SourceError

_log = logging.getLogger(__name__)

ASK_EVERY = 1.0
"""Seconds of silence after which a broker is asked whether it is there."""

_QUIET = 3.0
"""Seconds without an answer after which it counts as lost: shorter silences are told to nobody."""


class Link:
    """What is known of the way to a broker, from answers and from questions that got none.

    It is *up*, *quiet* for the first seconds without an answer, then *lost*. ``give_up_after`` is for how
    many seconds a lost one is waited for, None for ever; then ``check`` raises SourceError (69). ``why``
    finds out, in a few seconds, why it does not answer.
    """

    def __init__(
        self,
        bootstrap: str,
        give_up_after: float | None,
        why: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bootstrap, self._give_up_after, self._clock = bootstrap, give_up_after, clock
        self._why = why
        self._heard = self._asked = clock()
        self._quiet: float | None = None  # since the first question without an answer
        self._lost = False

    @property
    def up(self) -> bool:
        """Whether the broker is not lost."""
        return not self._lost

    def answered(self) -> None:
        """The broker has answered something."""
        if self._lost and self._quiet is not None:
            away = _span(self._clock() - self._quiet)
            _log.warning("the Kafka broker at %s is back after %s", self._bootstrap, away)
        self._heard, self._quiet, self._lost = self._clock(), None, False

    def check(self, ask: Callable[[], bool]) -> None:
        """Find out by ``ask`` whether it is there, unless it was heard or asked a moment ago."""
        began = self._clock()
        if began - max(self._heard, self._asked) < ASK_EVERY:
            return
        if ask():
            self.answered()
        else:
            self._silent(began)
        self._asked = self._clock()

    def _silent(self, began: float) -> None:
        self._quiet = began if self._quiet is None else self._quiet
        away, limit = self._clock() - self._quiet, self._give_up_after
        broker = f"the Kafka broker at {self._bootstrap}"
        if not self._lost and away >= _QUIET:
            self._lost = True
            trying = "until it answers" if limit is None else f"for {limit:g} s in all"
            _log.warning("lost %s: %s; trying %s", broker, self._why(), trying)
        if limit is not None and away >= limit:
            what = f"{broker} has not answered for {_span(away)} (--give-up-after)"
            raise SourceError(f"{what}: start it, then this again", Exit.UNAVAILABLE)


def _span(seconds: float) -> str:
    """``12 s``, ``2:07`` or ``1:05:00``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}" if minutes else f"{rest} s"
