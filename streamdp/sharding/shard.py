"""What each engine of a stream in shards does: it clusters what it sees, and says which cluster that is.

A shard sees a share of the records, by chance. It makes clusters that are small and pure rather than large:
what it has divided is joined later, what it has joined stays so.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import msgspec

from streamdp.engine import Engine
from streamdp.priors import DistanceDependent
from streamdp.priors.kinds import by_distance
from streamdp.records import Assignment, Record, Reject
from streamdp.settings import Settings
from streamdp.settings.assemble import build_prior, is_sparse
from streamdp.settings.load import ConfigError

NEVER = 1e300
"""Seconds that nothing is beyond."""

PURITY = 0.5
"""By how much a shard's concentration grows with the number of shards, in concentrations of the stream.

A shard weighs a new cluster against a share of the records, so that its clusters are purer than those of one
engine from three shards on.
"""


def shard_settings(settings: Settings, shards: int) -> Settings:
    """The settings of each shard: distances and weights of a stream of which it sees a share.

    Raises ConfigError for what cannot be in shards.
    """
    prior = _prior(settings)
    distance = prior.decay.scale
    return msgspec.structs.replace(
        settings,
        concentration=prior.concentration * max(1.0, PURITY * shards),
        decay_scale=distance / shards if settings.distance == "records" else distance,
        retain=max(settings.retain // shards, 1),
        second_look=0,
        refine_every=0,
        adapt=False,
        # what is late or ahead is said by who joins the clusters, of the whole stream
        max_lateness=0.0,
        max_ahead=NEVER,
        max_leap=NEVER,
        late="place",
    )


def _prior(settings: Settings) -> DistanceDependent:
    if settings.of_lines or is_sparse(settings) is False:
        raise ConfigError("shards are for texts and categories")
    if settings.numbers:
        raise ConfigError("numbers are divided by the records that one engine has seen: not in shards")
    prior = by_distance(build_prior(settings, sparse=True))
    if prior is None:
        raise ConfigError(f"shards are for the distance-dependent prior, not {settings.prior}")
    return prior


def shard_of(data: bytes, shards: int) -> int:
    """The shard of a record as it is written: by its CRC-32, as Spark's function of that name has it."""
    return crc32(data) % shards


class Shard:
    """One of the engines of a stream; ``engine`` to go on with, else a new one."""

    def __init__(self, settings: Settings, shards: int, number: int, engine: Engine | None = None) -> None:
        self._shards, self._number = shards, number
        self.engine = engine or Engine(shard_settings(settings, shards))

    def advance(self, records: Sequence[Record | Reject]) -> list[Record | Reject]:
        """The same records, in their order, each with the cluster that the shard has found for it.

        A part is a number that no other cluster of any shard has. What the shard refuses goes on without
        one, to be refused with all the stream's rejects.
        """
        answers = self.engine.advance(records)
        if self.engine.search is not None and not self.engine.search.sparse:
            raise ConfigError("shards are for texts and categories")
        parts = {
            id(line.position): line.cluster * self._shards + self._number
            for line in answers.lines
            if isinstance(line, Assignment) and not line.revision
        }
        return [
            msgspec.structs.replace(record, part=parts.get(id(record.position)))
            if isinstance(record, Record)
            else record
            for record in records
        ]
