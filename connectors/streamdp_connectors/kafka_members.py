"""Which partitions of a topic are this process's, among those of a group that share them."""

from __future__ import annotations

import time
from typing import Any

from streamdp_connectors.kafka_client import Options, broken, library, open_consumer
from streamdp_connectors.protocol import SourceError


class Members:
    """A member of a consumer group that reads nothing: only the group's sharing of partitions is used.

    A process that stands still loses its share after ``session_timeout`` seconds. Raises SourceError.

    kafka-python forgets the share that a rejoin of its own accord (for new partitions) has brought where the
    poll that waited for it ended a moment earlier: the member then has nothing and sends no heartbeat. So the
    partitions are known before it first joins, and a sharing that takes too long is begun again.
    """

    def __init__(
        self,
        topic: str,
        bootstrap: str,
        group: str,
        options: Options,
        timeout: float,
        session_timeout: float,
    ) -> None:
        kafka = library(SourceError)
        self._topic, self._errors = topic, kafka.errors
        self._shared = False
        self._begun: float | None = None
        self._patience = session_timeout + 1.0
        self._consumer: Any = open_consumer(
            bootstrap,
            options,
            timeout,
            SourceError,
            begins="latest",  # of what is fetched before a partition is paused
            group_id=group,
            session_timeout_ms=int(1000 * session_timeout),
            heartbeat_interval_ms=int(1000 * session_timeout / 4),
            metadata_max_age_ms=5000,
        )
        outer = self

        base: Any = kafka.ConsumerRebalanceListener

        class Listener(base):  # type: ignore[misc]
            """Takes note of sharings that begin and end."""

            def on_partitions_revoked(self, revoked: Any) -> None:
                """What goes away is seen in the next sharing, and much of it comes again."""
                outer._begun = time.monotonic()

            def on_partitions_assigned(self, assigned: Any) -> None:
                """The shares are known."""
                outer._shared, outer._begun = True, None

        self._listener = Listener()
        try:
            self._consumer.subscribe([topic], listener=self._listener)
            self._consumer.partitions_for_topic(topic)
        except self._errors.RetriableError:
            pass  # the broker is away: they are known later
        except self._errors.KafkaError as error:
            raise broken(f"cannot share topic {topic}", error, SourceError) from None

    def share(self, wait: float) -> set[int] | None:
        """The partitions that are this process's now; None where that did not change in ``wait`` seconds."""
        try:
            self._consumer.poll(timeout_ms=int(1000 * wait), max_records=1)
            mine = self._consumer.assignment()
            self._consumer.pause(*(mine - self._consumer.paused()))
            if self._begun is not None and time.monotonic() > self._begun + self._patience:
                self._consumer.unsubscribe()
                self._consumer.subscribe([self._topic], listener=self._listener)
                self._begun = time.monotonic()
        except self._errors.RetriableError:
            return None  # the broker is away: all stays as it is
        except self._errors.KafkaError as error:
            raise broken(f"cannot share topic {self._topic}", error, SourceError) from None
        if not self._shared:
            return None
        self._shared = False
        return {at.partition for at in mine}

    def partitions(self) -> set[int]:
        """All partitions of the topic, as far as is known."""
        return set(self._consumer.partitions_for_topic(self._topic) or ())

    def close(self) -> None:
        """Leave the group, so that the others need not wait."""
        self._consumer.close()
