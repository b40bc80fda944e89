"""What a stream knows of corrections by hand: those in force, those to come, and what they hold in place.

Names, muted and pinned stories are facts about labels. Constraints are about records: those of one *side* are
to share a cluster, or those of different sides are to share none. A side is what a correction named when it
was applied: records by number as long as they are retained, or undecided; behind those, the clusters that
hold the older ones, which can never be parted again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from streamdp.errors import Exit
from streamdp.kernels.sound import require, within
from streamdp.lines.closed_places import Rule
from streamdp.lines.scan import MOST as MOST_TOKENS
from streamdp.records import RENAMED, TITLED, Event
from streamdp.state.corrections import Correction, CorrectionError

MOST = 10_000
"""Corrections in force."""

MOST_RECORDS = 1_000_000
"""Records that the constraints in force name, one that several name counted for each."""


NO_LABELS = np.zeros(0, np.int64)


class Side(msgspec.Struct, gc=False):
    """Records, by number, with their newest labels, and the clusters of those that are no longer known.

    ``together`` says that they are to share a cluster.
    """

    together: bool
    seqs: np.ndarray
    labels: np.ndarray
    older: list[int] = []

    def where(self) -> set[int]:
        """The labels of the clusters that hold any of it."""
        return {*self.labels.tolist(), *self.older}


class Held(msgspec.Struct, gc=False):
    """A correction in force: the sides of a constraint are kept apart, a ``rule`` closes templates."""

    correction: Correction
    sides: list[Side] = []
    rule: Rule | None = None

    def check(self) -> None:
        """See that what was stored goes together. Raises UnsoundError."""
        for side in self.sides:
            require(side.seqs.dtype == side.labels.dtype == np.int64, "a constraint of another type")
            require(side.seqs.shape == side.labels.shape == (side.seqs.size,), "a constraint of two lengths")
            require((np.diff(side.seqs) > 0).all(), "the records of a constraint are out of order")
        if self.rule is not None:
            shape = self.rule.shape
            require(0 <= self.rule.place < len(shape) <= MOST_TOKENS, "a rule on no place")
            require(b"" not in shape, "a rule of another type")

    def broken_by(self, first: int, labels: np.ndarray) -> bool:
        """Whether the records from number ``first`` on must not have these labels."""
        found = []
        for side in self.sides:
            own = labels[side.seqs - first]
            if self.correction.what == "pin":
                return not side.older and self.correction.stories[0] not in own
            if side.together and len({*own.tolist(), *side.older}) > 1:
                return True
            found.append({*own.tolist(), *side.older})
        return any(a & b for i, a in enumerate(found) for b in found[:i])


class Blank(msgspec.Struct):
    """Records that say nothing any more: their numbers, and how often they had each word, by its id.

    They stay in the clusters, as counts, so that looks back leave them where they are.
    """

    seqs: np.ndarray = msgspec.field(default_factory=lambda: NO_LABELS)
    words: dict[int, int] = {}

    def __post_init__(self) -> None:
        require(self.seqs.dtype == np.int64 and self.seqs.ndim == 1, "blank records of another type")
        require((np.diff(self.seqs) > 0).all(), "blank records are out of order")
        require(min(map(min, self.words.items()), default=0) >= 0, "the words of blank records")

    def add(self, seqs: Iterable[int], words: Mapping[int, int]) -> None:
        """These records say nothing any more; they had these words so often."""
        self.seqs = np.union1d(self.seqs, np.array(sorted(seqs), np.int64))
        more = {word: self.words.get(word, 0) + count for word, count in words.items()}
        self.words = dict(sorted((self.words | more).items()))


class Corrections(msgspec.Struct, dict=True):
    """Corrections of a stream, by number, and records that say nothing any more (``blank``).

    ``taken`` is how many there were, refused ones too; ``refused`` says why some were that came in the middle
    of records, until somebody takes it. It is stored as it is, but for what is ``waiting``: that is given
    again.
    """

    taken: int = 0
    held: dict[int, Held] = {}
    blank: Blank = msgspec.field(default_factory=Blank)

    def __post_init__(self) -> None:
        require(self.taken >= 0, "the number of corrections is out of range")
        for number, held in self.held.items():
            require(number == held.correction.number, "a correction has two numbers")
            held.check()
        self.waiting: deque[tuple[int, Correction]] = deque()
        self.refused: list[tuple[int, str]] = []
        self._know()

    def _know(self) -> None:
        """Work out what holds of labels."""
        corrections = [held.correction for held in self.held.values()]
        self.names = {c.stories[0]: str(c.title) for c in corrections if c.what == "rename"}
        self.muted = {c.stories[0] for c in corrections if c.what == "mute"}
        self.pinned = {c.stories[0] for c in corrections if c.what == "pin"}

    # ---------------------------------------------------------------- what is in force

    def of(self, what: str, label: int) -> Held | None:
        """What is in force of one kind about a story."""
        for held in self.held.values():
            if held.correction.what == what and held.correction.stories == (label,):
                return held
        return None

    @property
    def rules(self) -> dict[int, Rule]:
        """What closes templates, by the numbers of the corrections."""
        return {number: held.rule for number, held in self.held.items() if held.rule is not None}

    def declare(self, correction: Correction, live: np.ndarray) -> None:
        """Name or mute a story; ``live`` are the labels that live. Raises CorrectionError."""
        (label,) = correction.stories
        if (before := self.of(correction.what, label)) is not None:
            if correction.what == "mute":
                raise refused(f"story {label} is muted already (correction {before.correction.number})")
            self.end(before.correction.number)
        title = (correction.title or "").casefold()
        for other, name in self.names.items():
            if correction.what == "rename" and name.casefold() == title and other in live:
                raise refused(f"story {other} has that name already: names are unique")
        self.begin(correction)

    def begin(self, correction: Correction, sides: Sequence[Side] = (), rule: Rule | None = None) -> None:
        """Let a correction be in force. Raises CorrectionError."""
        records = sum(len(side.seqs) for held in self.held.values() for side in held.sides)
        if len(self.held) == MOST or records + sum(len(side.seqs) for side in sides) > MOST_RECORDS:
            raise refused("there are too many in force: undo some first")
        self.held[correction.number] = Held(correction, [*sides], rule)
        self._know()

    def end(self, number: int) -> Held:
        """Lift a correction. Raises CorrectionError where it is not in force."""
        held = self.held.pop(number, None)
        if held is None:
            raise refused(f"correction {number} is not in force")
        self._know()
        return held

    def against(self, first: int, labels: np.ndarray) -> Held | None:
        """What is in force and forbids that the records from number ``first`` on have these labels."""
        return next((held for held in self.held.values() if held.broken_by(first, labels)), None)

    def audible(self, events: Iterable[Event], *, by_hand: bool = False) -> list[Event]:
        """Events but for those of muted stories, and for titles of stories that somebody has named.

        ``by_hand`` says that they tell of just that.
        """
        return [
            event
            for event in events
            if event.cluster not in self.muted
            and (by_hand or event.event not in (TITLED, RENAMED) or event.cluster not in self.names)
        ]

    # ---------------------------------------------------------------- constraints

    def follow(self, seq: int, labels: np.ndarray) -> None:
        """Learn the newest labels of the latest of ``seq`` records; those before them are final."""
        first = seq - len(labels)
        for held in self.held.values():
            for side in held.sides:
                gone = side.seqs < first
                side.older = sorted({*side.older, *side.labels[gone].tolist()})
                side.seqs = side.seqs[~gone]
                side.labels = labels[side.seqs - first]
                if held.correction.what == "pin":  # what has left by hand is not held any more
                    stays = side.labels == held.correction.stories[0]
                    side.seqs, side.labels = side.seqs[stays], side.labels[stays]

    def fixed(self, first: int = 0, labels: np.ndarray = NO_LABELS) -> np.ndarray:
        """Numbers, in order, of the records that stay where they are.

        Among those from number ``first`` on, with these labels, are all of pinned stories.
        """
        if not self.held and not len(self.blank.seqs):
            return NO_LABELS
        found = [side.seqs for held in self.held.values() for side in held.sides]
        pinned = first + np.flatnonzero(np.isin(labels, [*self.pinned]))
        return np.unique(np.concatenate([self.blank.seqs, pinned, *found]))

    def whole(self) -> np.ndarray:
        """Labels, in order, of the clusters that never become part of another."""
        found = set(self.pinned)
        for held in self.held.values():
            if len(held.sides) > 1:
                found.update(*(side.where() for side in held.sides))
        return np.array(sorted(found), np.int64)

    def check(self, seq: int, minted: int) -> None:
        """See that constraints are on a stream of so many records and labels. Raises UnsoundError."""
        within(self.blank.seqs, 0, seq, "a blank record")
        for held in self.held.values():
            for side in held.sides:
                within(side.seqs, 0, seq, "a record of a constraint")
                within(side.labels, 0, minted, "a label of a constraint")
                require(all(0 <= label < minted for label in side.older), "a label of a constraint")


def refused(message: str) -> CorrectionError:
    """A correction that makes no sense."""
    return CorrectionError(message, Exit.USAGE)
