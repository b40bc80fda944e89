"""Places that are closed: by what they are, or by hand; against plain Python, and in an engine."""

from __future__ import annotations

import random

import pytest

from streamdp.lines.base import Bounds, Terms
from streamdp.lines.closed_places import Rule
from streamdp.lines.masks import Masks
from streamdp.lines.stream import LineStream
from tests.oracle import closing as plain
from tests.oracle.template_stream import Stream
from tests.oracle.templates import Settings as Weights
from tests.oracle.templates import tokens_of
from tests.test_lines import follows, labels, noise, now, templates_agree, unequal

CLASSES = ("status", "method", "level", "state")


def requests(count: int, seed: int) -> list[str]:
    """Lines with methods, statuses, levels and states, and others that look like these."""
    r, found = random.Random(seed), []
    for _ in range(count):
        method, status = (
            r.choice(["GET", "POST", "DELETE", "get", "GETS"]),
            r.choice([200, 201, 404, 500, 99]),
        )
        path, state = r.choice(["/cart", "/order/7", "http://a.b/c", "none"]), ["up", "DOWN", "Down", "lost"]
        level, user = ["ERROR", "warn", "info", "Error"], ["ann", "bob", "up", "cyd", "GET", "eve", "x1"]
        when = "Fri Jun 17 07:07:00 2005"
        found.append(
            r.choice(
                [
                    f"{method} {path} {status} {r.randrange(900)}ms",
                    f'"{method} {path} HTTP/1.1" status: {status} len: {r.randrange(100, 700)}',
                    f"answered with code={status} in {r.randrange(100, 999)} ms at {r.choice(level)}",
                    f"{r.choice(level)}: link {r.randrange(9)} is {r.choice(state)} now",
                    f"user {r.choice(user)} sent {r.choice([200, 7])} of {when}",
                ]
            )
        )
    return found


def agree(
    texts: list[str], stream: LineStream, oracle: Stream, closing: plain.Closing, masks: list[tuple[str, str]]
) -> None:
    first = [oracle.absorb(tokens_of(text, masks, closing)) for text in texts]
    assert labels(stream, texts, 97) == first
    assert [now(stream, label) for label in range(oracle.minted)] == [*map(oracle.now, range(oracle.minted))]
    templates_agree(stream, oracle)
    follows(stream)


@pytest.mark.parametrize("classes", [("status",), ("method", "state"), CLASSES])
def test_classes_are_closed_as_in_plain_python(classes: tuple[str, ...]) -> None:
    texts, masks = requests(500, 1) + noise(200, 2) + unequal(1) + requests(200, 4), [("ID", "user [a-z]+")]
    stream = LineStream(Terms(), masks=Masks(["=".join(masks[0])]), split=classes)
    agree(texts, stream, Stream(Weights(masks=1)), plain.Closing(classes), masks)


@pytest.mark.parametrize("seed", [5, 7])
def test_values_that_templates_share_are_counted_where_these_become_one(seed: int) -> None:
    texts = noise(100, seed) + unequal(seed) + requests(100, seed)
    agree(texts, LineStream(Terms()), Stream(), plain.OPEN, [])


RULES = (
    Rule((b"user", None, b"sent", b"0", b"of", b"0"), 3, b"200"),
    Rule((b"user", None, b"sent", b"\xc1200", b"of", b"0"), 5, None),
    Rule((b"answered", b"with", b"code", b"=", b"0", b"in", b"0", b"at", None), 8, None),
    Rule((b"GET", None, b"0", b"0ms"), 3, b"77"),
    Rule((b"user", None, b"sent", b"0", b"of", b"0"), 1, b"bob"),
)
"""The second is of what the first has closed, and has blanks and colons in its values."""


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(lines=60), Bounds(templates=12)])
def test_rules_close_as_in_plain_python(bounds: Bounds) -> None:
    texts = requests(300, 5)
    stream = LineStream(Terms(), bounds=bounds)
    oracle = Stream(most=bounds.lines, templates=bounds.templates)
    agree(texts, stream, oracle, plain.OPEN, [])
    stream.close(RULES)
    spelled = [
        plain.Rule(
            [None if token is None else token.decode("latin-1") for token in rule.shape],
            rule.place,
            None if rule.value is None else rule.value.decode(),
        )
        for rule in RULES
    ]
    before = oracle.minted
    agree(requests(400, 6), stream, oracle, plain.Closing((), spelled), [])
    shut = [c for c in oracle.clusters.values() if any(plain.shut(slot.founder) for slot in c.slots)]
    assert len(shut) > 3
    assert all(c.label >= before for c in shut)
    stream.close(())
    agree(requests(200, 7), stream, oracle, plain.OPEN, [])


def test_what_is_closed_is_never_a_hole_and_the_rest_is_as_before() -> None:
    texts = [f"GET /a/{i} {(200, 500)[i % 7 == 0]} in {i % 50 + 100} ms" for i in range(200)]
    without, stream = LineStream(Terms()), LineStream(Terms(), split=("status",))
    assert set(labels(without, texts, 50)) == {0}
    found = labels(stream, texts, 50)
    assert {label for label, text in zip(found, texts, strict=True) if " 500 " in text} == {found[0]}
    assert len(set(found)) == 2
