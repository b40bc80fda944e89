"""The model of templates in plain Python: it is a distribution, and its marginals are what they say."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import pytest

from streamdp.lines.base import Terms
from streamdp.lines.shown import Marker
from streamdp.lines.stream import LineStream
from tests.oracle.template_stream import Stream
from tests.oracle.templates import (
    BETWEEN,
    CLASSES,
    GROUPS,
    WEIGHTS,
    Base,
    Cluster,
    Settings,
    Slot,
    class_of,
    fold,
    kind_of,
    showing,
    spelling,
    tokens_of,
    united,
)

CHARACTERS = (*(group[0] for group in GROUPS), "*", "é"[0])
"""One of each category, a digit being 0."""

LINES = (
    """
Failed password for root from 10.0.0.7 port 51966 ssh2
Failed password for mysql from 10.0.0.9 port 2 ssh2
worker 17 took /var/run/job.lock
worker 17 took /var/run/night.lock
took
left
""".strip().splitlines()
    + [
        f"session opened for user {name} by (uid=0)"
        for name in (
            "root",
            "mysql",
            "ftp",
            "news",
            "uucp",
            "games",
            "daemon",
            "backup",
            "nobody",
            "sync",
            "x11",
        )
    ]
)


def unseen(shown: int, known: set[str]) -> str:
    """A token of a class that is not among the known."""
    letters = "".join("0" if g == 2 else CHARACTERS[g] for g in range(9) if shown >> g & 1)
    return next(w for n in range(1, 40) if (w := letters + letters[-1] * n) not in known)


def total(probability: Callable[[str], float], known: Iterable[str]) -> float:
    """The sum of a probability over all tokens there can be.

    Of the tokens of a class that were never seen, each has its share by its spelling alone.
    """
    known = set(known)
    left = dict.fromkeys(range(1, CLASSES + 1), 1.0)
    for w in known:
        left[class_of(w)] -= spelling(w)
    rest = 0.0
    for shown, mass in left.items():
        w = unseen(shown, known)
        rest += probability(w) / spelling(w) * mass
    return rest + sum(map(probability, known))


def stream(most: int = 1 << 60) -> tuple[Stream, set[str]]:
    made = Stream(most=most)
    for line in LINES:
        made.absorb(tokens_of(line))
    return made, {w for line in LINES for w in tokens_of(line)}


@pytest.mark.parametrize("shown", [0b1, 0b100, 0b1000, 0b1001, 0b11, 0b1000111, CLASSES])
def test_spellings_of_a_class_sum_to_one(shown: int) -> None:
    groups = [g for g in range(9) if shown >> g & 1]
    size = sum(WEIGHTS[g] for g in groups)
    strings = {0: 1.0}  # by what they have shown so far, strings of one length over size to that length
    found = 0.0
    for length in range(1, 600):
        longer: dict[int, float] = {}
        for seen, count in strings.items():
            for g in groups:
                longer[seen | 1 << g] = longer.get(seen | 1 << g, 0.0) + count * WEIGHTS[g] / size
        strings = longer
        found += strings.get(shown, 0.0) * (7 / 8) ** (length - 1) / 8
    assert found == pytest.approx(showing(shown), rel=1e-12)


@pytest.mark.parametrize("most", [4, 1000])
def test_a_token_of_a_new_line_has_probability_one_in_all(most: int) -> None:
    made, known = stream(most)
    for value in (False, True):
        found = total(lambda w, v=value: sum(made.base.terms(w, v)), known)
        assert found == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("most", [4, 8, 1000])
def test_the_tokens_of_a_slot_have_probability_one_in_all(most: int) -> None:
    made, known = stream(most)
    assert any(slot.forgotten for c in made.clusters.values() for slot in c.slots) == (most < 10)
    checked = 0
    for cluster in made.clusters.values():
        for slot in cluster.slots:
            assert total(lambda w, s=slot: s.predictive(w, made.base), known) == pytest.approx(1.0, abs=1e-9)
            checked += not slot.constant
    assert checked  # some of them are holes


def test_the_lines_of_a_template_have_probability_one_in_all() -> None:
    made, known = stream(4)
    line = tokens_of("session opened for user root by (uid=0)")
    (cluster,) = (c for c in made.near(line, 5) if c.forgotten)
    at = next(i for i, slot in enumerate(cluster.slots) if not slot.constant)
    seen = cluster.lines.keys() - set(cluster.forgotten)
    s, norm = made.settings, cluster.size + made.settings.line_strength
    cached = sum((cluster.lines[x] - s.line_discount) / norm for x in seen)
    new = (cluster.size + s.line_strength) / norm - cached  # of what is not in the cache
    others = [slot for i, slot in enumerate(cluster.slots) if i != at]
    rest = math.prod(slot.predictive(slot.founder, made.base) for slot in others)  # of those constants

    def fresh(w: str) -> float:
        line = tuple(w if i == at else slot.founder for i, slot in enumerate(cluster.slots))
        if line in seen:
            return new * cluster.slots[at].predictive(w, made.base)  # which the cache has instead
        return math.exp(cluster.log_predictive(line, made.base)) / rest

    assert total(fresh, known) + cached == pytest.approx(1.0, abs=1e-9)


def test_lines_of_a_length_have_its_probability_in_all() -> None:
    made, known = stream()
    near = [c for c in made.clusters.values() if len(c.slots) == 1]
    assert len(near) == 2
    found = total(lambda w: math.exp(made.new_line((w,), near)[0]), known)
    assert found == pytest.approx(1 / 16, rel=1e-9)


def test_the_last_token_sums_out_of_a_longer_line() -> None:
    made, known = stream()
    s, base = made.settings, made.base
    line = tokens_of(LINES[2])
    near = [c for c in made.clusters.values() if len(c.slots) == len(line)]
    assert near
    found = total(lambda w: math.exp(made.new_line((*line[:-1], w), near)[0]), known)
    plain = [sum(base.terms(w)) for w in line[:-1]]
    copies = sum(
        math.prod(
            (1 - s.mutation) * slot.predictive(w, base) + s.mutation * g
            for slot, w, g in zip(c.slots, line, plain, strict=False)
        )
        for c in near
    )
    expected = (1 - s.copies) * math.prod(plain) + s.copies / len(near) * copies
    assert found == pytest.approx((15 / 16) ** (len(line) - 1) / 16 * expected, rel=1e-9)


def test_what_makes_a_value_of_the_token_before_has_no_mass_of_its_own() -> None:
    made, known = stream()
    head = ("said", '"', "anna")  # in quotes by itself, if the last token is another mark
    found = total(lambda w: math.exp(made.new_line((*head, w), [])[0]), known | set(head))
    alike = any(len(c.slots) == 4 for c in made.clusters.values())
    expected = (15 / 16) ** 3 / 16 * (1 - made.settings.copies if alike else 1.0)
    for w in head:
        expected *= sum(made.base.terms(w))
    assert found / expected == pytest.approx(1.0, abs=1e-9)


def a_slot(*values: str) -> tuple[Slot, float]:
    """A slot of these values, and the log of the product of their predictives after the first."""
    base = Base(Settings())
    slot, log = Slot(values[0], 0.1), 0.0
    for i, w in enumerate(values):
        log += math.log(slot.predictive(w, base)) if i else 0.0
        slot.add(w, base)
    return slot, log


def test_the_marginal_of_a_slot_is_the_product_of_its_predictives() -> None:
    base = Base(Settings())
    for values in (("a",), ("a", "b"), ("a", "0", "b.c", "de")):
        slot, log = a_slot(*values)
        assert slot.log_marginal(base) == pytest.approx(log, abs=1e-9)
    slot, log = a_slot("a", "b", "a", "b", "c")
    assert log - 2 < slot.log_marginal(base) < log  # one table a value: a lower bound


def test_the_marginal_does_not_care_for_the_order_of_values() -> None:
    base = Base(Settings())
    logs = {round(a_slot("a", *rest)[0].log_marginal(base), 9) for rest in (("b", "0", "b"), ("0", "b", "b"))}
    assert len(logs) == 1


def test_united_templates_hold_all_their_lines() -> None:
    base = Base(Settings())
    parts = []
    for label, last in enumerate(("a", "b", "c")):
        parts.append(Cluster(label, [Slot("to", 0.1), Slot(last, 0.1)], -9.0))
        parts[-1].add(("to", last), base, label + 1)
    whole, other = united(parts, base), united([parts[2], united(parts[:2], base)], base)
    assert whole.size == 6
    assert whole.slots[1].values == {"a": 1, "b": 1, "c": 1}
    assert whole.log_marginal(base) == pytest.approx(other.log_marginal(base), abs=1e-9)
    assert whole.slots[1].hole == 1.0


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("from 10.0.0.7:22, 3 times", "from 0, 0 times"),
        ("blk_-38650490 took -1.5e3s", "blk_0 took 0e0s"),
        ("at 0x00004ed8 of deadbeef", "at 0 of 0"),
        ("550e8400-e29b-41d4-a716-446655440000.", "0."),
        ("FF:F2:9F:16:E2:23 and cafe", "0 and cafe"),
        ("cafe9 a1 feed", "0 a0 feed"),
        ("2015-10-18 18:01:47,978", "0 0"),
        ("at Fri Jun 17 07:07:00 2005, Sat", "at 0, Sat"),
        ("Monday, 3 March 2025 and May 5 or 17/Jun/2005:07:07:00 +0000.", "0 and 0 or 0."),
        ("Jul  9 10:00:00 EST 2004 Marx 5 May Mar", "0 Marx 0 May Mar"),
        ("sent 18846 bytes (18.4 KB) in 7.5 s, <1 sec; 3 servers", "sent 0 (0) in 0, 0; 0 servers"),
        ("on=true, False is untrue; a=null b: None null", "on=0, 0 is untrue; a=0 b: 0 null"),
    ],
)
def test_what_changes_from_line_to_line_is_folded(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('font="Noto Sans" is used', 'font = " Noto~Sans " is used'),
        ('font="Noto" is used', 'font = " Noto " is used'),
        ('error="no route after 5 s, closed" x', 'error = " 0 " x'),
        ("user 'ann lee' isn't here", "user ' ann~lee ' isn ' t here"),
        ('"ann lee" isn\'t here', '" ann lee " isn \' t here'),
        ('level=info msg="Adding target"', 'level = info msg = " Adding target "'),
        ('Event: "Adding target"', 'Event : " Adding target "'),
        ('request="GET /a/b" x', 'request = " GET /a/b " x'),
        ('said "a \\" b" x', 'said " a~\\~b " x'),
        ('said "a b', 'said " a b'),
        ("hosts [a, b.c] up", "hosts [ a~b.c ] up"),
        ("hosts ['a'] up", "hosts [ a ] up"),
        ("hosts [a] up", "hosts [ a ] up"),
        ("hosts [a b] up", "hosts [ a b ] up"),
        ("sizes [1, 22, 3] up", "sizes [ 0 ] up"),
        ("sizes [] up", "sizes [ 0 ] up"),
        ("array x[1, 2] up", "array x [ 0 , 0 ] up"),
        ("[main, web] up", "[ main , web ] up"),
        ('got {"a": "b", "c": {"d": [1]}} now', "got 0 now"),
        ("got {} now, {x} and ${a: b}", "got 0 now , {x} and ${a : b}"),
        ('{"a": "b c"} now', '{ " a " : " b~c " } now'),
        ("GET /a/b?x=1&y=z HTTP/1.1", "GET /a/b?0 HTTP/0"),
        ("GET /a?q=x,y. ok? a=b", "GET /a?0. ok? a = b"),
    ],
)
def test_values_of_several_words_are_one_token(text: str, tokens: str) -> None:
    assert tokens_of(text) == tuple(tokens.replace("~", BETWEEN).split(" "))


def test_kinds_and_tokens() -> None:
    assert tokens_of('user=root, "x y" (uid=0)') == (
        *("user", "=", "root", ",", '"', f"x{BETWEEN}y", '"', "(", "uid", "=", "0", ")"),
    )
    kinds = {
        w: kind_of(class_of(w))
        for w in ("0", "0.0/0", "root", "r00t", "a.b", "-", "é".encode().decode("latin-1"))
    }
    assert kinds == {
        **{"0": "number", "0.0/0": "number", "root": "word", "r00t": "identifier", "a.b": "identifier"},
        **{"-": "word", "Ã©": "word"},
    }


def test_holes_of_words_are_found_and_labels_stay_the_oldest() -> None:
    names = ("root", "mysql", "ftp", "news", "uucp", "games", "daemon", "backup", "nobody", "sync", "proxy")
    made = Stream()
    first = [made.absorb(tokens_of(f"session opened for user {name} by (uid=0)")) for name in names]
    assert first[:2] == [0, 1]
    assert {made.now(label) for label in first} == {0}
    (cluster,) = made.clusters.values()
    assert [slot.constant for slot in cluster.slots].count(False) == 1


PIECES = (
    *(
        "Fri",
        "Jun",
        "Jul",
        "May",
        "Friday",
        "June",
        "17",
        "2005",
        "5",
        "07:07:00",
        "EST",
        "+0200",
        "AM",
        "true",
    ),
    *(
        "false",
        "null",
        "None",
        "=",
        "(",
        "KB",
        "s",
        "sec",
        "<1",
        "x",
        "a",
        ".",
        "_",
        "0x1f",
        "cafe1",
        "12",
        "T",
    ),
    *(" ", "  ", ",", "/", "-", ":", "bytes", "10:20:3", "ab:cd:ef:01", '"', " ", " ", "|", "\t", "ü"),
)


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_folds_as_plain_python_does(seed: int) -> None:
    draw, marker = random.Random(seed), Marker()
    for _ in range(20_000):
        text = "".join(draw.choices(PIECES, k=draw.randrange(1, 9)))
        if not text.strip():
            continue
        data, found = text.encode(), []
        for part in marker.parts(data):
            at, shown = part.begin, b""
            for begin, end in part.folds:
                shown, at = shown + data[at:begin] + b"0", end
            found.append((shown + data[at : part.end]).decode("latin-1"))
        assert tuple(found) == tokens_of(text), text


def test_which_tokens_have_no_blank_before_them() -> None:
    line = tokens_of('at LOCAL(0), "a b" Jun 14 2005:')
    assert line == ("at", "LOCAL", "(", "0", ")", ",", '"', f"a{BETWEEN}b", '"', "0", ":")
    glued = [token for token, own in zip(line, line.glued, strict=True) if own]
    assert glued == ["(", "0", ")", ",", f"a{BETWEEN}b", '"', ":"]
    first = LineStream(Terms())
    list(first.take(['at LOCAL(0), "a b" Jun 14 2005:']))
    assert first.state.slots["glued"][: len(line)].tolist() == [int(own) for own in line.glued]


def labels_of(*texts: str) -> list[int]:
    """Labels in the end."""
    made = Stream()
    first = [made.absorb(tokens_of(text)) for text in texts]
    return [made.now(label) for label in first]


def test_templates_of_unequal_length_that_differ_by_one_piece_have_one_label() -> None:
    assert labels_of("synchronized to 10.0.0.1, stratum 3", "synchronized to LOCAL(0), stratum 10") == [0, 0]
    hosts = [f"{host}:443 open through proxy now" for host in ("a.example", "b.example", "10.0.0.1", "c.d.e")]
    assert labels_of(*hosts) == [0] * 4
    for texts in (
        ("451 bytes sent", "18846 bytes (18.4 KB) sent"),  # a part that is there or not
        ("connection from 10.0.0.1 () at home", "connection from 10.0.0.1 (a.b) at home"),
        ("instruction address: 0x00004ed8", "instruction address space...0"),  # a word and another
        ("it took 5 of them", "it took all but 5 of them"),
    ):
        assert len(set(labels_of(*texts))) == 2, texts


def test_two_words_are_two_templates_unless_they_are_values() -> None:
    assert labels_of("state is up now", "state is down now") == [0, 1]
    assert labels_of("it is a=up for now and then", "it is a=down for now and then") == [0, 0]
    users = [f"session opened for user={name} by root" for name in ("ann", "bob")]
    more = [f"too many failures of {name} in a short time" for name in ("ann", "bob")]
    found = labels_of(*users, *more)
    assert (found[0], found[1]) == (0, 0)
    assert found[2] == found[3] != 0


def test_a_template_is_drawn_in_by_one_with_holes_where_it_has_constants() -> None:
    names = ("root", "mysql", "ftp", "news", "uucp", "games", "daemon", "backup", "nobody", "sync", "proxy")
    often = [f"session opened for user zed by (uid={n}) of {n} hosts x{n}y" for n in range(30)]
    texts = [f"session opened for user {name} by (uid=0) of 5 hosts x5y" for name in names]
    assert set(labels_of(*often, *texts)) == {0}
