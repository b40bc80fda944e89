"""Corrections by hand that come by a topic, one a record, as JSON with the fields of ``Correction``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamdp_connectors.kafka.source import KafkaSource

from streamdp.cli.reading import Client
from streamdp.settings.places import Input

PATIENCE = 10.0
"""Seconds to wait for what is known to be there; for more nobody waits."""


class Heard:
    """The topic of corrections.

    What it holds when the run begins is there at once; a run that goes on for ever then follows it.
    """

    def __init__(self, topic: str, input: Input) -> None:
        self.label = f"topic {topic}"
        client = Client.of(input)
        self._how: dict[str, Any] = {
            "topic": topic,
            "bootstrap": client.bootstrap,
            "client_options": client.options,
            "on_gap": input.on_gap,
            "give_up_after": input.give_up_after,
        }
        self._follows, self._live = not input.until_end, False
        self._source = KafkaSource(**self._how, until_end=True)

    def begin(self, positions: Mapping[str, Any] | None) -> None:
        """Go on behind the last that was appended to the file."""
        if positions is not None:
            self._source.seek({**positions})

    def come(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """What has come, and how far the topic has been read with it."""
        source, known = self._source, not self._live
        while not source.at_end and (found := source.read(1, PATIENCE if known else 0.0)):
            yield found[0].data, source.positions()
        if known and self._follows:
            positions, self._live = source.positions(), True
            source.close()
            self._source = KafkaSource(**self._how)
            self._source.seek(positions)


def heard_of(input: Input) -> Heard | None:
    """The topic of corrections of a run, if it has one."""
    return None if input.corrections_topic is None else Heard(input.corrections_topic, input)
