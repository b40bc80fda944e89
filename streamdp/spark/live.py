"""Engines that a worker keeps between micro-batches, so that a state need not be read each time.

An engine is kept under the token of what it has seen. Where Spark runs a task again, or elsewhere, the token
in its state store is another, and the engine is made of the state there: what is kept is never more than a
faster way to the same.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from streamdp.engine import Engine

Place = tuple[str, Sequence[object]]
"""A query, and a key in it."""

START = b""
"""The token of an engine that has seen nothing."""


def token_after(token: bytes, data: Iterable[bytes]) -> bytes:
    """That of an engine which has seen these records too."""
    chain = hashlib.blake2b(token, digest_size=16)
    for record in data:
        chain.update(len(record).to_bytes(8, "little"))
        chain.update(record)
    return chain.digest()


class Live:
    """The engines of one worker, those used last, as long as their states take at most so many bytes."""

    def __init__(self) -> None:
        self._held: OrderedDict[Place, tuple[bytes, Engine, int]] = OrderedDict()
        self._bytes = 0

    def take(self, place: Place, token: bytes) -> Engine | None:
        """The engine that has seen what the token stands for; it is not kept any more."""
        found = self._held.pop(place, None)
        if found is None:
            return None
        self._bytes -= found[2]
        return found[1] if found[0] == token else None

    def keep(self, place: Place, token: bytes, engine: Engine, size: int, limit: int) -> None:
        """Keep an engine whose state takes ``size`` bytes; let go of others beyond the limit."""
        self.take(place, START)
        self._held[place] = token, engine, size
        self._bytes += size
        while self._bytes > limit:
            _, (_, _, gone) = self._held.popitem(last=False)
            self._bytes -= gone


LIVE = Live()
"""Those of this process. Of what cannot be imported Spark would pickle copies; this can."""
