"""How corrections name records: ids and numbers are two things, through every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import call, fail, parsed, succeed
from serving import Served
from test_programs import asked

from streamdp import Correction, CorrectionError, Engine, Record, Settings
from streamdp.state.corrections import CorrectionsFile

NAMES = [*("a0", "a1", "a2"), "seq:1", 17, *("b0", "b1", "b2", "b3", None)]
"""Ids: that of number 3 looks like an address of number 1, that of number 4 is a number."""

TEXTS = ["storm over the coast"] * 5 + ["parliament votes on taxes"] * 5
SENT = [
    {"text": text} if name is None else {"id": name, "text": text}
    for name, text in zip(NAMES, TEXTS, strict=True)
]


def engine_of() -> Engine:
    engine = Engine(Settings())
    records = [
        Record(text, {"line": i}, id=name) for i, (name, text) in enumerate(zip(NAMES, TEXTS, strict=True))
    ]
    engine.advance(records)
    return engine


def parts(labels: dict[int, int]) -> list[int]:
    """The numbers of the records that have left the first story."""
    return [seq for seq in range(5) if labels[seq] != labels[0]]


@pytest.mark.parametrize(
    ("ids", "seqs", "gone"),
    [
        (["seq:1"], [], [3]),
        ([17], [], [4]),
        (["17"], [], [4]),
        ([], [3], [3]),
        (["seq:1", "17"], [2], [2, 3, 4]),
    ],
)
def test_ids_and_numbers_are_two_things(ids: list[Any], seqs: list[int], gone: list[int]) -> None:
    engine = engine_of()
    engine.correct(Correction(what="split", stories=(0,), ids=tuple(ids), seqs=tuple(seqs)))
    assert parts({answer.seq: answer.cluster for answer in engine.open_answers()}) == gone


@pytest.mark.parametrize("name", ["None", "3", "seq:3"])
def test_an_id_that_no_record_has_is_refused(name: str) -> None:
    """Though a record has none, or that number."""
    with pytest.raises(CorrectionError, match=f"no record of id '{name}' has an open answer"):
        engine_of().correct(Correction(what="split", stories=(0,), ids=(name,)))


def test_json_says_ids_and_seqs(tmp_path: Path) -> None:
    """As a topic has it, and the file."""
    sent = b'{"what": "split", "stories": [0], "ids": ["seq:1", 17], "seqs": [3]}'
    made = msgspec.json.decode(sent, type=Correction)
    assert (made.ids, made.seqs) == (("seq:1", "17"), (3,))
    assert str(made) == "split 0 seq:1 17 --seq 3"
    assert CorrectionsFile(tmp_path).append(made).number == 1
    lines = (tmp_path / "corrections").read_bytes()
    assert b'"ids":["seq:1","17"],"seqs":[3]' in lines
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"what": "split", "stories": [0], "records": ["a1"]}', type=Correction)


def by_command(folder: Path, *given: str) -> dict[int, int]:
    """The labels after a correction that was typed."""
    (folder / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in SENT))
    run = ("consume", "in.jsonl", "--output", "out.jsonl", "--state", "st")
    succeed(folder, *run)
    succeed(folder, "correct", "st", "split", "0", *given)
    succeed(folder, *run)
    return {
        line["seq"]: line["cluster"] for line in parsed((folder / "out.jsonl").read_bytes()) if "seq" in line
    }


def test_the_command_has_an_option_for_numbers(tmp_path: Path) -> None:
    assert parts(by_command(tmp_path, "seq:1", "--seq", "4")) == [3, 4]
    code, told = fail(tmp_path, "correct", "st", "move", "seq:3", "1")
    assert (code, "name it by its number (--seq, seqs)" in told) == (64, True)
    done = call(tmp_path, "correct", "st", "list")
    assert done.stdout.startswith(b"1  split 0 seq:1 --seq 4  (")


def test_a_service_its_page_and_programs(tmp_path: Path) -> None:
    served = Served(tmp_path)
    served.send(*SENT)

    def label(name: object) -> Any:
        return served.ask("GET", f"/v1/answers?id={name}")[1]["label"]

    before = label("a0")
    wanted = {"what": "split", "stories": [before], "ids": ["seq:1"]}
    status, made = served.ask("POST", "/v1/corrections", json.dumps(wanted).encode())
    assert (status, made["ids"], made["seqs"]) == (200, ["seq:1"], [])
    wanted = {"what": "split", "stories": [before], "ids": [17]}
    status, made = served.ask("POST", "/v1/corrections", json.dumps({**wanted, "who": "page"}).encode())
    assert (status, made["ids"], made["seqs"]) == (200, ["17"], [])
    where = f"http://127.0.0.1:{served.port}/"
    given = {"what": "split", "stories": [before], "ids": [], "seqs": [2]}
    (told,) = asked(tmp_path, [where, "--allow-corrections"], ("correct", given)).answers
    assert told["number"] == 3
    status, made = served.ask("POST", "/v1/corrections", json.dumps({**given, "records": ["a1"]}).encode())
    assert status == 400
    served.send({"id": "more", "text": "late goal wins the match"})
    labels = [label(name) for name in ("a0", "a1", "a2", "seq:1", "17")]
    assert served.stop() == 0
    assert labels[:2] == [before, before]
    assert len({*labels}) == 4
