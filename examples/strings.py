"""Cluster a list of strings: the newest label of each, and what the clusters are about.

python examples/strings.py
"""

from __future__ import annotations

from streamdp.engine import Engine
from streamdp.records import Assignment, Record
from streamdp.settings import Settings

HEADLINES = [
    "harbour strike in Bergen enters second week",
    "dockers strike at Bergen harbour goes on",
    "comet seen over the observatory at dawn",
    "talks fail, Bergen harbour strike continues",
    "astronomers at the observatory photograph comet",
    "river flood closes bridge in Cork",
    "comet brighter than expected, observatory says",
    "Cork bridge closed as river flood rises",
    "harbour in Bergen reopens after strike",
    "flood water falls, Cork bridge still closed",
]


def newest(answers: list[Assignment], labels: dict[int, int]) -> dict[int, int]:
    """Labels by record number, brought up to date: a later line of a record replaces the earlier one."""
    return labels | {line.seq: line.cluster for line in answers}


def main() -> None:
    """Read the headlines one after the other, as they would come."""
    engine = Engine(Settings())
    labels: dict[int, int] = {}
    for i, headline in enumerate(HEADLINES):
        answers = engine.advance([Record(headline, {"line": i + 1})])
        labels = newest([line for line in answers.lines if isinstance(line, Assignment)], labels)
    for i, headline in enumerate(HEADLINES):
        print(labels[i], headline)
    for cluster in engine.clusters():
        print(
            f"cluster {cluster.cluster}, {cluster.size} records:", *(word for word, _ in cluster.words or ())
        )


if __name__ == "__main__":
    main()
