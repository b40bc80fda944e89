"""What ``streamdp diff`` takes for a change: false alarms, planted changes, and the logs at hand.

``python -m benchmarks.diffs false`` makes logs in which nothing changes, ``planted`` puts changes into two of
the logs at ../shared/data/logs, ``sets`` lists what is found in all of them at three fifths.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from benchmarks.log_lines import LATER, SETS, log_lines
from benchmarks.workloads import show
from streamdp import Engine, Settings
from streamdp.records import Record
from streamdp.reports.diff import Change, Diff, since_in, told_of
from streamdp.story.changes import SURPRISING

Line = tuple[float, str]

KINDS = 60


def steady(draw: random.Random, minutes: int) -> Iterator[Line]:
    """Kinds at rates of their own, which stay."""
    rates = [draw.expovariate(1.0) for _ in range(KINDS)]
    for minute in range(minutes):
        for _ in range(draw.randrange(15, 25)):
            (kind,) = draw.choices(range(KINDS), rates)
            yield 60.0 * minute + draw.random() * 60, line_of(kind, draw)


def bursty(draw: random.Random, minutes: int) -> Iterator[Line]:
    """Kinds a third of which come in bursts, of minutes, at any time."""
    calm: dict[int, int] = {}
    for minute in range(minutes):
        for kind in range(KINDS):
            if kind % 3:
                count = int(draw.random() < 0.3)
            else:
                if kind not in calm and draw.random() < 0.004:
                    calm[kind] = draw.randrange(1, 5)
                count = draw.randrange(5, 30) if kind in calm else 0
                if kind in calm:
                    calm[kind] -= 1
                    if not calm[kind]:
                        del calm[kind]
            for _ in range(count):
                yield 60.0 * minute + draw.random() * 60, line_of(kind, draw)


def mixed(draw: random.Random, minutes: int) -> Iterator[Line]:
    """Kinds of which each is steady most of the time, and at times comes in bursts."""
    for minute in range(minutes):
        for kind in range(KINDS):
            count = int(draw.random() < 0.3)
            if draw.random() < 0.001 * (kind % 4):
                count += draw.randrange(5, 50)
            for _ in range(count):
                yield 60.0 * minute + draw.random() * 60, line_of(kind, draw)


def zipf(draw: random.Random, minutes: int) -> Iterator[Line]:
    """Ever new kinds: the rate of the k-th commonest is as 1/k."""
    weights = 1.0 / np.arange(1, 4001)
    total = np.cumsum(weights)
    for minute in range(minutes):
        for _ in range(draw.randrange(15, 25)):
            kind = int(np.searchsorted(total, draw.random() * total[-1]))
            yield 60.0 * minute + draw.random() * 60, line_of(kind, draw)


USERS = "root mysql ftp news uucp games daemon backup".split()  # noqa: SIM905


@cache
def words_of(kind: int) -> list[str]:
    """The words of a kind, which no other has."""
    own = random.Random(kind)
    return [
        "".join(own.choice("bdfgklmnprst") + own.choice("aeiou") for _ in range(3))
        for _ in range(3 + kind % 4)
    ]


def line_of(kind: int, draw: random.Random) -> str:
    """A line of a kind, with holes of numbers and words."""
    user = draw.choice(USERS[: 2 + kind % 6])
    text = " ".join(words_of(kind))
    return f"{text} {draw.randrange(10 ** (1 + kind % 5))} for user={user} in {kind % 7 + 1} s"


def engine_of(lines: Sequence[Line], *, dated: bool = True) -> Engine:
    """An engine that has read lines, in order of their times."""
    engine = Engine(Settings(likelihood="template"))
    ordered = enumerate(sorted(lines) if dated else lines)
    engine.advance(Record(text, {"line": i}, time=time if dated else None) for i, (time, text) in ordered)
    return engine


def diff_at(engine: Engine, time: float) -> Diff:
    """What has changed since a time."""
    return since_in(told_of(engine), time)


def false_alarms(logs: int, first: int) -> None:
    """Changes found in logs in which nothing changes."""
    rows: list[tuple[object, ...]] = []
    makers: tuple[Callable[[random.Random, int], Iterator[Line]], ...] = (steady, bursty, mixed, zipf)
    for make in makers:
        lines, found = 0, []
        for seed in range(first, first + logs):
            draw = random.Random(seed)
            minutes = draw.choice((240, 600, 1500))
            made = list(make(draw, minutes))
            engine = engine_of(made)
            lines += len(made)
            for share in (0.5, 0.9):
                found += diff_at(engine, 60.0 * int(minutes * share)).changes
        over = [sum(change.surprise >= nats for change in found) for nats in (2.3, SURPRISING, 6.9)]
        worst = max(found, key=lambda change: change.surprise)
        largest = f"{worst.surprise:.1f}: {worst.kind}, {worst.before} and {worst.after}"
        rows.append((make.__name__, 2 * logs, f"{lines:,}", *over, largest))
    heads = ("log", "diffs", "lines", "over 2.3 nats", f"over {SURPRISING:.1f}", "over 6.9", "largest")
    show("changes found where there are none", heads, rows)


def texts_of(name: str) -> list[str]:
    """The messages of a set."""
    return [line.text for line in log_lines(name)]


def found_in(texts: Sequence[str], at: int) -> Diff:
    """What has changed since so many lines."""
    return diff_at(engine_of([(0.0, text) for text in texts], dated=False), at)


def sets() -> None:
    """What is found in the logs at hand, after three fifths of their lines."""
    for name in SETS + LATER:
        texts = texts_of(name)
        at = len(texts) * 3 // 5
        found = found_in(texts, at)
        heads = ("change", "nats", "before", "after", "template", "value before and after")
        show(f"{name}: since line {at:,}", heads, [row_of(change) for change in found.listed])


def row_of(change: Change) -> tuple[object, ...]:
    """A change in a table."""
    figures = change.kind, f"{change.surprise:.1f}", change.before, change.after
    return *figures, change.title[:60], " ".join(map(str, change.values[0])) if change.values else ""


def spread(
    lines: Sequence[str], planted: Sequence[str], between: tuple[int, int], draw: random.Random
) -> list[str]:
    """Lines with others at random places."""
    found = list(lines)
    for text, place in zip(
        planted, sorted((draw.randrange(*between) for _ in planted), reverse=True), strict=True
    ):
        found.insert(place, text)
    return found


def planted_in(name: str, draw: random.Random) -> Iterator[tuple[str, str, list[str], int]]:
    """A set in which another line comes all along, with one change each; and a word of its template."""
    texts = texts_of(name)
    at = len(texts) * 3 // 5
    usual = [
        f"shard {draw.randrange(64)} flushed {draw.randrange(999)} pages for user={draw.choice(USERS)} code 0"
        for _ in range(400)
    ]
    before = spread(texts, usual[:60], (0, at), draw)
    at += 60
    later = at, len(before)
    poisoned = [f"cache {draw.randrange(9)} is poisoned" for _ in range(25)]
    failed = [text.removesuffix("0") + "17" for text in usual[60:80]]
    failed = draw.sample(failed + usual[80:100], 40)
    steady = spread(before, usual[100:140], later, draw)
    yield "new", "poisoned", spread(steady, poisoned, later, draw), at
    yield "surged", "flushed", spread(steady, usual[140:280], later, draw), at
    yield "silent", "flushed", before, at
    yield "changed", "flushed", spread(before, failed, later, draw), at


def planted() -> None:
    """Where changes that are put into two sets are ranked."""
    rows: list[tuple[object, ...]] = []
    for name in ("OpenSSH", "HDFS"):
        for kind, word, texts, at in planted_in(name, random.Random(name)):
            found = found_in(texts, at)
            rank = next(
                (i for i, each in enumerate(found.changes) if each.kind == kind and word in each.title), -1
            )
            told = found.changes[rank]
            rows.append((name, kind, rank + 1, len(found.listed), *row_of(told)[1:]))
    heads = ("set", "planted", "rank", "listed", "nats", "before", "after", "template", "value")
    show("planted changes", heads, rows)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("false", "planted", "sets"))
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    if options.what == "false":
        false_alarms(options.logs, options.first)
    elif options.what == "sets":
        sets()
    else:
        planted()


if __name__ == "__main__":
    main()
