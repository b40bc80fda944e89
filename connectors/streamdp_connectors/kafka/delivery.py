"""Deliver records to topics: what was handed over together arrives together, or not at all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from streamdp.errors import Exit
from streamdp_connectors.kafka.batches import Entry
from streamdp_connectors.kafka.client import Broker, Options, patiently
from streamdp_connectors.kafka.output import (
    FencedError,
    Load,
    StuckError,
    Tail,
    Topic,
    Transactions,
    checksum,
    read_tail,
    readable,
)
from streamdp_connectors.protocol import SinkError

_log = logging.getLogger(__name__)
_PENDING = 20_000  # records that may be on their way
_PENDING_BYTES = 32 << 20
_ACK_SECONDS = 60.0  # to wait for a receipt from a broker that answers other questions
_LEAVE = 2.0  # for what is on its way when it is given up: after a signal there are four for all
_LOOK_EVERY = 0.2
_INTERVAL = 0.05  # seconds from one transaction to the next
_PAUSE = 0.5  # before trying again
_QUIET = 3.0  # seconds without an answer, after which it is seen whether the last ones can be read
_QUIET_MOST = 60.0  # from one such look to the next
_TRIES = 10
_SHOWN = 300  # characters of an id or a position


class _Named(msgspec.Struct, gc=False):
    """What says whose an answer is."""

    id: str | int | None = None
    position: msgspec.Raw = msgspec.Raw(b"null")


class Delivery:
    """Sends one run's answers and rejects to their topics, in a thread of its own.

    What ``flush`` hands over is one transaction, under an id that follows from the state (``name``; None for
    no transactions). A later run with this state, or with a copy of it, shuts out an earlier one that still
    lives, or whose last request is still under way, and only then reads what has been written. When a
    transaction fails, the topics are read to see what of it is there, and whether another run has replaced
    this one (SinkError 73). All goes to one ``partition``, to keep its order. A question waits ``timeout``
    seconds for its answer, and a start ``patience`` for a lost broker. ``waiting`` is called while a broker
    is waited for: it says whether the broker answers, and may raise. Raises SinkError.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        name: str | None,
        client_options: Options | None = None,
        timeout: float = 10.0,
        patience: float | None = None,
        waiting: Callable[[], bool] = lambda: True,
        partition: int = 0,
    ) -> None:
        self._partition, self._waiting = partition, waiting
        self._broker = Broker(bootstrap, client_options or {}, timeout, SinkError)
        self._errors = self._broker.kafka.errors
        self._topics: dict[str, Topic] = {}
        self._fresh: list[tuple[str, Entry]] = []  # not handed over yet
        self._queued: Load = {}
        self._written = self._handed = 0  # records and bytes are counted up by one thread each
        self._delivered = self._bytes_written = self._bytes_delivered = 0
        self._error: BaseException | None = None
        self._failed = self._closing = False
        self._changed = threading.Condition()
        self._patience = timeout if patience is None else patience
        self._transactions = patiently(lambda: Transactions(self._broker, name, partition), self._patience)
        self._thread = threading.Thread(target=self._run, name="streamdp-delivery", daemon=True)
        self._thread.start()

    def open(
        self, topic: str, epoch: int, resume: Mapping[str, Any] | None, anew: bool
    ) -> tuple[Topic, Tail]:
        """Return a topic, which is kept up to date from now on, and what was written to it after ``resume``.

        Everything before the topic's ``offset`` has been delivered.
        """
        tail = patiently(lambda: self._read(topic, resume, anew=anew), self._patience)
        written = 0 if resume is None else max([resume["out_seq"], *(n + 1 for n in tail.checksums)])
        offset = resume["offset"] if resume is not None and tail.known else tail.end
        largest = patiently(lambda: self._broker.largest_batch(topic), self._patience)
        self._topics[topic] = Topic(epoch, written, offset, largest, tail.ids)
        return self._topics[topic], tail

    def put(self, topic: str, entry: Entry) -> None:
        """Take a record, which goes with the next ``flush``."""
        self._fresh.append((topic, entry))
        self._written += 1
        self._bytes_written += len(entry.value)

    def flush(self, sync: bool) -> None:
        """Hand over what was put; with ``sync`` wait until it has arrived. Raises SinkError."""
        with self._changed:
            for topic, entry in self._fresh:
                self._queued.setdefault(topic, []).append(entry)
            self._fresh.clear()
            self._handed = self._written
            self._changed.notify_all()
        if sync:
            self._wait(lambda: self._delivered >= self._handed)
        else:
            self._wait(
                lambda: (
                    self.missing <= _PENDING and self._bytes_written - self._bytes_delivered <= _PENDING_BYTES
                )
            )

    def lasting(self) -> Callable[[], None]:
        """Return a function that waits until everything handed over so far has arrived; for any thread."""
        handed = self._handed

        def wait() -> None:
            with self._changed:
                while self._delivered < handed and not self._failed:
                    self._changed.wait()
                if self._delivered < handed:
                    raise self._reason()

        return wait

    @property
    def missing(self) -> int:
        """How many records have not arrived yet; may be asked from another thread."""
        return self._written - self._delivered

    def close(self) -> None:
        """Wait for what was written, unless writing has failed; a second call does nothing."""
        if self._closing:
            return
        try:
            if not self._failed:
                self.flush(sync=True)
        finally:
            self.give_up()
            self._closing = True
            with self._changed:
                self._changed.notify_all()
            self._thread.join(_LEAVE if self._failed else 5.0)
            self._transactions.close()

    def _wait(self, holds: Callable[[], bool]) -> None:
        """Wait while no broker answers; from one that answers, for ``_ACK_SECONDS`` at most."""
        waited, before = 0.0, self._delivered
        while True:
            with self._changed:
                came = self._changed.wait_for(lambda: self._failed or holds(), _LOOK_EVERY)
            if self._failed:
                raise self._reason()
            if came:
                return
            try:
                answers = self._waiting()
            except BaseException:
                self.give_up()  # what is missing is not waited for again
                raise
            waited = 0.0 if self._delivered > before else waited + _LOOK_EVERY * answers
            before = self._delivered
            if waited > _ACK_SECONDS:
                self.give_up()
                topics = " and ".join(self._topics)
                what = f"topic {topics} has taken nothing for {_ACK_SECONDS:g} s, though the broker answers"
                raise SinkError(f"{what}: see whether it is there and has a leader", Exit.IO_ERROR)

    def give_up(self) -> None:
        """Deliver nothing more, even if something is still on its way."""
        with self._changed:
            if self._delivered < self._written:
                self._failed = True
            self._changed.notify_all()
        if self._failed:
            self._transactions.abandon()

    def _reason(self) -> BaseException:
        given_up = SinkError(f"writing to topic {' and '.join(self._topics)} was given up", Exit.IO_ERROR)
        return self._error or given_up

    def _run(self) -> None:
        last = 0.0
        quiet: float | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queued or self._closing or self._failed, quiet)
                if self._failed or (self._closing and not self._queued):
                    return
            time.sleep(max(0.0, last + _INTERVAL - time.monotonic()))
            with self._changed:
                load, self._queued = self._queued, {}
            last = time.monotonic()
            try:
                if load:
                    self._deliver(load)
                    quiet = _QUIET if self._transactions.transactional else None
                else:
                    quiet = None if self._settled() else min(2 * (quiet or _QUIET), _QUIET_MOST)
            except Exception as error:
                with self._changed:
                    self._error, self._failed = error, True
                    self._changed.notify_all()
                return
            with self._changed:
                self._delivered += sum(map(len, load.values()))
                self._bytes_delivered += sum(len(entry.value) for part in load.values() for entry in part)
                self._changed.notify_all()

    def _deliver(self, load: Load) -> None:
        """Send a load, and make sure that it has arrived once."""
        left, tries = load, 0
        while left:
            try:
                offsets = self._transactions.send(left, self._topics)
            except (self._errors.KafkaError, FencedError, AssertionError, ValueError) as error:
                tries += 1
                certain = not self._transactions.transactional or self._transactions.refused(error)
                if certain or tries > _TRIES:
                    what = f"cannot write to topic {' and '.join(left)}"
                    too_large = self._errors.MessageSizeTooLargeError, self._errors.RecordListTooLargeError
                    if isinstance(error, too_large):
                        what = self._too_large(left)
                    raise self._broker.broken(what, error) from None
                _log.info("a transaction failed: %s", error)
                left = self._without_what_is_there(left, fenced=isinstance(error, FencedError))
            else:
                left = {}
                for topic, offset in offsets.items():
                    self._topics[topic].offset = max(self._topics[topic].offset, offset)
        for topic, entries in load.items():
            self._topics[topic].written = entries[-1].number + 1

    def _settled(self) -> bool:
        """Whether all that was delivered can be read; what is held back is let go for the next look."""
        try:
            stuck = [
                topic
                for topic, place in self._topics.items()
                if not readable(topic, self._broker, place.offset, self._partition)
            ]
        except SinkError as error:
            _log.info("%s", error)
            return False
        if stuck:
            _log.info(
                "topic %s cannot be read to its end, though a transaction has ended", " and ".join(stuck)
            )
            try:
                self._transactions.settle(stuck)
            except FencedError:
                return True  # the run that has replaced this one sees to it
            except SinkError as error:
                _log.info("%s", error)
                self._without_what_is_there({}, fenced=False)
        return not stuck

    def _read(
        self, topic: str, resume: Mapping[str, Any] | None, *, anew: bool = False, settle: bool = True
    ) -> Tail:
        """What was written after ``resume``; with ``settle``, what holds it back is let go."""
        try:
            return read_tail(topic, self._broker, resume, anew, self._partition)
        except StuckError:
            if not settle or resume is None or not self._transactions.transactional:
                raise
            self._transactions.settle([topic])
            return read_tail(topic, self._broker, resume, anew, self._partition)

    def _too_large(self, load: Load) -> str:
        """Which answer is larger than its topic takes, and what to do."""
        topic, entry = max(
            ((topic, entry) for topic, entries in load.items() for entry in entries),
            key=lambda one: len(one[1].value) - self._topics[one[0]].largest,
        )
        try:
            of = msgspec.json.decode(entry.value, type=_Named)
        except msgspec.DecodeError:
            of = _Named()
        name, place = "" if of.id is None else f" {str(of.id)[:_SHOWN]!r}", bytes(of.position).decode()
        return (
            f"topic {topic} takes {self._topics[topic].largest:,} bytes at once, and the answer to record"
            f"{name} at {place[:_SHOWN]} has {len(entry.value):,} bytes: set its max.message.bytes to more "
            "(kafka-configs.sh --alter --add-config), then start again: nothing is lost"
        )

    def _without_what_is_there(self, load: Load, *, fenced: bool) -> Load:
        """What of a failed load must be sent again, once no other run can write any more.

        A run that was shut out looks first: the one that did it may have gone on long ago.
        """
        while True:
            try:
                if fenced:
                    self._compare(load, settle=False)
                self._transactions.reopen()
                return self._compare(load)
            except FencedError:
                raise
            except SinkError as error:
                _log.info("%s", error)
                time.sleep(_PAUSE)
                if self._failed:
                    raise

    def _compare(self, load: Load, *, settle: bool = True) -> Load:
        left: Load = {}
        for topic, place in self._topics.items():
            entries = load.get(topic, [])
            written = {"epoch": place.epoch, "out_seq": place.written, "offset": place.offset}
            resume = {**written, **place.ids.plain()}
            found = self._read(topic, resume, settle=settle).checksums
            ours = {entry.number: checksum(entry.value) for entry in entries}
            foreign = [number for number, of in found.items() if ours.get(number) not in of]
            if foreign:
                what = (
                    f"another run of this state has written to topic {topic}, from number {min(foreign)} on"
                )
                raise FencedError(f"{what}: that one goes on, and this one ends", Exit.CANNOT_CREATE)
            rest = [entry for entry in entries if entry.number not in found]
            if rest:
                left[topic] = rest
        return left
