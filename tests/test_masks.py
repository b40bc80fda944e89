"""Masks: what they match is what ``re`` matches, and a hole of its own kind of templates."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from streamdp import Engine, Settings
from streamdp.errors import ConfigError
from streamdp.lines.base import Terms
from streamdp.lines.masks import FILLED, MASKED, Masks
from streamdp.lines.stream import LineStream
from streamdp.records import Answers
from tests.commands import fail, succeed
from tests.oracle.template_stream import Stream
from tests.oracle.templates import Settings as Weights
from tests.oracle.templates import masked, tokens_of
from tests.test_config import load
from tests.test_lines import labels, noise, now, templates_agree

ATOMS = (
    *(
        "a",
        "b",
        "[ab]",
        "[^a]",
        ".",
        "é",
        "[éb]",
        "(?:é|a|✓)",
        r"\d",
        r"\w",
        r"\W",
        " ",
        r"\b",
        r"\B",
        "^",
        "$",
    ),
    *("(?<=a)", "(?<!b)", "(?=b)", "(?!a)", "(?=a|$)", r"(?<=\W)", "(?i:A)"),
)


def expression(draw: random.Random, depth: int) -> str:
    """A regular expression of anything that masks may have."""
    kind = draw.random()
    if depth == 0 or kind < 0.3:
        return draw.choice(ATOMS)
    first = expression(draw, depth - 1)
    if depth == 3 and kind < 0.35:
        return draw.choice(["(?<=ab)", "(?<=[^b]a)", r"(?<=\d\wb)"]) + first
    if kind < 0.6:
        return first + expression(draw, depth - 1)
    if kind < 0.75:
        return f"(?:{first}|{expression(draw, depth - 1)})"
    return f"(?:{first})" + draw.choice(["*", "+", "?", "{1,2}", "{2}", "+?", "*?", "??"])


@pytest.mark.parametrize("seed", range(3))
def test_masks_match_what_re_matches(seed: int) -> None:
    draw, tested = random.Random(seed), 0
    for _ in range(400):
        written = [(f"M{i}", expression(draw, 3)) for i in range(2)]
        try:
            masks = Masks(["=".join(each) for each in written])
        except ValueError:
            continue
        for _ in range(20):
            text = "".join(draw.choices(["a", "b", "1", " ", "é", "✓", "_"], k=draw.randrange(1, 9)))
            found = masks.text(text.encode())
            assert len(found) == len(text.encode())
            shown = bytes(byte for byte in found if byte != FILLED).decode("latin-1")
            assert shown == "".join(char for char, *_ in masked(text, written)), (written, text)
            tested += any(byte >= MASKED for byte in found)
    assert tested > 500


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        ("B=a*", "may match nothing"),
        ("B=(", "is no regular expression: missing"),
        ("1B=a", "write NAME=REGEX"),
        ("abc", "write NAME=REGEX"),
    ],
)
def test_what_is_no_mask_is_refused(mask: str, why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)) as caught:
        Engine(Settings(likelihood="template", mask=(mask,)))
    assert "\n" not in caught.value.message
    with pytest.raises(ValueError, match="10 at most"):
        Masks([f"N{i}=a" for i in range(11)])


def test_a_mask_may_be_all_that_re_knows_and_leaves_what_was_found_before() -> None:
    masks = Masks([r"A=é\w(?=: a)", r"B=(\w)\1++", "C=.+"])
    text = "é1: aabbc".encode()
    assert masks.text(text) == b"\xf5\xff\xff: \xf6\xff\xf6\xffc"
    assert masks.text(b"x1: abc") == b"\xf7" + b"\xff" * 6


WRITTEN = [("REQ", r"\breq-[0-9a-f]+\b"), ("BLK", "(?<=blk_)[0-9]+"), ("REQ", "trace:[a-z]+")]


def texts(count: int, seed: int) -> list[str]:
    """Lines with requests, blocks, numbers and words."""
    r, found = random.Random(seed), []
    for _ in range(count):
        request = (
            f"req-{r.getrandbits(24):x}" if r.random() < 0.7 else f"trace:{r.choice(['abc', 'd', 'ef'])}"
        )
        where = r.choice([request, "nobody", str(r.randrange(99)), f"x{r.randrange(9)}y"])
        found.append(
            r.choice(
                [
                    f"begin of {request} from {where} in {r.randrange(99)} ms",
                    f"block blk_{r.randrange(10**6)} is at {where} again",
                    f"{request}: {r.choice(['opened', 'closed', 'lost', 'kept'])} for {where}",
                    f"{request} {request}{request} KB",
                ]
            )
        )
    return found


@pytest.mark.parametrize("given", [texts(500, 1), texts(400, 2) + noise(300, 3)])
def test_kernels_and_plain_python_agree(given: list[str]) -> None:
    oracle = Stream(Weights(masks=2))
    stream = LineStream(Terms(), masks=Masks([f"{name}={each}" for name, each in WRITTEN]))
    first = [oracle.absorb(tokens_of(text, WRITTEN)) for text in given]
    assert labels(stream, given, 97) == first
    assert [now(stream, label) for label in range(oracle.minted)] == [*map(oracle.now, range(oracle.minted))]
    templates_agree(stream, oracle)


MASK = (r"REQ=\breq-[0-9a-f]+\b", "SHOP=(?<=shop )[A-Z][a-z]+")


def shop_lines(count: int) -> list[str]:
    draw = random.Random(4)
    names = ("Anna", "Berta", "Cora", "Dora", "Emma")
    return [
        f"request req-{draw.getrandbits(20):x} of shop {draw.choice(names)} took {draw.randrange(90)} ms"
        for _ in range(count)
    ]


def engine_of(**more: Any) -> Engine:
    return Engine(Settings(likelihood="template", params=True, mask=MASK, **more))


def test_a_mask_is_a_hole_of_its_own_kind() -> None:
    given, engine, found = shop_lines(40), engine_of(), Answers([], [], [])
    for text in given:
        found.lines.extend(engine.advance([text]).lines)
    first, last = found.assignments[0], found.assignments[-1]
    assert first.template == last.template == "request <REQ> of shop <SHOP> took <duration>"
    assert {line.cluster for line in found.assignments} == {0}
    words = given[-1].split()
    assert last.params == [words[1], words[4], " ".join(words[-2:])]
    past = engine.past()
    assert past is not None
    request, shop, _ = past.holes[0]
    assert (request.kind, request.least) == ("<REQ>", None)
    assert 30 <= request.distinct <= 50  # it is a sketch
    assert (shop.kind, shop.distinct) == ("<SHOP>", 5)
    assert {text for text, _ in shop.common} == {"Anna", "Berta", "Cora", "Dora", "Emma"}
    without = Engine(Settings(likelihood="template"))
    without.advance(given[:2])
    assert len(without.clusters()) == 2


def test_a_state_has_its_masks(tmp_path: Path) -> None:
    given = shop_lines(60)
    (tmp_path / "shop.log").write_text("\n".join(given) + "\n")
    args = ["consume", "shop.log", "--format", "log", "--output", "out.jsonl", "--state", "state"]
    succeed(tmp_path, *args, "--mask", MASK[0], "--mask", MASK[1], "--params")
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    found = [line for line in answers if "template" in line]
    assert {line["template"] for line in found} == {"request <REQ> of shop <SHOP> took <duration>"}
    assert [line["params"][:2] for line in found] == [[text.split()[1], text.split()[4]] for text in given]
    code, said = fail(tmp_path, *args, "--mask", "REQ=req-[0-9a-f]+")
    assert code == 78
    assert "mask: was" in said
    succeed(tmp_path, *args)  # what is not said comes from the state


def test_masks_in_a_file_of_settings_and_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "streamdp.toml"
    file.write_text("format = 'log'\nmask = ['A=a{1,2}', 'B=b,c']\n")
    assert load({}, {}, str(file)).mask == ("A=a{1,2}", "B=b,c")
    assert load({}, {"STREAMDP_MASK": "C=c{2,3}"}, str(file)).mask == ("C=c{2,3}",)
    assert load({"mask": ["D=d,e", "F=f"]}, {}, str(file)).mask == ("D=d,e", "F=f")
    assert load({"mask": []}, {}, str(file)).mask == ("A=a{1,2}", "B=b,c")
    with pytest.raises(ConfigError, match=r"^mask has a meaning with the template likelihood alone"):
        Engine(Settings(mask=("A=aa",)))
