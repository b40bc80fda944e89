"""Regular expressions for kernels: what ``re`` has parsed, as instructions, and a kernel that runs them.

It finds what ``re`` finds, or says that it does not know: where an expression looks at a byte that is no
ASCII, or takes long. Expressions that use more than logs need are not translated.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.characters import WORDS, UntranslatedError, members_of
from streamdp.kernels.jit import kernel

FAILED, UNKNOWN = -1, -2
NONE = -1

_SET, _RUN, _SPLIT, _JUMP, _MARK, _TEST, _LOOK, _DONE, _EDGE, _END, _MATCH = range(11)
_OTHER, _SHORTER, _UNMARK, _LOOKED = range(4)  # what is tried where nothing matches
_MOST_STEPS, _DEEPEST, _LONGEST, _ENDLESS = 20_000, 2_000, 4_000, 1 << 40


class Machine(NamedTuple):
    """Instructions of some expressions, and room to run one.

    An instruction has four numbers: what is done, and with what. ``spans`` are where groups began and ended.
    """

    code: np.ndarray  # int64[instructions, 4]
    sets: np.ndarray  # bool[sets, 128] which characters are in each
    words: np.ndarray  # bool[128]
    spans: np.ndarray  # int64[groups, 2]
    stack: np.ndarray  # int64[deepest, 4]


def machine_of(
    patterns: Sequence[re.Pattern[str] | None], groups: Sequence[str]
) -> tuple[Machine, np.ndarray] | None:
    """Instructions for these expressions, and where each begins, ``NONE`` for None; None if one has others.

    Of its named groups those in ``groups`` are told, by their number there.
    """
    made = _Instructions({name: number for number, name in enumerate(groups)})
    begins = []
    try:
        for pattern in patterns:
            begins.append(NONE if pattern is None else len(made.code))
            if pattern is not None:
                made.add_all(pattern)
    except (UntranslatedError, ImportError):
        return None
    words = np.zeros(128, bool)
    words[list(WORDS)] = True
    code, sets = np.array(made.code, np.int64).reshape(-1, 4), np.zeros((max(len(made.sets), 1), 128), bool)
    for number, members in enumerate(made.sets):
        sets[number, list(members)] = True
    spans, stack = np.full((len(groups), 2), NONE), np.zeros((_DEEPEST, 4), np.int64)
    return Machine(code, sets, words, spans, stack), np.array(begins)


class _Instructions:
    """Instructions as they are written; of ``sets`` each is there once."""

    def __init__(self, slots: Mapping[str, int]) -> None:
        self.code: list[list[int]] = []
        self.sets: dict[frozenset[int], int] = {}
        self._slots = slots
        self._named: dict[int, int] = {}  # the number of a group in its expression: in ``spans``

    def add_all(self, pattern: re.Pattern[str]) -> None:
        """Translate an expression."""
        parsed = importlib.import_module("re._parser").parse(pattern.pattern, pattern.flags)
        known = {
            number: self._slots[name] for name, number in pattern.groupindex.items() if name in self._slots
        }
        self._named = known
        self._sequence(parsed, pattern.flags)
        self._add(_MATCH)

    def _add(self, what: int, *numbers: int) -> int:
        """Write an instruction; its number."""
        self.code.append([what, *numbers, *[0] * (3 - len(numbers))])
        if len(self.code) > _LONGEST:
            raise UntranslatedError
        return len(self.code) - 1

    def _sequence(self, parts: Any, flags: int) -> None:
        for kind, value in parts:
            self._part(str(kind), value, flags)

    def _part(self, kind: str, value: Any, flags: int) -> None:
        members = members_of(kind, value, flags)
        if members is not None:
            self._add(_SET, self._set(members))
        elif kind == "SUBPATTERN":
            group, more, fewer, parts = value
            slot = self._named.get(group)
            if slot is not None:
                self._add(_MARK, slot, 0)
            self._sequence(parts, (flags | more) & ~fewer)
            if slot is not None:
                self._add(_MARK, slot, 1)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            self._repeat(*value, flags=flags, greedy=kind == "MAX_REPEAT")
        elif kind == "BRANCH":
            self._branch(value[1], flags)
        elif kind in ("ASSERT", "ASSERT_NOT") and value[0] == 1:
            look = self._add(_LOOK, 0, int(kind == "ASSERT_NOT"))
            before, self._named = self._named, {}  # a group in there would outlast what it is in
            self._sequence(value[1], flags)
            self._named = before
            self._add(_DONE)
            self.code[look][1] = len(self.code)
        elif kind == "GROUPREF_EXISTS" and value[0] in self._named:
            test = self._add(_TEST, self._named[value[0]])
            self._sequence(value[1], flags)
            jump = self._add(_JUMP)
            self.code[test][2] = len(self.code)
            self._sequence(value[2] or (), flags)
            self.code[jump][1] = len(self.code)
        elif kind == "AT" and str(value) == "AT_BOUNDARY":
            self._add(_EDGE)
        elif kind == "AT" and str(value) == "AT_END" and not flags & re.MULTILINE:
            self._add(_END)
        else:
            raise UntranslatedError

    def _set(self, members: frozenset[int]) -> int:
        return self.sets.setdefault(members, len(self.sets))

    def _repeat(self, least: int, most: Any, parts: Any, *, flags: int, greedy: bool) -> None:
        endless = str(most) == "MAXREPEAT"
        members = members_of(str(parts[0][0]), parts[0][1], flags) if len(parts) == 1 else None
        if members is not None and greedy:
            self._add(_RUN, self._set(members), least, _ENDLESS if endless else int(most))
            return
        if parts.getwidth()[0] == 0:  # what may be empty is repeated by rules of its own
            raise UntranslatedError
        for _ in range(least):
            self._sequence(parts, flags)
        splits = []
        for _ in range(1 if endless else int(most) - least):
            splits.append(self._add(_SPLIT))
            self._sequence(parts, flags)
        if endless:
            self._add(_JUMP, splits[0])
        for split in splits:
            ways = split + 1, len(self.code)
            self.code[split][1:3] = ways if greedy else ways[::-1]

    def _branch(self, ways: Sequence[Any], flags: int) -> None:
        jumps = []
        for way in ways[:-1]:
            split = self._add(_SPLIT)
            self._sequence(way, flags)
            jumps.append(self._add(_JUMP))
            self.code[split][1:3] = split + 1, len(self.code)
        self._sequence(ways[-1], flags)
        for jump in jumps:
            self.code[jump][1] = len(self.code)


@kernel
def _push(stack: np.ndarray, top: int, what: int, first: int, second: int, third: int) -> int:
    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = what, first, second, third
    return top + 1


@kernel
def _back(machine: Machine, top: int, looked: int) -> tuple[int, int, int, int]:
    """Go back to what can be tried otherwise: at which instruction and place (``FAILED`` for none), and more.

    ``looked`` is where in the stack it stands what the innermost look ahead goes back to.
    """
    spans, stack = machine.spans, machine.stack
    while top > 0:
        top -= 1
        if looked >= 0 and top == looked + 1:
            top -= 1
        kind, at, i, last = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        if kind == _UNMARK:
            spans[at, i] = last
        elif kind == _SHORTER:
            if i > last:
                stack[top, 2] -= 1
                return at, i - 1, top + 1, looked
        elif kind == _OTHER:
            return at, i, top, looked
        else:
            looked = last
            if stack[top + 1, 0]:
                return at, i, top, looked
    return FAILED, 0, 0, looked


@kernel
def match(machine: Machine, at: int, data: np.ndarray, begin: int, i: int, stop: int) -> int:
    """Where what the expression matches from place i on ends; ``FAILED``, or ``UNKNOWN``.

    ``at`` is its first instruction; the text is from ``begin`` to ``stop``.
    """
    machine.spans[:] = NONE
    code, sets, spans, stack = machine.code, machine.sets, machine.spans, machine.stack
    top, looked = 0, NONE
    for _ in range(_MOST_STEPS):
        what, a, b, fits = code[at, 0], code[at, 1], code[at, 2], True
        at += 1
        if top + 2 > stack.shape[0]:
            return UNKNOWN
        if what == _SET:
            fits = i < stop
            if fits:
                if data[i] > 127:
                    return UNKNOWN
                fits = sets[a, data[i]]
                i += 1
        elif what == _RUN:
            least, last = i + b, min(stop, i + code[at - 1, 3])
            while i < last and data[i] < 128 and sets[a, data[i]]:
                i += 1
            if i < last and data[i] > 127:
                return UNKNOWN
            fits = i >= least
            if i > least:
                top = _push(stack, top, _SHORTER, at, i, least)
        elif what == _SPLIT:
            top = _push(stack, top, _OTHER, b, i, 0)
            at = a
        elif what == _JUMP:
            at = a
        elif what == _MARK:
            top = _push(stack, top, _UNMARK, a, b, spans[a, b])
            spans[a, b] = i
        elif what == _TEST:
            at = b if spans[a, 1] < 0 else at
        elif what == _LOOK:
            top = _push(stack, _push(stack, top, _LOOKED, a, i, looked), b, 0, 0, 0)
            looked = top - 2
        elif what == _DONE:
            top = looked
            at, i, looked, fits = stack[top, 1], stack[top, 2], stack[top, 3], stack[top + 1, 0] == 0
        elif what == _EDGE:
            if (i > begin and data[i - 1] > 127) or (i < stop and data[i] > 127):
                return UNKNOWN
            before = i > begin and machine.words[data[i - 1]]
            fits = before != (i < stop and machine.words[data[i]])
        elif what == _END:
            fits = i == stop or (i + 1 == stop and data[i] == 0x0A)
        else:
            return i
        if not fits:
            at, i, top, looked = _back(machine, top, looked)
            if at < 0:
                return FAILED
    return UNKNOWN
