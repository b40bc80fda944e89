"""A title for each story: the record that is most typical of it, kept until another is clearly better."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from streamdp.kernels.sound import require
from streamdp.ledger.samples import Sample, shown

GROWN = 2
"""A story's title is chosen anew when the story has become this many times larger."""

CLEARLY = 0.25
"""Nats a token by which another record must be more typical, to become the title."""

HELD = 4_000
"""Titles that are remembered: those chosen latest."""

LONGEST = 120
"""Characters of a title."""


class Title(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The title of a story, chosen when it had ``size`` records: record ``seq``, and how typical that was."""

    seq: int
    typical: float
    size: int
    text: str


def short(text: str, most: int = LONGEST) -> str:
    """A text in one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


class Titles:
    """Titles by label."""

    def __init__(self) -> None:
        self._held: OrderedDict[int, Title] = OrderedDict()
        self._bearer: dict[str, int] = {}  # the story that took each text last

    def of(self, label: int) -> str | None:
        """The title of a story; None where none was chosen."""
        held = self._held.get(label)
        return None if held is None else held.text

    def due(self, labels: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """The stories of several records that have no title, or have outgrown it."""
        held = self._held
        return [
            label
            for label, size in zip(labels, sizes, strict=True)
            if size > 1 and ((title := held.get(label)) is None or size >= GROWN * title.size)
        ]

    def asked(self, label: int, samples: Iterable[Sample]) -> list[int]:
        """The records that :meth:`choose` compares: the samples, and the one whose title the story has."""
        before, found = self._held.get(label), [seq for seq, _, _ in samples]
        return found if before is None or before.seq in found else [*found, before.seq]

    def choose(
        self,
        label: int,
        size: int,
        samples: Iterable[Sample],
        typical: Mapping[int, float],
        living: Container[int],
    ) -> Title | None:
        """Choose the title of a story among samples; returns it where it is new.

        No title is that of another of the ``living`` stories, as far as samples differ. ``typical`` is how
        typical records are of it, in nats a token, by their number, as far as they are known to be its own.
        """
        before = self._held.get(label)
        said = {seq: (foretold, text) for seq, foretold, text in samples}
        here = -math.inf if before is None else typical.get(before.seq, before.typical)
        best: Title | None = None
        for free in (True, False):  # a title that is taken only where there is no other
            for seq, (foretold, text) in said.items():
                if before is not None and seq not in typical:
                    continue  # it cannot be compared any more
                nats = typical.get(seq, foretold)
                if best is not None and (nats, -seq) <= (best.typical, -best.seq):
                    continue
                title = Title(seq, nats, size, short(shown(text)))
                if not free or not self._taken(title.text, label, living):
                    best = title
            if best is not None:
                break
        if before is not None:
            shared = self._taken(before.text, label, living)
            clearly = best is not None and (shared or best.typical >= here + CLEARLY)
            if best is None or best.text == before.text or not clearly:
                self._hold(label, msgspec.structs.replace(before, typical=here, size=size))
                return None
        if best is None:
            return None
        self._hold(label, best)
        return best

    def _taken(self, text: str, label: int, living: Container[int]) -> bool:
        """Whether another living story has a title."""
        bearer = self._bearer.get(text, label)
        return bearer != label and bearer in living and self.of(bearer) == text

    def _hold(self, label: int, title: Title) -> None:
        self._held[label] = title
        self._held.move_to_end(label)
        self._bearer[title.text] = label
        if len(self._held) > HELD:
            gone, old = self._held.popitem(last=False)
            if self._bearer.get(old.text) == gone:
                del self._bearer[old.text]

    def all(self) -> list[Title]:
        """All that are remembered."""
        return list(self._held.values())

    def dump(self) -> list[Any]:
        """All titles, as plain values."""
        return list(self._held.items())

    def load(self, stored: list[Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError."""
        held = OrderedDict((label, msgspec.convert(title, Title)) for label, title in stored)
        require(len(held) == len(stored) <= HELD, "titles of one story come twice")
        require(all(type(label) is int for label in held), "a title of no story")
        held = OrderedDict((label, title) for label, title in held.items() if title.text)
        self._held, self._bearer = held, {title.text: label for label, title in held.items()}


def unique(titles: Mapping[int, str], keywords: Mapping[int, Sequence[str]]) -> dict[int, str]:
    """The same titles by label, each once: what comes again has a keyword more, else the label."""
    found: dict[int, str] = {}
    taken: set[str] = set()
    for label in sorted(titles):
        title, text = titles[label], titles[label]
        more = iter(keywords.get(label, ()))
        while text.casefold() in taken:
            word = next(more, None)
            text = f"{title} ({label if word is None else word})"
        taken.add(text.casefold())
        found[label] = text
    return found
