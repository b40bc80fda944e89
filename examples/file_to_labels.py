"""From a file of JSON lines to a table of labels: one row a record, with the newest label it was given.

python examples/file_to_labels.py news.jsonl labels.csv

Without arguments it clusters 1,000 generated headlines and prints the first rows.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from streamdp.demo.stream import demo_stream
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Record
from streamdp.settings import Settings

BATCH = 500
Row = tuple[int, str | int | None, int, float]


def of_file(path: str) -> Iterator[Record]:
    """The records of a file whose lines have a ``text``, and may have a ``time`` in seconds and an ``id``."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            read = json.loads(line)
            yield Record(read["text"], {"file": path, "line": number}, read.get("time"), read.get("id"))


def of_demo(n: int) -> Iterator[Record]:
    """Generated headlines."""
    for number, item in enumerate(demo_stream(n, seed=0), 1):
        yield Record(item.text, {"line": number}, item.time, item.id)


def labels(records: Iterable[Record]) -> list[Row]:
    """Number, id, newest label and its probability, of every record."""
    engine = Engine(Settings())
    newest: dict[int, Row] = {}

    def take(answers: Answers) -> None:
        for line in answers.lines:
            if isinstance(line, Assignment):
                newest[line.seq] = (line.seq, line.id, line.cluster, line.probability)

    coming = iter(records)
    while batch := list(islice(coming, BATCH)):
        take(engine.advance(batch))
    take(engine.finish())
    return [newest[seq] for seq in sorted(newest)]


def main() -> None:
    """Write a table, or print the beginning of one."""
    head = ("record", "id", "cluster", "probability")
    if len(sys.argv) == 3:
        with open(sys.argv[2], "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *labels(of_file(sys.argv[1]))])
        return
    rows = labels(of_demo(1000))
    for row in [head, *rows[:5]]:
        print(*row, sep=",")
    print(f"{len(rows):,} records in {len({row[2] for row in rows})} clusters")


if __name__ == "__main__":
    main()
