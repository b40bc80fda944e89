"""How large the records of an output topic may be."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from streamdp_connectors.kafka_client import Options, library, one_line, open_admin
from streamdp_connectors.protocol import SinkError

_log = logging.getLogger(__name__)

USUAL = 1_048_588
"""What brokers take at most unless they are told otherwise (``message.max.bytes``)."""

_BATCH = 61
_RECORD = 160  # lengths and numbers, and the headers that say which of the outputs' records it is
_HEADER = 10


def largest_batch(topic: str, bootstrap: str, options: Options, timeout: float) -> int:
    """Bytes that a batch of records may have in a topic (``max.message.bytes``), as packed as it is sent.

    The usual where the broker does not let this client ask. Raises SinkError where none answers.
    """
    kafka = library(SinkError)
    admin = open_admin(bootstrap, options, timeout, SinkError)
    try:
        named = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
        (found,) = admin.describe_configs([named], config_filter="all")["topic"].values()
        return int(found["max.message.bytes"]["value"])
    except (kafka.errors.KafkaError, KeyError, TypeError, ValueError) as error:
        _log.info("topic %s does not say how large a record may be: %s", topic, one_line(error))
        return USUAL
    finally:
        admin.close()


def room(largest: int, headers: Sequence[tuple[str, bytes]]) -> int:
    """Bytes that are left for the value of a record with these headers, alone in its batch."""
    taken = sum(len(key) + len(value) + _HEADER for key, value in headers)
    return max(0, largest - _BATCH - _RECORD - taken)
