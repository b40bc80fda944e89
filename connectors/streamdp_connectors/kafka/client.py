"""Open clients of Kafka, put their errors in one line, and share partitions among a group."""

from __future__ import annotations

import contextlib
import difflib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from streamdp.errors import Exit, needing
from streamdp_connectors.kafka import internals
from streamdp_connectors.kafka.batches import USUAL_LIMIT
from streamdp_connectors.kafka.reach import Trouble, unreachable_server, wrong_protocol
from streamdp_connectors.protocol import ConnectorError, SourceError

_log = logging.getLogger(__name__)
_ATTEMPT = 3.0  # seconds that the client may try by itself, before we look what is wrong
_PAUSE = 0.5
_SILENT = 10.0  # seconds that a start may take without a message

Options = Mapping[str, Any]
"""Settings for kafka-python: TLS, SASL, sizes and timeouts."""

_COMMON = {
    "client_id": "streamdp",
    # One of several brokers that stands still must not hold up for long what the others can answer.
    "request_timeout_ms": 15_000,
    "socket_connection_setup_timeout_ms": 3000,  # doubled at each failure
    "socket_connection_setup_timeout_max_ms": 15_000,
    "reconnect_backoff_max_ms": 2000,
    "metrics_enabled": False,
    "allow_auto_create_topics": False,
}


def library(failure: type[ConnectorError]) -> Any:
    """Import kafka-python when it is needed; its own log lines appear only where logging is configured."""
    with needing(failure, "Kafka needs", "kafka-python", "crc32c"):
        import kafka
    log = logging.getLogger("kafka")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    return kafka


def one_line(error: Exception) -> str:
    """An exception's text without line ends, and never empty."""
    return " ".join(str(error).split()) or type(error).__name__


def passing(error: ConnectorError) -> ConnectorError:
    """An error that may end by itself, so that ``patiently`` asks again."""
    error.passing = True
    return error


T = TypeVar("T")


def patiently(ask: Callable[[], T], seconds: float) -> T:
    """What ``ask`` returns: it is asked again while a broker is away, for so many seconds in all."""
    deadline, reported = time.monotonic() + seconds, False
    while True:
        try:
            return ask()
        except ConnectorError as error:
            if not error.passing or time.monotonic() + _PAUSE >= deadline:
                raise
            if not reported and seconds > _SILENT:
                reported = True
                _log.warning("%s; trying for %g s", error, seconds)
        time.sleep(_PAUSE)


class Broker(NamedTuple):
    """Where a Kafka cluster is, how clients log in, and how many seconds they wait for an answer.

    What goes wrong is raised as ``failure``.
    """

    bootstrap: str
    options: Options
    timeout: float
    failure: type[ConnectorError]

    @property
    def kafka(self) -> Any:
        """The library."""
        return library(self.failure)

    def consumer(self, *, begins: str = "none", **settings: Any) -> Any:
        """A consumer of bytes that never commits by itself, and moves only to where it ``begins``."""
        kafka = self.kafka
        internals.bound_batches()
        fixed = {
            "enable_auto_commit": False,
            "auto_offset_reset": begins,
            "key_deserializer": None,
            "value_deserializer": None,
            "check_crcs": False,  # once is enough: see bound_batches
        }
        # One fetch is under way at a time: one that waits at the end of a partition holds up the others.
        defaults = {"isolation_level": "read_committed", "fetch_max_wait_ms": 100, **settings}
        return self._open(kafka.KafkaConsumer, defaults, fixed)

    def producer(self, **settings: Any) -> Any:
        """A producer whose records arrive once and in order, within one session."""
        # The client never gives up by itself: how long to wait for a broker is decided elsewhere.
        defaults = {
            "batch_size": 1 << 18,
            "max_request_size": 64 << 20,
            "delivery_timeout_ms": (1 << 31) - 1,
            "metadata_max_age_ms": 5000,  # within which a topic made anew is noticed
            "retry_backoff_ms": 20,  # a transaction often asks twice, while the one before it is completed
        }
        fixed = {"acks": "all", "enable_idempotence": True, "key_serializer": None, "value_serializer": None}
        return self._open(self.kafka.KafkaProducer, defaults, {**fixed, **settings})

    def partitions_of(self, consumer: Any, topic: str, code: Exit = Exit.NO_INPUT) -> list[int]:
        """The numbers of a topic's partitions. Raises ``failure``, with ``code`` if the topic is missing."""
        try:
            found = consumer.partitions_for_topic(topic)
        except self.kafka.errors.KafkaError as error:
            what = f"cannot ask {self.bootstrap} for topic {topic}: {one_line(error)}"
            raise passing(self.failure(what, Exit.UNAVAILABLE)) from None
        if not found:
            near = difflib.get_close_matches(topic, internals.topics_heard_of(consumer), n=1)
            hint = f" (there is {near[0]})" if near else ""
            what = f"there is no topic {topic} at {self.bootstrap}, or it may not be read"
            raise self.failure(f"{what}: make it, or check its name{hint}", code)
        return sorted(found)

    def largest_batch(self, topic: str) -> int:
        """How many bytes a batch of records may have in a topic (``max.message.bytes``), as it is sent.

        The usual number if the broker does not let this client ask. Raises ``failure`` if none answers.
        """
        kafka = self.kafka
        admin = self._open(kafka.KafkaAdminClient, {}, {})
        try:
            named = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
            (found,) = admin.describe_configs([named], config_filter="all")["topic"].values()
            return int(found["max.message.bytes"]["value"])
        except kafka.errors.RetriableError as error:
            raise self.unreachable(error) from None
        except (kafka.errors.KafkaError, KeyError, TypeError, ValueError) as error:
            _log.info("topic %s does not say how large a record may be: %s", topic, one_line(error))
            return USUAL_LIMIT
        finally:
            admin.close()

    def why_silent(self) -> str:
        """Why no broker answers, as far as that can be found out in a few seconds."""
        trouble = unreachable_server(self.bootstrap) or wrong_protocol(self.bootstrap, self.options)
        return "it does not answer" if trouble is None else trouble.message

    def unreachable(self, error: Exception) -> ConnectorError:
        """The error of a broker that does not answer."""
        what = f"no Kafka broker answers at {self.bootstrap} within {self.timeout:g} s ({one_line(error)})"
        return passing(self.failure(what, Exit.UNAVAILABLE))

    def broken(self, what: str, error: Exception) -> ConnectorError:
        """The error of a broker that answers with a refusal."""
        return self.failure(f"{what}: {one_line(error)}", Exit.IO_ERROR)

    @contextlib.contextmanager
    def asked(self, what: str, silent: type[ConnectorError] | None = None) -> Iterator[None]:
        """Raise the client's errors as ``failure``; if no broker answers, as ``silent``, if that is given."""
        errors = self.kafka.errors
        try:
            yield
        except errors.RetriableError as error:
            raise self._replace(failure=silent or self.failure).unreachable(error) from None
        except errors.KafkaError as error:
            raise self.broken(what, error) from None

    def _open(self, client: Any, defaults: Options, fixed: Options) -> Any:
        kafka, bootstrap, options, failure = self.kafka, self.bootstrap, self.options, self.failure
        known = {**kafka.KafkaConsumer.DEFAULT_CONFIG, **kafka.KafkaProducer.DEFAULT_CONFIG}
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise failure(f"kafka-python knows no setting {', '.join(unknown)}", Exit.USAGE)
        chosen = {key: value for key, value in options.items() if key in client.DEFAULT_CONFIG}
        common = {key: value for key, value in _COMMON.items() if key in client.DEFAULT_CONFIG}
        settings = {**common, **defaults, **chosen, **fixed, "bootstrap_servers": bootstrap.split(",")}
        deadline = time.monotonic() + self.timeout

        def opened() -> Any:
            left = deadline - time.monotonic()
            try:
                trouble = unreachable_server(bootstrap)
                if trouble is None:
                    return client(**settings, bootstrap_timeout_ms=int(1000 * min(_ATTEMPT, max(1.0, left))))
            except kafka.errors.KafkaConfigurationError as error:
                raise failure(f"a Kafka setting is wrong: {one_line(error)}", Exit.USAGE) from None
            except kafka.errors.KafkaError as error:
                trouble = self._trouble(error)
            except (ValueError, TypeError, AssertionError, OSError) as error:
                raise failure(f"cannot set up Kafka at {bootstrap}: {one_line(error)}", Exit.USAGE) from None
            gone = failure(trouble.message, Exit.UNAVAILABLE)
            raise passing(gone) if trouble.passing else gone

        return patiently(opened, self.timeout)

    def _trouble(self, error: Exception) -> Trouble:
        """Why a client could not be opened, though somebody listens."""
        hint = "see whether it runs, and whether it demands a login (--kafka-config)"
        found = wrong_protocol(self.bootstrap, self.options)
        return found or Trouble(f"{self.unreachable(error).message}: {hint}", passing=True)


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
        self._broker = Broker(bootstrap, options, timeout, SourceError)
        kafka = self._broker.kafka
        self._topic, self._errors = topic, kafka.errors
        self._shared = False
        self._begun: float | None = None
        self._patience = session_timeout + 1.0
        self._consumer: Any = self._broker.consumer(
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
            raise self._broken(error) from None

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
            raise self._broken(error) from None
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

    def _broken(self, error: Exception) -> ConnectorError:
        return self._broker.broken(f"cannot share topic {self._topic}", error)
