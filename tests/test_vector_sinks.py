"""Vectors side by side where they are followed, stored and shown: the same as vectors one by one."""

from __future__ import annotations

import itertools
import json
import random
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from commands import assignments, start, succeed, wait_for
from feeds import raws_of
from side_by_side import all_of

from streamdp.decode.decoder import Decoder
from streamdp.decode.texts import TextReader
from streamdp.engine import Engine
from streamdp.page.view import View
from streamdp.questions.questions import ListEvents
from streamdp.records.columns import Columns
from streamdp.settings import Settings

N = 700


def lines(written: Callable[[float], str]) -> list[bytes]:
    """Lines of four clusters, their numbers written in one way or another."""
    rng, found = random.Random(11), []
    centres = [[rng.gauss(0.0, 5.0) for _ in range(3)] for _ in range(4)]
    for i in range(N):
        vector = ",".join(written(round(rng.gauss(mean, 1.0), 6)) for mean in rng.choice(centres))
        event = {"id": f"r{i}", "time": 0.5 * i, "source": f"s{i % 3}"}
        found.append(f'{json.dumps(event)[:-1]},"vector":[{vector}]}}\n'.encode())
    return found


def padded(number: float) -> str:
    """The same number with more digits than a double has."""
    return f"{number:.6f}{'0' * 14}"


WAYS = {"together": repr, "apart": padded}


def read(reader: TextReader, some: list[bytes]) -> Columns | list[object]:
    """Lines as a reader has them."""
    return reader.read(raws_of(some))  # type: ignore[return-value]


def stored(path: Path) -> list[str]:
    """All that a store holds but its name, and how far its file was read in bytes."""
    others = ('INSERT INTO "marks"', "INSERT INTO \"meta\" VALUES('id'")
    with sqlite3.connect(path) as store:
        return [line for line in store.iterdump() if not line.startswith(others)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A whole run for each way, with a store."""
    found = {}
    for name, written in WAYS.items():
        folder = found[name] = tmp_path_factory.mktemp(name)
        (folder / "in.jsonl").write_bytes(b"".join(lines(written)))
        options = ("--keep", "source", "--store", "news.db", "--events", "events", "--output", "out")
        succeed(folder, "consume", "--file", "in.jsonl", *options)
    return found


@pytest.mark.parametrize("name", ["out", "events"])
def test_what_is_written_is_the_same(folders: dict[str, Path], name: str) -> None:
    together, apart = ((folders[way] / name).read_bytes() for way in WAYS)
    assert together == apart
    assert together


def test_what_a_store_holds_is_the_same(folders: dict[str, Path]) -> None:
    together, apart = (stored(folders[way] / "news.db") for way in WAYS)
    assert together == apart
    assert len(together) > N


def test_a_file_that_grows_has_the_same_answers(folders: dict[str, Path], tmp_path: Path) -> None:
    given, out = b"".join(lines(repr)), tmp_path / "out"
    cuts = [0, 20_000, 20_007, 45_000, len(given)]  # not where lines end
    source = tmp_path / "in.jsonl"
    source.touch()
    command = ("consume", "--file", "in.jsonl", "--follow", "--keep", "source", "--output", "out")
    with start(tmp_path, *command) as run:
        for begin, end in itertools.pairwise(cuts):
            with source.open("ab") as file:
                file.write(given[begin:end])
            whole = given[:end].count(b"\n")
            wait_for(lambda whole=whole: len(assignments(first_lines(out))) >= whole, run)  # type: ignore[misc]
        run.send_signal(signal.SIGTERM)
        run.communicate()
    assert run.returncode == 128 + signal.SIGTERM
    assert out.read_bytes() == (folders["apart"] / "out").read_bytes()


def first_lines(out: Path) -> bytes:
    """The whole lines that are written."""
    written = out.read_bytes() if out.exists() else b""
    return written[: written.rfind(b"\n") + 1]


def test_a_page_shows_the_same() -> None:
    shown = []
    for together in (True, False):
        engine, view = Engine(Settings(keep=("source",)), with_events=True), View("in.jsonl")
        reader = TextReader(Decoder("jsonl", keep=("source",)))
        view.begin(engine)
        for at in range(0, N, 100):
            texts = read(reader, lines(repr)[at : at + 100])
            records = texts if together else all_of(texts)  # type: ignore[arg-type]
            view.taken(Columns.of(records))
            view.answered(engine.advance(records), engine.held_back)  # type: ignore[arg-type]
        tick = view.look(engine, 1e9, {})
        labels = [story.label for story in engine.stories(records=False)]
        each = [view.cluster(label) for label in labels]
        first = view.first_tick()
        shown.append([tick, each, view.shown(labels), view.events(ListEvents()), first])
        assert first["records"]
    assert msgspec.json.encode(shown[0]) == msgspec.json.encode(shown[1])
