"""One model in several threads, in copies, and in processes that are forked meanwhile."""

from __future__ import annotations

import copy
import pickle
import queue
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import streamdp
from benchmarks.drifting import demo_stream
from benchmarks.sharded import Sharded

WAIT = 300.0
"""Seconds after which a test takes it that a thread hangs."""

TEXTS = [record.text for record in demo_stream(900, seed=5)]


def points(n: int) -> list[dict[str, float]]:
    rng = random.Random(1)
    return [{"x": rng.gauss(20.0 * (i % 3), 1.0), "y": rng.gauss(0.0, 1.0)} for i in range(n)]


def in_threads(*works: Callable[[], object]) -> None:
    """Run these at once; raise what the first of them raises."""
    faults: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    for fault in faults:
        raise fault


def of_texts() -> tuple[Any, list[Any], list[Any]]:
    return streamdp.StreamDP(), TEXTS[:300], TEXTS


def of_vectors() -> tuple[Any, list[Any], list[Any]]:
    rows = points(900)
    return streamdp.StreamDP(), rows[:300], rows


def of_themes() -> tuple[Any, list[Any], list[Any]]:
    return streamdp.StreamDP(themes=5), TEXTS[:300], TEXTS


MAKERS = [of_texts, of_vectors, of_themes]


def asked(model: Any, x: Any) -> tuple[Any, ...]:
    return model.predict_one(x), model.score_one(x), model.predict_proba_one(x)


@pytest.mark.parametrize("make", MAKERS)
def test_threads_that_only_predict_answer_as_one(make: Any) -> None:
    model, learned, rows = make()
    for x in learned:
        model.learn_one(x)
    alone = [asked(model, x) for x in rows]
    found: list[Any] = [None] * len(rows)

    def work(k: int) -> None:
        for i in range(k, len(rows), 3):
            found[i] = asked(model, rows[i])

    in_threads(*(lambda k=k: work(k) for k in range(3)))
    assert found == alone


def test_threads_that_only_score_novelty_answer_as_one() -> None:
    detector = streamdp.Novelty()
    for text in TEXTS[:300]:
        detector.learn_one(text)
    alone = [detector.score_one(text) for text in TEXTS]
    found: dict[int, float] = {}

    def work(k: int) -> None:
        found.update((i, detector.score_one(TEXTS[i])) for i in range(k, len(TEXTS), 3))

    in_threads(*(lambda k=k: work(k) for k in range(3)))
    assert [found[i] for i in range(len(TEXTS))] == alone


def test_rows_that_threads_predict_are_answered_as_in_one() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 5)) + 10 * rng.integers(4, size=1500)[:, None]
    model = streamdp.StreamDPClusterer(beam=2).fit(rows)
    alone, found = model.predict(rows), np.full(len(rows), -2)

    def work(k: int) -> None:
        for at in range(50 * k, len(rows), 150):
            found[at : at + 50] = model.predict(rows[at : at + 50])

    def fit() -> None:  # what is being fitted anew answers as before or as after, which is the same here
        model.fit(rows)

    in_threads(fit, *(lambda k=k: work(k) for k in range(3)))
    assert (found == alone).all()


@pytest.mark.parametrize("make", MAKERS)
def test_a_learner_beside_those_who_ask_learns_as_alone(make: Any) -> None:
    model, _, rows = make()
    alone = copy.deepcopy(model)
    labels = [alone.learn_predict_one(x) for x in rows]
    found: list[Any] = []
    ended = threading.Event()

    def learn() -> None:
        try:
            found.extend(model.learn_predict_one(x) for x in rows)
        finally:
            ended.set()

    def ask() -> None:
        while not ended.is_set():
            for x in rows[::7]:
                asked(model, x)
                if model.engine is not None:  # which pins what it has answered so far
                    model.engine.clusters()
                if ended.is_set():
                    break

    in_threads(learn, ask)
    assert found == labels
    assert model.engine.seq == alone.engine.seq
    assert model.predict_one(rows[0]) == alone.predict_one(rows[0])


@pytest.mark.parametrize("make", [streamdp.Engine, Sharded])
def test_four_threads_advance_one_stream_and_no_record_is_lost(make: Any) -> None:
    engine = make(streamdp.Settings(retain=2000))
    answers: list[list[tuple[int, str]]] = [[] for _ in range(4)]

    def work(k: int) -> None:
        for i in range(k, len(TEXTS), 4):
            got = engine.advance([streamdp.Record(TEXTS[i], {}, id=f"r{i}")])
            answers[k] += [(line.seq, line.id) for line in got.assignments if not line.revision]

    in_threads(*(lambda k=k: work(k) for k in range(4)))
    flat = [pair for each in answers for pair in each]
    assert sorted(seq for seq, _ in flat) == list(range(len(TEXTS)))
    assert sorted(name for _, name in flat) == sorted(f"r{i}" for i in range(len(TEXTS)))
    for each in answers:
        assert [seq for seq, _ in each] == sorted(seq for seq, _ in each)


def test_records_that_wait_for_another_thread_do_not_keep_the_lock() -> None:
    engine, coming = streamdp.Engine(), queue.Queue[str]()

    def given() -> Iterator[str]:
        for _ in range(3):
            yield coming.get(timeout=WAIT)

    def feed() -> None:
        for text in TEXTS[:3]:
            engine.advance([text])  # which would wait for the other call, and that for this thread
            coming.put(text)

    in_threads(lambda: engine.advance(given()), feed)
    assert engine.seq == 6


def held(engine: streamdp.Engine) -> tuple[Callable[[], object], threading.Event, threading.Event]:
    """A call that stays inside of an engine; set when it is, and what lets it go."""
    inside, go_on = threading.Event(), threading.Event()

    def stay(_: str) -> None:
        inside.set()
        go_on.wait(WAIT)

    engine.stage = stay
    return lambda: engine.advance(["storm over the coast"]), inside, go_on


def test_whoever_asks_an_engine_waits_until_another_thread_is_done() -> None:
    engine = streamdp.Engine()
    engine.advance(TEXTS[:50])
    call, inside, go_on = held(engine)
    seen: list[int] = []

    def ask() -> None:
        inside.wait(WAIT)
        threading.Timer(0.2, go_on.set).start()
        seen.append(engine.seq)

    in_threads(call, ask)
    assert seen == [51]


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_have_a_lock_of_their_own(way: str) -> None:
    model, copied = streamdp.StreamDP(), COPIES[way]
    for text in TEXTS[:50]:
        model.learn_one(text)
    rows = np.array([[x["x"], x["y"]] for x in points(60)])
    fitted = streamdp.StreamDPClusterer(beam=1).fit(rows)
    shards = Sharded(streamdp.Settings(beam=1))
    shards.advance(TEXTS[:50])
    other, engine, other_fitted, other_shards = map(copied, (model, model.engine, fitted, shards))
    novelty = copy.deepcopy(streamdp.Novelty(model))
    call, inside, _ = held(model.engine)
    stays, stays_inside, _ = held(shards.merger)
    for work in (call, stays):
        threading.Thread(target=work, daemon=True).start()
    assert inside.wait(WAIT)
    assert stays_inside.wait(WAIT)  # the originals are inside of a call, and stay there

    def ask() -> None:
        assert other.predict_one(TEXTS[0]) is not None
        assert engine.seq == other.engine.seq == 50
        assert novelty.score_one(TEXTS[0]) == other.score_one(TEXTS[0])
        assert (other_fitted.predict(rows) == other_fitted.labels_).mean() > 0.9
        assert other_shards.advance(TEXTS[:1]).assignments[0].seq == 50
        assert model.clone().predict_one(TEXTS[0]) is None
        assert clone(fitted).fit(rows).n_clusters_ == 3

    in_threads(ask)


def test_a_copy_of_a_model_that_learns_is_whole() -> None:
    model, ended = streamdp.StreamDP(), threading.Event()

    def learn() -> None:
        for text in TEXTS:
            model.learn_one(text)
        ended.set()

    def copies() -> None:
        while not ended.is_set():
            other = pickle.loads(pickle.dumps(model))
            if other.engine is not None:
                assert other.learn_predict_one(TEXTS[0]) is not None

    in_threads(learn, copies)


FORKS = """
import os, signal, sys, threading
import streamdp
import streamdp.threads
from benchmarks.drifting import demo_stream

texts = [record.text for record in demo_stream(600, seed=5)]
model = streamdp.StreamDP()
for text in texts[:100]:
    model.learn_one(text)

def child(ask):
    number = os.fork()
    if not number:
        signal.alarm(200)
        try:
            ask()
            os._exit(0)
        except RuntimeError as error:
            os.write(1, str(error).encode())
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])

def both():
    model.predict_one(texts[0])
    model.learn_one(texts[0])
    assert model.engine.seq > 100
    model.engine.clusters()

stop, inside, go_on = threading.Event(), threading.Event(), threading.Event()
def learn():
    while not stop.is_set():
        for text in texts:
            model.learn_one(text)
learner = threading.Thread(target=learn, daemon=True)
learner.start()
assert [child(both) for _ in range(12)] == 12 * [0]
stop.set()
learner.join()

def stay(_):
    inside.set()
    go_on.wait()
model.engine.stage = stay
threading.Thread(target=model.learn_one, args=(texts[0],), daemon=True).start()
inside.wait()
streamdp.threads.PATIENCE = 0.2
other = streamdp.Engine()
other.advance(texts[:5])
assert child(lambda: other.advance(texts[:5])) == 0
assert child(both) == 9
go_on.set()
both()
print(" in the parent all is well")
"""


def test_a_process_forked_while_a_thread_learns_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "another thread was changing this when the process was forked: load it from a state, or a file"
        " in the parent all is well\n"
    )
