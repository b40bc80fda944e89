"""Where ``consume`` writes: files or topics for answers, dead letters and events."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import msgspec
from streamdp_connectors.files.resume import Left, Rotation
from streamdp_connectors.files.sink import FileSink, RejectSink
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.sink import KafkaRejects, KafkaSink, check_stored
from streamdp_connectors.protocol import Marked, Sink, SinkError
from streamdp_connectors.store.sink import StoreLeft, StoreSink
from streamdp_connectors.store.tables import Bounds, Corrected

from streamdp.cli.board import is_terminal
from streamdp.cli.lines import lines_for
from streamdp.cli.reading import Client
from streamdp.errors import ConfigError, Exit
from streamdp.records import GAP, Answers, Reject
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.places import NOWHERE, Input, Outputs
from streamdp.state import claim
from streamdp.state.corrections import Correction
from streamdp.state.snapshot import SUFFIX, Header, SnapshotError

EVENTS = (b'{"event":',)
"""How lines of events begin."""


class UndeliveredError(SinkError):
    """A signal has come, and a broker does not take what was written."""


def rotation_of(text: str | None) -> Rotation | None:
    """What ``--rotate`` means. Raises ConfigError."""
    try:
        return None if text is None else Rotation.of(text)
    except ValueError as error:
        raise ConfigError(f"--rotate: {error}", Exit.USAGE) from None


def default_state(topic: str, partition: int | None = None) -> str:
    """A folder of a topic's own, or of a partition's, under the user's state folder."""
    root = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = os.path.join(root, "streamdp", topic)
    return folder if partition is None else state_of(folder, partition)


def state_of(folder: str, partition: int) -> str:
    """The folder of a partition's state among those of a topic."""
    return os.path.join(folder, f"partition-{partition}")


def _rejects_path(outputs: Outputs, left: Mapping[str, Any] | None = None) -> str:
    """Where refused records go.

    ``left`` is what a state says of where they went. That decides between the names that the options lead to,
    and is none itself: a state may hold any path.
    """
    if outputs.rejects is not None:
        return outputs.rejects
    names = [outputs.output + ".rejects.jsonl"] if outputs.to_file else []
    names.append(os.path.join(outputs.state, "rejects.jsonl") if outputs.state else "streamdp-rejects.jsonl")
    if left is not None:
        before = os.path.realpath(left["path"])
        return next((name for name in names if os.path.realpath(name) == before), names[0])
    return names[0]


def completed(input: Input, outputs: Outputs, written: Container[str]) -> Outputs:
    """Where answers and the state go unless the user has said so."""
    if not outputs.has_output and "output" not in written and is_terminal(sys.stdout):
        outputs = msgspec.structs.replace(outputs, output=NOWHERE)
    if input.topic is not None and outputs.state is None:
        outputs = msgspec.structs.replace(outputs, state=default_state(input.topic, input.partition))
    return outputs


def refuse_double_use(input: Input, outputs: Outputs) -> None:
    """Raise ConfigError if a file or a topic is named for two purposes."""
    topics: dict[str, str] = {}
    for option, topic in (
        ("topic", input.topic),
        ("output-topic", outputs.output_topic),
        ("rejects-topic", outputs.rejects_topic),
    ):
        if topic is not None and topic in topics:
            raise ConfigError(
                f"--{topics[topic]} and --{option} name the same topic, {topic}: make one for each",
                Exit.USAGE,
            )
        if topic is not None:
            _check_topic(option, topic)
            topics[topic] = option
    named = {
        "file": input.file,
        "output": outputs.output,
        "rejects": None if outputs.rejects_topic else _rejects_path(outputs),
        "events": outputs.events,
        "finality": outputs.finality,
        "store": outputs.store,
    }
    seen: dict[object, str] = {}
    for option, path in named.items():
        if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        if option != "file" and outputs.state is not None:
            _refuse_in_state(option, path, outputs.state)
        same = _identity(path)
        if same in seen:
            raise ConfigError(f"--{seen[same]} and --{option} name the same file, {path}", Exit.USAGE)
        seen[same] = option


def _check_topic(option: str, topic: str) -> None:
    """Raise ConfigError for a name that Kafka does not take: it becomes part of a path."""
    if re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) is None or topic in (".", ".."):
        raise ConfigError(
            f"--{option}: {topic!r} is no name of a topic (letters, digits, ., _ and -, at most 249)",
            Exit.USAGE,
        )


def _identity(path: str) -> object:
    """A value that is equal for two names of one file, hard links included."""
    try:
        held = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return held.st_dev, held.st_ino


def _refuse_in_state(option: str, path: str, state: str) -> None:
    folder, name = os.path.split(os.path.realpath(path))
    if folder == os.path.realpath(state) and (
        name == "lock" or name.endswith(SUFFIX) or claim.NAME.fullmatch(name)
    ):
        raise ConfigError(f"--{option} {path} is a file of the state itself", Exit.USAGE)


OUTPUTS = ("output", "rejects", "events", "finality", "store")
"""Names of what is written, in headers of snapshots."""


def check_outputs(header: Header) -> None:
    """Raise SnapshotError (65) unless a header says of its outputs what sinks say."""
    try:
        for name, stored in header.outputs.items():
            if name not in OUTPUTS or not isinstance(stored, dict):
                raise SinkError(f"there is no output {name}", Exit.BAD_DATA)
            if name == "store":
                StoreLeft.of(stored)
            elif "path" in stored:
                Left.of(stored)
            else:
                check_stored(stored)
    except SinkError as error:
        raise SnapshotError(error.message, error.exit_code) from None


def _check_kinds(outputs: Outputs, kept: Mapping[str, Any]) -> None:
    """Raise SnapshotError unless outputs are files and topics as they were before."""
    if not {"output", "rejects"} <= set(kept):
        raise SnapshotError(f"{outputs.state}: its outputs are not known", Exit.BAD_DATA)
    for name, topic in (("output", outputs.output_topic), ("rejects", outputs.rejects_topic)):
        if ("path" in kept[name]) != (topic is None):
            raise SnapshotError(
                f"{outputs.state}: its {name} went to a {'file' if topic else 'topic'} before; "
                "use the same options, or name another --state",
                Exit.CONFIG,
            )


def _holds_just(path: str, header: bytes) -> bool:
    """Whether a file holds a header, and nothing else: the start of a run was cut off."""
    if not header or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(header) + 1) == header


class Sinks:
    """The output, the dead letters and the events; files and topics alike go on where a snapshot was.

    ``replayed`` says whether records after the snapshot come again; where they do not, what was written of
    them is kept. ``waiting`` is called while a broker does not take what was written, and may raise.
    """

    def __init__(
        self,
        input: Input,
        outputs: Outputs,
        resumed: Header | None,
        settings: Settings,
        *,
        keep: Sequence[str] = (),
        replayed: bool = True,
        waiting: Callable[[], bool] = lambda: True,
    ) -> None:
        kept: dict[str, Any] = {} if resumed is None else resumed.outputs
        if resumed is not None:
            _check_kinds(outputs, kept)
        how = {"overwrite": outputs.overwrite, "anew": outputs.new_output, "replayed": replayed}
        self._delivery, to = _delivery(input, outputs, kept, waiting)
        to["ended"] = resumed is not None and resumed.ended
        self._rejects_topic = outputs.rejects_topic
        self.output: Sink[bytes]
        self.rejects: Sink[Reject]
        place = ["file", "line"] if input.topic is None else ["topic", "partition", "offset"]
        place += ["record"] if settings.format == "otlp" else []
        self._lines = lines_for(outputs, settings, place, keep)
        if outputs.output_topic is None:
            left, beginnings = kept.get("output"), self._lines.beginnings
            cut_off = resumed is None and _holds_just(outputs.output, self._lines.header)
            how_written = {**how, "overwrite": outputs.overwrite or cut_off}
            self.output = FileSink(outputs.output, left, beginnings=beginnings, **how_written)
        else:
            self.output = KafkaSink(outputs.output_topic, resume=kept.get("output"), **to)
        left = kept.get("rejects")
        if outputs.rejects_topic is None:
            named = outputs.rejects or outputs.state or outputs.to_file
            spare = resumed is None and not named
            path, proposed = _rejects_path(outputs, left), outputs.rejects is None
            self.rejects = RejectSink(path, left, spare=spare, proposed=proposed, **how)
        else:
            self.rejects = KafkaRejects(outputs.rejects_topic, resume=left, **to)
        self._all: dict[str, Sink[Any]] = {"output": self.output, "rejects": self.rejects}
        self.events: Sink[bytes] | None = None
        if outputs.events is not None:
            self.events = FileSink(outputs.events, kept.get("events"), beginnings=EVENTS, **how)
            self._all["events"] = self.events
        self.finality: Sink[bytes] | None = None
        if outputs.finality is not None:
            left = kept.get("finality")
            self.finality = FileSink(outputs.finality, left, beginnings=(b'{"final_through":',), **how)
            self._all["finality"] = self.finality
        self.store: StoreSink | None = None
        if outputs.store is not None:
            how_stored = {"replayed": replayed, "ended": to["ended"]}
            self.store = self._all["store"] = store_of(outputs, kept.get("store"), settings, **how_stored)
        self._marked = [sink for sink in self._all.values() if isinstance(sink, Marked)]
        if self._lines.header and not (resumed and kept["output"]["length"]):
            self.output.write(self._lines.header)
        self.refused: Counter[str] = Counter()
        self.first_refused: list[Reject] = []
        self._encoder = msgspec.json.Encoder()

    @property
    def rejects_name(self) -> str:
        """Where refused records are found."""
        return self.rejects.path if isinstance(self.rejects, RejectSink) else f"topic {self._rejects_topic}"

    def mark(self, positions: dict[str, Any]) -> None:
        """Note the source's positions after a read, before what comes of it is written."""
        for sink in self._marked:
            sink.mark(positions)

    def marks(self) -> list[Mapping[str, Any]]:
        """The positions that an interrupted run had noted after its last snapshot."""
        return [mark for sink in self._marked for mark in sink.marks]

    def write(self, answers: Answers) -> None:
        """Append all answers."""
        lines = answers.lines
        if self.finality is not None:
            lines, finality = lines.apart()
            self.finality.write(finality.encode())
        if lines:
            self.output.write(self._lines.encode(lines))
        for reject in answers.rejects:
            self.rejects.write(reject)
            if reject.reason == GAP:
                continue  # no record that was refused
            self.refused[reject.reason] += 1
            if not self.first_refused:
                self.first_refused.append(reject)
        if self.events is not None and answers.events:
            self.events.write(self._encoder.encode_lines(answers.events))
        if self.store is not None:
            self.store.write(answers)

    def taken(self, records: Columns) -> None:
        """These were read, and will be answered."""
        if self.store is not None:
            self.store.taken(records)

    def corrected(self, made: Correction, seq: int, refused: str | None) -> None:
        """Somebody has corrected stories by hand, after so many records."""
        if self.store is not None:
            named = made.stories, [*made.ids, *made.seqs]
            stories, records = (msgspec.json.encode(part).decode() for part in named)
            row = made.number, made.what, stories, records, made.title, made.undone, made.who, made.when
            self.store.corrected(Corrected(*row, seq, refused))

    def ending(self) -> None:
        """The input has come to its end: what is written from now on is of records that stay open."""
        if self.store is not None:
            self.store.ending()

    def flush(self, sync: bool) -> None:
        """Hand everything over; ``sync`` to the disk."""
        for sink in self._all.values():
            sink.flush(sync)

    def kept(self) -> dict[str, Any]:
        """The state of the sinks for a snapshot; ask right after a flush."""
        return {name: sink.state() for name, sink in self._all.items()}

    def lasting(self) -> Callable[[], None]:
        """Return a function that waits, in any thread, until all that was handed over is durable."""
        parts = [sink.lasting() for sink in self._all.values()]

        def wait() -> None:
            for part in parts:
                part()

        return wait

    def full(self, rotation: Rotation | None) -> list[FileSink | RejectSink]:
        """The files to be rotated by a rule; without one, all that hold anything."""
        files = [sink for sink in self._all.values() if isinstance(sink, FileSink | RejectSink)]
        return [sink for sink in files if sink.full(rotation)]

    def rotate(self, files: Sequence[FileSink | RejectSink]) -> None:
        """End a rotation that these have begun."""
        for sink in files:
            sink.rotate()
            if sink is self.output and self._lines.header:
                self.output.write(self._lines.header)

    @property
    def missing(self) -> int:
        """Answers that have not arrived at the broker; may be asked from another thread."""
        return 0 if self._delivery is None else self._delivery.missing

    def give_up(self) -> None:
        """Do not wait for what a broker has not taken yet."""
        if self._delivery is not None:
            self._delivery.give_up()

    def close(self) -> None:
        """Close all."""
        for sink in self._all.values():
            sink.close()


def store_of(
    outputs: Outputs, left: Mapping[str, Any] | None, settings: Settings, *, replayed: bool, ended: bool
) -> StoreSink:
    """The store that the options name."""
    assert outputs.store is not None
    open_for = max(settings.retain, settings.max_undecided)
    return StoreSink(
        outputs.store,
        left,
        search=outputs.store_search,
        revisions=outputs.store_answers,
        once=outputs.final_only,
        bounds=Bounds(outputs.store_days, outputs.store_rows, open_for),
        overwrite=outputs.overwrite,
        replayed=replayed,
        ended=ended,
    )


def _delivery(
    input: Input, outputs: Outputs, kept: Mapping[str, Any], waiting: Callable[[], bool]
) -> tuple[Delivery | None, dict[str, Any]]:
    """The way to the topics, if there are any, and what their sinks take.

    Its name follows from what the state knows of the first topic, so that every run with this state, or with
    a copy of it, has the same.
    """
    named = [("output", outputs.output_topic), ("rejects", outputs.rejects_topic)]
    topics = [(name, topic) for name, topic in named if topic is not None]
    if not topics:
        return None, {}
    client = Client.of(input)
    first, topic = topics[0]
    before = kept.get(first, {})
    new = int(1000 * time.time())
    whole = f"{client.transactions}-{before.get('topic', topic)}-{before.get('epoch', new)}"
    if input.partition is not None:  # those of a topic begin together, and must not shut each other out
        whole += f"-{input.partition}"
    delivery = Delivery(
        client.bootstrap,
        name=None if client.transactions is None else whole,
        client_options=client.options,
        patience=input.give_up_after,
        waiting=waiting,
        partition=input.partition or 0,
    )
    return delivery, {"delivery": delivery, "epoch": new, "anew": outputs.new_output}
