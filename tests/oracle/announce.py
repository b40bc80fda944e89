"""Labels, revisions and events by definition (inheritance by largest overlap, ties to the older label)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Revision:
    """An earlier record whose announced label changed."""

    seq: int
    label: int
    new: bool
    link: int | None
    revision: int


@dataclass(frozen=True)
class Change:
    """What happened to a cluster: ``moved`` says which labels its members had before, or have now."""

    kind: str
    label: int
    members: list[int]
    moved: list[tuple[int, int]]


@dataclass(frozen=True)
class Announcement:
    """The label of the new record, the revisions its arrival caused, in seq order, and the changes."""

    label: int
    revisions: list[Revision]
    changes: list[Change]


class Announcer:
    """Keeps the announced label of every record as the head and the frontier move."""

    def __init__(self) -> None:
        self.labels: list[int] = []
        self.revision_counts: list[int] = []
        self.minted = 0
        self.head: list[int] = []
        self.frontier = -1

    def step(self, founders: Sequence[int], frontier: int) -> Announcement:
        """Take the head's founders of all records (the newest last) and the frontier after this step."""
        head = list(founders)
        seq = len(head) - 1
        if head[:-1] == self.head:
            label_of = {k: self.labels[k] for k in head[:-1]}
        else:
            label_of = self._inherit(head[:-1])
        for k in sorted(set(head)):
            if k not in label_of:
                label_of[k] = self._mint()

        old = list(self.labels)
        revisions = []
        for j in range(seq):
            label = label_of[head[j]]
            if label != self.labels[j]:
                self.labels[j] = label
                self.revision_counts[j] += 1
                link = latest_earlier_member(head, j)
                revisions.append(Revision(j, label, head[j] == j, link, self.revision_counts[j]))
        changes = splits(old, self.labels) + ends(old, self.labels)
        self.labels.append(label_of[head[seq]])
        if head[seq] == seq:
            changes.append(Change("born", self.labels[seq], [seq], []))
        self.revision_counts.append(0)
        self.head, self.frontier = head, frontier
        return Announcement(self.labels[seq], revisions, changes)

    def _inherit(self, earlier: Sequence[int]) -> dict[int, int]:
        """Labels by founder: decided founders keep theirs, the others inherit by overlap, one to one."""
        fixed = {k: self.labels[k] for k in earlier if k <= self.frontier}
        overlap = Counter(
            (self.labels[j], earlier[j])
            for j in range(self.frontier + 1, len(earlier))
            if earlier[j] not in fixed and self.labels[j] not in fixed.values()
        )
        label_of = dict(fixed)
        for (label, founder), _ in sorted(overlap.items(), key=lambda pair: (-pair[1], pair[0])):
            if founder not in label_of and label not in label_of.values():
                label_of[founder] = label
        return label_of

    def _mint(self) -> int:
        self.minted += 1
        return self.minted - 1


def having(labels: Sequence[int], label: int) -> list[int]:
    """The records that have a label."""
    return [j for j, own in enumerate(labels) if own == label]


def most_first(labels: Sequence[int]) -> list[tuple[int, int]]:
    """Each label and how often it comes, the most frequent first (ties: the older)."""
    return sorted(Counter(labels).items(), key=lambda pair: (-pair[1], pair[0]))


def splits(old: Sequence[int], new: Sequence[int]) -> list[Change]:
    """The labels that no record had before, by first member."""
    changes = []
    for label in dict.fromkeys(new):
        if label not in old:
            members = having(new, label)
            changes.append(Change("split", label, members, most_first([old[j] for j in members])))
    return changes


def ends(old: Sequence[int], new: Sequence[int]) -> list[Change]:
    """The labels that no record has any more, by first member."""
    changes = []
    for label in dict.fromkeys(old):
        if label not in new:
            members = having(old, label)
            moved = most_first([new[j] for j in members])
            changes.append(Change("merged" if len(moved) == 1 else "vanished", label, members, moved))
    return changes


def latest_earlier_member(founders: Sequence[int], j: int) -> int | None:
    """The latest record before j in the cluster of j; None for its founder."""
    return max((i for i in range(j) if founders[i] == founders[j]), default=None)
