"""Where to go on when records of a topic are gone that the stream has not read."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Literal

from streamdp.errors import Exit
from streamdp_connectors.kafka.log import Ids, OutOfRangeError, TopicLog
from streamdp_connectors.protocol import Gap, SourceError

_log = logging.getLogger(__name__)

OnGap = Literal["stop", "earliest", "latest"]
"""Stop; go on with the first unread record that is there; or with what comes from now on."""

_SETTLING = 2.0
"""Seconds that a broker may need after a restart to know its ends again."""

GONE_SECONDS = 10.0
"""Seconds that a topic may be missing: a broker that has just started may not know of it yet."""


class GapPolicy:
    """Finds where reading can go on, or says why it cannot. Raises SourceError (65, and 66 for no topic)."""

    def __init__(self, log: TopicLog, on_gap: OnGap, until_end: bool = False) -> None:
        self._log, self._on_gap = log, on_gap
        self._waits = on_gap != "stop" and not until_end
        self.gaps: list[Gap] = []
        """What was skipped, until somebody takes it."""
        self.gone_since: float | None = None
        """When the topic was found to be gone; None while it is there."""
        self._reported = False

    def gone(self) -> None:
        """The topic is gone: wait until it is there again, or raise SourceError after ``GONE_SECONDS``."""
        now = time.monotonic()
        self.gone_since = now if self.gone_since is None else self.gone_since
        if now - self.gone_since < GONE_SECONDS or self._reported:
            return
        what = f"topic {self._log.topic} is gone: it was deleted, or may not be read"
        if not self._waits:
            raise SourceError(
                f"{what}; make it again and start with --on-gap earliest, or begin with another --state",
                Exit.NO_INPUT,
            )
        self._reported = True
        _log.warning("%s; waiting until it is there again", what)

    def there(self) -> None:
        """The topic is there."""
        self.gone_since, self._reported = None, False

    def within(
        self, positions: Mapping[int, int], astray: OutOfRangeError | None = None, *, same: bool = True
    ) -> dict[int, int]:
        """Offsets from which reading can go on; ``astray`` is the error of a fetch.

        ``same`` says whether the topic's id shows that it is the one of the positions.
        """
        cut = {} if astray is None else astray.cut
        begins, ends = self._log.begins(positions), self._log.ends(positions)
        deadline = time.monotonic() + _SETTLING
        while not cut and any(positions[p] > ends[p] for p in positions) and time.monotonic() < deadline:
            time.sleep(0.2)
            ends = self._log.ends(positions)
        chosen = dict(positions)
        for partition, offset in positions.items():
            begin, end = begins[partition], ends[partition]
            at = cut.get(partition, end)
            if begin <= offset <= end and (at is not None and offset <= at):
                continue  # what was cut, if anything, lies behind what has been handed out
            where = f"topic {self._log.topic}, partition {partition}"
            if offset < begin:
                what = f"retention passed offset {offset} of {where}, which now begins at {begin}"
                chosen[partition] = self._choose(what, begin, end)
            else:
                place = "somewhere" if at is None else f"at {at}"
                at = min(offset, end) if at is None else min(at, end)
                what = f"the log of {where} was cut {place}, before offset {offset}: "
                what += "the broker lost records" if same else "it was made anew, or the broker lost records"
                chosen[partition] = self._choose(what, at if same else begin, end)
            self._skip(partition, offset, chosen[partition], what, max(0, chosen[partition] - offset))
        return chosen

    def anew(self, positions: Mapping[int, int], before: Ids, now: Ids) -> dict[int, int]:
        """Where to begin a topic that only has the name of the one that was read to these positions."""
        topic, bootstrap = self._log.topic, self._log.broker.bootstrap
        if before.cluster and now.cluster and before.cluster != now.cluster:
            what = f"topic {topic} is another: {before.against(now, bootstrap)}"
        else:
            gone = sorted(set(positions) - set(self._log.partitions))
            why = f"it has no partition {gone[0]} any more" if gone else ""
            if before.differ(now):
                why = before.against(now, bootstrap)
            what = f"topic {topic} was made anew ({why})"
        begins, ends = self._log.begins(self._log.partitions), self._log.ends(self._log.partitions)
        chosen = {p: self._choose(what, begins[p], ends[p]) for p in begins}
        for partition in sorted({*positions, *chosen}):
            going_on = chosen.get(partition)
            # only what is skipped in the new topic is counted: what the old one still held is not known
            self._skip(partition, positions.get(partition, 0), going_on, what, going_on or 0)
        return chosen

    def _choose(self, what: str, earliest: int, latest: int) -> int:
        if self._on_gap == "stop":
            raise SourceError(
                f"{what}; --on-gap earliest goes on with the first record there that was not read, "
                "--on-gap latest with what comes, and another --state begins a new stream",
                Exit.BAD_DATA,
            )
        return earliest if self._on_gap == "earliest" else latest

    def _skip(self, partition: int, offset: int, chosen: int | None, what: str, records: int) -> None:
        onwards = "its partition is no more" if chosen is None else f"going on at {chosen}"
        missing = f", offsets {offset} to {chosen - 1} are not read" if chosen and chosen > offset else ""
        detail = f"{what}{missing}; {onwards}"
        position = {"topic": self._log.topic, "partition": partition, "offset": offset}
        _log.warning("%s", detail if "partition" in what else f"{detail} (partition {partition})")
        self.gaps.append(Gap(position, detail, records))
