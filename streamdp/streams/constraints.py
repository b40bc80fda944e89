"""Corrections that say which records belong together, in a beam: factors of infinite weight over partitions.

Hypotheses that a constraint forbids are dropped, and the probabilities of the others are renormalised. Where
none is left, or the best one that is left is worse than the announced clustering with just these records
moved, that takes their place. What the constraints in force name stays where it is from then on: the steps of
a beam part and join no earlier records, and looks back and refinements leave those records alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.beam.data.choice import UNIT_NATS
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import Output
from streamdp.beam.looks.moves import Moves, apply, is_full
from streamdp.beam.looks.review import by_label, leave
from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.beam.search import BeamSearch
from streamdp.offline.task import Stream
from streamdp.offline.weigh import nats_of
from streamdp.records import Assignment
from streamdp.state.corrections import Correction
from streamdp.streams.corrections import Corrections, Held, Side, newest_labels, refused


class Known(NamedTuple):
    """The records that are retained or undecided, from number ``first`` on, with their newest labels.

    ``open`` and ``sizes`` are the labels, in order, and sizes of the open clusters of the best hypothesis;
    ``movable`` says of which records the answer may still change.
    """

    first: int
    labels: np.ndarray
    movable: np.ndarray
    open: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, search: BeamSearch, retained: np.ndarray, since: int) -> Known:
        """``retained`` are labels of the latest records; answers before number ``since`` are final."""
        state, (first, labels) = search.state, newest_labels(search, retained)
        slots = search.head_slots()
        names, slots = by_label(search, slots[state.pool.state[slots] == ALIVE])
        movable = np.arange(first, search.seq) >= max(since, search.seq - len(retained))
        return cls(first, labels, movable, names, state.pool.slots["size"][slots])

    def side(self, together: bool, labels: Sequence[int], but: Sequence[int] = ()) -> Side:
        """The records of some open clusters, but for those of these numbers."""
        places = np.flatnonzero(np.isin(self.labels, labels))
        older = [label for label in labels if self.size(label) > int((self.labels == label).sum())]
        seqs = np.setdiff1d(places + self.first, np.array(but, np.int64))
        return Side(together, seqs, self.labels[seqs - self.first], sorted(older))

    def named(self, together: bool, seqs: Sequence[int]) -> Side:
        """These records."""
        found = np.unique(np.array(seqs, np.int64))
        return Side(together, found, self.labels[found - self.first])

    def size(self, label: int) -> int:
        """How many records a story has."""
        return int(self.sizes[np.searchsorted(self.open, label)])

    def can_go(self, side: Side) -> bool:
        """Whether all of these records can be moved."""
        return not side.older and bool(self.movable[side.seqs - self.first].all())


# ---------------------------------------------------------------- hypotheses


def _founders(search: BeamSearch, labels: np.ndarray) -> np.ndarray:
    """The founders of clusters of the best hypothesis, by label; a number below 0 for one that is gone."""
    names, slots = by_label(search, search.head_slots())
    if not len(names):
        return -1 - labels
    at = np.minimum(np.searchsorted(names, labels), len(names) - 1)
    return np.where(names[at] == labels, search.state.pool.founder[slots[at]], -1 - labels)


def clusters_by_hypothesis(search: BeamSearch, known: Known) -> np.ndarray:
    """The founder of the cluster of each known record under each hypothesis, shape (width, N).

    What is decided has the same under all.
    """
    state, width = search.state, int(search.state.beam.counters.width)
    found = np.tile(_founders(search, known.labels), (width, 1))
    nodes = state.beam.leaf[:width].copy()
    for place in range(search.seq - 1 - known.first, search.decided - known.first, -1):
        found[:, place] = state.lineages.rows["founder"][state.trellis.lineage[nodes]]
        nodes = state.trellis.parent[nodes]
    return found


def obey(search: BeamSearch, sides: Sequence[Side], clusters: np.ndarray, known: Known) -> np.ndarray:
    """Which hypotheses a constraint allows, shape (width,)."""
    older = [set(_founders(search, np.array(side.older, np.int64)).tolist()) for side in sides]
    allowed = np.ones(len(clusters), bool)
    for h, own in enumerate(clusters):
        found = [
            {*own[side.seqs - known.first].tolist(), *before}
            for side, before in zip(sides, older, strict=True)
        ]
        for i, a in enumerate(found):
            allowed[h] &= not sides[i].together or len(a) == 1
            allowed[h] &= not any(a & b for b in found[:i])
    return allowed


def obey_pin(search: BeamSearch, pinned: Side, clusters: np.ndarray, known: Known) -> np.ndarray:
    """Which hypotheses have all records of a pinned story where the best one has them, shape (width,)."""
    own = clusters[:, pinned.seqs - known.first]
    return np.asarray((own == own[search.head]).all(axis=1))


def keep(search: BeamSearch, kept: np.ndarray, *, with_events: bool) -> Iterator[Output]:
    """Leave some hypotheses; the best of them is announced, if the one that was is none of them."""
    heir = search.head
    if kept.all():
        return
    if not kept[heir]:
        joints = np.where(kept, search.log_joints, -np.inf)
        heir = int(np.argmax((joints - joints.max()) * UNIT_NATS > -0.5))
    yield from leave(search, kept, heir, with_events=with_events)


# ---------------------------------------------------------------- corrections


class Constraint(NamedTuple):
    """What a correction asks for, and how the announced clustering would come to it.

    ``moved`` are the numbers of records that would go to ``into``, a label or the next that is free; ``lost``
    says in one line why they cannot, where that is so.
    """

    sides: list[Side]
    moved: np.ndarray
    into: int
    lost: str = ""


def constraint_of(
    correction: Correction, known: Known, records: Sequence[int], minted: int, pinned: Collection[int]
) -> Constraint:
    """What a correction of stories and these records asks for. Raises CorrectionError.

    ``minted`` is the label of the next cluster; the stories that are ``pinned`` keep theirs.
    """
    stories, first = correction.stories, known.first
    own = {label: known.side(False, [label]) for label in stories}
    nothing = np.zeros(0, np.int64)
    for seq in records:
        if not first <= seq < first + len(known.labels):
            raise refused(f"record {seq} is no longer retained (--retain)")
    if correction.what == "merge":
        gone, into = _direction(known, own, pinned)
        lost = "" if known.can_go(own[gone]) else _final(f"neither story {gone} nor story {into} can go")
        return Constraint([known.side(True, [*stories])], own[gone].seqs, into, lost)
    if correction.what == "move":
        side, moved = known.side(True, [*stories]), known.named(True, records)
        if np.isin(moved.seqs, side.seqs).any():
            raise refused(f"record {moved.seqs[np.isin(moved.seqs, side.seqs)][0]} is in that story already")
        seqs, order = np.unique(np.append(side.seqs, moved.seqs), return_index=True)
        joined = Side(True, seqs, np.append(side.labels, moved.labels)[order], side.older)
        return Constraint([joined], moved.seqs, stories[0], _fixed(known, moved))
    if correction.what == "split":
        part, rest = known.named(True, records), known.side(False, [*stories], records)
        strangers = part.seqs[part.labels != stories[0]]
        if len(strangers):
            raise refused(f"record {strangers[0]} is not in story {stories[0]}")
        if not len(rest.seqs) and not rest.older:
            raise refused(f"these are all records of story {stories[0]}")
        return Constraint([part, rest], part.seqs, minted, _fixed(known, part))
    if correction.what == "pin":
        return Constraint([own[stories[0]]], nothing, -1)
    return Constraint([own[label] for label in stories], nothing, -1)


def _direction(known: Known, own: Mapping[int, Side], pinned: Collection[int]) -> tuple[int, int]:
    """Of two stories the one that becomes part of the other, and that: the smaller goes, if it can."""
    gone, into = sorted(own, key=lambda label: (known.size(label), -label))
    stays = [label in pinned or not known.can_go(own[label]) for label in (gone, into)]
    return (into, gone) if stays[0] and not stays[1] else (gone, into)


def _fixed(known: Known, side: Side) -> str:
    stay = side.seqs[~known.movable[side.seqs - known.first]]
    return _final(f"record {stay[0]} can not be moved") if len(stay) else ""


def _final(what: str) -> str:
    return f"{what}: older records are not retained (--retain), or their answers are final (--second-look)"


def _moves(stream: Stream, wanted: Constraint) -> Moves | str:
    """How the announced clustering is to change; or why it cannot."""
    if wanted.lost:
        return wanted.lost
    search = stream.search
    if wanted.into == search.next_label and is_full(search):
        return "the finite mixture has no more components"
    return Moves.to(search, stream.held, wanted.moved, wanted.into)


def hold(
    stream: Stream | None,
    corrections: Corrections,
    announcer: Announcer,
    correction: Correction,
    with_events: bool,
) -> Iterator[Output]:
    """Hold what a correction says of records, from now on; the revisions and events that come of it.

    Nothing has changed in the beam before the iterator is begun. Raises CorrectionError where the correction
    cannot be, and then nothing changes.
    """
    if correction.hole is not None:
        raise refused("a hole is of templates of log lines, and these are none")
    if stream is None:
        raise refused("no records are retained (--retain)")
    search = stream.search
    known = Known.of(search, stream.held.labels, stream.since)
    corrections.follow(known.first, known.labels)
    records = numbers_of(announcer.undecided, correction)
    if -1 in records:
        missing = correction.ids[records.index(-1)]
        raise refused(f"no record of id {missing!r} has an open answer: name it by its number (--seq, seqs)")
    sides, outputs = _constrain(stream, corrections, correction, known, records, with_events=with_events)
    corrections.begin(correction, sides)
    return _followed(search, corrections, announcer, outputs)


def numbers_of(held: dict[int, Assignment], correction: Correction) -> list[int]:
    """The numbers of the records that a correction names; -1 for an id without an open answer."""
    open_now = {str(answer.id): seq for seq, answer in reversed(held.items()) if answer.id is not None}
    return [*(open_now.get(str(name), -1) for name in correction.ids), *correction.seqs]


def learn_classes(announcer: Announcer, correction: Correction) -> None:
    """Take from a correction, before it is carried out, of which class some records are."""
    what, (label, *_) = correction.what, correction.stories
    if what not in ("move", "split", "pin"):
        return
    held, told = announcer.undecided, announcer.ledger.confidence
    if what == "pin":
        seqs = {seq for seq, answer in held.items() if answer.cluster == label}
    else:
        seqs = set(numbers_of(held, correction))
    name = f"split {correction.number}" if what == "split" else told.class_of(label)
    for seq in sorted(seqs & held.keys()):
        told.learn(seq, held[seq].cluster, held[seq].probability, name, correction.number)


def _followed(
    search: BeamSearch, corrections: Corrections, announcer: Announcer, outputs: Iterator[Output]
) -> Iterator[Output]:
    """The same; the sides of corrections learn the labels that come of it."""
    yield from outputs
    corrections.follow(*newest_labels(search, announcer.retained.newest()[0]))


def _constrain(
    stream: Stream,
    corrections: Corrections,
    correction: Correction,
    known: Known,
    records: Sequence[int],
    *,
    with_events: bool,
) -> tuple[list[Side], Iterator[Output]]:
    """The sides of a correction, and what comes of it. Raises CorrectionError."""
    search = stream.search
    minted = search.next_label
    wanted = constraint_of(correction, known, records, minted, corrections.pinned)
    clusters = clusters_by_hypothesis(search, known)
    if correction.what == "pin":
        kept = obey_pin(search, wanted.sides[0], clusters, known)
        return wanted.sides, keep(search, kept, with_events=with_events)
    kept = obey(search, wanted.sides, clusters, known)
    kept_ones = wanted.sides, keep(search, kept, with_events=with_events)
    if kept[search.head]:
        return kept_ones
    moves = _moves(stream, wanted)
    if isinstance(moves, str):
        if not kept.any():
            raise refused(moves)
        return kept_ones
    after = known.labels.copy()
    after[moves.seqs - known.first] = moves.labels
    nats, best = nats_of(stream, moves), np.where(kept, search.log_joints, -np.inf).max()
    if best >= search.log_joints[search.head] + nats - LEAST_GAIN:  # one that is left may be just that
        return kept_ones
    if (against := corrections.against(known.first, after)) is not None:
        raise refused(told_of(against))
    return wanted.sides, apply(search, stream.held, moves._replace(nats=nats), with_events=with_events)


def told_of(held: Held) -> str:
    """That a correction in force contradicts another."""
    correction = held.correction
    by = f" of {correction.who}" if correction.who else ""
    return f"correction {correction.number}{by} contradicts it ({correction}): undo that first"
