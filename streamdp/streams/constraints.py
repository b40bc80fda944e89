"""Corrections that say which records belong together, in a beam: factors of infinite weight over partitions.

The announced clustering decides everything first. Then records move in it as the correction says, whatever
that costs. What the constraints in force name stays where it is from then on: looks back and refinements
leave those records alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.beam.data.state import Output
from streamdp.beam.looks.moves import Moves, apply, head_by_label, is_full
from streamdp.beam.looks.review import decide
from streamdp.offline.task import Stream
from streamdp.offline.weigh import nats_of
from streamdp.records import Assignment
from streamdp.state.corrections import Correction
from streamdp.streams.corrections import Corrections, Held, Side, refused


class Known(NamedTuple):
    """The records that are retained, from number ``first`` on, with their newest labels.

    Answers before number ``since`` are final. ``open`` and ``sizes`` are the labels, in order, and sizes of
    the open clusters of the best hypothesis.
    """

    first: int
    labels: np.ndarray
    since: int
    open: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, stream: Stream) -> Known:
        """Those of a running stream."""
        names, slots = head_by_label(stream.search)
        sizes = stream.search.state.pool.slots["size"][slots]
        return cls(stream.held.first, stream.held.labels, stream.since, names, sizes)

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
        return not side.older and bool((side.seqs >= self.since).all())


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
    for label in stories:
        if label not in known.open:
            raise refused(f"story {label} has closed")
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
        if len(closed := moved.seqs[~np.isin(moved.labels, known.open)]):
            raise refused(f"record {closed[0]} is in a story that has closed")
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
    stay = side.seqs[side.seqs < known.since]
    return _final(f"record {stay[0]} can not be moved") if len(stay) else ""


def _final(what: str) -> str:
    return f"{what}: older records are not retained (--retain), or their answers are final (--second-look)"


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
    corrections.follow(stream.search.seq, stream.held.labels)
    records = numbers_of(announcer.undecided, correction)
    if -1 in records:
        missing = correction.ids[records.index(-1)]
        raise refused(f"no record of id {missing!r} has an open answer: name it by its number (--seq, seqs)")
    minted = stream.search.next_label
    wanted = constraint_of(correction, Known.of(stream), records, minted, corrections.pinned)
    outputs = _carry_out(stream, corrections, wanted, with_events=with_events)
    corrections.begin(correction, wanted.sides)
    return _followed(stream, corrections, announcer, outputs)


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
    stream: Stream, corrections: Corrections, announcer: Announcer, outputs: Iterator[Output]
) -> Iterator[Output]:
    """The same; the sides of corrections learn the labels that come of it."""
    yield from outputs
    corrections.follow(stream.search.seq, announcer.retained.newest()[0])


def _carry_out(
    stream: Stream, corrections: Corrections, wanted: Constraint, *, with_events: bool
) -> Iterator[Output]:
    """What comes of a constraint. Raises CorrectionError."""
    search, held = stream.search, stream.held
    if wanted.lost:
        raise refused(wanted.lost)
    if not len(wanted.moved):
        return decide(search, with_events=with_events)
    if wanted.into == search.next_label and is_full(search):
        raise refused("the finite mixture has no more components")
    moves, after = Moves.to(search, held, wanted.moved, wanted.into), held.labels.copy()
    after[moves.seqs - held.first] = moves.labels
    if (against := corrections.against(held.first, after)) is not None:
        raise refused(told_of(against))
    return apply(search, held, moves._replace(nats=nats_of(stream, moves)), with_events=with_events)


def told_of(held: Held) -> str:
    """That a correction in force contradicts another."""
    correction = held.correction
    by = f" of {correction.who}" if correction.who else ""
    return f"correction {correction.number}{by} contradicts it ({correction}): undo that first"
