"""Values of holes: in every answer, revised ones too, template and params together are the line."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from feeds import raws_of, record
from hypothesis import example, given, settings
from hypothesis import strategies as st
from logs import TEMPLATES, USERS, ip

from streamdp.beam.data.state import ANSWER
from streamdp.decode.decoder import Decoder
from streamdp.decode.log_reader import LogReader
from streamdp.engine import Engine
from streamdp.kernels.rows import new_rows
from streamdp.ledger.ledger import Ledger
from streamdp.ledger.lines import as_member
from streamdp.ledger.step import NO_REVISIONS
from streamdp.records import Assignment
from streamdp.records.columns import Columns
from streamdp.settings import Settings

NAMES = "num word ip hex date time duration bool null uuid id size ORDER".split()  # noqa: SIM905
HOLE = re.compile("|".join(f"<{name}>" for name in NAMES))


def rebuilt(answer: Assignment) -> str:
    """The line of an answer."""
    assert isinstance(answer.template, str)
    assert isinstance(answer.params, list)
    parts = HOLE.split(answer.template)
    assert len(parts) == len(answer.params) + 1, answer
    return parts[0] + "".join(value + part for value, part in zip(answer.params, parts[1:], strict=True))


def normal(line: str) -> str:
    """A line but for blanks beside brackets, commas and the like, which are those of the first line."""
    return re.sub(r"\s*([=:,;()\[\]\"'])\s*", r"\1", " ".join(line.split()))


def answers_to(lines: list[str], *, together: bool, **more: object) -> Iterator[tuple[str, Assignment]]:
    """Each answer with its line."""
    engine = Engine(Settings(likelihood="template", params=True, **more))  # type: ignore[arg-type]
    decoder = Decoder("log")
    assert decoder.log is not None
    reader = LogReader(decoder, decoder.log, decoder.decode)
    for at in range(0, len(lines), 50):
        raws = raws_of([line.encode() for line in lines[at : at + 50]], first=at + 1)
        found = reader.read(raws, together=together)
        told = engine.advance(found)
        for answer in told.assignments:
            yield lines[answer.seq], answer


WORDS = st.sampled_from(
    [*USERS, "a", "7", "1.2.3.4", "x=3", "on:true", "on: false", "[12]", "<5>", "é", "12 ms"]
)
LINES = st.lists(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), min_size=2, max_size=30)


@pytest.mark.parametrize("together", [True, False])
def test_a_revision_fills_the_template_that_it_names(together: bool) -> None:
    lines = [
        f"session opened for user {name} by (uid=0)" for name in ("root", "cyrus", "news", "anna", "bob")
    ]
    newest = {answer.seq: answer for _, answer in answers_to(lines, together=together)}
    template = "session opened for user <word> by (uid=<num>)"
    assert (newest[0].template, newest[0].params) == ("session opened for user root by (uid=<num>)", ["0"])
    for seq, name in enumerate(("cyrus", "news", "anna", "bob"), 1):
        assert (newest[seq].template, newest[seq].params) == (template, [name, "0"])
    assert any(answer.revision for answer in newest.values())


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("more", [{}, {"split_by": ("state",)}, {"mask": (r"ORDER=\b[a-c]-[0-9]+",)}])
def test_template_and_params_are_the_line(together: bool, more: dict[str, object]) -> None:
    r, revised = random.Random(7), 0
    made = [
        *TEMPLATES,
        lambda r: (
            f"order {r.choice('abc')}-{r.randrange(9)} {r.choice(['opened', 'closed'])} by {r.choice(USERS)}"
        ),
        lambda r: f"proxy {ip(r)} gave up after {' and '.join(r.choices(USERS, k=r.randrange(1, 5)))}",
        lambda r: f"set speaker on:{r.choice([' ', ''])}{r.choice(['true', 'false'])}",
        lambda r: f"synchronized to {r.choice([ip(r), 'LOCAL(0)'])}, stratum {r.randrange(16)}",
        lambda r: (
            f"{r.choice(USERS)}, {r.choice(USERS)} of group {r.choice(USERS)} at {r.choice(['null', 'none'])}"
        ),
    ]
    lines = [r.choice(made)(r) for _ in range(1500)]
    for line, answer in answers_to(lines, together=together, **more):
        assert normal(rebuilt(answer)) == normal(line)
        revised += answer.revision > 0
    assert revised > 5


@settings(max_examples=40, deadline=None)
@given(LINES, st.booleans())
@example([f"a {name}" for name in USERS] + [f"a b {name}" for name in USERS], True)
def test_template_and_params_are_any_line(lines: list[str], together: bool) -> None:
    for line, answer in answers_to(lines, together=together):
        assert normal(rebuilt(answer)) == normal(line)


def test_a_line_that_looks_like_a_template_is_no_trouble() -> None:
    lines = [f"found <num> of <word> for {name} in <id>" for name in USERS] * 3
    for _, answer in answers_to(lines, together=True):
        assert isinstance(answer.params, list)
        assert len(answer.params) <= 1


def test_values_stay_right_where_open_answers_are_moved() -> None:
    lines = [
        f"{name} of {i % 7} and {USERS[-i % 16]} at {'x' * (i % 90)}" for i, name in enumerate(USERS * 40)
    ]
    for line, answer in answers_to(lines, together=True, retain=100):
        assert normal(rebuilt(answer)) == normal(line)


def test_values_that_are_filled_anew_count_for_as_much_as_after_a_restart() -> None:
    """Answers were final early at other records after one."""
    settings, names = Settings(likelihood="template", params=True), ("root", "cyrus", "news", "anna", "bob")
    engine = Engine(settings)
    told = engine.advance([f"session opened for user {name} by (uid=0)" for name in names])
    assert any(answer.revision for answer in told.assignments)
    again = Engine.loads(engine.dumps(), settings)
    counted = [each._stream.announcer.ledger.table.counters.bytes for each in (engine, again)]
    assert counted[0] == counted[1]


def test_a_template_that_is_filled_anew_is_the_right_one_where_letters_are_moved() -> None:
    """Moving them forgets templates that no answer has any more, and numbers the others anew."""
    ledger = Ledger(10)
    for n in range(500):
        ledger.keep_open(0 if n < 100 else 1000)
        template = f"gone {n}" if n < 100 else f"{n % 3} younger <word>"
        records, shown = (
            Columns.of([record("a", n)]),
            ([as_member("template", template)], [as_member("params", ["b"])]),
        )
        answer = new_rows(1, ANSWER, label=1, decided=n if n < 100 else 0)
        ledger.put(answer, np.ones(1, np.int64), records, NO_REVISIONS, *shown)
    assert len(ledger.open_answers()) == 400
    ledger.unite(1, 0, "older <word>", lambda template, values: ("older <word>", [*values, "c" * 300]))
    assert {answer.template for answer in ledger.open_answers()} == {"older <word>"}
