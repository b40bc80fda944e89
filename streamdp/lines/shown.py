"""Templates as people read them, and the values of their holes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from streamdp.lines.base import KIND_OF
from streamdp.lines.closed_places import SHUT, unshut
from streamdp.lines.masks import FILLED, MASKED, NO_MASKS, Masks
from streamdp.lines.scan import MOST, mark_line
from streamdp.lines.state import NUMBER, State
from streamdp.lines.words import MONTHS, WEEKDAYS

NAMES = "|".join(name[:3] for name in WEEKDAYS + MONTHS)
_IPV6 = (
    r"\[?(?!.*::.*::|(?:[0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2}$)"
    r"(?=[^%/\]]*::|(?:[0-9a-fA-F]+:){6}(?:[0-9]+\.|[0-9a-fA-F]+:[0-9a-fA-F]+(?!:)))"
    r"[0-9a-fA-F:]*(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?:%[\w.-]+)?(?:/[0-9]{1,3})?(?:\]:[0-9]+)?"
)
FOLDED: tuple[tuple[str, str], ...] = (
    ("<ip>", rf"[0-9]{{1,3}}(\.[0-9]{{1,3}}){{3}}(:[0-9]+)?|{_IPV6}"),
    ("<uuid>", r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    ("<date>", r"[0-9]{4}(?P<_>[-/.])[0-9]{2}(?P=_)[0-9]{2}"),
    ("<time>", r"[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"),
    ("<size>", r"[-+<>~]?[0-9][0-9.,:/_-]* (?:[KMGT]?i?B|kB|bytes?)"),
    ("<duration>", r"[-+<>~]?[0-9][0-9.,:/_-]* [a-z]+"),
    ("<bool>", r"(?i:true|false)"),
    ("<null>", r"(?i:null|none|nil)"),
    ("<date>", rf"(?:[0-9]{{1,2}}[ /-])?(?:{NAMES})[a-z]*[ ,/-].*"),
    ("<num>", r"[-+<>~]?[0-9]+([.,:/_-]+[0-9]+)*"),
    ("<text>", r"(?s:[^ ,=\"'{}\[\]]*[ ,=\"'{}\[\]].*)|"),
)
"""What a part that is folded may be, the first that it is; else it is hexadecimal."""

_FOLDED = re.compile("|".join(f"(?P<k{i}>{pattern})" for i, (_, pattern) in enumerate(FOLDED)), re.ASCII)
HEX, HOLE, NUMBERS, WORDS = "<hex>", "<id>", "<num>", "<word>"


class Part:
    """A token of a line: where it begins and ends among its bytes, and what of it is folded.

    ``masks`` has the name of each folded part that a mask has matched, and None for others.
    """

    __slots__ = ("begin", "end", "folds", "masks")

    def __init__(self, begin: int) -> None:
        self.begin, self.end = begin, begin
        self.folds: list[tuple[int, int]] = []
        self.masks: list[str | None] = []


class Marker:
    """Cuts lines into tokens, as the kernel does, masked before."""

    def __init__(self, masks: Masks = NO_MASKS) -> None:
        self._masks = masks
        self._folded = np.zeros(4096, np.uint8)
        self._glued = np.zeros(MOST, np.uint8)
        self._marks = np.zeros((2 * MOST, 2), np.int64)

    def parts(self, line: bytes) -> list[Part]:
        """The tokens of a line of UTF-8."""
        if len(line) >= len(self._folded):
            self._folded = np.zeros(2 * len(line), np.uint8)
        if len(line) >= len(self._marks):
            self._marks = np.zeros((2 * len(line), 2), np.int64)
        line = self._masks.text(line)
        count = mark_line(np.frombuffer(line, np.uint8), self._folded, self._glued, self._marks)
        found: list[Part] = []
        for begin, end in self._marks[:count].tolist():
            if end < 0:
                found.append(Part(begin))
            else:
                found[-1].folds.append((begin, end))
                found[-1].masks.append(
                    self._masks.named[line[begin] - MASKED] if line[begin] >= MASKED else None
                )
        ends = [part.begin for part in found[1:]] + [len(line)]
        for part, end in zip(found, ends, strict=False):  # a line without tokens ends, too
            text = line[part.begin : end]
            part.end = part.begin + len(text.rstrip(b" \t\n\v\f\r"))
        return found


def kind_of(text: str) -> str:
    """What a part that was folded is."""
    found = _FOLDED.fullmatch(text)
    if found is None:
        return HEX
    return next(name for i, (name, _) in enumerate(FOLDED) if found[f"k{i}"] is not None)


def pieces_of(line: str, marker: Marker) -> list[str]:
    """The tokens of a line as its template shows those that are constants, each with the space before it."""
    data, found, before = line.encode("utf-8", "replace"), [], 0
    for part in marker.parts(data):
        shown = [b" " if part.begin > before and before else b""]
        at = part.begin
        for (begin, end), mask in zip(part.folds, part.masks, strict=True):
            kind = mask or kind_of(data[begin:end].decode("utf-8", "replace"))
            shown += [data[at:begin], kind.encode()]
            at = end
        shown.append(data[at : part.end])
        found.append(b"".join(shown).decode("utf-8", "replace"))
        before = part.end
    return found


def holes(state: State, cluster: int) -> list[bool | None]:
    """Whether each slot of a template is a hole; None for one that is closed."""
    row = state.clusters[cluster]
    slots = state.slots[int(row["slot"]) : int(row["slot"] + row["length"])]
    shut = state.text[state.tokens["start"][slots["founder"]]] == SHUT
    return [
        None if each else hole
        for each, hole in zip(shut.tolist(), (slots["distinct"] > 1).tolist(), strict=True)
    ]


def founders(state: State, cluster: int) -> list[bytes]:
    """The tokens of a template's first line, folded."""
    row = state.clusters[cluster]
    tokens = state.tokens[state.slots["founder"][int(row["slot"]) : int(row["slot"] + row["length"])]]
    spans = zip(tokens["start"].tolist(), tokens["length"].tolist(), strict=True)
    return [state.text[start : start + length].tobytes() for start, length in spans]


def template_of(state: State, cluster: int, pieces: list[str]) -> str:
    """A template: its constants, with <num> and the like where they were folded, and its holes by kind."""
    first = int(state.clusters[cluster]["slot"])
    shown, tokens = [], founders(state, cluster)
    for i, (piece, hole) in enumerate(zip(pieces, holes(state, cluster), strict=True)):
        if hole is not False:
            own = shown_hole(state, first + i) if hole else unshut(tokens[i]).decode("utf-8", "replace")
            piece = (" " if piece.startswith(" ") else "") + own
        shown.append(piece)
    return "".join(shown)


def shown_hole(state: State, slot: int) -> str:
    """What the values of a hole are: words, numbers, or else."""
    if state.slots[slot]["wordy"]:
        return WORDS
    shown = [int(state.tokens[token]["shown"]) for token in _values(state, slot)]
    return NUMBERS if all(KIND_OF[each] == NUMBER for each in shown) else HOLE


def mask_of(state: State, slot: int, named: Sequence[str]) -> str | None:
    """The name of the mask that has matched a constant, or the first part of one; None where none has."""
    row = state.tokens[state.slots[slot]["founder"]]
    text = state.text[row["start"] : row["start"] + row["length"]]
    found = text[(text >= MASKED) & (text < FILLED)]
    return named[found[0] - MASKED] if len(found) else None


def _values(state: State, slot: int) -> Iterator[int]:
    value = int(state.slots[slot]["first"])
    while value >= 0:
        yield int(state.values[value]["token"])
        value = int(state.values[value]["next"])


def filled(template: str, values: Sequence[str], masks: Sequence[str] = ()) -> str | None:
    """A template whose holes, and folded parts, have these values; None where those are more or fewer."""
    names = dict.fromkeys([*(name for name, _ in FOLDED), HEX, HOLE, WORDS, *masks])
    parts = re.split("|".join(map(re.escape, names)), template)
    if len(parts) != len(values) + 1:
        return None
    return "".join(part for pair in zip(parts, [*values, ""], strict=True) for part in pair)


def values_of(line: str, template: list[bool | None], marker: Marker) -> list[str]:
    """What stands in a line where its template, slot by slot, has holes, or in constants what is folded."""
    data, found = line.encode("utf-8", "replace"), []
    for part, hole in zip(marker.parts(data), template, strict=True):
        if hole is None:
            continue
        spans = [(part.begin, part.end)] if hole else part.folds
        found += [data[begin:end].decode("utf-8", "replace") for begin, end in spans]
    return found
