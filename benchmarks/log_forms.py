"""Messages of real logs written in each form: group accuracy beside the plain form's, and Drain3's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from string import Template
from typing import NamedTuple

from benchmarks.log_lines import Line, accuracy, drain, log_lines
from benchmarks.logs import labels_of, messages
from benchmarks.workloads import show
from streamdp.lines.base import Terms

BEGAN = 1777896000.0
SETS = ("Hadoop", "BGL", "Zookeeper")


class Event(NamedTuple):
    """What a line says: seconds since 1970, level, component and message."""

    time: float
    level: str
    component: str
    message: str


def stamp(form: str, at: float, digits: int = 0, stem: str = ".") -> str:
    """A time of UTC by a form of ``strftime``, with digits of its fraction."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime(form) + (stem + f"{moment.microsecond:06d}000"[:digits] if digits else "")


def iso(at: float, digits: int = 3) -> str:
    """A time as ISO 8601 has it, with T and Z."""
    return stamp("%FT%T", at, digits) + "Z"


_PLAIN = "$python $level [main] $part: $said"
_HEADS = f"""
plain	{_PLAIN}
colours	\x1b[90m$point\x1b[0m \x1b[1;32m$padded\x1b[0m \x1b[36m$part\x1b[0m: \x1b[1m$said\x1b[0m
syslog 3164	<$pri>$syslog web1 $part[77]: $said
syslog 5424	<$pri>1 $iso web1.example.com $part 77 ID47 [origin@32473 ip="10.0.0.7" note="a \\] b"] $said
journald	{{"__REALTIME_TIMESTAMP":"$micros","PRIORITY":"$severity","_COMM":"$part","MESSAGE":$json}}
logfmt of slog	time=$iso level=$level msg=$pair logger=$part attempt=3
logfmt of logrus	time="$iso" level=$lower msg=$json component=$part
logfmt of go-kit	ts=$iso caller=main.go:12 level=$lower component=$part msg=$pair
logfmt of Prometheus	level=$lower ts=$iso caller=db.go:7 component=$part msg=$pair size=7
zap	{{"level":"$lower","ts":$seconds,"logger":"$part","caller":"a.go:7","msg":$json}}
pino	{{"level":$tens,"time":$millis,"pid":7,"hostname":"web1","name":"$part","msg":$json}}
structlog	{{"event":$json,"level":"$lower","logger":"$part","timestamp":"$iso6"}}
ECS, nested	{{"@timestamp":"$iso","log":{{"level":"$level","logger":"$part"}},"message":$json}}
ECS, dotted	{{"@timestamp":"$iso","log.level":"$level","message":$json,"log.logger":"$part"}}
Rust tracing	{{"timestamp":"$iso6","level":"$level","fields":{{"message":$json,"n":7}},"target":"$part"}}
GCP, text	{{"textPayload":$json,"timestamp":"$iso9","severity":"$level","labels":{{"component":"$part"}}}}
GCP, JSON	{{"jsonPayload":{{"message":$json,"logger":"$part"}},"timestamp":"$iso9","severity":"$level"}}
Serilog	{{"@t":"$iso7","@mt":$braced,"@l":"$level","SourceContext":"$part"}}
python-json-logger	{{"asctime":"$python","name":"$part","levelname":"$level","message":$json}}
MongoDB	{{"t":{{"$$date":"$iso"}},"s":"$letter","c":"$part","id":22943,"msg":$json,"attr":{{"n":7}}}}
Docker json-file	{{"log":$logged,"stream":"stdout","time":"$iso9"}}
CRI	$iso9 stdout F {_PLAIN}
kubectl --prefix	[pod/web-7d4b9c-x2x/app] {_PLAIN}
kubectl --timestamps	$iso9 {_PLAIN}
docker compose	\x1b[36mweb-1  | \x1b[0m{_PLAIN}
GitHub Actions	$iso7 $said
Python	$python - $part - $level - $said
loguru	$point | $padded | $part:run:12 - $said
uvicorn	$level:     $said
Spring Boot	$point $padded 7 --- [           main] $part            : $said
Spring Boot 3	$iso $padded 7 --- [shop] [nio-8080-exec-1] $part            : $said
log4j	$python [main] $padded $part - $said
logback	$clock [main] $padded $part - $said
klog	$letter$klog       7 $part.go:12] $said
AM and PM	$american $level $part: $said
German dates	$german $level $part: $said
"""
WRITERS = {name: Template(head) for name, head in (line.split("\t") for line in _HEADS.strip().split("\n"))}
"""How a form writes a line, by its name."""


def write(form: str, event: Event) -> str:
    """The line of an event in a form."""
    at, level, part, said = event
    quoted, place = json.dumps(said), ("DEBUG", "INFO", "WARN", "ERROR").index(level)
    fields = {
        "level": level, "lower": level.lower(), "padded": f"{level:5}", "letter": level[0], "part": part,
        "said": said, "json": quoted, "braced": json.dumps(said.replace("{", "{{").replace("}", "}}")),
        "pair": quoted if set(said) & set(' ="\\') else said, "tens": 20 + 10 * place,
        "severity": (7, 6, 4, 3)[place], "pri": 8 + (7, 6, 4, 3)[place],
        "seconds": at, "millis": round(at * 1e3), "micros": round(at * 1e6),
        "iso": iso(at), "iso6": iso(at, 6), "iso7": iso(at, 7), "iso9": iso(at, 9),
        "point": stamp("%F %T", at, 3), "python": stamp("%F %T", at, 3, ","), "clock": stamp("%T", at, 3),
        "syslog": stamp("%b %e %T", at), "klog": stamp("%m%d %T", at, 6),
        "american": stamp("%m/%d/%Y %I:%M:%S %p", at), "german": stamp("%d.%m.%Y %T", at, 3, ","),
    }  # fmt: skip
    fields["logged"] = json.dumps(Template(_PLAIN).substitute(fields) + "\n")
    return WRITERS[form].substitute(fields)


def figures(form: str, lines: Sequence[Line]) -> tuple[float, float]:
    """Group accuracy of the lines of a log that are written in a form, and Drain3's of the same."""
    written = [write(form, Event(BEGAN + n, "INFO", "shop.Cart", line.text)) for n, line in enumerate(lines)]
    truth = [line.corrected for line in lines]
    miner = drain()
    peer = [miner.add_log_message(line)["cluster_id"] for line in written]
    return accuracy(labels_of(messages(written), Terms())[1], truth)[0], accuracy(peer, truth)[0]


def main() -> None:
    """Run and print."""
    sets, rows = {name: log_lines(name) for name in SETS}, []
    for form in WRITERS:
        found = [figure for lines in sets.values() for figure in figures(form, lines)]
        rows.append((form, *(f"{figure:.3f}" for figure in found)))
    show("GA by form", ("form", *(each for name in SETS for each in (name, "Drain3"))), rows)


if __name__ == "__main__":
    main()
