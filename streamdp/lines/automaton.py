"""Regular expressions as tables, so that a text is looked through once, byte by byte.

An expression becomes a nondeterministic automaton whose states are in the order in which ``re`` tries them,
and that a deterministic one: it finds what ``re`` finds, with ``re.ASCII``. What is asked of the character
before or behind a place is part of a state, or is answered as the next byte is read. An expression that would
need something else, or too many states, is refused.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

MASKED, FILLED = 0xF5, 0xFF
"""Bytes from here on are in no text: what was matched is written as one of them, and then the last."""

MOST_NODES, MOST_STATES = 4_000, 2_000

_EVERY = frozenset(range(256))
_OTHERS = frozenset(range(128, 256))
_TAIL = frozenset(range(0x80, 0xC0))
_SET, _SPLIT, _BEFORE, _BEHIND, _MATCH = range(5)

Node = tuple[int, Any, bool, int]
"""What is done, with which bytes (of a split: where to go first), whether an edge will do, what is next."""


class Automaton(NamedTuple):
    """Tables of an expression.

    ``classes`` are those of bytes; ``starts`` where to begin behind a byte of each, and at the edge of a
    text; ``table``, by state and class, with the edge last, is twice the number of the next state from 1 on
    (0: none), and 1 where what came before the byte is a match.
    """

    classes: np.ndarray  # int64[256]
    starts: np.ndarray  # int64[classes + 1]
    table: np.ndarray  # int64[states, classes + 1]
    before: np.ndarray  # bool[n, 256] which bytes the last n before a match may be


_WORDS = frozenset(byte for byte in range(128) if chr(byte).isalnum() or byte == ord("_"))
"""Letters, digits and the underscore, of ASCII."""


class UntranslatedError(Exception):
    """An expression uses what is not translated."""


def automaton_of(expression: str) -> Automaton:
    """The tables of an expression. Raises ValueError, with what is wrong of it, where there are none."""
    try:
        re.compile(expression, re.ASCII)
        parsed = importlib.import_module("re._parser").parse(expression, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if parsed.getwidth()[0] == 0:
        raise ValueError("may match nothing: let it have one character at least")
    made, flags, parts = _Nodes(), parsed.state.flags, list(parsed)
    try:
        before = _before(parts, flags)
        start = made.sequence(parts[min(len(before), 1) :], flags, made.add(_MATCH))
    except UntranslatedError as error:
        what = str(error) or "a set of characters beyond ASCII"
        raise ValueError(f"cannot be matched in linear time: it has {what}") from None
    return _Tables(made.nodes, start).automaton()._replace(before=before)


def _before(parts: Any, flags: int) -> np.ndarray:
    """The bytes that an expression asks for with a look back at several characters, its first part."""
    kind, value = (str(parts[0][0]), parts[0][1])
    if kind != "ASSERT" or value[0] > 0 or len(value[1]) < 2:
        return np.zeros((0, 256), bool)
    found = np.zeros((len(value[1]), 256), bool)
    for row, (each, what) in zip(found, value[1], strict=True):
        members, others = _is_one(str(each), what, flags)
        if members is None or others:
            raise UntranslatedError(_BESIDE)
        row[sorted(members)] = True
    return found


def _is_one(kind: str, value: Any, flags: int) -> tuple[frozenset[int] | None, bool]:
    """The characters of ASCII that a part of one character matches, and whether those beyond are; None."""
    if kind not in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
        return None, False
    others = kind in ("NOT_LITERAL", "ANY")
    for each, what in value if kind == "IN" else [(kind, value)]:
        name = str(each)
        if (name.endswith("LITERAL") and what > 127) or (name == "RANGE" and what[1] > 127):
            raise UntranslatedError
        others = others or (name == "CATEGORY" and "_NOT_" in str(what))
    parser = importlib.import_module("re._parser")
    part = parser.SubPattern(parser.State(), [(getattr(parser, kind), value)])
    matched = importlib.import_module("re._compiler").compile(part, flags).match
    members = frozenset(byte for byte in range(128) if matched(chr(byte)))
    return members, others != (kind == "IN" and str(value[0][0]) == "NEGATE")


def _beside(parts: Any, flags: int) -> tuple[frozenset[int], bool]:
    """The bytes that a look ahead or back allows beside a place, and whether an edge of the text will do."""
    kind = str(parts[0][0]) if len(parts) == 1 else ""
    value: Any = parts[0][1] if len(parts) == 1 else None
    found: frozenset[int] = frozenset()
    if kind == "BRANCH":
        ways = [_beside(way, flags) for way in value[1]]
        return found.union(*(each for each, _ in ways)), any(edge for _, edge in ways)
    if kind == "AT" and "BOUNDARY" not in str(value) and not flags & re.MULTILINE:
        return found, True
    members, others = _is_one(kind, value, flags)
    if members is None:
        raise UntranslatedError(_BESIDE)
    return members | (_OTHERS if others else frozenset()), False


class _Nodes:
    """States in the order of an expression, made from its end."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, what: int, of: Any = None, next_one: int = 0, *, edge: bool = False) -> int:
        """Add a state; its number."""
        self.nodes.append((what, of, edge, next_one))
        if len(self.nodes) > MOST_NODES:
            raise UntranslatedError("too many parts: shorten its repetitions")
        return len(self.nodes) - 1

    def sequence(self, parts: Any, flags: int, after: int) -> int:
        """Where parts begin that go on with the state ``after``."""
        for kind, value in reversed(list(parts)):
            after = self._part(str(kind), value, flags, after)
        return after

    def _part(self, kind: str, value: Any, flags: int, after: int) -> int:
        if kind == "LITERAL" and value > 127:
            return self._letter(value, flags, after)
        if kind == "IN" and (
            letters := [what for each, what in value if str(each) == "LITERAL" and what > 127]
        ):
            rest = [each for each in value if each[1] not in letters]
            if rest and str(rest[0][0]) == "NEGATE":
                raise UntranslatedError
            ways = [self._letter(letter, flags, after) for letter in letters]
            ways += [self._part(kind, rest, flags, after)] if rest else []
            return functools.reduce(lambda a, b: self.add(_SPLIT, a, b), ways)
        members, others = _is_one(kind, value, flags)
        if members is not None:
            return self._one(members, others, after)
        if kind == "SUBPATTERN":
            _, more, fewer, parts = value
            return self.sequence(parts, (flags | more) & ~fewer, after)
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(value, flags, after, greedy=kind == "MAX_REPEAT")
        if kind == "BRANCH":
            *ways, last = [self.sequence(way, flags, after) for way in value[1]]
            for way in reversed(ways):
                last = self.add(_SPLIT, way, last)
            return last
        return self._asked(kind, value, flags, after)

    def _letter(self, letter: int, flags: int, after: int) -> int:
        """One letter beyond ASCII."""
        if flags & re.IGNORECASE:
            raise UntranslatedError("a letter beyond ASCII in either case")
        for byte in reversed(chr(letter).encode()):
            after = self.add(_SET, frozenset([byte]), after)
        return after

    def _one(self, members: frozenset[int], others: bool, after: int) -> int:
        """One character of these, or any beyond ASCII, which what was masked counts as."""
        found = self.add(_SET, members, after)
        if not others:
            return found
        tails = [after]
        for _ in range(3):
            tails.append(self.add(_SET, _TAIL, tails[-1]))
        for first, last, tail in ((0xC2, 0xE0, 1), (0xE0, 0xF0, 2), (0xF0, MASKED, 3)):
            found = self.add(_SPLIT, found, self.add(_SET, frozenset(range(first, last)), tails[tail]))
        whole = self.add(_BEHIND, _EVERY - {FILLED}, after, edge=True)
        more = self.add(_SPLIT, len(self.nodes) + 1, whole)
        self.add(_SET, frozenset([FILLED]), more)
        return self.add(_SPLIT, found, self.add(_SET, frozenset(range(MASKED, FILLED)), more))

    def _repeat(self, value: Any, flags: int, after: int, *, greedy: bool) -> int:
        least, most, parts = value

        def either(once: int, none: int) -> int:
            return self.add(_SPLIT, once, none) if greedy else self.add(_SPLIT, none, once)

        if str(most) == "MAXREPEAT":
            if parts.getwidth()[0] == 0:
                raise UntranslatedError("an endless repetition of what may be nothing")
            again = self.add(_SPLIT)
            once = self.sequence(parts, flags, again)
            ways = (once, after) if greedy else (after, once)
            self.nodes[again] = (_SPLIT, ways[0], False, ways[1])
            found = again
        else:
            found = after
            for _ in range(int(most) - least):
                found = either(self.sequence(parts, flags, found), after)
        for _ in range(least):
            found = self.sequence(parts, flags, found)
        return found

    def _asked(self, kind: str, value: Any, flags: int, after: int) -> int:
        """What matches no character, but says what is before or behind."""
        if kind == "AT" and not flags & re.MULTILINE:
            name = str(value)
            if name.startswith("AT_BEGINNING"):
                return self.add(_BEFORE, frozenset[int](), after, edge=True)
            if name.startswith("AT_END"):
                return self.add(_BEHIND, frozenset[int](), after, edge=True)
            inside = name == "AT_NON_BOUNDARY"
            no_word = self.add(_BEHIND, _EVERY - _WORDS, after, edge=True)
            word = self.add(_BEHIND, _WORDS, after)
            behind_word = self.add(_BEFORE, _WORDS, word if inside else no_word)
            behind_none = self.add(_BEFORE, _EVERY - _WORDS, no_word if inside else word, edge=True)
            return self.add(_SPLIT, behind_word, behind_none)
        if kind not in ("ASSERT", "ASSERT_NOT"):
            raise UntranslatedError(_NAMES.get(kind, f"a part that is not known ({kind.lower()})"))
        way, parts = value
        found, edge = _beside(parts, flags)
        if kind == "ASSERT_NOT":
            found, edge = _EVERY - found, not edge
        return self.add(_BEFORE if way < 0 else _BEHIND, found, after, edge=edge)


_BESIDE = "a look ahead, or back but for its beginning, at more than one character"
_NAMES = {
    "GROUPREF": "a reference to a group",
    "GROUPREF_EXISTS": "a condition on a group",
    "GROUPREF_IGNORE": "a reference to a group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repetition",
    "AT": "anchors of several lines",
}

Set = tuple[tuple[int, ...], int]
"""States in the order in which they are tried, and the class of the byte before where any asks for it."""


class _Tables:
    """Makes an automaton deterministic."""

    def __init__(self, nodes: Sequence[Node], start: int) -> None:
        sets = sorted({of for what, of, *_ in nodes if isinstance(of, frozenset)}, key=sorted)
        signs = [tuple(byte in members for members in sets) for byte in range(256)]
        known = {sign: number for number, sign in enumerate(dict.fromkeys(signs))}
        self.classes = np.array([known[sign] for sign in signs], np.int64)
        self.edge = len(known)
        by_class = {members: frozenset(self.classes[sorted(members)].tolist()) for members in sets}
        self.nodes = [
            (what, by_class[of] if isinstance(of, frozenset) else of, edge, after)
            for what, of, edge, after in nodes
        ]
        self.start = start
        self._numbers: dict[Set, int] = {}
        self._order: list[Set] = []

    def automaton(self) -> Automaton:
        """The tables. Raises ValueError where there would be too many states."""
        starts = [self._number((self.start,), before) for before in range(self.edge + 1)]
        rows: list[list[int]] = []
        while len(rows) < len(self._order):
            tried, before = self._order[len(rows)]
            rows.append([self._step(tried, before, byte) for byte in range(self.edge + 1)])
        none = np.zeros((0, 256), bool)
        return Automaton(self.classes, np.array(starts), np.array(rows, np.int64), none)

    def _step(self, tried: tuple[int, ...], before: int, byte: int) -> int:
        reached, matches = self._closure(tried, before, byte)
        if byte == self.edge:
            return int(matches)
        further = tuple(dict.fromkeys(self.nodes[at][3] for at in reached if byte in self.nodes[at][1]))
        return 2 * (self._number(further, byte) + 1 if further else 0) + matches

    def _number(self, tried: tuple[int, ...], before: int) -> int:
        key = tried, before if self._asks(tried) else -1
        if key not in self._numbers:
            self._numbers[key] = len(self._order)
            self._order.append(key)
            if len(self._order) > MOST_STATES:
                raise ValueError(
                    f"cannot be matched in linear time: it needs more than {MOST_STATES:,} states; "
                    "shorten its repetitions"
                )
        return self._numbers[key]

    def _asks(self, tried: tuple[int, ...]) -> bool:
        """Whether what is before says where these states lead."""
        found = self._walk(tried, lambda node: True)
        return any(self.nodes[at][0] == _BEFORE for at in found)

    def _closure(self, tried: tuple[int, ...], before: int, byte: int) -> tuple[list[int], int]:
        """The states that read a byte, in order, up to a match; and whether there is one."""

        def holds(node: Node) -> bool:
            what, of, edge, _ = node
            beside = before if what == _BEFORE else byte
            return edge if beside == self.edge else beside in of

        reached: list[int] = []
        for at in self._walk(tried, holds):
            if self.nodes[at][0] == _MATCH:
                return reached, 1
            if self.nodes[at][0] == _SET:
                reached.append(at)
        return reached, 0

    def _walk(self, tried: tuple[int, ...], holds: Callable[[Node], bool]) -> list[int]:
        """All states that are reached without a byte, in the order in which they are tried."""
        found: dict[int, None] = {}
        waiting = [*reversed(tried)]
        while waiting:
            at = waiting.pop()
            if at in found:
                continue
            found[at] = None
            node = self.nodes[at]
            if node[0] == _SPLIT:
                first: Any = node[1]
                waiting += [node[3], first]
            elif node[0] in (_BEFORE, _BEHIND) and holds(node):
                waiting.append(node[3])
        return [*found]
