"""Second looks against an oracle that weighs every place by the whole prior and the plain predictive."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from algebra import WordStatistics, add, empty, log_predictive
from feeds import feed, headlines, record, reloaded, texts, topical
from oracle.looks import Announced, Looks, clusters_to_look_at, records_to_look_at

from streamdp.answers.announcer import Announcer
from streamdp.beam.clusters.places import PLACES, WORTH, Places, find_places
from streamdp.beam.data.choice import Scores, is_touched
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import Incoming, Output, State
from streamdp.beam.looks import review as reviewing
from streamdp.beam.looks.recent import Recent
from streamdp.beam.looks.review import MOST_RECORDS, Due, gather_recent, review, run_looks
from streamdp.beam.looks.second_look import Look, look_again
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.engine import Engine
from streamdp.kernels.jit import entry
from streamdp.kernels.rows import made
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.records import Final
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood, build_model, build_prior
from streamdp.streams import looks as looking_back

PRIORS: dict[str, dict[str, Any]] = {
    "crp": {"prior": "crp"},
    "exponential": {"decay_scale": 15.0, "concentration": 2.0, "close_below": 0.0},
    "window": {"decay": "window", "decay_scale": 40.0, "concentration": 2.0},
    "logistic": {"decay": "logistic", "decay_scale": 20.0, "concentration": 2.0, "close_below": 0.0},
}


RECORDS = 80
HARD: dict[str, Any] = {"second_look": 300, "retain": 1500, "concentration": 10.0}
"""Under which records of ``texts(n, 3, 200)`` move."""


class Oracle:
    """The records of an engine, whose places are weighed one by one."""

    def __init__(self, engine: Engine) -> None:
        search, held = engine.search, engine.retained()
        assert search is not None
        assert held is not None
        self.search, self.batch, self.labels = search, held.batch, held.labels.copy()
        self.prior: Any = build_prior(engine.settings, sparse=True)
        family, learned = search.likelihood, search.words.learned
        clusters = 1.0 / (1.0 + math.exp(-learned.counters.evidence) / 1000.0)
        by_cluster, by_token = (
            (counts - family.discount) / (counts.sum() + family.escape)
            for counts in (learned.counts, learned.counts + learned.repeats)
        )
        mixed = clusters * by_cluster + (1.0 - clusters) * by_token
        self.base = np.where(learned.counts > 0, mixed, 1.0)

    def words(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        a, b = self.batch.offsets[i : i + 2]
        return self.batch.words[a:b], self.batch.counts[a:b]

    def members(self, label: int, but: set[int]) -> WordStatistics:
        family = self.search.likelihood
        found = empty(family)
        for i in np.flatnonzero(self.labels == label).tolist():
            if i not in but:
                add(family, found, self.words(i))
        return found

    def open_labels(self) -> dict[int, int]:
        """Slots of the clusters that may change, by label."""
        state = self.search.state
        pool, rows = state.pool, state.lineages.rows
        slots = np.flatnonzero((pool.state == ALIVE) & (pool.column < 0))
        return {int(rows["label"][pool.slots["lineage"][s]]): int(s) for s in slots}

    def joint(self, label: int, moved: set[int], x: Any, whole: bool) -> float:
        """log p(z) with the records in a cluster, and the predictive of their words there."""
        labels = self.labels.copy()
        labels[sorted(moved)] = label
        held = self.members(label, moved)
        prior = self.prior.log_probability(labels.tolist(), None)
        return prior + log_predictive(self.search.likelihood, held, x, self.base, whole_cluster=whole)

    def gains(self, moved: set[int], x: Any, own: int, least: int = 0) -> dict[int, float]:
        """Nats won by every other place, for records that are in ``own``; ``least``: for a whole cluster.

        A cluster that shares no word with them is no place.
        """
        whole = least > 0
        alone = int((self.labels == own).sum()) == len(moved)
        now = self.joint(int(self.labels.max()) + 1 if alone else own, moved, x, whole)
        sizes = Counter(self.labels.tolist())
        places = [a for a in self.open_labels() if a != own and sizes[a] >= least]
        sharing = [a for a in places if not self.members(a, set()).counts.keys().isdisjoint(np.asarray(x[0]))]
        return {a: self.joint(a, moved, x, whole) - now for a in sharing}

    def recent(self) -> Recent:
        return gather_recent(self.search, 0, self.batch, self.labels)

    def follow(self, out: Output) -> set[int]:
        """Take over the revisions; the records concerned."""
        rows = out.revisions[: int(out.counters.revisions)]
        for row in rows:
            self.labels[row["seq"]] = row["label"]
        return set(rows["seq"].tolist())

    def check(self) -> None:
        """The statistics are those of the records."""
        state, index = self.search.state, self.search.words.inverted
        now = float(state.beam.counters.now)
        for label, slot in self.open_labels().items():
            own = np.flatnonzero(self.labels == label)
            held = self.members(label, set())
            begin, types = int(index.own["start"][slot]), int(index.types[slot])
            counts = {}
            for k in range(begin, begin + types):
                w = int(index.word[k])
                counts[w] = int(index.occurrences[index.lists["start"][w] + index.where[k]])
            assert counts == held.counts
            assert int(index.tokens[slot]) == held.tokens
            assert int(state.pool.slots["size"][slot]) == len(own)
            assert int(state.pool.slots["last"][slot]) == own[-1]
            weight = float(state.pool.weight[slot] * state.beam.counters.scale)
            assert weight == pytest.approx(self._weight(own, now), rel=1e-9)

    def _weight(self, own: np.ndarray, now: float) -> float:
        decay = getattr(self.prior, "decay", None)
        if decay is None:
            return float(len(own))
        here = own.astype(np.float64)
        return float(decay(now - here[here < now]).sum()) + float((here == now).sum())


def started(name: str, seed: int) -> Oracle:
    settings = Settings(**PRIORS[name], beam=(1, 4)[seed % 2], second_look=0, max_undecided=1)
    engine = Engine(settings)
    engine.advance(texts(RECORDS, seed, 12))
    return Oracle(engine)


def by_definition(oracle: Oracle) -> Looks:
    """The same clustering, to be gone over in plain Python."""
    prior, family = oracle.prior, oracle.search.likelihood
    decay = getattr(prior, "decay", None)

    def of_cluster(members: list[int]) -> float:
        total = math.log(prior.concentration)
        for j in range(1, len(members)):
            weight = j if decay is None else decay(members[j] - np.array(members[:j], float)).sum()
            total += math.log(weight)
        return total

    def predictive(there: list[int], moved: list[int]) -> float:
        held, x = empty(family), empty(family)
        for into, records in ((held, there), (x, moved)):
            for i in records:
                add(family, into, oracle.words(i))
        bag = np.array(list(x.counts)), np.array(list(x.counts.values()))
        return log_predictive(family, held, bag, oracle.base, whole_cluster=len(moved) > 1)

    def share(there: list[int], moved: list[int]) -> bool:
        one, other = (np.concatenate([oracle.words(i)[0] for i in records]) for records in (there, moved))
        return bool(np.isin(one, other).any())

    def weight(members: list[int]) -> float:
        now = float(oracle.search.seq - 1)
        return len(members) if decay is None else float(decay(now - np.array(members, float)).sum())

    return Looks(
        oracle.labels.tolist(),
        list(oracle.open_labels()),
        of_cluster,
        predictive,
        share,
        weight,
        founders_stay=decay is not None,
        decided=int(oracle.search.state.beam.counters.decided),
    )


@pytest.mark.parametrize(("topics", "more"), [(100, {}), (40, {"prior": "crp"})])
def test_a_review_moves_what_its_definition_moves(
    monkeypatch: pytest.MonkeyPatch, topics: int, more: dict[str, Any]
) -> None:
    age, moved, left_out = 300, 0, 0
    engine = Engine(Settings(second_look=age, retain=2048, concentration=10.0, beam=2, **more))

    def checked(*arguments: Any, **options: Any) -> Iterator[Output]:
        nonlocal moved, left_out
        oracle, told = Oracle(engine), announcers[-1].undecided
        answers = [Announced(told[i].probability, told[i].revision > 0) for i in range(engine.seq)]
        looks = by_definition(oracle)
        clusters = clusters_to_look_at(looks.labels, looks.open, age)
        chosen = records_to_look_at(answers, age)
        for i in chosen:
            looks.look_at_record(i)
        for label in clusters:
            looks.look_at_cluster(label)
        for out in review(*arguments, **options):
            moved += len(oracle.follow(out))
            yield out
        assert oracle.labels.tolist() == looks.labels
        left_out += len(records_to_look_at([Announced(0.0, False)] * engine.seq, age)) - len(chosen)

    def noted(announcer: Announcer, start: int, stop: int) -> np.ndarray:
        announcers.append(announcer)
        return unsure(announcer, start, stop)

    announcers, unsure = list[Announcer](), Announcer.unsure
    monkeypatch.setattr(Announcer, "unsure", noted)
    monkeypatch.setattr(looking_back, "review", checked)
    engine.advance(texts(1536, 3, topics))
    assert moved > 10
    assert left_out > 100


@pytest.mark.parametrize(("records", "joins"), [(MOST_RECORDS, True), (MOST_RECORDS + 1, False)])
def test_a_large_cluster_is_not_moved_as_a_whole(records: int, joins: bool) -> None:
    """Two clusters about the same, made apart: the smaller becomes part of the larger one, or stays."""
    larger = MOST_RECORDS + 10
    n, x = larger + records, (np.arange(4, dtype=np.int32), np.ones(4, np.int32))
    batch, labels = Batch.of_words([x] * n), np.repeat([0, 1], [larger, records])
    settings = Settings()
    likelihood = build_likelihood(settings, None)
    search = BeamSearch(build_model(settings, build_prior(settings, True), likelihood), likelihood)
    search.ensure_words(10)
    for _ in search.run(batch, np.where(labels == 0, 0, larger)):
        pass
    moved = set[int]()
    for out in review(search, 0, batch, labels, Due(np.zeros(0, np.int64), 10, last=True), with_events=False):
        moved |= set(out.revisions["seq"][: int(out.counters.revisions)].tolist())
    assert moved == (set(range(larger, n)) if joins else set())


NO_SLOTS = np.zeros(0, np.int64)


def look_at(
    search: BeamSearch, chosen: Batch, recent: Recent, first: int, slots: np.ndarray, out: Output
) -> None:
    """Look at all records of a batch, the first of which is number ``first``, and at clusters."""
    bag = Incoming(-1, 0.0, np.zeros(100, np.int32), np.zeros(100, np.int32), np.zeros(0), -1)
    records = search.prepare(chosen)
    looked = Look(search.model, search.state, search.scores, made(Places, {}), recent, out)
    seqs = np.arange(first, first + chosen.size)
    look_again(looked, records, first, seqs, slots, bag)


def look(oracle: Oracle, kernel: Callable[[Output], None]) -> tuple[set[int], float]:
    """Run one look; which records moved, and the nats won."""
    counters = oracle.search.state.beam.counters
    won, joint, moved = float(counters.gained), float(counters.joint), set()
    for out in run_looks(oracle.search, kernel, 1, 100, 100, True):
        moved |= oracle.follow(out)
    counters = oracle.search.state.beam.counters
    gain = float(counters.gained) - won
    assert float(counters.joint) - joint == pytest.approx(gain, abs=1e-6)
    return moved, gain


@pytest.mark.parametrize("name", PRIORS)
def test_a_record_goes_to_the_best_place(name: str) -> None:
    moves = 0
    for seed in range(4):
        oracle = started(name, seed)
        search = oracle.search
        for i in range(RECORDS):
            chosen = oracle.batch.slice(i, i + 1)
            recent, own = oracle.recent(), int(oracle.labels[i])
            gains = oracle.gains({i}, oracle.words(i), own) if own in oracle.open_labels() else {}

            first = i == np.flatnonzero(oracle.labels == own)[0]
            moved, gain = look(oracle, partial(look_at, oracle.search, chosen, recent, i, NO_SLOTS))
            if moved:
                assert moved == {i}
                best = max(gains.values())
                assert gain == pytest.approx(best, abs=1e-6)
                assert gains[int(oracle.labels[i])] == pytest.approx(best, abs=1e-6)
                moves += 1
            elif gains and i <= search.state.beam.counters.decided:
                several = int((oracle.labels == own).sum()) > 1
                assert max(gains.values()) < 1e-5 or (several and first and name != "crp")
        oracle.check()
    assert moves > 3


@pytest.mark.parametrize("name", PRIORS)
def test_a_cluster_goes_to_the_best_place(name: str) -> None:
    moves = 0
    for seed in range(4):
        oracle = started(name, seed)
        search = oracle.search
        for label, slot in sorted(oracle.open_labels().items()):
            if oracle.open_labels().get(label) != slot:
                continue
            index, recent = search.words.inverted, oracle.recent()
            whole = set(np.flatnonzero(oracle.labels == label).tolist())
            begin, types = int(index.own["start"][slot]), int(index.types[slot])
            words = index.word[begin : begin + types].copy()
            counts = oracle.members(label, set()).counts
            x = words, np.array([counts[w] for w in words.tolist()])
            gains = oracle.gains(whole, x, label, least=len(whole))

            moved, gain = look(
                oracle, partial(look_at, search, oracle.batch.slice(0, 0), recent, 0, np.array([slot]))
            )
            if moved:
                assert moved == whole
                assert gain == pytest.approx(max(gains.values()), abs=1e-6)
                moves += 1
            elif gains and max(whole) <= search.state.beam.counters.decided:
                assert max(gains.values()) < 1e-5
        oracle.check()
    assert moves > 2


@entry
def places_of(state: State, scores: Scores, places: Places, but: int, least: int) -> None:
    """What is looked at again may go there."""
    find_places(state, scores, places, but, least)


@pytest.mark.parametrize("least", [1, 2])
def test_places_share_a_word_have_the_best_predictive_and_of_those_alike_the_most_weight(least: int) -> None:
    draw, alike = random.Random(least), 0
    told = [" ".join(f"w{draw.randrange(400)}" for _ in range(draw.choice([3, 3, 3, 5]))) for _ in range(250)]
    engine = Engine(Settings(decay_scale=60.0, concentration=100.0, close_below=0.0, beam=1, second_look=0))
    engine.advance([record(text, i) for i, text in enumerate([*told, *told[:60]])])
    search, held, places = engine.search, engine.retained(), made(Places, {})
    assert search is not None
    assert held is not None
    for i in range(200, 310):
        search.score(held.batch.slice(i, i + 1))
        pool, words, sizes = search.state.pool, search.scores.words, search.state.sizes
        slots = np.flatnonzero((pool.state == ALIVE) & (pool.column < 0) & (pool.slots["size"] >= least))
        untouched = ~is_touched(words.cells["mark"][slots], words.counters.tick)
        values = np.where(untouched, words.ratio[sizes.of[slots]], search.scores.value[slots])
        expected = np.sort(values[~untouched])[::-1][:PLACES]
        expected = expected[expected >= WORTH * expected[:1]]

        places_of(search.state, search.scores, places, int(slots[0]) if i % 2 else -1, least)
        found = places.slot[: places.counters.found].tolist()
        if i % 2:
            assert slots[0] not in found
            continue
        assert places.value[: places.counters.found].tolist() == expected.tolist()
        assert len(set(found)) == len(found)
        value_of = dict(zip(slots.tolist(), values.tolist(), strict=True))
        assert [value_of[slot] for slot in found] == expected.tolist()
        last = [slot for slot in found if value_of[slot] == expected[-1]]
        left = slots[~untouched & (values == expected[-1:].sum()) & ~np.isin(slots, found)]
        if len(left):
            assert pool.weight[last].min() >= pool.weight[left].max()
            alike += 1
    assert alike > 10 or least > 1


@pytest.mark.parametrize("more", [{}, {"decay": "window", "decay_scale": 300.0}, {"prior": "crp"}])
def test_batches_and_restarts_change_nothing(more: dict[str, Any]) -> None:
    settings = Settings(**HARD, **more)
    records = texts(3000, 3, 200)
    whole = Engine(settings, with_events=True)
    expected = feed(whole, records)
    cut, got = reloaded(settings, records, range(37, 3000, 37), with_events=True)
    assert cut.dumps() == whole.dumps()
    assert whole.counters()["records_moved"] > 10
    assert whole.counters()["clusters_merged"] > 0
    expected.add(whole.finish())
    got.add(cut.finish())
    assert got.encoded() == expected.encoded()


def test_what_is_final_is_not_looked_at_again() -> None:
    engine, final, revised = Engine(Settings(**HARD)), -1, 0
    told = feed(engine, texts(4000, 3, 200), range(0, 4000, 100))
    for line in told.lines:
        if isinstance(line, Final):
            assert final < line.final_through < engine.seq - 1500
            final = line.final_through
        elif line.revision:
            assert line.seq > final
            revised += 1
    assert final > 2000
    assert revised > 10


@pytest.mark.parametrize(
    "more",
    [{"second_look": 0}, {"retain": 1000}, {"prior": "uniform"}, {"retain": 0}, {"second_look": 10**6}],
)
def test_without_second_looks_finality_is_what_the_beam_has_decided(more: dict[str, Any]) -> None:
    engine = Engine(Settings(**more))
    told = feed(engine, headlines(2000, 3), range(0, 2000, 100))
    finals = [line.final_through for line in told.lines if isinstance(line, Final)]
    assert finals[-1] > 1000
    assert engine.counters()["second_looks"] == 0


def test_a_cluster_that_took_in_records_first_finds_room(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, records = random.Random(1), []
    for i in range(3000):
        first = 3 * rng.randrange(20)
        words = [f"word{first + rng.randrange(6)}" for _ in range(rng.randint(1, 4))]
        words += [f"odd{i}x{k}" for k in range(rng.randint(0, 4))]
        records.append(record(" ".join(words), i + 1))
    most = []

    def guarded(*arguments: Any) -> None:
        *before, bag = arguments
        room = len(bag.words)
        wide = bag._replace(words=np.full(room + 1000, -1, np.int32), counts=np.zeros(room + 1000, np.int32))
        look_again(*before, wide)
        most.append(int((wide.words >= 0).sum()) / max(room, 1))

    monkeypatch.setattr(reviewing, "look_again", guarded)
    settings = Settings(beam=1, second_look=300, retain=1500, concentration=0.05, decay_scale=100.0)
    Engine(settings).advance(records)
    assert 0.0 < max(most) <= 1.0


@pytest.mark.parametrize("more", [{}, {"refine_every": 512, "refine_moves": 2000}])
def test_what_was_final_before_second_looks_began_stays(more: dict[str, Any]) -> None:
    """A state that was made without them, or of a set that was fitted, goes on with them."""
    records = texts(3000, 3, 60)
    before = Engine(Settings(beam=1, second_look=0, max_undecided=300))
    before.advance(records[:1200])
    settings = Settings(beam=1, second_look=300, **more)
    fitted = fit(records[:1200], settings, Plan(rounds=1, seconds=None, start="random")).to_engine()
    for engine in (Engine.loads(before.dumps(), settings), fitted):
        told = feed(engine, records[1200:], [100, 700])
        told.add(engine.finish())
        revised = {line.seq for line in told.assignments() if line.revision}
        assert min(revised) >= 1200
        assert engine.counters()["second_looks"] > 500


@pytest.mark.parametrize("prior", ["distance-dependent", "crp", "pitman-yor", "uniform"])
def test_a_wide_beam_agrees_with_the_truth_as_greedy_search_does(prior: str) -> None:
    """Looks see what a wide beam contests, which under a CRP is nearly everything."""
    gains = []
    for seed, drift in ((0, False), (1, False), (2, False), (0, True)):
        records, true = topical(3000, seed, drift=drift)
        reached = {}
        for beam in (1, 8):
            engine = Engine(Settings(prior=prior, beam=beam))
            told = feed(engine, records)
            told.add(engine.finish())
            newest = {line.seq: line.cluster for line in told.assignments()}
            reached[beam] = agreement(np.array([newest[seq] for seq in range(len(true))]), np.array(true)).nmi
        gains.append(reached[8] - reached[1])
    assert (
        np.mean(gains) > -0.015
    )  # now .006, .0063, .002 and .0094; without looks at what is contested -.03, -.19 and -.11
