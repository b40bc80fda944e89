"""One record after another: the kernel that everything else is called from.

``advance`` runs until the records are used up, an output buffer is full (FLUSH), or an array of the
state is too small for the next record (GROW, with what is needed in ``out.meta``). Nothing of a record
has been absorbed when it stops, so the caller makes room and calls again.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.announce import Walk, announce, weigh_revisions
from streamdp.beam.choose import BEST_CHILD, CHILDREN, NEW, Choice, choose, mass_of, tally
from streamdp.beam.dense import add_vector, clear_vector, copy_vector, score_dense
from streamdp.beam.index import POSTED, Index, add_words, copy_words
from streamdp.beam.jit import entry, kernel
from streamdp.beam.lifecycle import announce_closed, begin_record, discard_slot, weigh_joined
from streamdp.beam.members import copy_members
from streamdp.beam.model import (
    BEAM,
    DECAY,
    DECAY_SCALE,
    DISTANCE_DEPENDENT,
    EXPONENTIAL,
    MAX_UNDECIDED,
    PRIOR,
    RECORDS,
    UNIT,
    Model,
)
from streamdp.beam.pool import (
    CLOSED,
    CONTESTED,
    COPIES,
    DECIDED,
    DROPPED,
    EVIDENCE,
    FOUNDED,
    HEAD,
    JOINT,
    NOW,
    PLANE,
    SCALE,
    SEQ,
    SLOT_USED,
    WIDTH,
    Pool,
    add_sum,
    take_slot,
)
from streamdp.beam.scores import Scores
from streamdp.beam.sizes import USED as CLASSES_USED
from streamdp.beam.sizes import agree, contest, join_class, leave_class
from streamdp.beam.sparse import learn_base, score_sparse
from streamdp.beam.state import (
    COMPLETE,
    DONE,
    EVENTS,
    FLUSH,
    GROW,
    NEED_ANNOUNCED,
    NEED_CLASSES,
    NEED_COLUMNS,
    NEED_ENTRIES,
    NEED_EVENTS,
    NEED_HEAP,
    NEED_LINEAGES,
    NEED_NODES,
    NEED_POSTINGS,
    NEED_REVISIONS,
    NEED_SLOTS,
    NEED_TIMES,
    REVISIONS,
    STATUS,
    Output,
    State,
)
from streamdp.beam.trellis import (
    FAMILY_USED,
    NODE_ROOT,
    NODE_USED,
    add_node,
    advance_root,
    branch_of,
    mark_leaves,
    new_lineage,
    prune,
)


@kernel
def _demand(out: Output, index: int, needed: int, available: int) -> None:
    """Note that an array is too small."""
    if needed > available:
        out.meta[index] = needed
        out.meta[STATUS] = GROW


@kernel
def _room_before(model: Model, state: State, out: Output) -> bool:
    """Whether buffers and fixed-size tables suffice for whatever the next record does."""
    pool, beam = state.pool, state.beam
    limit = model.ints[BEAM]
    undecided = beam.meta[SEQ] - beam.meta[DECIDED] + 2
    events = pool.meta[SLOT_USED] + 2 * undecided + 4
    out.meta[STATUS] = COMPLETE
    for i in range(NEED_SLOTS, NEED_LINEAGES + 1):
        out.meta[i] = 0
    _demand(out, NEED_REVISIONS, undecided, out.revision_seq.shape[0])
    _demand(out, NEED_EVENTS, events, out.event_by.shape[0])
    _demand(out, NEED_ANNOUNCED, undecided, state.announced.shape[0])
    _demand(out, NEED_SLOTS, pool.meta[SLOT_USED] + limit + 2, pool.next.shape[0])
    _demand(out, NEED_COLUMNS, pool.meta[CONTESTED] + 2 * limit + 2, pool.slot_of.shape[0])
    _demand(out, NEED_NODES, state.trellis.meta[NODE_USED] + limit + 1, state.trellis.parent.shape[0])
    _demand(out, NEED_LINEAGES, state.lineages.meta[FAMILY_USED] + 2, state.lineages.next.shape[0])
    _demand(out, NEED_CLASSES, state.sizes.meta[CLASSES_USED] + limit + 2, state.sizes.next.shape[0])
    _demand(
        out,
        NEED_HEAP,
        state.sizes.header[0] + 8 * (pool.meta[SLOT_USED] + limit + 8),
        state.sizes.heap.shape[0],
    )
    if out.meta[STATUS] == COMPLETE and (
        out.meta[REVISIONS] + undecided > out.revision_seq.shape[0]
        or out.meta[EVENTS] + events > out.event_by.shape[0]
    ):
        out.meta[STATUS] = FLUSH
    return out.meta[STATUS] == COMPLETE


@kernel
def _group(scores: Scores, choice: Choice) -> None:
    """Which children join the same slot."""
    fresh = -1
    for a in range(choice.meta[CHILDREN]):
        slot = choice.child_slot[a]
        if slot == NEW:
            first = fresh if fresh >= 0 else a
            fresh = first
        else:
            first = scores.owner[slot]
            if first >= a or choice.child_slot[first] != slot:
                first = a
                scores.owner[slot] = a
        if first == a:
            choice.group_size[a] = 0
        choice.group[a] = first
        choice.group_size[first] += 1


@kernel
def _room_for_choice(model: Model, state: State, out: Output, choice: Choice, words: np.ndarray) -> bool:
    """Whether the arenas can take the copies that the chosen children may need.

    A posting list that moves takes a block of at most four times its new length in all, so four times
    all postings, old and new, is enough; only where there is not that much is the need worked out.
    """
    index, pool = state.inverted, state.pool
    children = choice.meta[CHILDREN]
    fresh = words.shape[0]
    entries, times, new = 4 * (fresh + 2), 0, fresh
    for a in range(children):
        slot = choice.child_slot[a]
        if slot == NEW or choice.group[a] != a:
            continue
        times += 4 * (state.members.length[slot] + 4)
        entries += 4 * (pool.types[slot] + fresh + 2)
        new += pool.types[slot] + fresh
    enough = index.postings[0] + 4 * (index.totals[POSTED] + new)
    if fresh > 0 and enough > index.slot.shape[0]:
        postings = 0
        for i in range(fresh):
            postings += _posting_need(index, words[i], children)
        for a in range(children):
            slot = choice.child_slot[a]
            if slot != NEW and choice.group[a] == a and children > 1:
                begin = index.own_start[slot]
                for i in range(begin, begin + pool.types[slot]):
                    postings += _posting_need(index, index.word[i], children)
        if index.postings[0] + postings > index.slot.shape[0]:
            _demand(out, NEED_POSTINGS, enough, index.slot.shape[0])
    _demand(out, NEED_ENTRIES, index.entries[0] + entries, index.word.shape[0])
    _demand(out, NEED_TIMES, state.members.header[0] + times, state.members.time.shape[0])
    return out.meta[STATUS] == COMPLETE


@kernel
def _posting_need(index: Index, word: int, children: int) -> int:
    n = index.length[word] + children + 2
    block = index.block[word]
    return 4 * n if block < 0 or n > (4 << block) else 0


@kernel
def _new_column(pool: Pool, slot: int) -> int:
    """Make a slot contested, held by nobody yet in the table being built."""
    j = pool.meta[CONTESTED]
    pool.meta[CONTESTED] = j + 1
    pool.slot_of[j] = slot
    pool.column[slot] = j
    return j


@kernel
def _join(
    model: Model,
    state: State,
    scores: Scores,
    slot: int,
    seq: int,
    time: float,
    words: np.ndarray,
    counts: np.ndarray,
    x: np.ndarray,
) -> None:
    """Add the record to a slot that stands in no class."""
    pool = state.pool
    pool.size[slot] += 1
    pool.last[slot] = seq
    pool.last_time[slot] = time
    if x.shape[0] > 0:
        add_vector(model, state.dense, slot, x)
    else:
        add_words(state.inverted, pool, slot, words, counts, scores.fresh)
    weigh_joined(model, state, slot, seq, time)
    if x.shape[0] == 0:
        join_class(state.sizes, slot, pool.tokens[slot], pool.types[slot])


@kernel
def _copy(state: State, source: int) -> int:
    """Copy on write: a new contested slot with the same records, in no class yet."""
    pool = state.pool
    state.beam.meta[COPIES] += 1
    target = take_slot(pool)
    pool.lineage[target] = pool.lineage[source]
    state.lineages.refs[pool.lineage[source]] += 1
    pool.founder[target] = pool.founder[source]
    pool.size[target] = pool.size[source]
    pool.weight[target] = pool.weight[source]
    pool.last[target] = pool.last[source]
    pool.first_time[target] = pool.first_time[source]
    pool.last_time[target] = pool.last_time[source]
    pool.types[target] = 0
    pool.tokens[target] = 0
    if state.dense.mean.shape[0] > 0:
        copy_vector(state.dense, source, target)
    else:
        copy_words(state.inverted, pool, source, target)
    copy_members(state.members, source, target)
    return target


@kernel
def _found(model: Model, state: State, lineage: int, seq: int, time: float) -> int:
    """An empty slot for the cluster that this record founds."""
    pool = state.pool
    slot = take_slot(pool)
    pool.lineage[slot] = lineage
    state.lineages.refs[lineage] += 1
    pool.founder[slot] = seq
    pool.size[slot] = 0
    pool.weight[slot] = 0.0
    pool.first_time[slot] = time
    pool.types[slot] = 0
    pool.tokens[slot] = 0
    if state.dense.mean.shape[0] > 0:
        clear_vector(state.dense, slot)
    return slot


@kernel
def _settle(model: Model, state: State, out: Output, choice: Choice, width: int) -> None:
    """Free the contested slots that nobody holds; promote those that all hold."""
    pool, sizes = state.pool, state.sizes
    holds, held = pool.holds[pool.meta[PLANE]], choice.held
    columns = pool.meta[CONTESTED]
    for j in range(columns):
        held[j] = 0
    for h in range(width):
        row = holds[h]
        for j in range(columns):
            held[j] += row[j]
    j = 0
    while j < pool.meta[CONTESTED]:
        count = held[j]
        if count != 0 and count != width:
            j += 1
            continue
        slot = pool.slot_of[j]
        last = pool.meta[CONTESTED] - 1
        pool.meta[CONTESTED] = last
        if j != last:
            moved = pool.slot_of[last]
            pool.slot_of[j] = moved
            pool.column[moved] = j
            held[j] = held[last]
            for h in range(width):
                holds[h, j] = holds[h, last]
        pool.column[slot] = -1
        if count == 0:
            discard_slot(state, slot)
        elif pool.state[slot] == CLOSED:
            announce_closed(model, state, out, slot)
        else:
            agree(sizes, slot, pool.weight, pool.founder)


@kernel
def _extend_holders(pool: Pool, choice: Choice, children: int) -> None:
    """Each child starts with what its parent held."""
    columns = pool.meta[CONTESTED]
    before = pool.holds[pool.meta[PLANE]]
    pool.meta[PLANE] = 1 - pool.meta[PLANE]
    after = pool.holds[pool.meta[PLANE]]
    for c in range(children):
        source = before[choice.child_parent[c]]
        target = after[c]
        for j in range(columns):
            target[j] = source[j]


@kernel
def _absorb(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    seq: int,
    time: float,
    words: np.ndarray,
    counts: np.ndarray,
    x: np.ndarray,
) -> None:
    """Write the chosen children's clusters: in place where all holders agree, else a copy."""
    pool, sizes = state.pool, state.sizes
    children = choice.meta[CHILDREN]
    head_group = choice.group[choice.meta[BEST_CHILD]]
    _extend_holders(pool, choice, children)
    holds = pool.holds[pool.meta[PLANE]]
    for a in range(children):
        if choice.group[a] != a:
            choice.child_slot[a] = choice.child_slot[choice.group[a]]
            continue
        slot = choice.child_slot[a]
        choosers = choice.group_size[a]
        if slot == NEW:
            target = _found(model, state, new_lineage(state.lineages, seq), seq, time)
            remaining = children - choosers
        else:
            held = children
            column = pool.column[slot]
            if column >= 0:
                held = 0
                for b in range(children):
                    held += holds[b, column]
            remaining = held - choosers
            if remaining == 0:
                target = slot
                leave_class(sizes, slot, pool.weight, pool.founder)
            else:
                target = _copy(state, slot)
                if column < 0:
                    contest(sizes, slot, pool.weight, pool.founder)
                    column = _new_column(pool, slot)
                    for b in range(children):
                        holds[b, column] = 1
                for b in range(a, children):
                    if choice.group[b] == a:
                        holds[b, column] = 0
        if target != slot and remaining > 0:
            fresh_column = _new_column(pool, target)
            for b in range(children):
                holds[b, fresh_column] = choice.group[b] == a
        _join(model, state, scores, target, seq, time, words, counts, x)
        if pool.column[target] < 0:
            agree(sizes, target, pool.weight, pool.founder)
        if a == head_group:
            for i in range(words.shape[0]):
                scores.base_fresh[i] = scores.fresh[i]
        choice.child_slot[a] = target


@kernel
def _drop_dissenters(model: Model, state: State, choice: Choice, seq: int) -> int:
    """Let the best hypothesis decide what has been open for more than ``max_undecided`` records."""
    beam, trellis, lineages, pool = state.beam, state.trellis, state.lineages, state.pool
    decided = advance_root(trellis, lineages)
    while seq - decided > model.ints[MAX_UNDECIDED]:
        width = beam.meta[WIDTH]
        head = beam.meta[HEAD]
        keep = trellis.lineage[branch_of(trellis, beam.leaf[head])]
        for h in range(width):
            choice.dropped[h] = 0
        branch = trellis.child[trellis.meta[NODE_ROOT]]
        while branch >= 0:
            if trellis.lineage[branch] != keep:
                mark_leaves(trellis, branch, beam.leaf, width, choice.dropped)
            branch = trellis.right[branch]
        to = 0
        for h in range(width):
            if choice.dropped[h]:
                prune(trellis, lineages, beam.leaf[h])
                beam.meta[DROPPED] += 1
                continue
            if h == head:
                beam.meta[HEAD] = to
            if to != h:
                beam.joint[to] = beam.joint[h]
                beam.select[to] = beam.select[h]
                beam.founded[to] = beam.founded[h]
                beam.leaf[to] = beam.leaf[h]
                holds = pool.holds[pool.meta[PLANE]]
                for j in range(pool.meta[CONTESTED]):
                    holds[to, j] = holds[h, j]
            to += 1
        beam.meta[WIDTH] = to
        decided = advance_root(trellis, lineages)
    return decided


@kernel
def _continue(model: Model, state: State, choice: Choice, seq: int) -> None:
    """Make the chosen children the hypotheses of the next record."""
    beam, trellis, lineages, pool = state.beam, state.trellis, state.lineages, state.pool
    children, width = choice.meta[CHILDREN], beam.meta[WIDTH]
    old_leaf, old_founded = choice.old_leaf, choice.old_founded
    for h in range(width):
        old_leaf[h] = beam.leaf[h]
        old_founded[h] = beam.founded[h]
    top_select = choice.child_select[0]
    top_joint = choice.child_joint[choice.meta[BEST_CHILD]]
    for c in range(1, children):
        top_joint = max(top_joint, choice.child_joint[c])
    for c in range(children):
        slot, parent = choice.child_slot[c], choice.child_parent[c]
        beam.leaf[c] = add_node(
            trellis, lineages, old_leaf[parent], pool.lineage[slot], seq, choice.child_founder[c]
        )
        beam.founded[c] = old_founded[parent] + (1 if pool.founder[slot] == seq else 0)
        beam.joint[c] = choice.child_joint[c] - top_joint
        beam.select[c] = choice.child_select[c] - top_select
    for h in range(width):
        if trellis.child[old_leaf[h]] < 0:
            prune(trellis, lineages, old_leaf[h])
    beam.meta[WIDTH] = children
    add_sum(beam.sums, JOINT, top_joint)


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
) -> bool:
    """Choose, write, announce and decide for one scored record; False where room must be made first."""
    pool, beam = state.pool, state.beam
    log_evidence, mass = tally(model, state, scores, choice)
    choose(model, state, scores, choice, seq)
    _group(scores, choice)
    if not _room_for_choice(model, state, out, choice, words):
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
    _absorb(model, state, scores, choice, seq, time, words, counts, x)
    if x.shape[0] == 0:
        learn_base(model, state.inverted, words, counts, scores.base_fresh)
    _continue(model, state, choice, seq)
    beam.meta[HEAD] = head
    add_sum(beam.sums, EVIDENCE, log_evidence)
    founded = head_slot == NEW
    if founded:
        beam.meta[FOUNDED] += 1
    revisions = out.meta[REVISIONS]
    out.label[i] = announce(state, out, walk, extends, choice.child_slot[head], founded)
    decided = _drop_dissenters(model, state, choice, seq)
    weigh_revisions(state, out, walk, revisions, decided)
    beam.meta[DECIDED] = decided
    _settle(model, state, out, choice, beam.meta[WIDTH])
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
) -> None:
    """Absorb records ``out.meta[DONE]`` .. ``len(times) - 1``, as far as there is room."""
    beam = state.beam
    dense = vectors.shape[1] > 0
    i = out.meta[DONE]
    while i < times.shape[0]:
        if not _room_before(model, state, out):
            return
        seq = beam.meta[SEQ]
        begin_record(model, state, out, seq, times[i])
        a, b = offsets[i], offsets[i + 1]
        x = vectors[i if dense else 0]
        if dense:
            score_dense(model, state, scores, x)
        else:
            score_sparse(model, state, scores, words[a:b], counts[a:b])
        if not absorb_record(
            model, state, scores, choice, walk, out, i, seq, times[i], words[a:b], counts[a:b], x
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
