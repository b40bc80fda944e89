"""Commands that run a stream, and their options; what they do stands in modules of their own."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamdp.cli.base import Config, Overwrite, PageHost, PageToken, app
from streamdp.cli.errors import LogFormat, choose_log_format, speak_of
from streamdp.cli.lines import OutputFormat
from streamdp.cli.options import with_settings
from streamdp.settings import Settings

PagePort = Annotated[
    int | None, typer.Option("--page", min=0, help="serve a live page at this port", metavar="PORT")
]
OnGap = Literal["stop", "earliest", "latest"]
Until = Literal["never", "end"]
Scope = Literal["topic", "partition"]


def _log_format(form: LogFormat) -> LogFormat:
    choose_log_format(form)
    return form


@app.command()
@with_settings
def consume(
    settings: Settings,
    source: Annotated[
        str | None, typer.Argument(help="JSON lines, CSV, TSV or text, .gz, .zst or not", metavar="[FILE]")
    ] = None,
    file: Annotated[str | None, typer.Option(help="the same; - for standard input")] = None,
    topic: Annotated[str | None, typer.Option(help="Kafka topic to read instead of a file")] = None,
    bootstrap: Annotated[
        str | None, typer.Option(help="Kafka brokers, host:port,... (default: localhost:9092)")
    ] = None,
    kafka_config: Annotated[
        str | None,
        typer.Option(help="properties for TLS and logins, as of Kafka's own tools", metavar="PATH"),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="consumer group that is told the positions (default: streamdp-TOPIC)")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="where a topic is begun: earliest (the default), latest or a time"),
    ] = None,
    on_gap: Annotated[
        OnGap,
        typer.Option(help="where records of the topic are gone: stop, or go on with the earliest or latest"),
    ] = "stop",
    give_up_after: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="seconds to wait for lost brokers (default: 10 at the start, later for ever)",
            metavar="SECONDS",
        ),
    ] = None,
    session_timeout: Annotated[
        float | None,
        typer.Option(
            min=3.0,
            help="seconds of silence after which a process that stands by takes over (default: 10)",
            metavar="SECONDS",
        ),
    ] = None,
    until: Annotated[
        Until, typer.Option(help="end: stop at what the topic holds when the run begins")
    ] = "never",
    scope: Annotated[
        Scope,
        typer.Option(help="topic: one clustering of all; partition: one for each, among all processes"),
    ] = "topic",
    partition: Annotated[
        int | None, typer.Option(min=0, help="read this partition of the topic alone", metavar="N")
    ] = None,
    output: Annotated[str, typer.Option(help="where assignments go, - for standard output")] = "-",
    output_format: Annotated[
        OutputFormat,
        typer.Option(help="jsonl, or csv: one table, the kept fields as columns; auto: by its name"),
    ] = "auto",
    finality: Annotated[
        str | None, typer.Option(help="where finality goes, instead of among the assignments")
    ] = None,
    output_topic: Annotated[
        str | None, typer.Option(help="Kafka topic (of one partition) for assignments instead of a file")
    ] = None,
    state: Annotated[str | None, typer.Option(help="folder of snapshots; resumes from the newest")] = None,
    rejects: Annotated[
        str | None, typer.Option(help="where refused records go (default: next to the output)")
    ] = None,
    rejects_topic: Annotated[
        str | None, typer.Option(help="Kafka topic for refused records instead of a file")
    ] = None,
    events: Annotated[str | None, typer.Option(help="where cluster events go, if anywhere")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="wait for a growing file, like tail -F")] = False,
    final_only: Annotated[
        bool, typer.Option("--final-only", help="write each record once, when its cluster is final")
    ] = False,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="score against the state without learning from the records")
    ] = False,
    overwrite: Overwrite = False,
    new_output: Annotated[
        bool, typer.Option("--new-output", help="begin new files where those of the state were moved away")
    ] = False,
    rotate: Annotated[
        str | None,
        typer.Option(help="begin new output files daily, or at a size such as 100M", metavar="daily|SIZE"),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(help="snapshot or state folder to begin with, of fit, refine or another stream"),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, help="serve /metrics, /livez and /readyz at this port")
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="address to serve them at")] = "127.0.0.1",
    page: PagePort = None,
    page_host: PageHost = "127.0.0.1",
    page_token: PageToken = None,
    page_linger: Annotated[
        bool, typer.Option("--page-linger", help="serve it on when the input has ended, until Ctrl-C")
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            help="lines on stderr: plain, dated (with time and level) or json",
            callback=_log_format,
            is_eager=True,
        ),
    ] = "plain",
    config: Config = None,
) -> int:
    """Read records in time order, say of each at once which cluster it belongs to."""
    from streamdp.cli.consume import consume
    from streamdp.cli.live import page_at
    from streamdp.cli.reading import one_file, origin_of
    from streamdp.cli.writing import Paths, rotation_of

    origin = origin_of(
        one_file(source, file),
        follow,
        topic,
        bootstrap,
        group,
        start,
        until == "end",
        on_gap,
        give_up_after,
        session_timeout,
        kafka_config,
    )._replace(partition=partition)
    paths = Paths(
        output,
        state,
        rejects,
        events,
        output_topic,
        rejects_topic,
        overwrite,
        new_output,
        finality,
        output_format,
        rotation_of(rotate),
    )
    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    if scope == "partition":
        from streamdp.cli.scope import check, share

        return share(origin, check(origin, paths, page=page is not None, frozen=frozen), metrics)
    if partition is not None:
        speak_of(f"partition {partition}: ")
    return consume(
        settings,
        origin,
        paths,
        final_only=final_only,
        frozen=frozen,
        start_from=start_from,
        metrics=metrics,
        page=page_at(page, page_host, page_token, linger=page_linger),
    )


@app.command()
@with_settings
def demo(
    settings: Settings,
    records: Annotated[int, typer.Option(min=1, help="records to generate")] = 5000,
    page: Annotated[
        bool, typer.Option("--page", help="show a live page, and take the time to look at it")
    ] = False,
    page_port: Annotated[int, typer.Option(min=0, help="port of the page, 0 for any free one")] = 8080,
    config: Config = None,
) -> None:
    """Cluster a generated stream of news whose stories are born, drift and die; score it at the end."""
    from streamdp.cli.demo import demo
    from streamdp.cli.live import page_at

    demo(settings, records, page_at(page_port if page else None, linger=True))


@app.command()
@with_settings
def spark(
    settings: Settings,
    checkpoint: Annotated[str, typer.Option(help="Spark's checkpoint, which holds the states")],
    output: Annotated[str, typer.Option(help="folder of Parquet files for the answers")],
    key: Annotated[
        str | None, typer.Option(help="field that tells streams apart: one engine for each")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, help="instead: engines that share one stream, of texts")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Kafka topic of JSON records")] = None,
    folder: Annotated[str | None, typer.Option(help="folder of files of JSON lines instead")] = None,
    bootstrap: Annotated[str, typer.Option(help="Kafka brokers, host:port,...")] = "localhost:9092",
    start: Annotated[
        Literal["earliest", "latest"], typer.Option("--from", help="where a topic is begun")
    ] = "earliest",
    rows: Annotated[int | None, typer.Option(min=1, help="most records of a topic in a micro-batch")] = None,
    once: Annotated[bool, typer.Option("--once", help="stop at what is there when the run begins")] = False,
    master: Annotated[
        str | None, typer.Option(help="where Spark runs (default: spark-submit's, else local[*])")
    ] = None,
    time_to_live: Annotated[
        float | None,
        typer.Option(min=0.001, help="seconds after which a silent key is forgotten", metavar="SECONDS"),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help="parts that keys are divided into, for ever (default: twice the cores)"),
    ] = None,
    config: Config = None,
) -> None:
    """Cluster each key of a topic or a folder by an engine of its own, or all in shards (docs/spark.md)."""
    from streamdp.cli.spark import Job, run

    run(
        settings,
        Job(
            key=key,
            shards=shards,
            checkpoint=checkpoint,
            output=output,
            topic=topic,
            folder=folder,
            bootstrap=bootstrap,
            start=start,
            rows=rows,
            once=once,
            master=master,
            time_to_live=time_to_live,
            partitions=partitions,
        ),
    )
