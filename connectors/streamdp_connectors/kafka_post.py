"""One producer, and under an id of its own one transaction at a time."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from streamdp.errors import Exit
from streamdp_connectors.kafka_client import (
    Ids,
    Options,
    abandon,
    broken,
    ids_of,
    library,
    one_line,
    open_producer,
)
from streamdp_connectors.kafka_limit import room
from streamdp_connectors.kafka_records import Entry, batches, hand_over
from streamdp_connectors.kafka_tail import made_anew
from streamdp_connectors.protocol import SinkError

_log = logging.getLogger(__name__)
_LOOK_EVERY = 0.2
_BEFORE_KIP_360 = (2, 4)

Load = dict[str, list[Entry]]
"""Records by topic, in order."""


class FencedError(SinkError):
    """Another run with the same id writes now."""


class Topic:
    """What is known of an output: its epoch, how many records were delivered, and before which offset.

    ``largest`` is how many bytes a batch of them may have; ``ids`` tell it from another of its name.
    """

    def __init__(self, epoch: int, written: int, offset: int, largest: int, ids: Ids) -> None:
        self.epoch, self.written, self.offset, self.largest, self.ids = epoch, written, offset, largest, ids


class Post:
    """Sends loads to a partition: in transactions under ``name``, where the broker allows them, else without.

    Opening ends the transaction that an earlier process with this name may have left open, and shuts that
    process out, requests that are still under way included. Raises SinkError.
    """

    def __init__(
        self, bootstrap: str, name: str | None, options: Options, timeout: float, partition: int
    ) -> None:
        self._bootstrap, self._name, self._timeout = bootstrap, name, timeout
        self._options, self._partition = options, partition
        self._kafka = library(SinkError)
        self._abandoned = False
        self.transactional = name is not None
        """Whether loads are transactions."""
        self._producer = self._open()

    def reopen(self) -> None:
        """Begin again with another producer; nothing that the one before has sent is taken any more."""
        abandon(self._producer)
        self._producer = self._open()

    def abandon(self) -> None:
        """Stop sending, at once; for any thread."""
        self._abandoned = True
        abandon(self._producer)

    def close(self) -> None:
        """Give the connections back."""
        with contextlib.suppress(self._kafka.errors.KafkaError):
            self._producer.close(timeout=5)

    def refused(self, error: Exception) -> bool:
        """Whether an error is the broker's word on what was sent, which would be the same again."""
        errors = self._kafka.errors
        if self._abandoned or isinstance(error, ValueError | AssertionError):
            return True
        fenced = (*self._fencing(), errors.OutOfOrderSequenceNumberError, errors.UnknownProducerIdError)
        return isinstance(error, errors.BrokerResponseError) and not (
            error.retriable or isinstance(error, fenced)
        )

    def send(self, load: Load, topics: dict[str, Topic]) -> dict[str, int]:
        """Send a load and wait until all of it is there; return by topic the offset after it.

        Raises KafkaError, FencedError where another producer of this name is known to write, and SinkError
        (65) where a topic is found to have been made anew.
        """
        producer, kafka = self._producer, self._kafka
        manager = producer._transaction_manager  # noqa: SLF001
        size, futures = producer.config["batch_size"], []
        try:
            if self.transactional:
                producer.begin_transaction()
            for topic, entries in load.items():
                at = self._at(topic)
                if producer._metadata.partitions_for_topic(topic) is None:  # noqa: SLF001
                    producer.partitions_for(topic)
                if self.transactional:
                    manager.maybe_add_partition_to_transaction(at)
                most = min(size, room(topics[topic].largest, ()))
                for records, count in batches(entries, topics[topic].epoch, most):
                    futures += hand_over(producer, at, records, count, futures=not self.transactional)
            if self.transactional:
                self._commit(producer, manager)
            else:
                self._await(futures)
            for topic in load:
                before, now = topics[topic].ids, ids_of(producer._metadata, topic)  # noqa: SLF001
                if before.differ(now):
                    raise SinkError(made_anew(topic, before, now, self._bootstrap), Exit.BAD_DATA)
        except kafka.errors.KafkaError as error:
            cause = manager.last_error if self.transactional else None
            if isinstance(cause or error, self._fencing()):
                raise FencedError(one_line(cause or error), Exit.CANNOT_CREATE) from None
            raise (cause or error) from None
        last = {topic: manager.last_acked_offset(self._at(topic)) for topic in load}
        return {topic: offset + 1 for topic, offset in last.items()}

    def _at(self, topic: str) -> Any:
        return self._kafka.TopicPartition(topic, self._partition)

    def _commit(self, producer: Any, manager: Any) -> None:
        done = manager.begin_commit()
        producer._sender.wakeup()  # noqa: SLF001
        while not done.wait(timeout_ms=1000 * _LOOK_EVERY):
            if self._abandoned:
                raise self._kafka.errors.KafkaTimeoutError("nothing is waited for any more")

    def _await(self, futures: list[Any]) -> None:
        for future in futures:
            while not future.is_done:
                with contextlib.suppress(self._kafka.errors.KafkaTimeoutError):
                    future.get(timeout=_LOOK_EVERY)
                if self._abandoned:
                    raise self._kafka.errors.KafkaTimeoutError("nothing is waited for any more")
            future.get(timeout=0)

    def _fencing(self) -> tuple[type[Exception], ...]:
        errors = self._kafka.errors
        return (errors.ProducerFencedError, errors.InvalidProducerEpochError, errors.InvalidTxnStateError)

    def _open(self) -> Any:
        errors, timeout = self._kafka.errors, self._timeout
        more = {"transactional_id": self._name} if self.transactional else {}
        wait = {"max_block_ms": int(1000 * timeout)}
        producer = open_producer(self._bootstrap, self._options, timeout, SinkError, **more, **wait)
        if not self.transactional:
            return producer
        # Where records came out of order the client would get itself a new epoch, forget the transaction that
        # it was in, and call its end a success. It does so with no broker of before KIP-360.
        producer._transaction_manager._api_version = _BEFORE_KIP_360  # noqa: SLF001
        try:
            producer.init_transactions()
            return producer
        except (errors.TransactionalIdAuthorizationFailedError, errors.UnsupportedVersionError) as error:
            abandon(producer)
            self._do_without(error)
            return self._open()
        except errors.KafkaTimeoutError:
            abandon(producer)
            what = f"the transaction coordinator of {self._bootstrap} does not answer within {timeout:g} s"
            how = "see transaction.state.log.replication.factor, or set transactional.id.prefix=none"
            raise SinkError(f"{what}: {how}", Exit.UNAVAILABLE) from None
        except errors.KafkaError as error:
            abandon(producer)
            raise broken(f"cannot begin transactions as {self._name}", error, SinkError) from None

    def _do_without(self, error: Exception) -> None:
        self.transactional = False
        _log.warning(
            "the broker allows no transactions (%s): answers come once over a crash, but no run is shut out "
            "that was stopped, is replaced by another and goes on",
            type(error).__name__,
        )
