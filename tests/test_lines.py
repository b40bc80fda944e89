"""Templates of log lines: the kernels do what the plain Python does, however lines come."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from streamdp import Engine
from streamdp.lines.base import Bounds, Terms
from streamdp.lines.facts import facts_of, state_of
from streamdp.lines.state import USED
from streamdp.lines.stream import LineStream
from tests.logs import TEMPLATES, lines
from tests.oracle.template_stream import Stream, may_join
from tests.oracle.templates import Line, Settings, tokens_of, wordy

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


def many_users(count: int, seed: int) -> list[str]:
    """Lines with names and files that hardly ever come again."""
    r = random.Random(seed)

    def name() -> str:
        return "".join(r.choices("abcdefghij", k=r.randrange(2, 7)))

    return [
        f"user {name()} opened file /{name()}/{r.randrange(99)}.{name()} for {name()}" for _ in range(count)
    ]


LEADS = ("Failed to", "web could not", "it couldn't", "Will")


def deeds(seed: int) -> list[str]:
    """Lines with a name and a verb, first ones, and states: what was done is no value."""
    r = random.Random(seed)
    names = ["anna", "bert", "cora", "dora", "emma", "fred", "gerda", "hugo", "ida", "jon"]
    did = ["created", "deleted", "sent", "found", "renames", "viewing"]
    acts = ["open", "close", "drain", "flush"]
    return [
        r.choice(
            [
                f"user {r.choice(names)} {r.choice(did)} order {r.randrange(99)}",
                f"{r.choice(acts)} queue of {r.choice(names)}",
                f"link {r.choice(names)} is {r.choice(['up', 'down', 'online'])}",
                f"hello {r.choice(names)}",
                f"{r.choice(LEADS)} {r.choice(acts)} disk {r.randrange(9)}",
            ]
        )
        for _ in range(300)
    ]


def exceptions(seed: int) -> list[str]:
    """Lines that name exceptions with their frames, of a few places and of many, and addresses of people."""
    r, frames = random.Random(seed), [f"shop/{each}.py#pay" for each in "abcdefghijklmn"]
    kinds = ["ValueError", "java.io.IOException", "panic", "Error"]
    return [
        r.choice(
            [
                f"{r.choice(kinds)}@{r.choice(frames)}: bad {r.randrange(99)}",
                f"order failed: {r.choice(kinds)}@{r.choice(frames)}: no stock of {r.choice(['a1', 'b2'])}",
                f"mail to {r.choice(['anna', 'Bert', 'Error'])}.{r.choice('xyz')}@shop.example",
            ]
        )
        for _ in range(300)
    ]


def made_one_late(seed: int) -> list[str]:
    """Lines of two templates with many values in their holes, and of others that make them one."""
    r = random.Random(seed)
    names = [r.choice(("sandra", "otto")) for _ in range(100)]
    names += ["anna", "bert", "cora", "dora", "emma", "hugo"] * 3
    return [f"holder {name} owns all file {r.choice('abcdefghij') * r.randrange(2, 6)}" for name in names]


def loads(seed: int) -> list[str]:
    """Lines with a hole of numbers and, once, an identifier."""
    r = random.Random(seed)
    texts = [f"load is {n}{r.choice('%#!*~')} on node {r.choice('abcdefghij') * (n % 9)}" for n in range(300)]
    rare = [f"file {value} is open" for value in ("a.b", "a/b", "a-b", "a.b/c", "a-b.c", "a-b/c", "a-b/c.d")]
    often = [f"file {value} is open" for n in range(2) for value in ("x.yy", "x.zz", "x.ww", "x.vv", "x.uu")]
    return [*texts[:40], "load is 3x on node aa", *texts[40:], *rare, *often, *rare[:2]]


def unequal(seed: int) -> list[str]:
    """Lines with hosts, addresses and dates in one place, values behind equals signs, lists and parts."""
    r = random.Random(seed)
    hosts = ["a.example", "b.c.example", "10.0.0.7", "LOCAL(0)", "db-1", "localhost", "#3#", "x.y"]
    days = ["Fri Jun 17 07:07:00 2005", "2005-06-17 07:07:00", "yesterday", "17/Jun/2005"]
    found = []
    for _ in range(400):
        host, name = r.choice(hosts), r.choice(["ann", "bob", "cyd", "root", "null", "true", '"eve"', "7"])
        found.append(
            r.choice(
                [
                    f"{host}:{r.randrange(99)} open through proxy {r.choice(hosts)} at {r.choice(days)}",
                    f"authentication failure of user={name} on host={host} by root",
                    f"sent {r.randrange(2000)} bytes{r.choice(['', ' (1.5 KB)'])} to {host}, lifetime <1 sec",
                    f"blocks{r.choice([':', ': 1', ': 1, 2', ': 1, 2, 3', ' (1)'])} are given to {name}",
                    f"session {r.choice(['opened', 'closed'])} for {name}",
                    f"too many failures of {name} on {host}",
                    f"\"{r.choice(['GET', 'PUT', 'X'])} /{name}/{host}/{r.randrange(9)}\" of '{name}' done",
                    f'said "{name}": {r.choice(["yes", "no"])} {{"{name}":"{host}"}} to {name}',
                    f"'{name}' said that",
                ]
            )
        )
    return found


def enclosed(seed: int) -> list[str]:
    """Lines with texts in quotes, lists, objects, queries, and names of several words."""
    r = random.Random(seed)
    words = ["ann", "Bob", "of", "it's", "x.y", "/a", "GET", "7", "true", "ü", "a1", "DejaVu", "Sans", '\\"']
    found = []
    for _ in range(500):
        some = [r.choice(words) for _ in range(r.randrange(5))]
        text, sign, items = " ".join(some), r.choice("\"'"), r.choice((", ", ",", " ")).join(some)
        query = "&".join(f"{word}={text[:3]}" for word in some)
        found.append(
            r.choice(
                [
                    f"loading {r.choice(('font', 'msg', 'Event'))}={sign}{text}{sign} size={r.randrange(9)}",
                    f"loading font name={text} size={r.randrange(9)}",
                    f"loading font name={text}, as {r.choice(words)}",
                    f"{r.choice(words)}.started hosts=[{items}] of {text} are up",
                    f"user {sign}{text}{sign}: {r.choice(('yes', 'no'))}",
                    f"got {{{sign}a{sign}: {r.choice(words)}, {items}}} now",
                    f"GET /{r.choice(words)}?{query} took {r.randrange(9)} ms",
                    f"{r.choice(('Adding', 'Removing', 'a.started', 'a.exe'))} for {text} [{sign}{items}",
                ]
            )
        )
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


@pytest.mark.parametrize(
    "texts",
    [
        lines(1500)[0],
        noise(600, 1),
        noise(300, 2) + lines(300, 3)[0],
        unequal(1),
        unequal(2),
        enclosed(3),
        deeds(3),
    ],
)
def test_kernels_and_plain_python_agree(texts: list[str]) -> None:
    oracle, stream = Stream(), LineStream(Terms())
    first = [oracle.absorb(tokens_of(text)) for text in texts]
    assert labels(stream, texts, 97) == first
    assert [now(stream, label) for label in range(oracle.minted)] == list(
        map(oracle.now, range(oracle.minted))
    )
    templates_agree(stream, oracle)


def templates_agree(stream: LineStream, oracle: Stream) -> None:
    """Both have the same of each template."""
    for label, cluster in oracle.clusters.items():
        row = stream.state.clusters[label]
        assert (row["alive"], row["size"], row["types"]) == (1, cluster.size, len(cluster.lines))
        gone = sum(cluster.lines[line] - oracle.settings.line_discount for line in cluster.forgotten)
        assert row["forgotten"] == pytest.approx(gone)
        slots = slice(row["slot"], row["slot"] + row["length"])
        holes = [slot.hole for slot in cluster.slots]
        assert stream.state.slots["hole"][slots] == pytest.approx(holes, rel=1e-6, abs=1e-12)
        assert stream.state.slots["distinct"][slots].tolist() == [len(slot.values) for slot in cluster.slots]
        assert stream.state.slots["forgotten"][slots].tolist() == [slot.forgotten for slot in cluster.slots]
        for at, slot in enumerate(cluster.slots, row["slot"]):
            assert slot.constant or counts_of(stream, at) == slot.values


def counts_of(stream: LineStream, slot: int) -> dict[str, int]:
    """How many distinct lines have each value of a hole."""
    found, value, state = {}, stream.state.slots["first"][slot], stream.state
    while value >= 0:
        row = state.values[value]
        token = state.tokens[row["token"]]
        text = state.text[token["start"] : token["start"] + token["length"]].tobytes().decode("latin-1")
        found[text], value = int(row["count"]), row["next"]
    return found


@pytest.mark.parametrize(("most", "seed"), [(2, 4), (40, 5), (100, 6), (300, 7)])
def test_kernels_and_plain_python_forget_the_same(most: int, seed: int) -> None:
    texts = lines(700, seed)[0] + noise(150, seed) + many_users(600, seed)
    random.Random(seed).shuffle(texts)
    texts = made_one_late(seed) + loads(seed) + texts
    oracle, stream = Stream(most=most), LineStream(Terms(), bounds=Bounds(lines=most))
    first = [oracle.absorb(tokens_of(text)) for text in texts]
    assert labels(stream, texts, 97) == first
    assert stream.counters()["lines_distinct"] == len(oracle.known) <= most
    assert stream.counters()["lines_forgotten"] > 0
    templates_agree(stream, oracle)
    assert any(slot.forgotten for cluster in oracle.clusters.values() for slot in cluster.slots)
    base, counters = oracle.base, stream.state.counters
    assert counters.held == base.held_classes.total
    assert counters.held_types == len(base.held_classes.counts)
    for shown, table in base.held.items():
        row = stream.state.shown[shown]
        assert (row["held"], row["held_types"]) == (table.total, len(table.counts))
    follows(stream)
    arrays = facts_of(stream.state)
    used = arrays["tokens"]
    assert used["length"].sum() == counters.text
    assert sorted(spelled(arrays, row) for row in used) == sorted({spelled(arrays, row) for row in used})
    known = {str(w).encode("latin-1") for w in {*base.words.counts, *values_known(oracle)}}
    assert known <= {spelled(arrays, row) for row in used}


def test_what_was_done_is_no_value_and_who_has_done_it_is() -> None:
    engine = Engine(likelihood="template")
    for text in deeds(1):
        engine.advance([text])
    did = ["created", "deleted", "sent", "found", "renames", "viewing"]
    assert {cluster.template for cluster in engine.clusters()} == {
        *(f"user <word> {each} order <num>" for each in did),
        *(f"{each} queue of <word>" for each in ("open", "close", "drain", "flush")),
        *(f"link <word> is {each}" for each in ("up", "down", "online")),
        "hello <word>",
        *(f"{lead} {each} disk <num>" for lead in LEADS for each in ("open", "close", "drain", "flush")),
    }


def test_an_exception_is_told_apart_by_its_frame() -> None:
    engine, given = Engine(likelihood="template"), exceptions(1)
    for text in given:
        engine.advance([text])
    named = {text.split("@")[0].split()[-1] + "@" + text.split("@")[1].split(":")[0] for text in given}
    shown = [str(cluster.template).split() for cluster in engine.clusters()]
    assert {each for words in shown for word in words if "#" in (each := word.rstrip(":"))} == {
        name for name in named if "#" in name
    }
    assert [" ".join(words) for words in shown if words[0] == "mail"] == ["mail to <id>"]


def test_templates_that_become_one_have_forgotten_what_each_has() -> None:
    texts = made_one_late(1)
    oracle = Stream(Settings(rho_word=0.01), most=30)
    stream = LineStream(Terms(rho_word=0.01), bounds=Bounds(lines=30))
    before: list[int] = []
    for i, text in enumerate(texts):
        if i == 100:
            before = [slot.forgotten for c in oracle.clusters.values() for slot in c.slots if slot.forgotten]
        assert labels(stream, [text], 1) == [oracle.absorb(tokens_of(text))]
    (cluster,) = oracle.clusters.values()
    first = stream.state.clusters[cluster.label]["slot"]
    found = stream.state.slots["forgotten"][first : first + len(cluster.slots)]
    assert found.tolist() == [slot.forgotten for slot in cluster.slots]
    assert len(before) == 2
    assert found.sum() >= sum(before)


@pytest.mark.parametrize(("most", "templates", "seed"), [(10**6, 12, 4), (60, 30, 5), (10**6, 2, 6)])
def test_kernels_and_plain_python_retire_the_same(most: int, templates: int, seed: int) -> None:
    texts = lines(500, seed)[0] + noise(300, seed) + many_users(300, seed) + [""] * 3
    random.Random(seed).shuffle(texts)
    texts += loads(seed) + texts[:200]
    oracle = Stream(most=most, templates=templates)
    stream, first, retired = LineStream(Terms(), bounds=Bounds(most, templates)), list[int](), list[int]()
    for start in range(0, len(texts), 97):
        for told in stream.take(texts[start : start + 97]):
            first += told.answers["label"].tolist()
            retired += told.retired.tolist()
    assert [oracle.absorb(tokens_of(text)) for text in texts] == first
    assert retired == oracle.retired
    assert len(retired) > 20
    figures, counters = stream.counters(), stream.state.counters
    assert figures["clusters_retired"] == len(retired)
    assert figures["clusters_live"] == len(oracle.clusters) <= templates
    assert figures["lines_distinct"] == len(oracle.known)
    assert np.flatnonzero(stream.state.clusters["alive"]).tolist() == sorted(oracle.clusters)
    templates_agree(stream, oracle)
    base = oracle.base
    assert counters.met == base.words.total
    assert counters.met_types == len(base.words.counts)
    assert counters.held == base.held_classes.total
    assert counters.slots <= sum(len(c.slots) for c in oracle.clusters.values()) + 200
    follows(stream)


def follows(stream: LineStream) -> None:
    """What is known beside the facts is what follows from them."""
    again, state = (
        state_of({name: array.copy() for name, array in facts_of(stream.state).items()}),
        stream.state,
    )
    for name in ("alive", "met", "met_types", "class_types", "held", "held_types"):
        assert getattr(again.counters, name) == getattr(state.counters, name), name
    assert np.array_equal(again.shown, state.shown)
    assert np.array_equal(again.alike, state.alike)


def test_a_template_without_tokens_is_stored_beside_others() -> None:
    stream = LineStream(Terms())
    labels(stream, ["", *noise(60, 1)], 7)
    follows(stream)


def spelled(arrays: dict[str, np.ndarray], row: np.void) -> bytes:
    """A token's text."""
    return arrays["text"][row["start"] : row["start"] + row["length"]].tobytes()


def values_known(oracle: Stream) -> set[str]:
    """All values of holes."""
    return {w for c in oracle.clusters.values() for s in c.slots for w in s.values}


def test_what_is_remembered_stays_bounded() -> None:
    stream = LineStream(Terms(), bounds=Bounds(lines=500))
    sizes = []
    for seed in range(12):
        labels(stream, many_users(1500, seed), 700)
        sizes.append({name: array.nbytes for name, array in stream.state._asdict().items() if name in USED})
    assert stream.counters()["lines_forgotten"] > 10_000
    assert sizes[3] == sizes[-1]
    assert len({now(stream, c) for c in range(stream.state.counters.clusters)}) < 60


@pytest.mark.parametrize("bounds", [Bounds(lines=200), Bounds(templates=30), Bounds(200, 30)])
def test_a_stream_that_forgets_does_not_depend_on_batches_or_on_a_stop(bounds: Bounds) -> None:
    texts = many_users(900, 1) + noise(300, 2) + many_users(900, 3)
    whole = LineStream(Terms(), bounds=bounds)
    expected = labels(whole, texts, len(texts))
    parts, found = LineStream(Terms(), bounds=bounds), []
    for start in range(0, len(texts), 300):
        found += labels(parts, texts[start : start + 300], 7)
        stored = {name: array.copy() for name, array in facts_of(parts.state).items()}
        parts = LineStream(Terms(), state_of(stored), bounds)
    assert found == expected
    assert whole.log_evidence == parts.log_evidence
    one, other = facts_of(whole.state), facts_of(parts.state)
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


def test_log_predictives_are_those_of_plain_python() -> None:
    texts = lines(300)[0]
    oracle, stream = Stream(), LineStream(Terms())
    checked = {False: 0, True: 0}
    for n, text in enumerate(texts):
        line = tokens_of(text)
        fresh = line not in oracle.known
        s = oracle.settings
        if fresh:
            _, log_p0, _ = oracle.best(line)
            weights = [np.log(s.concentration + s.discount * len(oracle.clusters)) + log_p0]
            for cluster in oracle.near(line, sum(map(wordy, line))):
                if may_join(cluster, line, oracle.base):
                    weights.append(
                        np.log(cluster.size - s.discount) + cluster.log_predictive(line, oracle.base)
                    )
            expected = np.logaddexp.reduce(weights) - np.log(n + s.concentration)
        else:
            cluster = oracle.known[line]
            expected = np.log((cluster.size - s.discount) / (n + s.concentration))
            expected += cluster.log_predictive(line, oracle.base)
        oracle.absorb(line)
        (told,) = stream.take([text])
        assert told.answers[0]["log_predictive"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        checked[fresh] += 1
    assert min(checked.values()) > 50


def mass(stream: LineStream, different: Sequence[str]) -> float:
    """The sum of the predictives of different lines, which may be known."""
    return float(np.exp(stream.score(different).answers["log_predictive"]).sum())


def constant_lines() -> list[str]:
    """Two lines that came five times, then many values in the place of a word."""
    two = ["connection closed by server", "reverse mapping failed for console"]
    return 5 * two + [f"Failed password for invalid user user{n}x from console" for n in range(60)]


@pytest.mark.parametrize("name", ["console", "templates", "noise", "forgetting"])
def test_predictives_of_lines_sum_to_one_at_most(name: str) -> None:
    texts = {"console": constant_lines(), "noise": noise(600, 5)}.get(name, lines(1500)[0])
    stream = LineStream(Terms(), bounds=Bounds(60, 8) if name == "forgetting" else Bounds())
    seen: dict[Line, str] = {}
    for n, text in enumerate(texts, 1):
        list(stream.take([text]))
        seen[tokens_of(text)] = text
        if n % 100 == 0 or n == len(texts):
            assert 0.0 < mass(stream, list(seen.values())) <= 1.0


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
    parts = LineStream(
        Terms(), state_of({name: array.copy() for name, array in facts_of(parts.state).items()})
    )
    found += labels(parts, texts[700:], 250)
    assert found == expected
    assert whole.log_evidence == parts.log_evidence < 0
    one, other = facts_of(whole.state), facts_of(parts.state)
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


def test_scoring_teaches_nothing() -> None:
    texts = lines(800)[0]
    stream = LineStream(Terms())
    labels(stream, texts, 200)
    before = facts_of(stream.state)
    told = stream.score([texts[0], "something that nobody has ever said before", *noise(50, 3)])
    after = facts_of(stream.state)
    assert told.answers["label"][0] == now(stream, 0)
    assert told.answers["label"][1] == -1
    assert told.answers["new_probability"][1] > 0.99
    for name, array in before.items():
        assert array.tobytes() == after[name].tobytes(), name
    assert labels(stream, texts[:1], 1) == [now(stream, 0)]


def test_a_line_of_a_million_tokens_is_looked_at_as_far_as_it_matters() -> None:
    stream = LineStream(Terms())
    told = list(stream.take(["a " * 1_000_000 + "x", "a " * 1_000_000 + "y", "", "   "]))
    assert [size for part in told for size in part.sizes.tolist()] == [512, 512, 0, 0]
    assert [label for part in told for label in part.answers["label"].tolist()] == [0, 0, 1, 1]
    assert len(stream.state.slots) < 100_000
