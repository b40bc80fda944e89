"""One record after another: the kernel that everything else is called from.

``advance`` runs until the records are used up, an output buffer is full (FLUSH), or an array of the
state is too small for the next record (GROW, with what is needed in ``out.needs``). Nothing of a record
has been absorbed when it stops, so the caller makes room and calls again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.beam.data.choice import NEW, Choice, Scores, Walk
from streamdp.beam.data.pool import ALIVE, add_evidence
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step.aging import begin_record, scale_at
from streamdp.beam.step.announce import announce, change_head, label_if_asked, weigh_revisions
from streamdp.beam.step.capacity import room_before, room_for_choice
from streamdp.beam.step.choose import choose, group_children
from streamdp.beam.step.closing import continue_beam, drop_dissenters
from streamdp.beam.step.clusters import score_record, value_of
from streamdp.beam.step.commit import commit_children, settle
from streamdp.beam.step.evidence import mass_of, normalise
from streamdp.beam.step.greedy import follow_greedy, force, mass_of_voters, slot_begun_by, try_greedy
from streamdp.kernels.jit import entry, kernel


class Records(NamedTuple):
    """Encoded records in time order; words or vectors are of no size where the other is meant."""

    times: np.ndarray  # float64[n]
    offsets: np.ndarray  # int64[n + 1]
    words: np.ndarray  # int32[...]
    counts: np.ndarray  # int32[...]
    vectors: np.ndarray  # float64[n, D]
    founders: (
        np.ndarray
    )  # int64[n] what began the cluster of each, where that is decided (``_given``); or empty


@kernel
def record_at(records: Records, i: int, seq: int) -> Incoming:
    """Record i of a batch, which is number ``seq`` of the stream."""
    a, b = records.offsets[i], records.offsets[i + 1]
    x = records.vectors[i if records.vectors.shape[1] > 0 else 0]
    founder = records.founders[i] if records.founders.shape[0] > 0 else -1
    return Incoming(seq, records.times[i], records.words[a:b], records.counts[a:b], x, founder)


@kernel
def _given(state: State, out: Output, record: Incoming, n: int) -> tuple[bool, int]:
    """Whether it was decided elsewhere where a record of a batch of n goes, and the slot, or NEW.

    What begins a cluster is given by its number, -1 for nothing. Numbers below stand for what it follows as
    long as that is open: the cluster of a record of the batch, -2 for the first; behind these, the one that a
    record began.
    """
    founder = record.founder
    if founder >= 0:
        return True, NEW if founder == record.seq else slot_begun_by(state, founder)
    if founder == -1:
        return False, NEW
    followed = -2 - founder
    founder = out.answers[followed].founder if followed < n else followed - n
    slot = slot_begun_by(state, founder)
    return slot != NEW, slot


@kernel
def _weigh(state: State, scores: Scores, choice: Choice, out: Output, i: int, slot: int, mass: float) -> None:
    """Write the shares of all ``mass`` that join the cluster of ``slot``, and that found one."""
    out.answers[i].probability = min(mass_of(state, scores, choice, slot) / mass, 1.0)
    out.answers[i].new_probability = min(mass_of(state, scores, choice, NEW) / mass, 1.0)


@kernel
def _absorb(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    walk: Walk,
    out: Output,
    i: int,
    n: int,
    record: Incoming,
) -> bool:
    """Choose, write, announce and decide for one scored record; False where room must be made first."""
    beam = state.beam
    log_evidence, mass = normalise(model, state, scores, choice)
    given, slot = _given(state, out, record, n)
    if given:
        force(state, scores, choice, record.seq, slot)
    else:
        log_evidence = try_greedy(model, beam, scores, choice, log_evidence)
        choose(model, state, scores, choice, record.seq)
        mass = mass_of_voters(beam, scores, choice, mass)
    group_children(scores, choice)
    if not room_for_choice(state, out, choice, record.words):
        return False
    head = choice.counters.best_child
    head_slot = choice.children[head].slot
    answer = out.answers[i]
    _weigh(state, scores, choice, out, i, head_slot, mass)
    answer.link = -1 if head_slot == NEW else state.pool.slots[head_slot].last
    for c in range(
        choice.counters.children
    ):  # from here on: the latest earlier member, which the trellis keeps
        slot = choice.children[c].slot
        choice.children[c].founder = -1 if slot == NEW else state.pool.slots[slot].last
    revisions = out.counters.revisions
    if choice.children[head].parent != beam.counters.head:
        change_head(state, out, walk, choice.children[head].parent)
    commit_children(model, state, scores, choice, record, answer.new_probability)
    continue_beam(model, state, choice, record.seq)
    beam.counters.head = head
    follow_greedy(beam, choice)
    add_evidence(beam, log_evidence)
    founded = head_slot == NEW
    answer.label = announce(state, out, choice.children[head].slot, founded)
    answer.founder = state.pool.founder[choice.children[head].slot]
    decided = drop_dissenters(model, state, choice, record.seq)
    weigh_revisions(state, out, walk, revisions, decided)
    beam.counters.decided = decided
    settle(model, state, out, choice, beam.counters.width)
    answer.log_predictive = log_evidence
    answer.founded = founded
    answer.decided = decided
    beam.counters.seq = record.seq + 1
    return True


@entry
def advance(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    walk: Walk,
    out: Output,
    records: Records,
) -> None:
    """Absorb records ``out.counters.done`` .. n - 1, as far as there is room."""
    i = out.counters.done
    while i < records.times.shape[0]:
        if not room_before(model, state, out):
            return
        record = record_at(records, i, state.beam.counters.seq)
        begin_record(model.prior, model, state, out, record)
        score_record(state.clusters, model, state, scores, record)
        if not _absorb(model, state, scores, choice, walk, out, i, records.times.shape[0], record):
            return
        i += 1
        out.counters.done = i


@kernel
def score_as_next(
    model: Model, state: State, scores: Scores, choice: Choice, record: Incoming
) -> tuple[float, float]:
    """Score a record as the next one, without learning anything; its log evidence, and the mass of all.

    The scale of an exponential decay is left as it is then: the caller puts it back.
    """
    beam = state.beam
    if record.seq > 0:
        beam.counters.scale = scale_at(model.prior, model, state, record)
    score_record(state.clusters, model, state, scores, record)
    log_evidence, mass = normalise(model, state, scores, choice)
    return try_greedy(model, beam, scores, choice, log_evidence), mass


@entry
def score_only(
    model: Model, state: State, scores: Scores, choice: Choice, walk: Walk, out: Output, records: Records
) -> None:
    """Answer as ``advance`` would, without learning anything: each record is taken as the next one.

    Weights stand as they were left by the last record, but for the common factor of an exponential
    decay; clusters that would close by now still answer.
    """
    beam = state.beam
    seq, scale = beam.counters.seq, beam.counters.scale
    for i in range(records.times.shape[0]):
        record = record_at(records, i, seq)
        log_evidence, mass = score_as_next(model, state, scores, choice, record)
        choose(model, state, scores, choice, seq)
        mass = mass_of_voters(beam, scores, choice, mass)
        best, answer = choice.children[choice.counters.best_child], out.answers[i]
        slot = best.slot
        _weigh(state, scores, choice, out, i, slot, mass)
        answer.log_predictive = log_evidence
        answer.label = -1 if slot == NEW else label_if_asked(state, walk, best.parent, slot)
        answer.founded = answer.label < 0
        answer.link = -1 if slot == NEW else state.pool.slots[slot].last
        answer.decided = beam.counters.decided
        beam.counters.scale = scale
    out.counters.done = records.times.shape[0]


@entry
def weigh(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    records: Records,
    slots: np.ndarray,
    shares: np.ndarray,
    logs: np.ndarray,
) -> None:
    """Write what each record gives each of ``slots``, and a new cluster, without learning anything.

    ``shares`` and ``logs``, float64 of shape (n, slots + 1), receive the probability and the log predictive;
    the last column is that of a new cluster. Weights are taken as ``score_only`` takes them.
    """
    beam, pool = state.beam, state.pool
    seq, scale, last = beam.counters.seq, beam.counters.scale, slots.shape[0]
    for i in range(records.times.shape[0]):
        record = record_at(records, i, seq)
        _, mass = score_as_next(model, state, scores, choice, record)
        mass = mass_of_voters(beam, scores, choice, mass)
        for j in range(last):
            slot, value = slots[j], 0.0
            if pool.state[slot] == ALIVE:
                value = value_of(state.clusters.bag, state, scores, slot)
                scores.value[slot] = value
            shares[i, j] = min(mass_of(state, scores, choice, slot) / mass, 1.0) if value > 0.0 else 0.0
            logs[i, j] = math.log(value) + scores.counters.reference if value > 0.0 else -math.inf
        value = scores.counters.new_value
        shares[i, last] = min(mass_of(state, scores, choice, NEW) / mass, 1.0)
        logs[i, last] = math.log(value) + scores.counters.reference if value > 0.0 else -math.inf
        beam.counters.scale = scale
