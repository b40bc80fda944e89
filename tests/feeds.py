"""Streams of engine records, tidy and untidy, and ways to feed them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.drifting import demo_stream
from streamdp.encode.encoders import Encoder
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Event, Final, Record, Reject
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch
from streamdp.settings import Settings


class Told(NamedTuple):
    """All that an engine has said."""

    lines: list[Assignment | Final]
    rejects: list[Reject]
    events: list[Event]

    def add(self, answers: Answers) -> None:
        """Append the answers of one call."""
        self.lines.extend(answers.lines)
        self.rejects.extend(answers.rejects)
        self.events.extend(answers.events)

    def assignments(self) -> list[Assignment]:
        """The lines that are no finality."""
        return [line for line in self.lines if isinstance(line, Assignment)]

    def first(self) -> list[Assignment]:
        """The assignments as first announced."""
        return [line for line in self.assignments() if line.revision == 0]

    def newest(self) -> list[int]:
        """The newest label of every record."""
        labels: dict[int, int] = {}
        for line in self.assignments():
            labels[line.seq] = line.cluster
        return [labels[seq] for seq in range(len(labels))]

    def encoded(self) -> tuple[bytes, list[bytes], bytes]:
        """As bytes; the rejects by position, since their order has a test of its own."""
        encoder = msgspec.json.Encoder()
        rejects = sorted(self.rejects, key=lambda r: r.position["line"])
        return (
            encoder.encode_lines(self.lines),
            [encoder.encode(r) for r in rejects],
            encoder.encode_lines(self.events),
        )


def nothing() -> Told:
    """Nothing said yet."""
    return Told([], [], [])


def feed(engine: Engine, records: Sequence[Record], cuts: Iterable[int] = ()) -> Told:
    """Feed the records in batches that begin at ``cuts``."""
    told = nothing()
    marks = [0, *sorted(set(cuts)), len(records)]
    for start, stop in itertools.pairwise(marks):
        told.add(engine.advance(records[start:stop]))
    return told


def reloaded(
    settings: Settings, records: Sequence[Record], cuts: Iterable[int], **modes: bool
) -> tuple[Engine, Told]:
    """As ``feed``, to engines of which each is loaded from the state of the one before it."""
    engine, told = Engine(settings, **modes), nothing()
    marks = [0, *cuts, len(records)]
    for start, stop in itertools.pairwise(marks):
        told.add(engine.advance(records[start:stop]))
        engine = Engine.loads(engine.dumps(), settings, **modes)
    return engine, told


def record(value: str | list[float] | dict[str, float], line: int, time: float | None = None) -> Record:
    """A record with a position, an id and raw bytes."""
    return Record(value, {"file": "x", "line": line}, time, f"r{line}", raw=b"raw %d" % line)


def texts(n: int, seed: int, topics: int = 5) -> list[Record]:
    """Short texts over few words, hard to tell apart, so that hypotheses disagree and labels are revised."""
    rng = random.Random(seed)
    made = []
    for i in range(n):
        first = 2 * rng.randrange(topics)
        words = [f"word{first + rng.randrange(5)}" for _ in range(rng.randint(1, 5))]
        made.append(record(" ".join(words), i + 1, float(i // 2)))
    return made


def topical(n: int, seed: int, *, drift: bool, share: float = 0.35) -> tuple[list[Record], list[int]]:
    """Texts of 5 to 12 words of a power law, a ``share`` of them words of a topic; the topic of each.

    With ``drift`` a topic lives in a sixth of the stream only.
    """
    rng, topics = np.random.default_rng(seed), 60
    names = [
        f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("nor", "tal", "vim", "sed", "ruk")
    ]
    words = rng.permutation([f"{a}{b}" for a in names for b in names[:12]])
    common = 1.0 / np.arange(1, len(words) + 1)
    own = rng.choice(len(words), (topics, 25), replace=True)
    shares = 1.0 / np.arange(1, 26) ** 0.7
    starts, sizes = rng.random(topics) * (5 / 6), rng.dirichlet(np.full(topics, 0.7))
    found, true = list[Record](), list[int]()
    for i in range(n):
        living = sizes * ((starts <= i / n) & (i / n < starts + 1 / 6)) if drift else sizes
        living = living if living.any() else sizes
        topic = int(rng.choice(topics, p=living / living.sum()))
        length = int(rng.integers(5, 13))
        ours = rng.random(length) < share
        drawn = np.where(
            ours,
            own[topic, rng.choice(25, length, p=shares / shares.sum())],
            rng.choice(len(words), length, p=common / common.sum()),
        )
        found.append(record(" ".join(words[drawn]), i + 1, 1_700_000_000.0 + 60.0 * i))
        true.append(topic)
    return found, true


def headlines(n: int, seed: int) -> list[Record]:
    """The demo stream as records."""
    return [
        Record(item.text, {"file": "demo", "line": i + 1}, item.time, item.id, raw=item.text.encode())
        for i, item in enumerate(demo_stream(n, seed))
    ]


BESIDE: dict[str, Any] = {"texts": ("text",), "vector_field": "embedding"}
"""Settings of such records."""


def embedded(n: int, seed: int) -> list[Record]:
    """Texts as a field, and a direction beside most of them."""
    rng, found = np.random.default_rng(seed), []
    for each in texts(n, seed):
        value: dict[str, Any] = {"text": each.value}
        if rng.random() < 0.9:
            value["embedding"] = (np.eye(4)[rng.integers(3)] + rng.normal(0.0, 0.2, 4)).tolist()
        found.append(msgspec.structs.replace(each, value=value))
    return found


def vectors(n: int, seed: int) -> list[Record]:
    """Vectors of three numbers around four centres that lie close together."""
    rng = random.Random(seed)
    centres = [[rng.gauss(0.0, 1.0) for _ in range(3)] for _ in range(4)]
    return [record([rng.gauss(c, 0.5) for c in rng.choice(centres)], i + 1, float(i // 2)) for i in range(n)]


def features(n: int, seed: int) -> list[Record]:
    """Vectors by feature name, now and then with a feature missing."""
    rng = random.Random(seed)
    made = []
    for item in vectors(n, seed):
        assert isinstance(item.value, list)
        named = dict(zip(("height", "width", "depth"), item.value, strict=True))
        if item.position["line"] > 1 and rng.random() < 0.1:
            del named["width"]
        made.append(msgspec.structs.replace(item, value=named))
    return made


def untidy(records: Sequence[Record], seed: int, times: bool = True) -> list[Record]:
    """The stream out of order by up to four seconds, some times missing, some records of another kind."""
    rng = random.Random(seed)
    made = []
    for item in records:
        draw = rng.random()
        if item.position["line"] == 1:
            pass
        elif draw < 0.25:
            assert item.time is not None
            item = msgspec.structs.replace(item, time=item.time - rng.choice([1.0, 2.0, 4.0]))
        elif draw < 0.3 and times:
            item = msgspec.structs.replace(item, time=None)
        elif draw < 0.35:
            item = msgspec.structs.replace(
                item, value=[1.0, 2.0] if isinstance(item.value, str) else "a text"
            )
        elif draw < 0.37:
            item = msgspec.structs.replace(item, value="..." if isinstance(item.value, str) else [1.0])
        made.append(item)
    return made


def changed(rng: random.Random, line: bytes, alphabet: bytes, times: Sequence[int]) -> bytes:
    """The line after one of so many changes: bytes that are gone, more, others, or there again."""
    data = bytearray(line)
    for _ in range(rng.choice(times)):
        i, j = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        match rng.randrange(4):
            case 0:
                del data[i : i + 1]
            case 1:
                data.insert(i, rng.choice(alphabet))
            case 2:
                data[i : i + 1] = bytes([rng.choice(alphabet)])
            case _:
                data[i:i] = data[i:j][:20]
    return bytes(data)


def assigned(seq: int, **given: Any) -> Assignment:
    """The answer to a record, made up but for what is given."""
    made = {"id": None, "position": {}, "time": float(seq), "cluster": 0, "probability": 1.0, "new": False}
    of_model = {"new_probability": 0.0, "link": None, "log_predictive": -1.0, "novelty": 1.0}
    return Assignment(**{"seq": seq, **made, **of_model, **given})


def raws_of(lines: Sequence[bytes], path: str = "in", *, first: int = 1, arrival: float = 2e9) -> RawBatch:
    """Lines of a file, as a source delivers them."""
    raws = RawBatch({"file": path}, ("line",))
    raws.data = list(lines)
    raws.places = list(range(first, first + len(lines)))
    raws.arrivals = [arrival] * len(lines)
    return raws


def encoded(encoder: Encoder, records: Sequence[Record]) -> list[Reject | None]:
    """Append records to the batch of an encoder, or say of each why it cannot be clustered."""
    refused = dict(encoder.add(Columns.of(records)))
    return [refused.get(i) for i in range(len(records))]
