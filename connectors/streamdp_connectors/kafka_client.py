"""What the Kafka source and sinks share: opening a client, and errors in one line."""

from __future__ import annotations

import difflib
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from streamdp.errors import Exit
from streamdp_connectors.kafka_codecs import bound_batches
from streamdp_connectors.kafka_trouble import Trouble, unreachable_server, wrong_protocol
from streamdp_connectors.protocol import ConnectorError

_log = logging.getLogger(__name__)
_ATTEMPT = 3.0  # seconds that the client is left alone with its attempts, before it is asked what is wrong
_PAUSE = 0.5
_UNSAID = 10.0  # seconds that a start may take without a word

Options = Mapping[str, Any]
"""Settings handed on to kafka-python: TLS, SASL, sizes and timeouts."""

_COMMON = {
    "client_id": "streamdp",
    "reconnect_backoff_max_ms": 2000,
    "metrics_enabled": False,
    "allow_auto_create_topics": False,
}


def library(failure: type[ConnectorError]) -> Any:
    """Import kafka-python, and only now; its own log lines appear only where logging is configured."""
    try:
        import kafka
    except ImportError:
        raise failure(
            "Kafka needs two more packages: pip install kafka-python crc32c", Exit.UNAVAILABLE
        ) from None
    log = logging.getLogger("kafka")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    return kafka


def open_consumer(
    bootstrap: str,
    options: Options,
    timeout: float,
    failure: type[ConnectorError],
    *,
    begins: str = "none",
    **settings: Any,
) -> Any:
    """A consumer of bytes that never commits by itself, and moves only to where it ``begins``."""
    kafka = library(failure)
    from kafka.record import default_records

    bound_batches(default_records)
    fixed = {
        "enable_auto_commit": False,
        "auto_offset_reset": begins,
        "key_deserializer": None,
        "value_deserializer": None,
    }
    # One fetch is under way at a time: one that waits at the end of a partition holds up the others.
    defaults = {"isolation_level": "read_committed", "fetch_max_wait_ms": 100}
    return _open(kafka.KafkaConsumer, bootstrap, {**defaults, **settings}, options, fixed, timeout, failure)


def clear_used_up(consumer: Any) -> None:
    """Let the next poll give what is held of resumed partitions; a use of the client's inside.

    kafka-python 3.0.12 gives such records only when the slot of the partition in hand is None, and leaves
    the slot filled when its records are used up: without this it stands still.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    if not fetcher._next_partition_records:  # noqa: SLF001
        fetcher._next_partition_records = None  # noqa: SLF001


class Ids(NamedTuple):
    """How a topic is known again; None where the broker is too old to tell."""

    topic: str | None
    cluster: str | None

    @classmethod
    def of(cls, positions: Mapping[str, Any]) -> Ids:
        """Those that stored positions name."""
        found = (positions.get("topic_id"), positions.get("cluster_id"))
        return cls(*(value if isinstance(value, str) else None for value in found))

    def plain(self) -> dict[str, str]:
        """As ``of`` takes them; what is not known is left out."""
        named = {"topic_id": self.topic, "cluster_id": self.cluster}
        return {name: value for name, value in named.items() if value is not None}

    def otherwise(self, other: Ids) -> Ids:
        """These, and where one is not known that of the other."""
        return Ids(self.topic or other.topic, self.cluster or other.cluster)

    def differ(self, other: Ids) -> bool:
        """Whether another topic is meant, as far as both are known."""
        return any(a and b and a != b for a, b in zip(self, other, strict=True))

    def against(self, now: Ids, bootstrap: str) -> str:
        """In which way they differ from what is at ``bootstrap`` now."""
        if self.cluster and now.cluster and self.cluster != now.cluster:
            return f"{bootstrap} is another cluster (id {now.cluster}) than before (id {self.cluster})"
        return f"its id was {self.topic}, and is {now.topic}"


def ids_of(cluster: Any, topic: str) -> Ids:
    """The ids of a topic and its cluster, as a client last heard of; brokers before 2.8 and 0.10.1 name none.

    ``cluster`` is what the client knows of it: that is inside it, and asking by a client of its own kind
    would take another connection.
    """
    found = cluster.topic_id(topic)
    return Ids(str(found) if found is not None and found.int else None, cluster.cluster_id or None)


def known_partitions(consumer: Any, topic: str) -> list[int]:
    """The numbers of a topic's partitions as last heard of, without asking; [] when there is none."""
    return sorted(consumer._cluster.partitions_for_topic(topic) or ())  # noqa: SLF001


def has_leaders(consumer: Any, topic: str) -> bool:
    """Whether every partition of a topic that is there has a broker that leads it, as last heard of."""
    cluster = consumer._cluster  # noqa: SLF001
    return bool(cluster.available_partitions_for_topic(topic) == cluster.partitions_for_topic(topic))


def refresh_metadata(consumer: Any, timeout: float) -> bool:
    """Ask for the cluster's metadata, and wait for at most so many seconds; whether an answer came."""
    asked = consumer._cluster.request_update()  # noqa: SLF001
    came = threading.Event()
    asked.add_both(lambda _: came.set())
    came.wait(timeout)
    gone = library(ConnectorError).errors.UnknownTopicOrPartitionError
    return bool(asked.is_done) and (asked.succeeded() or isinstance(asked.exception, gone))


def open_admin(bootstrap: str, options: Options, timeout: float, failure: type[ConnectorError]) -> Any:
    """A client that asks for what topics are set to."""
    kafka = library(failure)
    return _open(kafka.KafkaAdminClient, bootstrap, {}, options, {}, timeout, failure)


def open_producer(
    bootstrap: str, options: Options, timeout: float, failure: type[ConnectorError], **settings: Any
) -> Any:
    """A producer whose records arrive once and in order, as far as one session goes."""
    kafka = library(failure)
    # The client never gives up by itself: how long a broker is waited for is decided elsewhere.
    defaults = {
        "batch_size": 1 << 18,
        "max_request_size": 64 << 20,
        "delivery_timeout_ms": (1 << 31) - 1,
        "metadata_max_age_ms": 5000,  # within which a topic made anew is noticed
        "retry_backoff_ms": 20,  # a transaction often asks twice, while the one before it is completed
    }
    fixed = {"acks": "all", "enable_idempotence": True, "key_serializer": None, "value_serializer": None}
    fixed |= settings
    return _open(kafka.KafkaProducer, bootstrap, defaults, options, fixed, timeout, failure)


def abandon(producer: Any) -> None:
    """Give up what a producer has not delivered.

    Its ``close`` waits for that, also when told not to wait, raises, and does so again when it is collected.
    """
    producer._sender.force_close()  # noqa: SLF001
    producer._closed = True  # noqa: SLF001


def _open(
    client: Any,
    bootstrap: str,
    defaults: Options,
    options: Options,
    fixed: Options,
    timeout: float,
    failure: type[ConnectorError],
) -> Any:
    kafka = library(failure)
    known = {**kafka.KafkaConsumer.DEFAULT_CONFIG, **kafka.KafkaProducer.DEFAULT_CONFIG}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise failure(f"kafka-python knows no setting {', '.join(unknown)}", Exit.USAGE)
    chosen = {key: value for key, value in options.items() if key in client.DEFAULT_CONFIG}
    common = {key: value for key, value in _COMMON.items() if key in client.DEFAULT_CONFIG}
    settings = {**common, **defaults, **chosen, **fixed, "bootstrap_servers": bootstrap.split(",")}
    deadline = time.monotonic() + timeout
    told = False
    while True:
        left = deadline - time.monotonic()
        try:
            trouble = unreachable_server(bootstrap)
            if trouble is None:
                return client(**settings, bootstrap_timeout_ms=int(1000 * min(_ATTEMPT, max(1.0, left))))
        except kafka.errors.KafkaConfigurationError as error:
            raise failure(f"a Kafka setting is wrong: {one_line(error)}", Exit.USAGE) from None
        except kafka.errors.KafkaError as error:
            trouble = _trouble(bootstrap, options, timeout, error)
        except (ValueError, TypeError, AssertionError, OSError) as error:
            raise failure(f"cannot set up Kafka at {bootstrap}: {one_line(error)}", Exit.USAGE) from None
        if not trouble.passing or time.monotonic() + _PAUSE >= deadline:
            raise failure(trouble.message, Exit.UNAVAILABLE)
        if not told and timeout > _UNSAID:
            told = True
            _log.warning("%s; trying for %g s", trouble.message, timeout)
        time.sleep(_PAUSE)


def _trouble(bootstrap: str, options: Options, timeout: float, error: Exception) -> Trouble:
    """Why a client could not be opened, though somebody listens."""
    found = wrong_protocol(bootstrap, options)
    return found or Trouble(
        f"no Kafka broker answers at {bootstrap} within {timeout:g} s ({one_line(error)}): "
        "see whether it runs, and whether it demands a login (--kafka-config)",
        passing=True,
    )


def why_silent(bootstrap: str, options: Options) -> str:
    """Why no broker answers, as far as that can be found out in a few seconds."""
    trouble = unreachable_server(bootstrap) or wrong_protocol(bootstrap, options)
    return "it does not answer" if trouble is None else trouble.message


def partitions_of(
    consumer: Any, topic: str, bootstrap: str, failure: type[ConnectorError], code: Exit = Exit.NO_INPUT
) -> list[int]:
    """The numbers of a topic's partitions. Raises ``failure`` when there is no such topic."""
    kafka = library(failure)
    try:
        found = consumer.partitions_for_topic(topic)
    except kafka.errors.KafkaError as error:
        raise failure(
            f"cannot ask {bootstrap} for topic {topic}: {one_line(error)}", Exit.UNAVAILABLE
        ) from None
    if not found:
        near = difflib.get_close_matches(topic, consumer._cluster.topics(), n=1)  # noqa: SLF001
        hint = f" (there is {near[0]})" if near else ""
        what = f"there is no topic {topic} at {bootstrap}, or it may not be read"
        raise failure(f"{what}: make it, or check its name{hint}", code)
    return sorted(found)


def unreachable(
    bootstrap: str, timeout: float, error: Exception, failure: type[ConnectorError]
) -> ConnectorError:
    """The error of a broker that does not answer."""
    return failure(
        f"no Kafka broker answers at {bootstrap} within {timeout:g} s ({one_line(error)})", Exit.UNAVAILABLE
    )


def broken(what: str, error: Exception, failure: type[ConnectorError]) -> ConnectorError:
    """The error of a broker that answers, but with a refusal."""
    return failure(f"{what}: {one_line(error)}", Exit.IO_ERROR)


def one_line(error: Exception) -> str:
    """An exception's text without line ends, and never empty."""
    return " ".join(str(error).split()) or type(error).__name__
