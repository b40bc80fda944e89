"""Templates of log lines: the kernels do what the plain Python does, however lines come."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from streamdp.lines.model import Terms
from streamdp.lines.stream import LineStream
from tests.logs import TEMPLATES, lines
from tests.oracle.template_stream import Stream, allowed
from tests.oracle.templates import Cluster, Line, tokens_of, wordy

WORDS = [
    "the",
    "cafe",
    "of",
    "beef1",
    "0x1f",
    "12:34:ab:9c:01",
    "-7",
    "+3e5",
    "a=b",
    "(uid=0)",
    "1,2",
    "x.y/z",
    "ü",
]


def noise(count: int, seed: int) -> list[str]:
    """Lines of anything."""
    r = random.Random(seed)
    signs = "abcdefxyz019.:,/_-+=()[]\"' \t"
    found = []
    for _ in range(count):
        parts = [
            r.choice(WORDS) if r.random() < 0.5 else "".join(r.choices(signs, k=r.randrange(9)))
            for _ in range(6)
        ]
        found.append("x" + " ".join(parts))
    return found


def now(stream: LineStream, label: int) -> int:
    """The label of today."""
    while (older := int(stream.state.clusters[label]["older"])) != label:
        label = older
    return label


def labels(stream: LineStream, texts: list[str], step: int) -> list[int]:
    """Labels as first announced, in batches of ``step`` lines."""
    return [
        label
        for start in range(0, len(texts), step)
        for told in stream.take(texts[start : start + step])
        for label in told.answers["label"].tolist()
    ]


@pytest.mark.parametrize("texts", [lines(1500)[0], noise(600, 1), noise(300, 2) + lines(300, 3)[0]])
def test_kernels_and_plain_python_agree(texts: list[str]) -> None:
    oracle, stream = Stream(), LineStream(Terms())
    first = [oracle.absorb(tokens_of(text)) for text in texts]
    assert labels(stream, texts, 97) == first
    assert [now(stream, label) for label in range(oracle.minted)] == list(
        map(oracle.now, range(oracle.minted))
    )
    rows = stream.state.clusters
    for label, cluster in oracle.clusters.items():
        row = rows[label]
        assert (row["alive"], row["size"], row["types"]) == (1, cluster.size, len(cluster.lines))
        slots = slice(row["slot"], row["slot"] + row["length"])
        weights = [slot.weights for slot in cluster.slots]
        assert stream.state.weights[slots] == pytest.approx(np.array(weights), rel=1e-6, abs=1e-12)
        assert stream.state.slots["distinct"][slots].tolist() == [len(slot.values) for slot in cluster.slots]


def test_log_predictives_are_those_of_plain_python() -> None:
    texts = lines(300)[0]
    oracle, stream = Stream(), LineStream(Terms())
    checked = 0
    for n, text in enumerate(texts):
        line = tokens_of(text)
        fresh = line not in oracle.known
        if fresh:
            _, log_p0, _ = oracle.best(line)
            s = oracle.settings
            weights = [np.log(s.concentration + s.discount * len(oracle.clusters)) + log_p0]
            for cluster in oracle.near(line, sum(map(wordy, line))):
                if may_join(cluster, line):
                    weights.append(
                        np.log(cluster.size - s.discount) + cluster.log_predictive(line, oracle.base)
                    )
            expected = np.logaddexp.reduce(weights) - np.log(n + s.concentration)
        oracle.absorb(line)
        (told,) = stream.take([text])
        found = told.answers[0]
        if fresh:
            assert found["log_predictive"] == pytest.approx(expected, rel=1e-9)
            checked += 1
    assert checked > 50


def may_join(cluster: Cluster, line: Line) -> bool:
    """Whether a line may be one of a template."""
    return allowed(slot.values.keys() | {w} for slot, w in zip(cluster.slots, line, strict=True))


def test_every_template_is_found() -> None:
    texts, kinds = lines(6000)
    stream = LineStream(Terms())
    found = [now(stream, label) for label in labels(stream, texts, 500)]
    by_kind: dict[int, set[int]] = defaultdict(set)
    for kind, label in zip(kinds, found, strict=True):
        by_kind[kind].add(label)
    assert len({min(each) for each in by_kind.values()}) == len(TEMPLATES) == len(set(found))
    assert all(len(each) == 1 for each in by_kind.values())


def test_state_and_answers_do_not_depend_on_batches_or_on_a_stop() -> None:
    texts = lines(1200)[0]
    whole = LineStream(Terms())
    expected = labels(whole, texts, 1200)
    parts = LineStream(Terms())
    found = labels(parts, texts[:700], 7)
    parts = LineStream.load(Terms(), {name: array.copy() for name, array in parts.dump().items()})
    found += labels(parts, texts[700:], 250)
    assert found == expected
    assert whole.log_evidence == parts.log_evidence < 0
    one, other = whole.dump(), parts.dump()
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


def test_scoring_teaches_nothing() -> None:
    texts = lines(800)[0]
    stream = LineStream(Terms())
    labels(stream, texts, 200)
    before = stream.dump()
    told = stream.score([texts[0], "something that nobody has ever said before", *noise(50, 3)])
    after = stream.dump()
    assert told.answers["label"][0] == now(stream, 0)
    assert told.answers["label"][1] == -1
    assert told.answers["new_probability"][1] > 0.99
    for name, array in before.items():
        if name not in ("counts", "lists", "posts", "clusters", "lines"):
            assert array.tobytes() == after[name].tobytes(), name
    assert labels(stream, texts[:1], 1) == [now(stream, 0)]


def test_a_line_of_a_million_tokens_is_looked_at_as_far_as_it_matters() -> None:
    stream = LineStream(Terms())
    told = list(stream.take(["a " * 1_000_000 + "x", "a " * 1_000_000 + "y", "", "   "]))
    assert [size for part in told for size in part.sizes.tolist()] == [512, 512, 0, 0]
    assert [label for part in told for label in part.answers["label"].tolist()] == [0, 0, 1, 1]
    assert len(stream.state.slots) < 100_000
