"""A draft of the clusters of vectors: which parameters suit them, which are several, which of them are one.

What is drafted changes no state: lists, sizes and rows are copies, of which the prior and the family say
what every change gains. What has come of all is carried out at once.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.beam.looks.moves import Moves
from streamdp.beam.looks.pieces import pieces
from streamdp.beam.looks.recent import Recent, gather
from streamdp.beam.looks.review import Due, doubled
from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.beam.looks.uniting import (
    Tail,
    collect_rows,
    evidence_of_tail,
    move_members,
    ratios_of_unions,
    settle_records,
    tail_of,
    weigh_pairs,
    weigh_rows,
    weigh_strays,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.kernels.rows import grown, ints, longer, made, of, reals
from streamdp.likelihoods import VectorFamily
from streamdp.likelihoods.base import MEMBERS, NOTHING, grain, nearest, variances, whitened
from streamdp.likelihoods.vectors import log_marginal_entry, merge_entry
from streamdp.priors.base import found_weight

NEAR = 6
"""Clusters with which each is weighed as one: those whose centres are nearest."""

LOOSE = 0.1
"""Share of its records that the prior mean counts for at a look: clusters must gain more by being apart."""

PIECE = 8
"""Records of a piece, at most, into which clusters are cut; more where the pieces would be many."""

PIECES = 64
"""Into so many pieces all clusters are cut, about, at most."""

TRUSTED = 2.0
"""Dimensions up to which the log joint alone says what is one cluster."""

TAILS = (4.0, 25.0)
"""Degrees of freedom of the tails that clusters may have."""

ASKED = 1000
"""Records that are asked for tails, at most, evenly spaced."""


class Draft:
    """The open clusters of retained records by number, and those that it makes of them.

    ``slots`` are those of the clusters that there were; ``ratio`` is the log ratio of the prior of all
    changes so far; ``shares``, by record, how sure they are.
    """

    def __init__(
        self, search: BeamSearch, recent: Recent, batch: Batch, due: Due, began: VectorFamily
    ) -> None:
        assert batch.vectors is not None
        pool, beam, clusters = search.state.pool, search.state.beam, search.state.clusters
        rows = clusters.rows
        self.family = search.likelihood.vector
        self.ratio, self.shares = 0.0, np.ones(len(recent.slot))
        self.slots = np.flatnonzero(recent.held > 0)
        self._began, self._prior, self._head = began.lasting.loosened(LOOSE), search.model.prior, search.head
        self._vectors = np.ascontiguousarray(batch.vectors, np.float64)
        self._least = grain(self._vectors) if began.tells_apart else NOTHING
        known = len(self.slots)
        place, room = np.full(len(recent.head) + 1, -1), 2 * known + 16
        place[self.slots] = np.arange(known)
        self._before = place[recent.slot]
        slots, weight = np.zeros(room, pool.slots.dtype), np.zeros(room)
        slots[:known], weight[:known] = pool.slots[self.slots], pool.weight[self.slots]
        self._state = search.state._replace(
            pool=pool._replace(slots=slots, weight=weight),
            beam=beam._replace(founded=beam.founded.copy()),
            clusters=clusters._replace(rows=rows._replace(block=rows.block[:0], coarse=rows.coarse[:0])),
        )
        same = {name: getattr(recent, name) for name in ("first", "position", "time")}
        sizes = {"records": len(recent.slot), "slots": room}
        self._recent = made(Recent, sizes, slot=self._before.copy(), **same)
        gather(self._prior, self._state, self._recent)
        width = self.family.width
        wide = {"slots": room, "width": width, "dimension": self.family.dimension}
        self.of = made(_Clusters, wide, able=np.ones(room, bool))
        self.of.founder[:known] = pool.founder[self.slots]
        self.of.able[:known] = pool.pinned[self.slots] == 0
        final, stays = self._before[: max(due.since - recent.first, 0)], self.of.stays
        stays[:known] = recent.held[self.slots] < pool.slots["size"][self.slots]
        stays[:known] |= np.isin(search.labels_of(self.slots), due.whole)
        stays[final[final >= 0]] = True
        stays[self._before[due.fixed - recent.first]] = True
        self._row = np.zeros(width)
        collect_rows(self.family.lasting.terms(), self._vectors, self._before, self.of.block)

    @property
    def _sizes(self) -> np.ndarray:
        """Records by number, those that are not retained among them; 0 for a number without a cluster."""
        return np.asarray(self._state.pool.slots["size"])

    def alive(self) -> np.ndarray:
        """The numbers of the clusters."""
        return np.flatnonzero(self._sizes > 0)

    def _able(self) -> np.ndarray:
        """Those that may change."""
        return np.flatnonzero((self._sizes > 0) & self.of.able)

    def _choose(self) -> None:
        """Take the parameters under which the clusters' records are likeliest, of those they suggest."""
        alive = self.alive()
        block = self.of.block[alive]
        found = list(self._began.suggested(block, self._least))
        if found:
            found.append(self.family.lasting.loosened(LOOSE))
            plain: Any = found[int(np.argmax([self._weigh(family, block).sum() for family in found]))]
            self.family = replace(self.family, **{name: getattr(plain, name) for name in plain.learned})
        plain = self._plain = self.family.lasting.loosened(LOOSE)
        self._terms, self.of.log_h[alive] = plain.terms(), self._weigh(plain, block)
        self.of.block[alive] = block
        self.of.centre[alive] = whitened(np.array([plain.centre(row) for row in block]), plain.within)

    def _weigh(self, family: VectorFamily, block: np.ndarray) -> np.ndarray:
        found = np.zeros(len(block))
        weigh_rows(family.terms(), block, np.zeros(family.width), found)
        return found

    def _refresh(self, k: int) -> None:
        """Bring up to date what follows from a row."""
        self.of.log_h[k] = log_marginal_entry(self._terms, self.of.block[k])
        centre = self._plain.centre(self.of.block[k])[np.newaxis]
        self.of.centre[k] = whitened(centre, self._plain.within)[0]

    # ---------------------------------------------------------------- those that are several

    def grown(self, since: int) -> np.ndarray:
        """Which have doubled by the records from number ``since`` on."""
        counts, last = self._recent.held, self._recent.slot[max(since - self._recent.first, 0) :]
        before = counts - np.bincount(last[last >= 0], minlength=len(counts))
        return np.flatnonzero(doubled(before, counts, PIECE))

    def rearrange(self, tried: np.ndarray) -> bool:
        """Cut clusters into small pieces, unite these anew, and put records where they fit; whether any move.

        A cluster that is cut in two is hardly ever better where it should be ten: the pieces of all are, as
        they are united by what gains most.
        """
        free = self.of.able[tried] & ~self.of.stays[tried] & (self._sizes[tried] > PIECE)
        tried, before = tried[free], _founders(self._recent.slot)
        most = max(PIECE, int(self._recent.held[tried].sum()) // PIECES)
        cut = [self._shatter(k, most) for k in tried[self._recent.held[tried] > most].tolist()]
        if not cut:
            return False
        collect_rows(self.family.lasting.terms(), self._vectors, self._recent.slot, self.of.block)
        self.unite()
        self._settle(np.concatenate(cut))
        self.unite()
        return not np.array_equal(_founders(self._recent.slot), before)

    def _shatter(self, k: int, most: int) -> np.ndarray:
        """Cut a cluster into pieces of so many records; the numbers of all of them."""
        members = np.flatnonzero(self._recent.slot == k)
        if self._plain.within.ndim == 2:  # fewer would not tell how they lean
            most = max(most, self.family.dimension)
        # by the whole covariance, two as one would look like one
        piece = pieces(self._vectors[members] / np.sqrt(variances(self._plain.within)), most)
        found = [k]
        for number in range(1, int(piece.max()) + 1):
            founded = self._state.beam.founded
            if not found_weight(self._prior, float(founded[self._head])) > 0.0:
                break
            new, gone = self._vacant(), members[piece == number]
            move_members(self._prior, self._state, self._recent, gone, new)
            founded += 1
            self.ratio -= float(self._ratios_of(np.array([[new, k]]))[0])
            self.of.founder[new] = self._recent.first + gone[0]
            self.of.able[new], self.of.stays[new] = True, False
            found.append(new)
        return np.array(found)

    def _vacant(self) -> int:
        """A number without a cluster."""
        if self._sizes.all():
            room = 2 * len(self._sizes)
            pool = self._state.pool
            pool = pool._replace(slots=longer(pool.slots, room), weight=longer(pool.weight, room))
            self._state = self._state._replace(pool=pool)
            self._recent, self.of = grown(self._recent, "slots", room), grown(self.of, "slots", room)
        return int(np.flatnonzero(self._sizes == 0)[0])

    def _settle(self, parts: np.ndarray) -> None:
        """Put the records of clusters, and of those near them, where they fit best."""
        able = self._able()
        near = self._near(able)
        places = np.flatnonzero(np.isin(able, parts))
        concerned = able[np.union1d(places, near[places])]
        table = np.full((len(self._sizes), near.shape[1]), -1)
        table[able] = able[near]
        asked = np.flatnonzero(np.isin(self._recent.slot, concerned[~self.of.stays[concerned]]))
        clusters = self._prior, self._terms, self._state, self._recent, self._vectors, self.of.block
        self.ratio += settle_records(*clusters, table, asked, self._row, self.shares)
        for k in self.alive().tolist():
            self._refresh(k)

    # ---------------------------------------------------------------- those that are one

    def unite(self) -> None:
        """Choose parameters and make one of two clusters, again while that gains."""
        self._choose()
        while self._unite():
            self._choose()

    def _unite(self) -> bool:
        """Make one of the two clusters that gain most by it, again while any do; whether any were."""
        able = self._able()
        near = able[self._near(able)]
        each = np.stack([np.repeat(able, near.shape[1]), near.reshape(-1)], axis=1)
        pairs, gains, ratios = self._weighed(np.unique(np.sort(each, axis=1), axis=0))
        united = gains.max(initial=0.0) > LEAST_GAIN
        while gains.max(initial=0.0) > LEAST_GAIN:
            p = int(np.argmax(gains))
            gone, into = pairs[p].tolist()
            self._join(gone, into, float(gains[p]), float(ratios[p]))
            keep = ~np.isin(pairs, (gone, into)).any(axis=1)
            pairs, gains, ratios = pairs[keep], gains[keep], ratios[keep]
            # that there is one cluster less means the same for all pairs
            less = float((self._ratios_of(pairs[:1]) - ratios[:1]).sum())
            known = pairs, gains + less, ratios + less
            others = self._nearest(into, self.of.able & (self._sizes > 0))
            fresh = self._weighed(np.stack([np.full(len(others), into), others], axis=1))
            pairs, gains, ratios = map(np.concatenate, zip(known, fresh, strict=True))
        return bool(united)

    def _near(self, among: np.ndarray) -> np.ndarray:
        """The nearest clusters of each among these, by place among them."""
        return nearest(self.of.centre[among], max(min(NEAR, len(among) - 1), 0))

    def _nearest(self, k: int, among: np.ndarray) -> np.ndarray:
        """The nearest clusters of one among others."""
        others = np.flatnonzero(among)
        others = others[others != k]
        squares = np.square(self.of.centre[others] - self.of.centre[k]).sum(axis=1)
        return np.asarray(others[np.argsort(squares, kind="stable")[:NEAR]])

    def _weighed(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of which one can go, that one first; what they gain as one, and the prior's part of it."""
        pairs, founder = pairs[~self.of.stays[pairs].all(axis=1)], self.of.founder
        sizes = np.where(self.of.stays, len(self._recent.slot) + 1, self._recent.held)
        first, second = pairs[:, 0], pairs[:, 1]
        older = founder[first] < founder[second]
        swapped = (sizes[first] > sizes[second]) | ((sizes[first] == sizes[second]) & older)
        small, large = np.where(swapped, second, first), np.where(swapped, first, second)
        gains = np.zeros(len(pairs))
        weigh_pairs(self._terms, self.of.block, large, small, self._row, gains)
        pairs = np.stack([small, large], axis=1)
        ratios = self._ratios_of(pairs)
        gains += ratios - self.of.log_h[small] - self.of.log_h[large]
        trust = TRUSTED / self.family.dimension
        if trust < 1.0 and self.family.tells_apart and len(pairs):
            gains = trust * gains - (1.0 - trust) * self._told_apart(small, large)
        return pairs, gains, ratios

    def _told_apart(self, small: np.ndarray, large: np.ndarray) -> np.ndarray:
        """What is gained by two clusters on the line that tells them apart best, in nats.

        Of many numbers the family's shape explains less: what two parts of a skewed cluster gain by their
        shapes adds up over all of them. On the line on which their means differ most, two normal
        distributions of one variance gain by these alone.
        """
        n, m = self._recent.held[small], self._recent.held[large]
        share = n / (n + m)
        squares = self._plain.squared_gaps(self.of.block[small], self.of.block[large])
        between = 0.5 * np.log1p(share * (1.0 - share) * self.family.power * squares)
        named = share * np.log(share) + (1.0 - share) * np.log1p(-share)
        return np.asarray((n + m) * (between + named))

    def _ratios_of(self, pairs: np.ndarray) -> np.ndarray:
        ratios = np.zeros(len(pairs))
        small, large = np.ascontiguousarray(pairs.T)
        ratios_of_unions(self._prior, self._state, self._recent, small, large, ratios)
        return ratios

    def _join(self, gone: int, into: int, gain: float, ratio: float) -> None:
        """Make a cluster part of another."""
        self.ratio += ratio
        members = np.flatnonzero(self._recent.slot == gone)
        sure = 1.0 / (1.0 + math.exp(-gain)) if gain > 0.0 else 0.5
        self.shares[members] = np.minimum(self.shares[members], sure)
        move_members(self._prior, self._state, self._recent, members, into)
        founded = self._state.beam.founded
        founded -= 1
        merge_entry(self._terms, self.of.block[into], self.of.block[gone])
        self.of.founder[into] = min(self.of.founder[into], self.of.founder[gone])
        self._refresh(into)

    # ---------------------------------------------------------------- strays

    def take_strays(self) -> None:
        """Where clusters have tails, make small clusters part of larger ones whose strays they may be."""
        free = self.of.able & ~self.of.stays & (self._sizes > 0)
        if "location" not in self._plain.parts or not free.any():
            return
        order = np.lexsort((self.of.founder, self._recent.held))
        order = order[free[order]]
        tails = self._tails()
        small = [(k, *self._larger(k)) for k in order.tolist()]
        gained = [
            np.array([self._as_strays(*each, tail).max(initial=0.0) for each in small]) for tail in tails
        ]
        if max(gains.max() for gains in gained) <= LEAST_GAIN:
            return
        evidence = [self._evidence_of(tail) + gains.sum() for tail, gains in zip(tails, gained, strict=True)]
        if max(evidence) <= 0.0:
            return
        tail = tails[int(np.argmax(evidence))]
        for k in order.tolist():
            others, ratios = self._larger(k)
            gains = self._as_strays(k, others, ratios, tail)
            if gains.max(initial=0.0) > LEAST_GAIN:
                p = int(np.argmax(gains))
                self._join(k, int(others[p]), float(gains[p]), float(ratios[p]))

    def _tails(self) -> list[Tail]:
        """Those that clusters may have."""
        return [tail_of(degrees, self.family.dimension, self.family.power) for degrees in TAILS]

    def _larger(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Larger clusters near one, and what the prior says of it as a part of each."""
        sizes = self._recent.held
        others = self._nearest(k, self.of.able & (sizes >= max(sizes[k], MEMBERS)))
        return others, self._ratios_of(np.stack([np.full(len(others), k), others], axis=1))

    def _as_strays(self, k: int, others: np.ndarray, ratios: np.ndarray, tail: Tail) -> np.ndarray:
        """What a cluster gains as strays of each of others; not by how much it would lose."""
        gains, records = ratios - self.of.log_h[k], (self._vectors, self._recent, k)
        weigh_strays(self._terms, self.of.block, *records, others, self._location, tail, gains)
        return gains

    def _evidence_of(self, tail: Tail) -> float:
        """What records of larger clusters gain by a tail, in nats; those that are asked count for all."""
        place = np.where(self._recent.held[self._recent.slot] < MEMBERS, -1, self._recent.slot)
        found = np.flatnonzero(place >= 0)
        count = min(ASKED, len(found))
        asked = found[np.arange(count) * len(found) // count]
        known = self._terms, self.of.block, self._vectors[asked], place[asked]
        return evidence_of_tail(*known, self._location, tail, self._row) * len(found) / count

    @property
    def _location(self) -> int:
        """Where rows say around what the predictive lies."""
        return int(self._plain.parts["location"].start)

    # ---------------------------------------------------------------- what has come of it

    @property
    def joint(self) -> float:
        """The log joint, in nats, less what does not change; of clusters with tails, if they have any."""
        joint, tails = float(self.of.log_h[self.alive()].sum()) + self.ratio, [0.0]
        if "location" in self._plain.parts and (self._recent.held >= MEMBERS).any():
            tails += map(self._evidence_of, self._tails())
        return joint + max(tails)

    def moves(self, labels: np.ndarray, minted: int) -> Moves:
        """Records that are in other clusters than they were; ``labels`` are those of the slots."""
        names = self._names(labels, minted)
        now, was = np.append(names, -1)[self._recent.slot], np.append(labels, -1)[self._before]
        moved = np.flatnonzero(now != was)
        seqs = moved + self._recent.first
        return Moves(seqs, was[moved], now[moved], self.shares[moved], minted, self.ratio)

    def _names(self, labels: np.ndarray, minted: int) -> np.ndarray:
        """A label for each number: of the cluster that most of its records were in, or a new one."""
        known, now = len(labels), self._recent.slot
        keeps = self.of.stays[:known] | ~self.of.able[:known]
        owner, names = np.where(keeps, np.arange(known), -1), np.full(len(self._sizes), -1)
        names[:known][keeps] = labels[keeps]
        both = np.stack([self._before, now], axis=1)[now >= 0]
        pairs, counts = np.unique(both, axis=0, return_counts=True)
        for old, new in pairs[np.lexsort((pairs[:, 0] != pairs[:, 1], -counts))].tolist():
            if owner[old] < 0 and names[new] < 0:
                owner[old], names[new] = new, labels[old]
        fresh = np.flatnonzero(names < 0)
        names[fresh] = minted + np.arange(len(fresh))
        return names


class _Clusters(NamedTuple):
    """Facts of clusters by number."""

    founder: Annotated[np.ndarray, ints("slots")]  # number of the first record
    stays: Annotated[np.ndarray, of(np.bool_, "slots")]  # none of its records can leave
    able: Annotated[np.ndarray, of(np.bool_, "slots")]  # others may join
    block: Annotated[np.ndarray, reals("slots", "width")]  # the rows of retained records
    log_h: Annotated[np.ndarray, reals("slots")]
    centre: Annotated[np.ndarray, reals("slots", "dimension")]  # in units of the expected spread


def _founders(slots: np.ndarray) -> np.ndarray:
    """The first record of the cluster of each, shape (n,)."""
    _, first, inverse = np.unique(slots, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])
