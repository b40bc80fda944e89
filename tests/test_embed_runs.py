"""Runs with an embedding: what a function returned is kept for a replay, and whose a state's embedding is."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from commands import assignments, call, fail, succeed
from feeds import texts
from hypothesis import given
from hypothesis import strategies as st
from serving import Served
from tables_of_vectors import forget_models, table, write_folder

from streamdp import Engine, Settings, StreamDP
from streamdp.decode.texts import TextReader
from streamdp.encode.embedding import FunctionEmbedding
from streamdp.encode.encoders import decoder_of
from streamdp.errors import ConfigError
from streamdp.records.raw_batch import RawBatch
from streamdp.state.kept_rows import NAMES, KeptRows

MINE = """
import os, signal

def lengths(texts):
    with open("calls", "a+") as calls:
        calls.seek(0)
        many = len(calls.readlines()) + len(texts)
        if many > int(os.environ.get("KILLS", many)):
            os.kill(os.getpid(), signal.SIGKILL)
        if many > int(os.environ.get("FAILS", many)):
            raise ConnectionError("no answer")
        calls.writelines(text + "\\n" for text in texts)
    return [[1.0, len(text), *map(text.count, "aeiou")] for text in texts]
"""
"""A function that notes the texts that it has vectors for, and after so many kills its process, or fails."""

RUN = ("consume", "in.jsonl", "--output", "out.jsonl", "--snapshot-every", "500", "--state", "st")
WITH = (*RUN, "--embed", "mine:lengths")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with 2,000 texts, of which no two are the same, and the function."""
    forget_models()
    (tmp_path / "mine.py").write_text(MINE, "utf-8")
    lines = [json.dumps({"text": f"{record.value} {i}", "id": i}) for i, record in enumerate(texts(2000, 1))]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path


@pytest.fixture
def asked(folder: Path) -> Callable[[], list[str]]:
    """What the function had vectors for since the last look; one text of ours says how long they are."""

    def take() -> list[str]:
        found = (folder / "calls").read_text("utf-8").splitlines()
        (folder / "calls").unlink()
        return [text for text in found if text != "text"]

    return take


def refused(folder: Path, *run: str) -> tuple[int, str]:
    """Exit code and last line of a run that cannot go on, and takes no older snapshot instead."""
    done = call(folder, *run)
    said = done.stderr.decode()
    assert not any(word in said for word in ("damaged", "before it", "Traceback")), said
    return done.returncode, said.splitlines()[-1]


def kept(folder: Path) -> list[str]:
    """The files of rows beside the state."""
    return [name for name in NAMES if (folder / "st" / name).exists()]


def test_a_replay_after_a_kill_does_not_call_the_function_again(
    folder: Path, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed(folder, *WITH)
    whole = (folder / "out.jsonl").read_bytes()
    everything = asked()
    assert len(everything) == 2000
    assert kept(folder) == []
    for path in [*(folder / "st").iterdir(), folder / "out.jsonl"]:
        path.unlink()
    first: list[str] = []
    for kills in (1100, 600, 0):
        monkeypatch.setenv("KILLS", str(kills))
        assert call(folder, *WITH, process=True).returncode == -signal.SIGKILL
        last = asked()
        assert kept(folder) != []
        assert set(first).isdisjoint(last)
        first += last
    monkeypatch.delenv("KILLS")
    succeed(folder, *WITH)
    assert (folder / "out.jsonl").read_bytes() == whole
    assert set(asked()).isdisjoint(first)
    assert kept(folder) == []


def test_a_function_that_fails_ends_the_run_and_loses_nothing(
    folder: Path, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed(folder, *WITH)
    whole = (folder / "out.jsonl").read_bytes()
    for path in [*(folder / "st").iterdir(), folder / "out.jsonl"]:
        path.unlink()
    asked()
    monkeypatch.setenv("FAILS", "900")
    code, line = fail(folder, *WITH)
    assert (code, line) == (69, "streamdp: embed: mine:lengths failed: ConnectionError: no answer\n")
    monkeypatch.delenv("FAILS")
    succeed(folder, *WITH)
    assert (folder / "out.jsonl").read_bytes() == whole


def test_a_vector_that_is_none_rejects_its_record_alone(folder: Path) -> None:
    nan = "def lengths(texts):\n    return [[len(t), 1 if '7' in t else float('nan')] for t in texts]\n"
    (folder / "mine.py").write_text(nan, "utf-8")
    out = succeed(folder, "consume", "in.jsonl", "--embed", "mine:lengths", "--rejects", "no.jsonl")
    rejects = [json.loads(line) for line in (folder / "no.jsonl").read_text("utf-8").splitlines()]
    seven = sum("7" in line for line in (folder / "in.jsonl").read_text("utf-8").splitlines())
    assert 0 < len({line["seq"] for line in assignments(out)}) <= seven
    assert {reject["reason"] for reject in rejects} == {"not_finite"}
    assert "mine:lengths" in rejects[0]["detail"]


def test_a_function_is_asked_once_and_for_texts_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nan = "asked = []\ndef vectors(texts):\n    asked.extend(texts)\n"
    nan += "    return [[float('nan') if 'bad' in text else 1.0, len(text)] for text in texts]\n"
    (folder / "mine.py").write_text(nan, "utf-8")
    monkeypatch.chdir(folder)
    decoder = decoder_of(settings := Settings(embed="mine:vectors"), "jsonl")
    reader, engine = TextReader(decoder), Engine(settings)
    for values in (["rain", "bad", "storm"], [{"rain": 2.0, "bad": 1.0}]):
        raws = RawBatch({"file": ""}, ("line",))
        field = "text" if isinstance(values[0], str) else "features"
        raws.data = [msgspec.json.encode({field: value}) for value in values]
        raws.places, raws.arrivals = [*range(len(values))], [0.0] * len(values)
        rejects = engine.advance(reader.read(raws)).rejects
        assert len(rejects) == (field == "text")
    assert [text for text in sys.modules["mine"].asked if text != "text"] == ["rain", "bad", "storm"]


def test_a_state_goes_on_with_its_own_embedding_alone(folder: Path) -> None:
    write_folder(folder / "tiny")
    run = (*RUN, "--embed", "./tiny")
    succeed(folder, *run)
    assert b"resuming" in call(folder, *run).stderr
    assert b"resuming" in call(folder, *RUN).stderr  # by its name in the state
    forget_models()
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (folder / "tiny" / name).unlink()
    (folder / "tiny").rmdir()
    code, line = refused(folder, *RUN)
    assert (code, "there is no folder ./tiny" in line) == (78, True)
    write_folder(folder / "tiny", table(seed=1))
    forget_models()
    code, line = refused(folder, *RUN)
    assert (code, "./tiny is not what the state was made with" in line) == (78, True)
    code, line = fail(folder, *WITH)
    assert (code, "(embed: was ./tiny, is mine:lengths)" in line) == (78, True)
    assert not (folder / "calls").exists()
    assert b"2,000 records" in succeed(folder, "stories", "st")  # for which no model is needed


def test_a_function_of_another_length_is_one_line(folder: Path) -> None:
    succeed(folder, *WITH)
    with (folder / "in.jsonl").open("a") as file:
        file.write('{"text": "one more text"}\n')
    short = "def lengths(texts):\n    return [[1.0, 2.0] for _ in texts]\n"
    (folder / "mine.py").write_text(short, "utf-8")
    forget_models()
    code, line = refused(folder, *WITH)
    assert code == 69
    assert "mine:lengths returned vectors of 2 numbers, and of 7 before" in line


def test_a_function_that_a_state_names_runs_only_if_the_user_names_it(folder: Path) -> None:
    succeed(folder, *WITH)
    (folder / "mine.py").write_text("open('imported', 'w')\n" + MINE, "utf-8")
    forget_models()
    code, line = fail(folder, *RUN)
    assert code == 78
    assert "say --embed mine:lengths" in line
    for command in (
        ("stories", "st"),
        ("state", "verify", "st"),
        ("fit", "st"),
        ("erase", "st", "out.jsonl", "--id", "17"),
    ):
        succeed(folder, *command)
    scored = ("consume", "in.jsonl", "--state", "st", "--frozen", "--output", "scored.jsonl")
    code, line = fail(folder, *scored)
    assert (code, "say --embed mine:lengths" in line) == (78, True)
    assert not (folder / "imported").exists()
    succeed(folder, *scored, "--embed", "mine:lengths")
    assert (folder / "imported").exists()


def test_erasing_removes_what_was_kept(folder: Path) -> None:
    succeed(folder, *WITH)
    KeptRows(function(), folder / "st").rows(["left by a kill"], lambda asked: np.ones((1, 7), np.float32))
    assert kept(folder) != []
    succeed(folder, "erase", "st", "out.jsonl", "--id", "17")
    assert kept(folder) == []


def test_a_service_says_that_it_takes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "1")  # the text of ours
    served = Served(folder, "--embed", "mine:lengths", process=True)
    status, answer = served.send({"text": "the first", "id": "1"})
    assert (status, answer[0]["status"]) == (200, "pending")  # it is in the journal
    assert served.process.wait(120) == 69
    served.reader.join(120)
    assert b"embed: mine:lengths failed: ConnectionError: no answer" in served.said
    monkeypatch.delenv("FAILS")
    again = Served(folder, "--embed", "mine:lengths", process=True)
    status, answer = again.send({"text": "the first", "id": "1"})
    assert (status, answer[0]["status"], answer[0]["seq"]) == (200, "answered", 0)
    again.stop()


def test_kernels_are_prepared_without_the_function(folder: Path) -> None:
    succeed(folder, "check", "--compile", "--embed", "mine:lengths")
    assert not (folder / "calls").exists()


def test_a_saved_model_runs_no_function_that_is_not_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    model = StreamDP(settings=Settings(embed="mine:lengths"))
    for record in texts(60, 2):
        model.learn_one(record.value)
    model.save("model")
    forget_models()
    (folder / "calls").unlink()
    for path in ("model", "again"):
        read = StreamDP.load(path)
        assert read.n_clusters == model.n_clusters
        with pytest.raises(ConfigError, match="imported only if you name it too"):
            read.learn_one("one more text")
        read.save("again", overwrite=True)
    assert not (folder / "calls").exists()
    StreamDP.load("again", embed="mine:lengths").learn_one("one more text")
    assert (folder / "calls").exists()


# ---------------------------------------------------------------- the files


def ask(asked: list[str]) -> np.ndarray:
    return np.array([[len(text), text.count("a")] for text in asked], np.float32)


def function() -> FunctionEmbedding:
    return FunctionEmbedding("mine:ask", ask)


STEPS = st.lists(
    st.tuples(st.sampled_from(["take", "save", "kill", "cut", ""]), st.text("abc", max_size=3)), max_size=40
)


@given(STEPS)
def test_whatever_is_killed_no_text_since_the_last_snapshot_is_asked_for_again(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    kept, taken, saved = KeptRows(function(), folder), 0, 0
    had: list[str] = []  # texts of the stream
    for step, text in steps:
        if step == "take":
            kept.begin()
            taken = len(had)
        elif step == "save" and taken > saved:
            kept.drop()
            saved = taken
        elif step in ("kill", "cut"):
            for name in NAMES if step == "cut" else ():
                if (path := folder / name).exists():
                    path.write_bytes(path.read_bytes()[:-1])
            kept, taken, again = KeptRows(function(), folder), saved, list[str]()
            for i, each in enumerate(had[saved:]):
                found = kept.rows([each], lambda new: (again.extend(new), ask(new))[1])  # noqa: B023
                np.testing.assert_array_equal(found, ask([each]))
                if i == 1:  # a replay takes snapshots of its own, and may be killed, too
                    kept.begin()
                    kept = KeptRows(function(), folder) if len(had) % 2 else kept
            assert step == "cut" or again == []
        had.append(text)
        np.testing.assert_array_equal(kept.rows([text, text], ask), ask([text, text]))
