"""A title for each story: the record that is most typical of it, kept until another is clearly better."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence

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


class Titles(msgspec.Struct, dict=True):
    """Titles by label, those chosen latest last."""

    held: dict[int, Title] = {}

    def __post_init__(self) -> None:
        require(len(self.held) <= HELD, "too many titles")
        self.held = {label: title for label, title in self.held.items() if title.text}
        self._bearer = {title.text: label for label, title in self.held.items()}
        """The story that took each text last."""

    def of(self, label: int) -> str | None:
        """The title of a story; None where none was chosen."""
        held = self.held.get(label)
        return None if held is None else held.text

    def due(self, labels: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """The stories of several records that have no title, or have outgrown it."""
        held = self.held
        return [
            label
            for label, size in zip(labels, sizes, strict=True)
            if size > 1 and ((title := held.get(label)) is None or size >= GROWN * title.size)
        ]

    def asked(self, label: int, samples: Iterable[Sample]) -> list[int]:
        """The records that :meth:`choose` compares: the samples, and the one whose title the story has."""
        before, found = self.held.get(label), [seq for seq, _, _ in samples]
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
        before = self.held.get(label)
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
        self.held.pop(label, None)
        self.held[label] = title
        self._bearer[title.text] = label
        if len(self.held) > HELD:
            gone = next(iter(self.held))
            old = self.held.pop(gone)
            if self._bearer.get(old.text) == gone:
                del self._bearer[old.text]


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
