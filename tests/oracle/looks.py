"""Second looks by definition: which records and clusters are looked at, and where they go.

A clustering is a list of labels, one for each record of the stream. A place is weighed by the prior of the
two clusters that it concerns and the predictive of the words there; the best wins, if that is not to stay.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

SURE = 0.99
MOST_RECORDS = 50
REVIEW_EVERY = 512
AGES = (1, 2, 4)
LEAST_GAIN = 1e-6
PLACES = 8
WORTH = 1e-7


@dataclass(frozen=True)
class Announced:
    """How sure a record's answer was, and whether it has been revised since."""

    probability: float
    revised: bool


def records_to_look_at(answers: Sequence[Announced], age: int) -> list[int]:
    """The records that come of an age after these answers, but for those that were sure and not revised."""
    seq = len(answers)
    stops = [seq - multiple * age for multiple in AGES]
    of_age = {i for stop in stops for i in range(max(stop - REVIEW_EVERY, 0), stop)}
    return [i for i in sorted(of_age) if answers[i].revised or answers[i].probability < SURE]


def clusters_to_look_at(labels: Sequence[int], open_labels: Sequence[int], age: int) -> list[int]:
    """The open clusters of an age that is due, and of few records, the oldest first.

    A cluster of one record that comes of age in this review was looked at as a record.
    """
    found, seq = [], len(labels)
    for label in open_labels:
        members = [i for i, own in enumerate(labels) if own == label]
        old = seq - members[0]
        if len(members) == 1 and members[0] >= seq - age - REVIEW_EVERY:
            continue
        due = any(old - REVIEW_EVERY < multiple * age <= old for multiple in AGES)
        if due and len(members) <= MOST_RECORDS:
            found.append((members[0], label))
    return [label for _, label in sorted(found)]


class Looks:
    """Moves records and clusters of a clustering, one after another.

    ``prior`` gives log p of one cluster, up to what is the same for every clustering; ``predictive`` log H of
    some records given others; ``share`` whether some records have a word of others, or these are no place;
    ``weight`` what a cluster weighs for the next record; ``decided`` is the last record that the beam has
    decided.
    """

    def __init__(
        self,
        labels: list[int],
        open_labels: list[int],
        prior: Callable[[list[int]], float],
        predictive: Callable[[list[int], list[int]], float],
        share: Callable[[list[int], list[int]], bool],
        weight: Callable[[list[int]], float],
        founders_stay: bool,
        decided: int,
    ) -> None:
        self.labels, self.open, self.decided = labels, open_labels, decided
        self.prior, self.predictive, self.share, self.weight = prior, predictive, share, weight
        self.founders_stay = founders_stay

    def members(self, label: int) -> list[int]:
        """The records of a cluster, in order."""
        return [i for i, own in enumerate(self.labels) if own == label]

    def look_at_record(self, i: int) -> None:
        """Put a record where it belongs; the founder of a cluster of several stays, under a decay."""
        own = self.members(self.labels[i])
        if self.labels[i] not in self.open or (self.founders_stay and own[0] == i and len(own) > 1):
            return
        self._move([i], least=1)

    def look_at_cluster(self, label: int) -> None:
        """Make a cluster part of one that is at least as large, if that is better."""
        whole = self.members(label)
        if label in self.open and whole[-1] <= self.decided:
            self._move(whole, least=len(whole))

    def _move(self, moved: list[int], least: int) -> None:
        own = self.labels[moved[0]]
        rest = [i for i in self.members(own) if i not in moved]
        stays = self.predictive(rest, moved)
        if rest:
            stays += self._gain(rest, moved)
        best, gain = own, stays + LEAST_GAIN
        for label, predictive in self._places(own, moved, least):
            joins = predictive + self._gain(self.members(label), moved)
            if joins > gain:
                best, gain = label, joins
        for i in moved:
            self.labels[i] = best
        if best != own and not rest:
            self.open.remove(own)

    def _places(self, own: int, moved: list[int], least: int) -> list[tuple[int, float]]:
        """The clusters with the best predictive; of those as good the heaviest, then the oldest."""
        ranked = []
        for label in self.open:
            there = self.members(label)
            if label != own and len(there) >= least and self.share(there, moved):
                value = self.predictive(there, moved)
                ranked.append((-round(value, 9), -round(self.weight(there), 9), there[0], label, value))
        ranked.sort()
        worth = [each for each in ranked[:PLACES] if each[-1] >= ranked[0][-1] + log(WORTH)]
        return [(label, value) for *_, label, value in worth]

    def _gain(self, there: list[int], moved: list[int]) -> float:
        """Nats that the prior gives for two sets of records being one cluster."""
        return self.prior(sorted(there + moved)) - self.prior(there) - self.prior(moved)
