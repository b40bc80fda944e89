"""Where ``consume`` writes: files or topics for answers, dead letters and events."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from streamdp_connectors.files.checkpoint import FileCheckpoint
from streamdp_connectors.files.parquet_sink import PART, ParquetSink
from streamdp_connectors.files.sink import FileSink, RejectSink
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.sink import KafkaRejects, KafkaSink, check_stored
from streamdp_connectors.protocol import Marked, Sink, SinkError, SinkRequest
from streamdp_connectors.store.sink import StoreLeft, StoreSink
from streamdp_connectors.store.tables import Bounds

from streamdp.errors import ConfigError, Exit, StreamdpError
from streamdp.records import GAP, Answers, Reject
from streamdp.run.lines import is_parquet, lines_for
from streamdp.run.messages import is_terminal
from streamdp.run.reading import Client
from streamdp.run.registered import SINKS, opened
from streamdp.settings import Settings
from streamdp.settings.io_options import NOWHERE, Input, Outputs, scheme_of, without_password
from streamdp.state import claim
from streamdp.state.snapshot import SUFFIX, Header, SnapshotError

BEGINNINGS = {"events": (b'{"event":',), "finality": (b'{"final_through":',)}
"""How the lines of some outputs begin."""


class UndeliveredError(SinkError):
    """A signal has come, and a broker does not take what was written."""


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
    if left is not None and "path" in left:
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
        "file": input.path,
        "output": outputs.output,
        "rejects": None if outputs.rejects_topic else _rejects_path(outputs),
        "events": outputs.events,
        "finality": outputs.finality,
        "store": outputs.store,
    }
    seen: dict[object, str] = {}
    for option, path in named.items():
        if path is not None and scheme_of(path) is not None:
            if option in ("rejects", "store"):
                raise ConfigError(
                    f"--{option} is a file, and {without_password(path)} is an address", Exit.USAGE
                )
            continue
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


_CHECKS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "file": FileCheckpoint.of,
    "parquet": FileCheckpoint.of,
    "topic": check_stored,
    "store": StoreLeft.of,
}
"""What reads the stored state of our own sinks."""

REMEMBERED = 100
"""Refused records by which it is said what would help."""

OUTPUTS = ("output", "rejects", "events", "finality", "store")
"""Names of what is written, in headers of snapshots."""


def check_outputs(header: Header) -> None:
    """Raise SnapshotError (65) unless a header says of its outputs what sinks say."""
    try:
        for name, stored in header.outputs.items():
            if name not in OUTPUTS or not isinstance(stored, dict):
                raise SinkError(f"there is no output {name}", Exit.BAD_DATA)
            _CHECKS.get(_kind_stored(name, stored), dict)(stored)
    except SinkError as error:
        raise SnapshotError(error.message, error.exit_code) from None


def _kind_stored(name: str, stored: Mapping[str, Any]) -> str:
    """The kind of sink that has stored this: one of ours, or the scheme of an address."""
    if name == "store":
        return name
    lines = "parquet" if str(stored.get("path", "")).endswith(PART) else "file"
    return str(stored.get("scheme", lines if "path" in stored else "topic"))


def _check_kinds(outputs: Outputs, kept: Mapping[str, Any]) -> None:
    """Raise SnapshotError unless outputs go to what they went to before."""
    if not {"output", "rejects"} <= set(kept):
        raise SnapshotError(f"{outputs.state}: its outputs are not known", Exit.BAD_DATA)
    for name, (kind, _) in _targets(outputs, kept).items():
        if name in kept and (before := _kind_stored(name, kept[name])) != kind:
            shown = before if before in _CHECKS else f"{before}:// address"
            raise SnapshotError(
                f"{outputs.state}: its {name} went to a {shown} before; "
                "use the same options, or name another --state",
                Exit.CONFIG,
            )


def _targets(outputs: Outputs, kept: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """By name of what is written: the kind of sink that it goes to, and its path, topic or address."""
    topics = {"output": outputs.output_topic, "rejects": outputs.rejects_topic}
    found = {name: ("topic", topic) for name, topic in topics.items() if topic is not None}
    rejects = _rejects_path(outputs, kept.get("rejects"))
    paths = {"output": outputs.output, "rejects": rejects, "events": outputs.events}
    for name, path in (paths | {"finality": outputs.finality, "store": outputs.store}).items():
        if path is not None and name not in found:
            found[name] = "store" if name == "store" else scheme_of(path) or "file", path
    if is_parquet(outputs):
        found["output"] = "parquet", outputs.output
    return {name: found[name] for name in OUTPUTS if name in found}


def _holds_just(path: str, header: bytes) -> bool:
    """Whether a file holds a header, and nothing else: the start of a run was cut off."""
    if not header or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(header) + 1) == header


@contextlib.contextmanager
def _empty_files_go(paths: Sequence[str]) -> Iterator[None]:
    """Remove empty files of these names, made meanwhile, where one of them cannot be opened."""
    fresh = [path for path in paths if not os.path.exists(path)]
    try:
        yield
    except StreamdpError:
        for path in fresh:
            with contextlib.suppress(OSError):
                if not os.path.getsize(path):
                    os.unlink(path)
        raise


class Sinks:
    """The output, the dead letters and the events; files and topics alike go on where a snapshot was.

    ``replayed`` says whether records after the snapshot come again; where they do not, what was written of
    them is kept. ``place`` names what positions consist of. ``waiting`` is called while a broker does not
    take what was written, and may raise.
    """

    def __init__(
        self,
        input: Input,
        outputs: Outputs,
        resumed: Header | None,
        settings: Settings,
        *,
        place: Sequence[str] = ("file", "line"),
        keep: Sequence[str] = (),
        replayed: bool = True,
        waiting: Callable[[], bool] = lambda: True,
    ) -> None:
        kept: dict[str, Any] = {} if resumed is None else resumed.outputs
        if resumed is not None:
            _check_kinds(outputs, kept)
        place = (*place, "record") if settings.format == "otlp" else place
        self._lines = lines_for(outputs, settings, place, keep)
        self._targets, cut_off = _targets(outputs, kept), False
        if resumed is None:
            cut_off = _holds_just(outputs.output, self._lines.header)
        self._delivery, to = _delivery(input, outputs, kept, waiting)
        ended = resumed is not None and resumed.ended
        beginnings = {"output": self._lines.beginnings, **BEGINNINGS}
        self._all: dict[str, Sink[Any]] = {}
        with _empty_files_go([address for _, address in self._targets.values()]):
            for name, (kind, address) in self._targets.items():
                left = kept.get(name)
                left = left.get("state") if left and "scheme" in left else left
                overwrite = outputs.overwrite or (cut_off and name == "output")
                own = name, settings, outputs, beginnings.get(name, ()), to
                asked = Opening(address, left, replayed, ended, overwrite, *own)
                self._all[name] = opened(SINKS, kind, asked, Sink)
        self.output: Sink[bytes] = self._all["output"]
        self.rejects: Sink[Reject] = self._all["rejects"]
        self.events: Sink[bytes] | None = self._all.get("events")
        self.finality: Sink[bytes] | None = self._all.get("finality")
        store: Any = self._all.get("store")
        self.store: StoreSink | None = store
        self._marked = [sink for sink in self._all.values() if isinstance(sink, Marked)]
        if self._lines.header and not (resumed and kept["output"].get("length", True)):
            self.output.write(self._lines.header)
        self.refused: Counter[str] = Counter()
        self.first_refused: list[Reject] = []
        self._encoder = msgspec.json.Encoder()

    @property
    def rejects_name(self) -> str:
        """Where refused records are found."""
        return getattr(self.rejects, "path", None) or f"topic {self._targets['rejects'][1]}"

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
            if len(self.first_refused) < REMEMBERED:
                self.first_refused.append(reject)
        if self.events is not None and answers.events:
            self.events.write(self._encoder.encode_lines(answers.events))
        if self.store is not None:
            self.store.write(answers)

    def put(self, table: str, row: Mapping[str, Any]) -> None:
        """A row for the store that is no answer and no event."""
        if self.store is not None:
            self.store.put(table, row)

    def flush(self, sync: bool) -> None:
        """Hand everything over; ``sync`` to the disk."""
        for sink in self._all.values():
            sink.flush(sync)

    def kept(self) -> dict[str, Any]:
        """The state of the sinks for a snapshot; ask right after a flush."""
        found = {}
        for name, sink in self._all.items():
            scheme, state = scheme_of(self._targets[name][1]), sink.state()
            found[name] = {"scheme": scheme, "state": state} if scheme else state
        return found

    def lasting(self) -> Callable[[], None]:
        """Return a function that waits, in any thread, until all that was handed over is durable."""
        parts = [sink.lasting() for sink in self._all.values()]

        def wait() -> None:
            for part in parts:
                part()

        return wait

    def left(self) -> list[FileSink | RejectSink]:
        """The files that somebody has renamed; ask right after a synced flush."""
        files = [sink for sink in self._all.values() if isinstance(sink, FileSink | RejectSink)]
        return [sink for sink in files if sink.leave()]

    def begin_anew(self, files: Sequence[FileSink | RejectSink]) -> None:
        """Begin others under the names of these, which were renamed."""
        for sink in files:
            sink.begin_anew()
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


# ---------------------------------------------------------------- what is registered


@dataclass(frozen=True)
class Opening(SinkRequest):
    """What our own sinks are opened for; ``name`` says what they write."""

    name: str
    settings: Settings
    outputs: Outputs
    beginnings: Sequence[bytes]
    to_topic: Mapping[str, Any]


def open_file(asked: Opening) -> FileSink | RejectSink:
    """A file of lines, or standard output."""
    outputs = asked.outputs
    how = {"overwrite": asked.overwrite, "anew": outputs.new_output, "replayed": asked.replayed}
    if asked.name != "rejects":
        return FileSink(asked.address, asked.left, beginnings=asked.beginnings, **how)
    spare = asked.left is None and not (outputs.rejects or outputs.state or outputs.to_file)
    return RejectSink(asked.address, asked.left, spare=spare, proposed=outputs.rejects is None, **how)


def open_parquet(asked: Opening) -> ParquetSink:
    """A Parquet file of answers."""
    how = {"overwrite": asked.overwrite, "anew": asked.outputs.new_output, "replayed": asked.replayed}
    return ParquetSink(asked.address, asked.left, beginnings=asked.beginnings, **how)


def open_topic(asked: Opening) -> KafkaSink | KafkaRejects:
    """A topic of answers, or of refused records."""
    sink = KafkaRejects if asked.name == "rejects" else KafkaSink
    return sink(asked.address, resume=asked.left, ended=asked.ended, **asked.to_topic)


def open_store(asked: Opening) -> StoreSink:
    """The store of a stream."""
    outputs, settings = asked.outputs, asked.settings
    open_for = max(settings.retain, settings.max_undecided)
    return StoreSink(
        asked.address,
        asked.left,
        search=outputs.store_search,
        revisions=outputs.store_answers,
        once=outputs.final_only,
        bounds=Bounds(outputs.store_days, outputs.store_rows, open_for),
        overwrite=asked.overwrite,
        replayed=asked.replayed,
        ended=asked.ended,
    )
