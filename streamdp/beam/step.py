"""One record after another: the kernel that everything else is called from.

``advance`` runs until the records are used up, an output buffer is full (FLUSH), or an array of the
state is too small for the next record (GROW, with what is needed in ``out.meta``). Nothing of a record
has been absorbed when it stops, so the caller makes room and calls again.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.announce import Walk, announce, weigh_revisions
from streamdp.beam.choice import BEST_CHILD, CHILDREN, NEW, Choice
from streamdp.beam.choose import choose
from streamdp.beam.decide import continue_beam, drop_dissenters
from streamdp.beam.demand import group_children, room_before, room_for_choice
from streamdp.beam.dense import score_dense
from streamdp.beam.force import force
from streamdp.beam.lifecycle import begin_record
from streamdp.beam.model import (
    DECAY,
    DECAY_SCALE,
    DISTANCE_DEPENDENT,
    EXPONENTIAL,
    PRIOR,
    RECORDS,
    UNIT,
    Model,
)
from streamdp.beam.pool import (
    DECIDED,
    EVIDENCE,
    HEAD,
    NOW,
    SCALE,
    SEQ,
    WIDTH,
    add_sum,
)
from streamdp.beam.scores import Scores
from streamdp.beam.sparse import learn_base, score_sparse
from streamdp.beam.state import (
    DONE,
    REVISIONS,
    Output,
    State,
)
from streamdp.beam.tally import mass_of, tally
from streamdp.beam.write import settle, write_children
from streamdp.kernels.jit import entry, kernel


@kernel
def absorb_record(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    walk: Walk,
    out: Output,
    i: int,
    seq: int,
    time: float,
    words: np.ndarray,
    counts: np.ndarray,
    x: np.ndarray,
    founder: int,
) -> bool:
    """Choose, write, announce and decide for one scored record; False where room must be made first.

    With ``founder`` at least 0 the choice is made already: the cluster that this record began.
    """
    pool, beam = state.pool, state.beam
    log_evidence, mass = tally(model, state, scores, choice)
    if founder >= 0:
        force(state, scores, choice, seq, founder)
    else:
        choose(model, state, scores, choice, seq)
    group_children(scores, choice)
    if not room_for_choice(model, state, out, choice, words):
        return False
    children = choice.meta[CHILDREN]
    head = choice.meta[BEST_CHILD]
    head_slot = choice.child_slot[head]
    probability = min(mass_of(state, scores, choice, head_slot) / mass, 1.0)
    link = -1 if head_slot == NEW else pool.last[head_slot]
    for c in range(children):  # from here on: the latest earlier member, which the trellis keeps
        slot = choice.child_slot[c]
        choice.child_founder[c] = -1 if slot == NEW else pool.last[slot]
    extends = choice.child_parent[head] == beam.meta[HEAD]
    write_children(model, state, scores, choice, seq, time, words, counts, x)
    if x.shape[0] == 0:
        learn_base(model, state.inverted, words, counts, scores.base_fresh)
    continue_beam(model, state, choice, seq)
    beam.meta[HEAD] = head
    add_sum(beam.sums, EVIDENCE, log_evidence)
    founded = head_slot == NEW
    revisions = out.meta[REVISIONS]
    out.label[i] = announce(state, out, walk, extends, choice.child_slot[head], founded)
    decided = drop_dissenters(model, state, choice, seq)
    weigh_revisions(state, out, walk, revisions, decided)
    beam.meta[DECIDED] = decided
    settle(model, state, out, choice, beam.meta[WIDTH])
    out.probability[i] = probability
    out.log_predictive[i] = log_evidence
    out.founded[i] = founded
    out.link[i] = link
    out.decided[i] = decided
    beam.meta[SEQ] = seq + 1
    return True


@entry
def advance(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    walk: Walk,
    out: Output,
    times: np.ndarray,
    offsets: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray,
    vectors: np.ndarray,
    founders: np.ndarray,
) -> None:
    """Absorb records ``out.meta[DONE]`` .. ``len(times) - 1``, as far as there is room.

    ``founders`` says for each record which one began its cluster, by seq; empty: that is to be found out.
    """
    beam = state.beam
    dense = vectors.shape[1] > 0
    i = out.meta[DONE]
    while i < times.shape[0]:
        if not room_before(model, state, out):
            return
        seq = beam.meta[SEQ]
        begin_record(model, state, out, seq, times[i])
        a, b = offsets[i], offsets[i + 1]
        x = vectors[i if dense else 0]
        if dense:
            score_dense(model, state, scores, x)
        else:
            score_sparse(model, state, scores, words[a:b], counts[a:b])
        founder = founders[i] if founders.shape[0] > 0 else -1
        if not absorb_record(
            model, state, scores, choice, walk, out, i, seq, times[i], words[a:b], counts[a:b], x, founder
        ):
            return
        i += 1
        out.meta[DONE] = i


@entry
def score_only(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    out: Output,
    times: np.ndarray,
    offsets: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray,
    vectors: np.ndarray,
) -> None:
    """Answer as ``advance`` would, without learning anything: each record is taken as the next one.

    Weights stand as they were left by the last record, but for the common factor of an exponential
    decay; clusters that would close by now still answer.
    """
    beam, pool = state.beam, state.pool
    dense = vectors.shape[1] > 0
    seq = beam.meta[SEQ]
    scale = beam.sums[SCALE]
    for i in range(times.shape[0]):
        if model.ints[PRIOR] == DISTANCE_DEPENDENT and model.ints[DECAY] == EXPONENTIAL and seq > 0:
            now = np.float64(seq) if model.ints[UNIT] == RECORDS else times[i]
            elapsed = max(now - beam.sums[NOW], 0.0)
            beam.sums[SCALE] = scale * math.exp(-elapsed / model.floats[DECAY_SCALE])
        a, b = offsets[i], offsets[i + 1]
        if dense:
            score_dense(model, state, scores, vectors[i])
        else:
            score_sparse(model, state, scores, words[a:b], counts[a:b])
        log_evidence, mass = tally(model, state, scores, choice)
        choose(model, state, scores, choice, seq)
        slot = choice.child_slot[choice.meta[BEST_CHILD]]
        out.probability[i] = min(mass_of(state, scores, choice, slot) / mass, 1.0)
        out.log_predictive[i] = log_evidence
        out.founded[i] = slot == NEW
        out.label[i] = -1 if slot == NEW else state.lineages.label[pool.lineage[slot]]
        out.link[i] = -1 if slot == NEW else pool.last[slot]
        out.decided[i] = beam.meta[DECIDED]
        beam.sums[SCALE] = scale
    out.meta[DONE] = times.shape[0]
