"""Where ``consume`` writes: files or topics for answers, dead letters and events."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from streamdp_connectors.files import FileSink
from streamdp_connectors.kafka_sink import KafkaRejects, KafkaSink
from streamdp_connectors.protocol import Sink
from streamdp_connectors.rejects import RejectSink

from streamdp.cli.reading import Origin
from streamdp.errors import Exit
from streamdp.records import Answers, Reject
from streamdp.settings.load import ConfigError
from streamdp.state.snapshot import Header, SnapshotError


class Paths(NamedTuple):
    """Where everything is."""

    output: str = "-"
    state: str | None = None
    rejects: str | None = None
    events: str | None = None
    output_topic: str | None = None
    rejects_topic: str | None = None


def default_state(topic: str) -> str:
    """A folder of a topic's own under the user's state folder."""
    root = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(root, "streamdp", topic)


def _rejects_path(paths: Paths) -> str:
    if paths.rejects is not None:
        return paths.rejects
    if paths.output != "-":
        return paths.output + ".rejects.jsonl"
    return os.path.join(paths.state, "rejects.jsonl") if paths.state else "streamdp-rejects.jsonl"


def refuse_double_use(origin: Origin, paths: Paths) -> None:
    """No file may play two parts: the second would cut the first. Raises ConfigError."""
    named = {
        "file": origin.file,
        "output": paths.output,
        "rejects": None if paths.rejects_topic else _rejects_path(paths),
        "events": paths.events,
    }
    seen: dict[str, str] = {}
    for option, path in named.items():
        if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        real = os.path.realpath(path)
        if real in seen:
            raise ConfigError(f"--{seen[real]} and --{option} name the same file, {path}", Exit.USAGE)
        seen[real] = option


class Sinks:
    """The output, the dead letters and the events; files and topics alike go on where a snapshot was."""

    def __init__(self, origin: Origin, paths: Paths, resumed: Header | None, overwrite: bool) -> None:
        kept: dict[str, Any] = {} if resumed is None else resumed.outputs
        for name, topic in (("output", paths.output_topic), ("rejects", paths.rejects_topic)):
            if isinstance(kept.get(name), dict) != (topic is not None) and name in kept:
                raise SnapshotError(
                    f"{paths.state}: its {name} went to a {'file' if topic else 'topic'} before; "
                    "use the same options, or name another --state",
                    Exit.CONFIG,
                )
        self.output: Sink[bytes]
        self.rejects: Sink[Reject]
        if paths.output_topic is None:
            self.output = FileSink(paths.output, kept.get("output"), overwrite)
        else:
            self.output = KafkaSink(paths.output_topic, origin.bootstrap, resume=kept.get("output"))
        if paths.rejects_topic is None:
            self.rejects_name = _rejects_path(paths)
            self.rejects = self._rejects_file(paths, kept.get("rejects"), overwrite)
        else:
            self.rejects_name = f"topic {paths.rejects_topic}"
            self.rejects = KafkaRejects(paths.rejects_topic, origin.bootstrap, resume=kept.get("rejects"))
        self._all: dict[str, Sink[Any]] = {"output": self.output, "rejects": self.rejects}
        self.events: Sink[bytes] | None = None
        if paths.events is not None:
            self.events = self._all["events"] = FileSink(paths.events, kept.get("events"), overwrite)
        self.refused: Counter[str] = Counter()
        self._encoder = msgspec.json.Encoder()

    def _rejects_file(self, paths: Paths, length: int | None, overwrite: bool) -> RejectSink:
        path = self.rejects_name
        if length is None and paths.rejects is None and paths.output == "-" and os.path.exists(path):
            length = os.path.getsize(path)  # the default file of standard output collects
        return RejectSink(path, length, overwrite)

    def mark(self, positions: dict[str, Any]) -> None:
        """Note the source's positions after a read, before what comes of it is written."""
        for sink in self._all.values():
            sink.mark(positions)

    def marks(self) -> list[Mapping[str, Any]]:
        """The positions that an interrupted run had noted after its last snapshot."""
        return [mark for sink in self._all.values() for mark in sink.marks]

    def write(self, answers: Answers) -> None:
        """Append all answers."""
        if answers.lines:
            self.output.write(self._encoder.encode_lines(answers.lines))
        for reject in answers.rejects:
            self.rejects.write(reject)
            self.refused[reject.reason] += 1
        if self.events is not None and answers.events:
            self.events.write(self._encoder.encode_lines(answers.events))

    def flush(self, sync: bool) -> None:
        """Hand everything over; with ``sync`` to the disk."""
        for sink in self._all.values():
            sink.flush(sync)

    def kept(self) -> dict[str, Any]:
        """What a snapshot keeps of them; to be asked for right after a synced flush."""
        return {name: sink.state() for name, sink in self._all.items()}

    def close(self) -> None:
        """Close all."""
        for sink in self._all.values():
            sink.close()
