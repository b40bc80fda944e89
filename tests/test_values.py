"""What holes remember of their values, beside the same in plain Python, over merges of templates."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.lines.base import Terms
from streamdp.lines.holes import Hole, _Seen
from streamdp.lines.state import roots
from streamdp.lines.stream import LineStream
from streamdp.lines.values import ALWAYS, LEVEL, ONE_IN, PLACE_SHIFT
from tests.oracle.templates import folded, masked
from tests.oracle.values import COMMON, Sketch, mixed, summed

WORDS = ("anna", "bert", "cleo", "d\xf6rte", "emil", "fritz", "gus", "hans", "ida", "jo", "kurt", "lea", "mo")
NUMBERS = ("7", "12.5", "-3", "900ms", "0", "4e", "83%", "1.25", "100000000000000000000")
WORD, VALUE = 1, 5
"""Where ``unit WORD reads x=VALUE`` has its two holes."""

Sketches = dict[tuple[int, int], Sketch]


def folded_part(text: str) -> str:
    """What of a token is folded; "" where nothing is."""
    folds = [each for each in folded(masked(text, ())) if each[0] == "0"]
    return text.encode()[folds[0][1] : folds[-1][2]].decode() if folds else ""


def sketched(stream: LineStream, pairs: list[tuple[str, str]], step: int) -> Sketches:
    """Take lines; what each hole remembers in plain Python, by template, as it was then, and place."""
    found: Sketches = defaultdict(Sketch)
    ever, line = Counter[int](), 0
    holes, into = set[tuple[int, int]](), np.arange(1)
    for start in range(0, len(pairs), step):
        part = pairs[start : start + step]
        for told in stream.take([f"unit {word} reads x={value}" for word, value in part]):
            announced = told.answers["cluster"].tolist()
            for nth, cluster in enumerate(announced):
                if nth == len(announced) - 1:  # no line before it has changed a template
                    holes, into = holes_of(stream), into_of(stream)
                cluster = int(into[cluster])
                word, value = pairs[line]
                ever[announced[nth]] += 1
                if ever[announced[nth]] <= ALWAYS or mixed(ever[announced[nth]]) % ONE_IN == 0:
                    for place, text in ((WORD, word), (VALUE, value)):
                        if (cluster, place) in holes:
                            found[cluster, place].add(text, line)
                        elif folded_part(text):
                            found[cluster, place].add(folded_part(text), line)
                line += 1
    return found


def into_of(stream: LineStream) -> np.ndarray:
    """What each template is part of."""
    return roots(stream.state.clusters["into"][: int(stream.state.counters.clusters)])


def holes_of(stream: LineStream) -> set[tuple[int, int]]:
    """Template and place of each hole."""
    rows, slots = stream.state.clusters, stream.state.slots
    every = ((c, place) for c in range(int(stream.state.counters.clusters)) for place in (WORD, VALUE))
    return {(c, place) for c, place in every if slots[int(rows[c]["slot"]) + place]["distinct"] > 1}


def compared(stream: LineStream, found: Sketches) -> list[Hole]:
    """Both, hole by hole as each was counted, and of templates as they are now; the latter."""
    seen, history = stream.history.seen, stream.history
    count = int(seen.counters.holes)
    keys = [(key >> PLACE_SHIFT, key & LEVEL) for key in seen.holes["key"][:count].tolist()]
    assert sorted(keys) == sorted(found)
    for row, key in enumerate(keys):
        plain, of = found[key], seen.holes[row]
        values = [bytes(seen.letters[row, k, : seen.lengths[row, k]]).decode() for k in range(of["used"])]
        assert values == [each.value for each in plain.few]
        assert seen.counts[row, : len(values)].tolist() == [each.lines for each in plain.few]
        assert seen.excess[row, : len(values)].tolist() == [each.excess for each in plain.few]
        assert seen.registers[row].tolist() == plain.ranks
        assert (of["lines"], of["replaced"]) == (len(plain.every), plain.replaced)
        assert (of["numbers"], of["newest"], of["last"]) == (len(plain.numbers), plain.newest, plain.last)
    into = into_of(stream)
    whole: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, (cluster, place) in enumerate(keys):
        whole[int(into[cluster]), place].append(row)
    told = []
    for (_, place), rows in whole.items():
        ours, plain = _Seen(history, rows).hole(place, "<any>"), summed([found[keys[row]] for row in rows])
        numbers = None if ours.least is None else (ours.least, ours.median, ours.decile, ours.most)
        assert (ours.lines, ours.distinct, ours.newest) == (plain.lines, plain.distinct, plain.newest)
        assert list(zip((text for text, _ in ours.common), ours.counts, strict=True)) == plain.common
        assert numbers == pytest.approx(plain.numbers)
        told.append(ours)
        holds(ours, [value for row in rows for value in found[keys[row]].every], len(rows) == 1)
    return told


def holds(ours: Hole, every: list[str], alone: bool) -> None:
    """What is said of a hole beside all of its values: counts are lower bounds, often ones are not missed."""
    true = Counter(every)
    assert all(count <= true[text] for text, count in zip(dict(ours.common), ours.counts, strict=True))
    if len(true) <= COMMON and alone:
        assert ours.distinct == len(true)
        assert ours.counts == [n for _, n in true.most_common() if n > (len(true) > 3)]


values = st.sampled_from((*NUMBERS, *WORDS))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WORDS), values), min_size=1, max_size=150), st.integers(1, 50))
def test_holes_remember_what_they_do_in_plain_python(pairs: list[tuple[str, str]], step: int) -> None:
    stream = LineStream(Terms())
    compared(stream, sketched(stream, pairs, step))


@pytest.mark.parametrize("many", [4, 40])
def test_values_that_both_of_two_merged_holes_saw_count_once(many: int) -> None:
    """Two words are two templates, and more make them one: exactly up to eight values, else about."""
    pairs = [(word, f"{n}") for word in ("anna", "bert") for n in range(many)]
    stream = LineStream(Terms())
    found = sketched(stream, [*pairs, ("cleo", "2"), *((word, "1") for word in ("emil", "fred", "gina"))], 1)
    assert len({cluster for cluster, place in found if place == VALUE}) > 1
    counted = compared(stream, found)
    numbers = next(hole for hole in counted if hole.place == VALUE)
    assert numbers.lines == 2 * many + 4
    assert numbers.distinct == (many if many <= COMMON else pytest.approx(many, rel=0.3))


def test_busy_holes_are_bounded_and_alike() -> None:
    """Many values, of which few come often, over lines of which not all are looked at."""
    draw = random.Random(4)
    pairs = [
        (draw.choice(WORDS), draw.choice(("17", "18")) if draw.random() < 0.6 else str(draw.randrange(10**6)))
        for _ in range(6000)
    ]
    stream = LineStream(Terms())
    told = compared(stream, sketched(stream, pairs, 1000))
    whole = next(hole for hole in told if hole.place == VALUE)
    assert {"17", "18"} <= dict(whole.common).keys()
    assert np.isclose(whole.distinct, 0.4 * whole.lines, rtol=0.5)
