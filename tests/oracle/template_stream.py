"""The stream of lines: each joins a template or founds one, and templates that turn out alike are merged."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from tests.oracle.closing import DELIMITERS
from tests.oracle.templates import (
    DIGIT,
    LETTERS,
    MESSAGE,
    Base,
    Cluster,
    Line,
    Settings,
    Slot,
    class_of,
    fixed,
    is_verb,
    kind_of,
    lettered,
    names_act,
    united,
    valued,
    wordy,
)


class Stream:
    """One greedy pass."""

    def __init__(
        self, settings: Settings | None = None, most: int = 1 << 60, templates: int = 1 << 60
    ) -> None:
        self.settings, self.most, self.templates = settings or Settings(), most, templates
        self.retired: list[int] = []
        self.base = Base(self.settings)
        self.clusters: dict[int, Cluster] = {}
        self.known: dict[Line, Cluster] = {}
        self.minted = 0
        self.older: dict[int, int] = {}
        """Labels that have become one with an older label."""
        self.last: dict[Line, int] = {}
        self.records = self.made = self.kept = 0
        """Lines absorbed; values of holes since some were forgotten, with those that were left then."""

    def absorb(self, line: Line) -> int:
        """The label of a line, as it is announced first."""
        self.last[line] = self.records
        self.records += 1
        cluster = self.known.get(line)
        if cluster is not None:
            cluster.lines[line] += 1
            cluster.last = self.records
            return self.now(cluster.label)
        self.retire()
        self.forget()
        cluster, log_p0, laws = self.best(line)
        changed = cluster is None
        if cluster is None:
            glued = getattr(line, "glued", (False,) * len(line))
            slots = [Slot(*of, glued=own) for *of, own in zip(line, laws, glued, strict=True)]
            cluster = self.clusters[self.minted] = Cluster(self.minted, slots, log_p0)
            self.minted += 1
            self.base.found(line)
            self.base.found_values(line)
        else:
            changed = any(s.constant and s.founder != w for s, w in zip(cluster.slots, line, strict=True))
        before = bred(cluster)
        cluster.add(line, self.base)
        cluster.last = self.records
        self.made += bred(cluster) - before
        self.known[line] = cluster
        if changed:
            self.look_again(cluster)
        return self.now(cluster.label)

    def now(self, label: int) -> int:
        """The label that is told today of what was once told this one."""
        while label in self.older:
            label = self.older[label]
        return label

    # ------------------------------------------------------------ what is forgotten

    def retire(self) -> None:
        """Where there are too many templates, retire labels of one line, then the least lately used."""
        if len(self.clusters) < self.templates:
            return
        families: dict[int, list[Cluster]] = defaultdict(list)
        for c in self.clusters.values():
            families[self.now(c.label)].append(c)
        last = {label: max(c.last for c in members) for label, members in families.items()}
        lines = {label: sum(c.size for c in members) for label, members in families.items()}
        order = sorted(families, key=lambda label: (lines[label] > 1, last[label]))
        gone = []
        while len(self.clusters) > 3 * self.templates // 4:
            gone.append(order.pop(0))
            for c in families[gone[-1]]:
                del self.clusters[c.label]
                for line in c.lines.keys() - set(c.forgotten):
                    del self.known[line]
        self.retired += sorted(gone)
        self.base.forget_founders()
        for label in sorted(self.clusters):
            self.base.found(tuple(slot.founder for slot in self.clusters[label].slots))
        self.made = sum(map(bred, self.clusters.values()))
        self.forget_tokens()

    def forget_tokens(self) -> None:
        """Forget tokens that no founding line and no hole has."""
        holes = (slot for c in self.clusters.values() for slot in c.slots if not slot.constant)
        left = {w for slot in holes for w in slot.values} | set(self.base.words.counts)
        for w in {w for table in self.base.held.values() for w in table.counts} - left:
            self.base.forget(str(w))

    def forget(self) -> None:
        """Where too much is known, forget lines that came least lately, and the rarest values."""
        if len(self.known) >= self.most:
            for line in sorted(self.known, key=self.last.__getitem__)[: -(self.most // 2)]:
                cluster, gone = self.known.pop(line), (*line, "forgotten", str(self.records))
                cluster.lines[gone] = cluster.lines.pop(line)
                cluster.forgotten.append(gone)
        if self.made < max(self.most, 2 * self.kept):
            return
        holes = [slot for c in self.clusters.values() for slot in c.slots if not slot.constant]
        kept = {(id(slot), slot.founder) for slot in holes}
        for slot in holes:
            order = sorted(slot.values, key=lambda w: (telling(w), *commoner(slot, w)), reverse=True)
            kept |= {(id(slot), w) for w in order[:3]}
        every = [(slot, w) for slot in holes for w in slot.values]
        every.sort(key=lambda at: commoner(*at), reverse=True)
        kept |= {(id(slot), w) for slot, w in every[: self.most // 2]}
        for slot, w in every:
            if (id(slot), w) not in kept:
                slot.forgotten += slot.values.pop(w)
                del slot.births[w]
        self.forget_tokens()
        self.made = self.kept = len(kept)

    # ------------------------------------------------------------ where a line goes

    def best(self, line: Line) -> tuple[Cluster | None, float, list[float]]:
        """The template that a line joins, or None; log p0, and the laws of its slots where it founds one."""
        s = self.settings
        near = self.near(line, sum(map(wordy, line)))
        log_p0, laws = self.new_line(line, near)
        best, score = None, math.log(s.concentration + s.discount * len(self.clusters)) + log_p0
        for cluster in near:
            if may_join(cluster, line, self.base):
                one = math.log(cluster.size - s.discount) + cluster.log_predictive(line, self.base)
                if one > score:
                    best, score = cluster, one
        return best, log_p0, laws

    def near(self, line: Line, words: int) -> list[Cluster]:
        """The templates that have enough of a line's tokens as constants to be one with it."""
        need = max(1, (words + 1) // 2)
        return [
            c
            for c in self.clusters.values()
            if len(c.slots) == len(line)
            and sum(s.constant and s.founder == w and lettered(w) for s, w in zip(c.slots, line, strict=True))
            >= need
        ]

    def new_line(self, line: Line, near: list[Cluster]) -> tuple[float, list[float]]:
        """log p0 of a line, and for each slot how likely it is a hole if this line founds.

        A copy is of any template of this length; those that are not near could not matter and are left out.
        """
        s, base = self.settings, self.base
        terms = [base.terms(w, valued(line, i, line)) for i, w in enumerate(line)]
        own = [sum(each) for each in terms]
        alike = sum(len(c.slots) == len(line) for c in self.clusters.values())
        ways = [math.log(1 - s.copies if alike else 1.0) + sum(map(math.log, own))]
        for cluster in near:
            joined = [slot.predictive(w, base) for slot, w in zip(cluster.slots, line, strict=True)]
            copied = [(1 - s.mutation) * q + s.mutation * g for q, g in zip(joined, own, strict=True)]
            ways.append(math.log(s.copies / alike) + sum(map(math.log, copied)))
        top = max(ways)
        length = math.log((15 / 16) ** (len(line) - 1) / 16)
        laws = [hole / (constant + hole) for constant, hole in terms]
        return length + top + math.log(sum(math.exp(log - top) for log in ways)), laws

    # ------------------------------------------------------------ second looks

    def look_again(self, cluster: Cluster) -> None:
        """Merge a template that has changed with others as long as that is better."""
        while True:
            groups: dict[tuple[int, ...], list[Cluster]] = defaultdict(list)
            beside = [slot.founder if slot.constant else None for slot in cluster.slots]
            shown = tuple(founder or "" for founder in beside)
            words = sum(wordy(w) for w in shown if w)
            words += sum(not s.constant and any(map(wordy, s.values)) for s in cluster.slots)
            for other in self.near(shown, words):
                if other is not cluster:
                    groups[differing(cluster, other)].append(other)
            tries = [[cluster, other] for others in groups.values() for other in others]
            tries += [[cluster, *others] for others in groups.values() if len(others) > 1]
            best: tuple[float, list[Cluster], Cluster] | None = None
            for group in tries:
                whole = united(group, self.base)
                if not allowed([slot.values for slot in whole.slots], self.base, beside):
                    continue
                gain = self.gain(group, whole)
                if len(group) == 2 and subsumed(*group):
                    gain += 1e6  # it is certain
                if gain > 0 and (best is None or gain > best[0]):
                    best = gain, group, whole
            if best is None:
                break
            _, group, cluster = best
            for c in group:
                del self.clusters[c.label]
                self.one_label(c.label, cluster.label)
            oldest = min(group, key=lambda c: c.label)
            self.made += bred(cluster) - bred(oldest)
            for slot, own in zip(cluster.slots, oldest.slots, strict=True):
                for w in slot.births.keys() - own.births.keys():
                    self.base.hold(w)
            for w in (w for c in group if c is not oldest for slot in c.slots for w in slot.births):
                self.base.let_go(w)
            self.clusters[cluster.label] = cluster
            for line in cluster.lines.keys() - set(cluster.forgotten):
                self.known[line] = cluster
        for other in self.clusters.values():
            if related(cluster, other, self.base):
                self.one_label(cluster.label, other.label)

    def gain(self, group: list[Cluster], whole: Cluster) -> float:
        """By how much one cluster is better than several, in nats."""
        s, k = self.settings, len(self.clusters)

        def worth(c: Cluster) -> float:
            return c.log_marginal(self.base) + math.lgamma(c.size - s.discount) - math.lgamma(1 - s.discount)

        priors = sum(math.log(s.concentration + s.discount * (k - 1 - j)) for j in range(len(group) - 1))
        return worth(whole) - sum(map(worth, group)) - priors

    def one_label(self, a: int, b: int) -> None:
        """Two labels are one from now on, the older."""
        a, b = sorted((self.now(a), self.now(b)))
        if a != b:
            self.older[b] = a


def bred(cluster: Cluster) -> int:
    """How many values its holes have."""
    return sum(len(slot.births) for slot in cluster.slots)


def commoner(slot: Slot, value: str) -> tuple[int, int]:
    """How much a value of a hole is worth keeping."""
    return slot.values[value], slot.births[value]


def telling(value: str) -> int:
    """How much a value says of how its hole is shown."""
    return 2 if wordy(value) else int(kind_of(class_of(value)) != "number")


def may_join(cluster: Cluster, line: Line, base: Base) -> bool:
    """Whether a line may be one of a template."""
    values = [slot.values.keys() | {w} for slot, w in zip(cluster.slots, line, strict=True)]
    return allowed(values, base, line, [not slot.constant for slot in cluster.slots], line)


def allowed(
    slots: Sequence[Iterable[str]],
    base: Base,
    beside: Sequence[str | None],
    holes_before: Sequence[bool] = (),
    line: Line | None = None,
) -> bool:
    """The restriction of the prior: constants with a letter, at least as many as there are holes of words.

    Where a line joins, holes of values, by what it has, do not count. Words that are told apart are of as
    many templates, unless they have been a hole before. ``beside`` is what stands before each.
    """
    constants = holes = 0
    for i, values in enumerate(map(set, slots)):
        if len(values) > 1 and any(map(fixed, values)):
            return False
        constants += len(values) == 1 and all(map(lettered, values))
        if len(values) > 1 and any(map(wordy, values)) and not (line and valued(line, i, line)):
            if told_apart(values, base, first=names_act(beside, i)) and not any(holes_before[i : i + 1]):
                return False
            holes += 1
    return constants >= max(1, holes)


def told_apart(words: Collection[str], base: Base, *, first: bool) -> bool:
    """Whether the words of a place are constants: two, of which none is known as a value.

    Or fewer than ten, most of them verbs or the first of a message, and half at most values.
    """
    values = sum(base.holds(word) or not wordy(word) for word in words)
    acts = first or 2 * sum(map(is_verb, words)) > len(words)
    two = len(words) == 2 and not any(map(base.holds, words))
    return two or (acts and len(words) < 10 and 2 * values <= len(words))


def same(a: Slot, b: Slot) -> bool:
    """Whether two slots are one constant."""
    return a.constant and b.constant and a.founder == b.founder


def differing(a: Cluster, b: Cluster) -> tuple[int, ...]:
    """The slots in which two templates differ; holes in both do not."""
    pairs = enumerate(zip(a.slots, b.slots, strict=True))
    return tuple(i for i, (x, y) in pairs if not same(x, y) and (x.constant or y.constant))


def subsumed(a: Cluster, b: Cluster) -> bool:
    """Whether one is the other with holes filled, and half of the slots are equal constants."""
    pairs = list(zip(a.slots, b.slots, strict=True))
    if 2 * sum(same(x, y) for x, y in pairs) < len(pairs):
        return False
    return all(not x.constant or same(x, y) for x, y in pairs) or all(
        not y.constant or same(x, y) for x, y in pairs
    )


def related(a: Cluster, b: Cluster, base: Base) -> bool:
    """Whether two templates of unequal length differ by one list, or by one piece.

    A list is of tokens of one class with digits. A piece has no blank inside; that of one has no word.
    """
    if len(a.slots) == len(b.slots):
        return False
    a, b = sorted((a, b), key=lambda c: len(c.slots))
    head, tail, equal = apart(a.slots, b.slots, base)
    one, other = a.slots[head : len(a.slots) - tail], b.slots[head : len(b.slots) - tail]
    closed = any(fixed(w) for slot in one + other for w in slot.values)
    classes = {class_of(w) for slot in one + other for w in slot.values if class_of(w) & (LETTERS | DIGIT)}
    own = {class_of(w) for slot in one for w in slot.values if class_of(w) & (LETTERS | DIGIT)}
    begins = own or other[0].founder not in ("(", "[")
    if equal >= 2 and begins and not closed and len(classes) == 1 and min(classes) & DIGIT:
        return True
    if equal >= 2 and all(of_name(c.slots, head, len(c.slots) - tail) for c in (a, b)):
        return True
    head, tail, equal = apart(a.slots, b.slots, base, pieces=True)
    found = [piece(c.slots[head : len(c.slots) - tail]) for c in (a, b)]
    return equal >= 2 and min(found) > 0 and sum(found) > 2


def covered(a: Slot, b: Slot, base: Base) -> bool:
    """Whether two slots are one constant, or one of them is a hole, or both are likely to be one."""
    if same(a, b) or fixed(a.founder) or fixed(b.founder):
        return same(a, b)
    return not (a.constant and b.constant) or all(varies(slot.founder, base) for slot in (a, b))


def varies(token: str, base: Base) -> bool:
    """Whether a constant is likely to be a hole yet: no sign, and no word unless it is known as a value."""
    return bool(class_of(token) & (LETTERS | DIGIT)) and (base.holds(token) or not wordy(token))


def of_name(slots: list[Slot], begin: int, stop: int) -> bool:
    """Whether slots are words of a value: behind a name and an equals sign, before the next or a sign."""
    if begin > 1 and slots[begin - 1].founder != "=":
        begin -= 1  # the first word may be shared, as a hole
    part, rest = slots[begin:stop], slots[stop:]
    if begin < 2 or not rest or slots[begin - 1].founder != "=" or MESSAGE.search(slots[begin - 2].founder):
        return False
    if any(slot.glued for slot in part[1:]) or any(fixed(slot.founder) for slot in part):
        return False
    return rest[0].founder in DELIMITERS or (
        len(rest) > 1 and not rest[0].glued and rest[1].founder.startswith("=")
    )


def apart(a: list[Slot], b: list[Slot], base: Base, pieces: bool = False) -> tuple[int, int, int]:
    """How many slots at the head and the tail two templates share; how many words before any hole.

    With ``pieces`` what blanks part is shared as a whole or not.
    """
    n, m, head, tail = len(a), len(b), 0, 0
    while head < n and covered(a[head], b[head], base):
        pair = a[head], b[head]
        first = not any(lettered(slot.founder) for slot in a[:head])
        if (
            first
            and not same(*pair)
            and all(s.constant for s in pair)
            and any(wordy(s.founder) for s in pair)
        ):
            break
        head += 1
    while pieces and head > 0 and any(slot.glued for slot in (*a[head : head + 1], *b[head : head + 1])):
        head -= 1
    while tail < n - head and covered(a[-1 - tail], b[-1 - tail], base):
        tail += 1
    while pieces and tail > 0 and (a[n - tail].glued or b[m - tail].glued):
        tail -= 1
    before = itertools.takewhile(lambda pair: same(*pair), zip(a[:head], b[:head], strict=True))
    behind = itertools.takewhile(
        lambda pair: same(*pair), zip(reversed(a[n - tail :]), reversed(b[m - tail :]), strict=True)
    )
    equal = sum(lettered(slot.founder) for slot, _ in (*before, *behind))
    return head, tail, equal


def piece(slots: list[Slot]) -> int:
    """What slots are: 0 where a blank is between them or all are signs, else 1, or 2 without a word."""
    if any(fixed(slot.founder) for slot in slots):
        return 0
    words = [slot for slot in slots if slot.constant and lettered(slot.founder)]
    others = [slot for slot in slots if not slot.constant or kind_of(class_of(slot.founder)) == "number"]
    if not all(slot.glued for slot in slots[1:]) or not words + others:
        return 0
    return 1 if words else 2
