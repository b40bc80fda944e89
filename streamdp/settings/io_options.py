"""Where a stream comes from and goes to, and what is served meanwhile: options of ``streamdp consume``."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from streamdp.settings.options import Options, option

OutputFormat = Literal["auto", "jsonl", "csv", "parquet"]
LOCAL = "127.0.0.1"
NOWHERE = "/dev/null"
"""The output of a run that only shows its stories on a terminal."""

_input, _output, _state = option("input"), option("output"), option("engine")
_kafka, _page = option("kafka"), option("page")
_STORED = {"store": "{flag} is of a store: say --store FILE"}
_TOPIC = {"topic": "{flag} is for topics, and {of.label} is none"}


def scheme_of(address: str | None) -> str | None:
    """``redis`` of ``redis://host/news``; None for what is no address, such as a path."""
    found = re.match(r"([a-z][a-z0-9+.-]*)://", address or "", re.IGNORECASE)
    return found and found[1].lower()


def without_password(address: str) -> str:
    """An address as it may be shown."""
    return re.sub(r"(?<=://)[^/@]*@", "", address)


class Input(Options, frozen=True, kw_only=True):
    """Where records come from: either ``file`` or ``topic`` is given; fields are options of ``consume``.

    Examples
    --------
    >>> Input(topic="news", bootstrap="broker:9092", until="end").label
    'topic news'
    """

    ONE_OF: ClassVar = {("file", "topic"): "say where to read: either FILE or --topic NAME"}

    file: Annotated[
        str | None,
        _input(
            "file to read, like FILE; - for standard input; or the address of an installed source",
            argument="JSON lines, CSV, TSV or text, .gz, .zst or not",
        ),
    ] = None
    follow: Annotated[
        bool,
        _input(
            "wait for a growing file, like tail -F",
            when={"file": "--follow is for files; a topic is followed unless --until end"},
            common=True,
        ),
    ] = False
    topic: Annotated[str | None, _kafka("Kafka topic to read instead of a file", common=True)] = None
    bootstrap: Annotated[
        str | None, _kafka("Kafka brokers, host:port,... (default: localhost:9092)", common=True)
    ] = None
    kafka_config: Annotated[
        str | None,
        _kafka(
            "properties for TLS and logins, as of Kafka's own tools",
            metavar="PATH",
            when={"topic": "--kafka-config is for topics: say --topic NAME"},
        ),
    ] = None
    group: Annotated[
        str | None, _kafka("consumer group that gets the positions (default: streamdp-TOPIC)", when=_TOPIC)
    ] = None
    start: Annotated[
        str | None,
        _kafka(
            "where to begin a topic: earliest (the default), latest or a time", flag="--from", when=_TOPIC
        ),
    ] = None
    corrections_topic: Annotated[
        str | None, _kafka("topic of the same brokers that corrections by hand come from", when=_TOPIC)
    ] = None
    on_gap: Annotated[
        Literal["stop", "earliest", "latest"],
        _kafka("if records of the topic are gone: stop, or go on with the earliest or latest", when=_TOPIC),
    ] = "stop"
    on_damage: Annotated[
        Literal["stop", "skip"],
        _kafka("if a batch of the topic is damaged: stop, or pass it and note it as a reject", when=_TOPIC),
    ] = "stop"
    give_up_after: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        _kafka(
            "seconds to wait for lost brokers (default: 10 at the start, later for ever)",
            metavar="SECONDS",
            when=_TOPIC,
        ),
    ] = None
    session_timeout: Annotated[
        Annotated[float, Meta(ge=3)],
        _kafka(
            "seconds without a sign of life after which a standby process takes over",
            metavar="SECONDS",
            when=_TOPIC,
        ),
    ] = 10.0
    until: Annotated[
        Literal["never", "end"],
        _kafka("end: stop after the records that the topic holds at the start", when=_TOPIC, common=True),
    ] = "never"
    scope: Annotated[
        Literal["topic", "partition"],
        _kafka(
            "topic: one clustering of all; partition: one for each, shared among processes",
            when={
                "topic": "--scope partition is for topics: say --topic NAME",
                "has_output": "answers of several partitions cannot share standard output: "
                "name an --output or --output-topic",
            },
        ),
    ] = "topic"
    partition: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        _kafka(
            "read only this partition of the topic",
            metavar="N",
            when={**_TOPIC, "one_stream": "--scope partition runs all partitions: leave --partition out"},
        ),
    ] = None

    @property
    def kept(self) -> bool:
        """Whether the stream has a state, though none was named."""
        return self.topic is not None

    @property
    def one_stream(self) -> bool:
        """Whether this process runs one stream, and not one for each partition."""
        return self.scope == "topic"

    @property
    def until_end(self) -> bool:
        """Whether a topic is read to what it holds when the run begins."""
        return self.until == "end"

    @property
    def waits(self) -> bool:
        """Whether a run stands by while another has its state, instead of being refused.

        That of a partition always does: the one before it may still be ending where it moved from.
        """
        return not self.until_end or self.partition is not None

    @property
    def label(self) -> str:
        """What people call it."""
        if self.partition is not None:
            return f"topic {self.topic}, partition {self.partition}"
        return "standard input" if self.file == "-" else without_password(self.file or f"topic {self.topic}")

    @property
    def path(self) -> str | None:
        """The file or folder that is read; None for a topic or an address."""
        return None if scheme_of(self.file) else self.file


class Results(Options, frozen=True, kw_only=True):
    """Where answers go, refused records and the state."""

    output: Annotated[
        str,
        _output(
            "file for assignments, - for standard output (on a terminal, unless written: a table); "
            "or the address of an installed sink",
            common=True,
        ),
    ] = "-"
    rejects: Annotated[str | None, _output("file for refused records (default: next to the output)")] = None
    overwrite: Annotated[bool, _output("replace existing files", common=True)] = False
    group_read: Annotated[
        bool, _output("let the group read what is written, and the state (else only the user may)")
    ] = False
    state: Annotated[
        str | None, _state("folder for a snapshot that stories, fit and consume read", common=True)
    ] = None


class Outputs(Results, frozen=True, kw_only=True):
    """Where everything of a stream goes, and what may become of files that are there.

    Fields are options of ``consume``.

    Examples
    --------
    >>> Outputs(output="answers.jsonl", state="st", store="news.db").with_events
    True
    """

    output_format: Annotated[
        OutputFormat, _output("jsonl, or one table, kept fields as columns: csv, parquet; auto: by its name")
    ] = "auto"
    attributes: Annotated[
        Literal["none", "otel"],
        _output("otel: templates of log lines also as attributes under the names that OpenTelemetry uses"),
    ] = "none"
    final_only: Annotated[bool, _output("write each record once, when its cluster is final")] = False
    events: Annotated[str | None, _output("file for cluster events (default: none)", common=True)] = None
    finality: Annotated[str | None, _output("file for finality (default: among the assignments)")] = None
    new_output: Annotated[bool, _output("begin new files if those of the state were moved away")] = False
    state: Annotated[str | None, _state("folder of snapshots; resumes from the newest", common=True)] = None
    start_from: Annotated[
        str | None, _state("snapshot or state folder to begin with, of fit, refine or another stream")
    ] = None
    store: Annotated[
        str | None,
        _output(
            "SQLite file for records, stories and events, to be asked while it is written",
            when={
                "learns": "--store is for a stream that learns: leave --frozen out",
                "one_stream": "--store holds one stream: run --partition N with a store of its own",
            },
            common=True,
        ),
    ] = None
    store_days: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        _output("days of event time that a store holds", when=_STORED),
    ] = None
    store_rows: Annotated[
        Annotated[int, Meta(ge=1)] | None, _output("latest records that a store holds", when=_STORED)
    ] = None
    store_search: Annotated[
        bool,
        _output("make texts searchable", when=_STORED),
    ] = True
    store_answers: Annotated[bool, _output("a store keeps every revision, too", when=_STORED)] = False
    frozen: Annotated[
        bool,
        _state(
            "score against the state without learning from the records",
            when={"one_stream": "--frozen scores against one state: say --partition N"},
        ),
    ] = False
    output_topic: Annotated[
        str | None, _kafka("Kafka topic (of one partition) for assignments instead of a file")
    ] = None
    rejects_topic: Annotated[str | None, _kafka("Kafka topic for refused records instead of a file")] = None

    @property
    def has_output(self) -> bool:
        """Whether answers go anywhere but to standard output."""
        return self.output not in ("-", NOWHERE) or self.output_topic is not None

    @property
    def to_file(self) -> bool:
        """Whether answers go to a file."""
        return self.output not in ("-", NOWHERE) and scheme_of(self.output) is None

    @property
    def kept(self) -> bool:
        """Whether the stream has a state."""
        return self.state is not None

    @property
    def learns(self) -> bool:
        """Whether the stream learns from its records."""
        return not self.frozen

    @property
    def with_events(self) -> bool:
        """Whether anybody reads events."""
        return self.events is not None or self.store is not None

    @property
    def modes(self) -> dict[str, bool]:
        """What a state can only be gone on with in the same way."""
        return {"final_only": self.final_only, "events": self.with_events}


PageHost = Annotated[str, _page("address to serve the page at")]
PageToken = Annotated[
    str | None, _page("file with the token that strangers need (default: one is made up)", metavar="PATH")
]


PageCorrections = Annotated[
    bool, _page("let whoever sees the page correct stories by hand (needs a --state)", common=True)
]


class PageAddress(Options, frozen=True, kw_only=True):
    """Where a page is served, and to whom."""

    page_host: PageHost = LOCAL
    page_token: PageToken = None
    page_corrections: PageCorrections = False


class Serving(Options, frozen=True, kw_only=True):
    """What is served while a stream runs, where it was asked for; fields are options of ``consume``.

    Examples
    --------
    >>> Serving(page=8080).page_host
    '127.0.0.1'
    """

    page: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        _page(
            "serve a live page at this port",
            metavar="PORT",
            when={"one_stream": "--page shows one stream: run --partition N with a page of its own"},
            common=True,
        ),
    ] = None
    page_host: PageHost = LOCAL
    page_token: PageToken = None
    page_corrections: PageCorrections = False
    page_linger: Annotated[bool, _page("keep serving it when the input has ended, until Ctrl-C")] = False
    metrics_port: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        _page("serve /metrics, /livez and /readyz at this port", metavar="PORT", common=True),
    ] = None
    metrics_host: Annotated[str, _page("address to serve them at")] = LOCAL


_service = option("service")


class Service(Options, frozen=True, kw_only=True):
    """Where a service is, to whom, and what it keeps: options of ``streamdp serve``."""

    port: Annotated[Annotated[int, Meta(ge=0)], _service("port, 0 for any free one", common=True)] = 8080
    host: Annotated[
        str, _service("address; any but this machine's own asks for a token or certificates", common=True)
    ] = LOCAL
    token: Annotated[
        str | None,
        _service(
            "file with the token that clients send (or its text in STREAMDP_TOKEN)",
            metavar="PATH",
            common=True,
        ),
    ] = None
    tls_cert: Annotated[str | None, _service("file with the certificate of this server", metavar="PATH")] = (
        None
    )
    tls_key: Annotated[str | None, _service("file with its key", metavar="PATH")] = None
    tls_clients: Annotated[
        str | None,
        _service("file with the authority of clients, who must show certificates", metavar="PATH"),
    ] = None
    answer_within: Annotated[
        Annotated[float, Meta(ge=0.1, le=80)],
        _service("seconds after which a record without an answer is reported as pending", metavar="SECONDS"),
    ] = 30.0
    keep_journal: Annotated[
        str | None,
        _service("so much of the journal stays, though no snapshot needs it (500M, 2G)", metavar="SIZE"),
    ] = None

    @property
    def one_stream(self) -> bool:
        """Whether this process runs one stream."""
        return True
