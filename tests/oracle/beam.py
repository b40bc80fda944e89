"""The beam by definition (DESIGN 3): every hypothesis keeps, and every child copies, everything."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from .enumeration import log_sum_exp
from .families import Family, NoBase
from .priors import Prior, log_shares

GRID = 1e9  # scores compare as integers of this many units per nat
TIE = 1e-12  # nats; closer scores are equal by construction
NEAR = 1e-7  # nats; closer scores may be ordered by floating-point noise
EDGE = 2e-12  # nats; equal scores this near a rounding boundary may round apart
LEAST_LEAD = 1e-6  # nats; a smaller lead of the greedy lane is none


@dataclass
class Hypothesis:
    """One clustering: members of every cluster by founder, which are closed, log joint."""

    clusters: dict[int, list[int]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    lj: float = 0.0

    def open_founders(self) -> list[int]:
        """Founders of the open clusters, oldest first."""
        return sorted(k for k in self.clusters if k not in self.closed)

    def founders(self) -> list[int]:
        """The founder of every record."""
        founder_of = {j: k for k, members in self.clusters.items() for j in members}
        return [founder_of[j] for j in range(len(founder_of))]

    def extended(self, founder: int, seq: int, lj: float) -> "Hypothesis":
        """A copy in which record `seq` has joined or founded the cluster."""
        clusters = {k: list(members) for k, members in self.clusters.items()}
        clusters.setdefault(founder, []).append(seq)
        return Hypothesis(clusters, set(self.closed), lj)


@dataclass(frozen=True)
class Child:
    """A choice for the new record: which hypothesis, which cluster, and the log joint it leads to."""

    parent: int
    founder: int
    lj: float


@dataclass(frozen=True)
class Trial:
    """The greedy lane against the beam: nats of evidence since the lane's start, and whether it leads.

    `alone`: the beam starts anew from the lane. `lost`: the lane starts anew from the head.
    """

    lead: float
    leads: bool
    alone: bool
    lost: bool
    margin: float


@dataclass(frozen=True)
class HypothesisView:
    """What a step shows of a hypothesis."""

    lj: float
    founders: list[int]


@dataclass(frozen=True)
class StepResult:
    """What one record did: survivors in rank order, the announcement, the frontier, the safety margin.

    `lane` is the rank of the greedy lane, `voters` those of the hypotheses whose mass counts. `held_back` are
    the children that would have survived if they did not come last.
    """

    seq: int
    hypotheses: list[HypothesisView]
    head: int
    lane: int
    lead: float
    voters: list[int]
    evidence: float
    probability: float
    new_probability: float
    founder: int
    new: bool
    link: int | None
    frontier: int
    dropped: int
    closed: list[int]
    margin: float
    held_back: frozenset[Child]


def units(score: float, best: float) -> int:
    """round((score - best) * 1e9): the integer by which scores compare."""
    return round((score - best) * GRID)


class Beam:
    """A beam of `width` hypotheses, none further than `slack` nats below the best, but for the greedy lane.

    The greedy lane is the hypothesis that always goes on with its best child. It stays while it has predicted
    better than the beam since it started, else it starts again from the head; `trial` nats give it the lead.
    """

    def __init__(
        self,
        prior: Prior,
        family: Family,
        base: NoBase,
        width: int,
        slack: float = math.inf,
        max_undecided: int = 10_000,
        trial: float = 10.0,
    ) -> None:
        self.prior, self.family, self.base = prior, family, base
        self.width, self.slack, self.max_undecided = width, slack, max_undecided
        self.hypotheses = [Hypothesis()]
        self.head = 0
        self.trial, self.lane, self.lead, self.leads = trial, 0, 0.0, False
        self.records: list[Any] = []
        self.times: list[float] = []
        self.views: list[Any] = []
        self.dropped = 0
        self.new_weights: list[float] = []

    def step(self, x: Any, t: float) -> StepResult:
        """Advance every hypothesis by one record (DESIGN 3)."""
        seq = len(self.records)
        self.records.append(x)
        self.times.append(t)
        self.views.append(self.base.view(x))

        closing_gap = self._close(seq)
        before = log_sum_exp([h.lj for h in self.hypotheses])
        children = self._children(seq)
        of_lane = [c for c in children if c.parent == self.lane]
        evidence = log_sum_exp([c.lj for c in children]) - before
        evidence_of_lane = log_sum_exp([c.lj for c in of_lane]) - self.hypotheses[self.lane].lj
        led = evidence_of_lane if self.leads else evidence
        trial = self._try(evidence_of_lane - evidence)

        eligible = of_lane if trial.alone else children
        greedy = select(of_lane, 1, math.inf)[0]
        combining = self._combining(eligible)
        kept = select(eligible, self.width, self.slack, combining)
        if greedy not in kept and (trial.leads or trial.lead > LEAST_LEAD):
            kept = [*kept[: self.width - 1], greedy]
        head = kept.index(greedy) if trial.leads else 0
        chosen = kept[head]
        margin = min(
            closing_gap,
            trial.margin,
            selection_margin(eligible, 1, math.inf),
            selection_margin(eligible, self.width, self.slack, combining),
            selection_margin(of_lane, 1, math.inf),
        )

        voting = of_lane if trial.leads else children
        total = log_sum_exp([c.lj for c in voting])
        probability = math.fsum(math.exp(c.lj - total) for c in voting if c.founder == chosen.founder)
        new_probability = math.fsum(math.exp(c.lj - total) for c in voting if c.founder == seq)
        earlier = self.hypotheses[chosen.parent].clusters.get(chosen.founder, [])
        self.base.absorb(x, [self.records[j] for j in earlier], new_probability)

        self.hypotheses = [self.hypotheses[c.parent].extended(c.founder, seq, c.lj) for c in kept]
        self.head = head
        goes_on = greedy in kept and not trial.lost
        self.lane, self.lead = (kept.index(greedy), trial.lead) if goes_on else (head, 0.0)
        self.leads = trial.leads
        dropped = self._decide(seq)
        return StepResult(
            seq=seq,
            hypotheses=[HypothesisView(h.lj, h.founders()) for h in self.hypotheses],
            head=self.head,
            lane=self.lane,
            lead=self.lead,
            voters=[self.head] if self.leads else list(range(len(self.hypotheses))),
            evidence=led,
            probability=probability,
            new_probability=new_probability,
            founder=chosen.founder,
            new=chosen.founder == seq,
            link=earlier[-1] if earlier else None,
            frontier=self._frontier(),
            dropped=dropped,
            closed=self._agreed_closed(),
            margin=margin,
            held_back=frozenset(select(eligible, self.width, self.slack)) - frozenset(kept),
        )

    def _close(self, seq: int) -> float:
        """Close clusters by the prior's rule, then by max_clusters; the nearest miss of a rule in nats."""
        now, gap = self.times[seq], math.inf
        for h in self.hypotheses:
            for k in h.open_founders():
                gap = min(gap, significant(self.prior.closing_gap(h.clusters[k], seq, now, self.times)))
                if self.prior.closes(h.clusters[k], seq, now, self.times):
                    h.closed.add(k)
        most = self.prior.max_clusters
        head = self.hypotheses[self.head]
        last_of_head = sorted(head.clusters[k][-1] for k in head.open_founders())
        if most is not None and len(last_of_head) > most:
            oldest_kept_after = last_of_head[len(last_of_head) - most - 1]
            for h in self.hypotheses:
                h.closed |= {k for k in h.open_founders() if h.clusters[k][-1] <= oldest_kept_after}
        return gap

    def _children(self, seq: int) -> list[Child]:
        """lj' = lj + log share + log predictive."""
        x, now, view = self.records[seq], self.times[seq], self.views[seq]
        children = []
        self.new_weights = []
        for rank, h in enumerate(self.hypotheses):
            founders = h.open_founders()
            open_clusters = [h.clusters[k] for k in founders]
            joins, new = self.prior.weights(open_clusters, len(h.clusters), seq, now, self.times)
            self.new_weights.append(new)
            log_joins, log_new = log_shares(joins, new)
            options = zip([*founders, seq], [*open_clusters, []], [*log_joins, log_new], strict=True)
            for founder, members, share in options:
                predictive = self.family.log_predictive([self.records[j] for j in members], x, view)
                if share + predictive > -math.inf:
                    children.append(Child(rank, founder, h.lj + share + predictive))
        return children

    def _combining(self, children: Sequence[Child]) -> set[Child]:
        """The children that combine two decisions that have nothing to do with each other: they come last.

        The best child's parent and another hypothesis both could do what the best child does, and what the
        other one does instead. The lane is exempt where a new cluster has another weight for it.
        """
        top = select(children, 1, math.inf)[0]
        exempt = {top.parent}
        if self.new_weights[self.lane] != self.new_weights[top.parent]:
            exempt.add(self.lane)
        return {
            c
            for c in children
            if c.parent not in exempt
            and self._members(c.parent, c.founder) != self._members(top.parent, top.founder)
            and self._could(top.parent, c)
            and self._could(c.parent, top)
        }

    def _members(self, rank: int, founder: int) -> list[int]:
        """The members of a hypothesis' open cluster; none of one that is closed or that it does not have."""
        h = self.hypotheses[rank]
        return [] if founder in h.closed else h.clusters.get(founder, [])

    def _could(self, rank: int, child: Child) -> bool:
        """Whether a hypothesis could do what a child of another one does."""
        joined = self._members(child.parent, child.founder)
        return self._members(rank, child.founder) == joined if joined else self.new_weights[rank] > 0.0

    def _try(self, gain: float) -> Trial:
        """Count what a record says for the lane; only where there is something to compare it with."""
        if len(self.hypotheses) == 1:
            return Trial(self.lead, self.leads, alone=False, lost=False, margin=math.inf)
        lead = self.lead + gain
        margin = min(abs(lead - LEAST_LEAD), abs(lead - self.trial), abs(lead + self.trial))
        if lead >= self.trial:
            return Trial(0.0, leads=True, alone=True, lost=False, margin=margin)
        if lead <= -self.trial:
            return Trial(0.0, leads=False, alone=False, lost=True, margin=margin)
        return Trial(lead, self.leads, alone=False, lost=False, margin=margin)

    def _frontier(self) -> int:
        """The largest f such that all hypotheses agree on the founder of every record <= f."""
        histories = [h.founders() for h in self.hypotheses]
        frontier = -1
        for choices in zip(*histories, strict=True):
            if len(set(choices)) > 1:
                break
            frontier += 1
        return frontier

    def _decide(self, seq: int) -> int:
        """Past max_undecided the head decides the oldest open record; how many dissenters were dropped."""
        dropped = 0
        while seq - self._frontier() > self.max_undecided:
            head = self.hypotheses[self.head]
            record = self._frontier() + 1
            founder = head.founders()[record]
            agreeing = [h for h in self.hypotheses if h.founders()[record] == founder]
            dropped += len(self.hypotheses) - len(agreeing)
            lane = self.hypotheses[self.lane]
            self.head = next(i for i, h in enumerate(agreeing) if h is head)
            self.lane = next((i for i, h in enumerate(agreeing) if h is lane), self.head)
            self.lead = self.lead if agreeing[self.lane] is lane else 0.0
            self.hypotheses = agreeing
        self.dropped += dropped
        return dropped

    def _agreed_closed(self) -> list[int]:
        """Founders of the clusters that are closed with the same members in every hypothesis."""
        first = self.hypotheses[0]
        return sorted(
            k
            for k in first.closed
            if all(k in h.closed and h.clusters[k] == first.clusters[k] for h in self.hypotheses)
        )


def select(children: Sequence[Child], width: int, slack: float, last: Collection[Child] = ()) -> list[Child]:
    """The best `width` by rounded score, parent rank, founder; none further than slack below the best.

    Those in `last` come after all others.
    """
    best = max(c.lj for c in children)
    order = sorted(children, key=lambda c: (c in last, -units(c.lj, best), c.parent, c.founder))
    near = [c for c in order if math.isinf(slack) or -units(c.lj, best) <= round(slack * GRID)]
    return near[:width]


def significant(gap: float) -> float:
    """A gap that could be noise counts; an exact tie does not."""
    return gap if gap > TIE else math.inf


def tie_margin(*depths: float) -> float:
    """Equal scores compare equal unless they lie on a rounding boundary, at (integer + 1/2) units."""
    edges = [abs(d * GRID - math.floor(d * GRID) - 0.5) / GRID for d in depths]
    return min(edges) if min(edges) < EDGE else math.inf


def selection_margin(
    children: Sequence[Child], width: int, slack: float, last: Collection[Child] = ()
) -> float:
    """The smallest gap between neighbours in the selection order, down to the cut, or to the slack."""
    best, margin, places = max(c.lj for c in children), math.inf, width
    for late in (False, True):
        depths = sorted(best - c.lj for c in children if (c in last) == late)
        if depths and places > 0:
            margin = min(margin, gap_among(depths, places, slack))
        places -= sum(d <= slack for d in depths)
    return margin


def gap_among(depths: list[float], width: int, slack: float) -> float:
    """The smallest gap between these depths, or between one and the slack, down to the cut or slack."""
    reach = min(depths[min(width, len(depths)) - 1], slack) + NEAR
    margin = math.inf
    for i, d in enumerate(depths):
        if d > reach:
            break
        if i + 1 < len(depths):
            gap = depths[i + 1] - d
            margin = min(margin, gap if gap > TIE else tie_margin(d, depths[i + 1]))
        if math.isfinite(slack):
            gap = abs(d - slack)
            margin = min(margin, gap if gap > TIE else tie_margin(d, slack))
    return margin
