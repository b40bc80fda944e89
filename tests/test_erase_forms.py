"""Erasing from whatever form of input: nothing is left of a record, and every other one is as it was."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import call, parsed, succeed
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from serving import Served

from streamdp.records.erased import Erased

SERVED = ("--keep-journal", "1G", "--output", "out.jsonl")


class Sent(NamedTuple):
    """A record as somebody sends it; of no JSON it is refused."""

    text: str
    id: str | int | None = None
    broken: bool = False

    @property
    def line(self) -> str:
        """As JSON, or its beginning."""
        fields = {"text": self.text} if self.id is None else {"id": self.id, "text": self.text}
        written = json.dumps(fields)
        return written[:-2] if self.broken else written


WORDS = st.sampled_from(["storm", "coast", "vote", "bridge", "delayed", "Zürich", "fire", "talks"])
TEXTS = st.lists(WORDS, min_size=3, max_size=6).map(" ".join)
TAILS = st.sampled_from(["", " 1", " 12", " again", ' and "more"'])


@st.composite
def streams(draw: st.DrawFn, ids: bool = True, broken: bool = True) -> tuple[list[Sent], int]:
    """Records of which some say the same, or the beginning of others; and which of them is erased."""
    sent = []
    for i in range(draw(st.integers(8, 24))):
        name = st.sampled_from([None, f"user-{i}", f"seq:{i}", 9_000_000 + i, f"user-{i}-b", f"Zoë{i}"])
        torn = broken and draw(st.integers(0, 5)) == 0
        sent.append(Sent(draw(TEXTS) + draw(TAILS), draw(name) if ids else None, torn))
        if torn and ids and draw(st.booleans()):  # sent again, and whole
            sent.append(sent[-1]._replace(broken=False))
    sent += [Sent("nothing much to say"), Sent("nothing much to say"), Sent("something else is said")]
    whole = [i for i, each in enumerate(sent) if not each.broken]
    return sent, draw(st.sampled_from(whole))


def shown(text: str) -> list[bytes]:
    """How files may have a text."""
    return [
        text.encode(),
        json.dumps(text)[1:-1].encode(),
        json.dumps(text, ensure_ascii=False)[1:-1].encode(),
    ]


def holds(data: bytes, name: str) -> bool:
    """Whether an id is somewhere, and not as a part of another."""
    return any(re.search(rb"(?<![\w-])" + re.escape(each) + rb"(?![\w-])", data) for each in shown(name))


def check_nothing_is_left(folder: Path, sent: Sequence[Sent], gone: Sent, inputs: Sequence[str]) -> None:
    """No byte of any file that was written has the id or the text, unless another record has it."""
    others = [each for each in sent if each is not gone and (each.id is None or each.id != gone.id)]
    alone = not any(gone.text in each.text for each in others)
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name in inputs:
            continue
        data = path.read_bytes()
        if gone.id is not None:
            assert not holds(data, str(gone.id)), (path, gone)
        assert not alone or not any(each in data for each in shown(gone.text)), (path, gone)


def rows(folder: Path) -> dict[int, tuple[Any, ...]]:
    """Records of the store, by number."""
    with sqlite3.connect(folder / "news.db") as store:
        found = {row[0]: row for row in store.execute("SELECT * FROM records")}
    store.close()
    return found


def lines(folder: Path, name: str) -> list[Any]:
    """What a file has: lines of JSON, or cells."""
    data = (folder / name).read_bytes()
    return list(csv.reader(io.StringIO(data.decode()))) if name.endswith(".csv") else parsed(data)


def journal(folder: Path) -> list[bytes]:
    """The lines of the journal."""
    files = sorted((folder / "st" / "journal").glob("*.sdj"))
    found = [line for path in files for line in path.read_bytes().split(b"\n")[:-1]]
    return [line for line in found if not re.match(rb"# \d+\.\d+ ", line)]


def erase(folder: Path, *how: str, names: Sequence[str] = ("st", "out.jsonl", "news.db")) -> str:
    rejects = [path.name for path in folder.glob("*rejects*")]
    done = call(folder, "erase", *names, *rejects, *how)
    assert done.returncode == 0, done.stderr.decode()
    assert b"sound" in call(folder, "state", "verify", "st").stdout
    return done.stderr.decode()


def address(gone: Sent, number: int) -> tuple[str, str]:
    """How a record is named: by its id, if it has one."""
    return ("--seq", str(number)) if gone.id is None else ("--id", str(gone.id))


FORMS = {
    "jsonl": ("in.jsonl", "out.jsonl"),
    "csv": ("in.csv", "out.csv"),
    "text": ("in.txt", "out.jsonl"),
    "log": ("in.log", "out.jsonl"),
}
FEW = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
)


def write(path: Path, sent: Sequence[Sent], form: str) -> None:
    if form == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("id", "text"), *((each.id or "", each.text) for each in sent)])
    else:
        path.write_text("".join(f"{each.line if form == 'jsonl' else each.text}\n" for each in sent))


@pytest.mark.parametrize("form", FORMS)
@FEW
@given(data=st.data())
def test_a_run_over_a_file(form: str, data: st.DataObject) -> None:
    source, output = FORMS[form]
    sent, at = data.draw(streams(ids=form in ("jsonl", "csv"), broken=form == "jsonl"))
    gone, number = sent[at], sum(not each.broken for each in sent[:at])
    same = [
        i
        for i, each in enumerate(e for e in sent if not e.broken)
        if gone.id is not None and each.id == gone.id
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder / source, sent, form)
        run = ("consume", source, "--output", output, "--store", "news.db", "--state", "st", "--keep", "text")
        more = ("--format", "text", "--likelihood", "template") if form == "log" else ()
        done = call(folder, *run, *more, "--rejects", "rejects.jsonl")
        assert done.returncode == 0, done.stderr.decode()
        answers, stored = lines(folder, output), rows(folder)
        erase(folder, *address(gone, number), names=("st", output, "news.db"))
        check_nothing_is_left(folder, sent, gone, [source])
        left, now = lines(folder, output), rows(folder)
        assert [k for k in stored if now[k] != stored[k]] == sorted({number, *same})
        changed = [a for a, b in zip(answers, left, strict=True) if a != b]
        key = (lambda row: int(row[0])) if form == "csv" else (lambda row: row["seq"])
        assert {key(row) for row in changed} <= {number, *same}


def served(folder: Path, sent: Sequence[Sent], *, of_lines: bool) -> None:
    """A service that was sent these records, and stopped."""
    more = ("--format", "text", "--likelihood", "template") if of_lines else ()
    service = Served(folder, *SERVED, *more)
    body = "".join(f"{each.text if of_lines else each.line}\n" for each in sent).encode()
    assert service.ask("POST", "/v1/records", body, "application/x-ndjson")[0] == 200
    assert service.stop() == 0


@pytest.mark.parametrize("of_lines", [False, True])
@settings(FEW, max_examples=4)
@given(data=st.data())
def test_a_service(of_lines: bool, data: st.DataObject) -> None:
    sent, at = data.draw(streams(ids=not of_lines, broken=not of_lines))
    gone, number = sent[at], sum(not each.broken for each in sent[:at])
    own = [i for i, each in enumerate(sent) if each is gone or (gone.id is not None and each.id == gone.id)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        served(folder, sent, of_lines=of_lines)
        stored, accepted = rows(folder), journal(folder)
        erase(folder, *address(gone, number))
        check_nothing_is_left(folder, sent, gone, [])
        now, kept = rows(folder), journal(folder)
        assert [k for k in stored if now[k] != stored[k]] == [number]
        texts = {i for i in own if not sent[i].broken or gone.text in sent[i].text}
        alike = {i for i, each in enumerate(sent) if each.broken and gone.text in each.text}
        changed = {i for i, (a, b) in enumerate(zip(accepted, kept, strict=True)) if a != b}
        assert texts <= changed <= texts | alike  # what was refused and holds the whole text may go


# ---------------------------------------------------------------- examples


def test_a_line_of_a_log_goes_from_the_journal_and_no_other(tmp_path: Path) -> None:
    """Though level and component are in most lines, and the words are of none that the state knows."""
    log = [
        f"2026-01-05 10:{i // 60:02d}:{i % 60:02d} INFO server: request {i} served for alpha in {i % 900} ms"
        if i % 2 == 0
        else f"2026-01-05 10:{i // 60:02d}:{i % 60:02d} WARN disk: queue beta is {i % 99}% full"
        for i in range(400)
    ]
    service = Served(tmp_path, *SERVED, "--format", "log")
    assert service.ask("POST", "/v1/records", "\n".join(log).encode(), "text/plain")[0] == 200
    assert service.stop() == 0
    before, stored = journal(tmp_path), rows(tmp_path)
    said = erase(tmp_path, "--seq", "200")
    assert "words that no other record had" not in said
    after, now = journal(tmp_path), rows(tmp_path)
    assert [i for i, line in enumerate(after) if line != before[i]] == [200]
    assert after[200] == b""
    assert [k for k in stored if now[k] != stored[k]] == [200]


def test_an_id_that_looks_like_a_number_is_an_id(tmp_path: Path) -> None:
    service = Served(tmp_path, *SERVED)
    sent = [{"text": f"storm over the coast {i}"} for i in range(6)]
    service.send(*sent, {"id": "seq:3", "text": "a vote on taxes"}, {"id": 17, "text": "a bridge is closed"})
    assert service.stop() == 0
    before = rows(tmp_path)
    assert "erased 1 record:" in erase(tmp_path, "--id", "seq:3")
    assert [k for k, row in rows(tmp_path).items() if row != before[k]] == [6]
    erase(tmp_path, "--id", "17")
    assert [k for k, row in rows(tmp_path).items() if row != before[k]] == [6, 7]
    erase(tmp_path, "--seq", "3")
    assert [k for k, row in rows(tmp_path).items() if row != before[k]] == [3, 6, 7]
    assert b"storm over the coast 3" not in b"\n".join(journal(tmp_path))
    assert b"storm over the coast 4" in b"\n".join(journal(tmp_path))


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("secret", '{"id": "secret", "text": "cut o'),
        ("secret", "{'id': 'secret', 'text': 'no JSON'}"),
        ("secret", '["secret", "in a list"]'),
        ("Zoë", '{"id": "Zo\\u00eb", "text": "esc'),
        ("17", '{"id": 17, "text": "a num'),
        ("a/b", '{"id": "a\\/b", "text": "a sla'),
    ],
)
def test_what_was_refused_and_holds_the_id_goes_too(tmp_path: Path, name: str, broken: str) -> None:
    service = Served(tmp_path, *SERVED)
    other = '{"id": "secret-2", "text": "17 are l'
    body = "\n".join([json.dumps({"id": name, "text": "a vote"}), broken, other]).encode()
    service.ask("POST", "/v1/records", body, "application/x-ndjson")
    assert service.stop() == 0
    assert len(lines(tmp_path, "out.jsonl.rejects.jsonl")) == 2
    erase(tmp_path, "--id", name)
    first, second = lines(tmp_path, "out.jsonl.rejects.jsonl")
    assert ("data" in first, second["data"]) == (False, other)
    assert [len(line) > 2 for line in journal(tmp_path)] == [False, False, True]


@pytest.mark.parametrize(
    "again",
    [
        '{"id": 17, "text": "storm"}',
        '{"id": 17.0, "text": "storm"}',
        '{"id": "17", "text": "storm", "x": NaN}',
    ],
)
def test_an_erased_id_that_is_sent_again_is_never_written(tmp_path: Path, again: str) -> None:
    served(tmp_path, [Sent("a vote on taxes", 17), Sent("a bridge is closed", 18)], of_lines=False)
    erase(tmp_path, "--id", "17")
    service = Served(tmp_path, *SERVED)
    body = "\n".join([again, json.dumps({"id": "new", "text": "another vote"})]).encode()
    _, answers = service.ask("POST", "/v1/records", body, "application/x-ndjson")
    assert [(each["status"], each.get("reason")) for each in answers] == [
        ("refused", "erased"),
        ("answered", None),
    ]
    assert service.stop() == 0
    assert [len(line) > 2 for line in journal(tmp_path)] == [False, True, True]
    check_nothing_is_left(tmp_path, [], Sent("storm", 17), [])


def test_log_records_of_a_collector(tmp_path: Path) -> None:
    """Several may stand at a position; in a journal each has a line."""
    found = [
        {
            "body": {"stringValue": f"user{i} has logged in"},
            "attributes": [{"key": "log.record.uid", "value": {"stringValue": f"uid-{i}"}}],
        }
        for i in range(6)
    ]
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": found}]}]}).encode()
    service = Served(tmp_path, *SERVED, "--format", "otlp")
    assert service.ask("POST", "/v1/logs", body) == (200, {})
    assert service.stop() == 0
    before = journal(tmp_path)
    erase(tmp_path, "--id", "uid-3")
    assert [i for i, line in enumerate(journal(tmp_path)) if line != before[i]] == [3]
    check_nothing_is_left(tmp_path, [], Sent("user3 has logged in", "uid-3"), [])
    service = Served(tmp_path, *SERVED, "--format", "otlp")
    _, told = service.ask("POST", "/v1/logs", body)
    assert told["partialSuccess"]["rejectedLogRecords"] == "1"
    assert service.stop() == 0
    check_nothing_is_left(tmp_path, [], Sent("user3 has logged in", "uid-3"), [])


def test_a_state_without_ids_is_erased_from_by_number_alone(tmp_path: Path) -> None:
    """A word of a line of text is no id, whatever lines have it."""
    (tmp_path / "in.txt").write_text("root logged in\nroot logged out\nann logged in\n")
    succeed(tmp_path, "consume", "in.txt", "--output", "out.jsonl", "--state", "st")
    done = call(tmp_path, "erase", "st", "out.jsonl", "--id", "root")
    assert (done.returncode, b"nothing is known of root" in done.stderr) == (66, True)


def test_what_lines_are_is_no_text_of_a_record() -> None:
    """Though a record says just that."""
    gone = Erased(seqs=frozenset({1}), texts=frozenset({"born", "corrections", "storm"}))
    event = {"event": "born", "seq": 5, "cluster": 0, "size": 3, "words": [["storm", 2], ["coast", 1]]}
    head = {"streamdp": "corrections", "version": 1, "after": 0}
    assert gone.scrubbed(event) is event
    assert gone.scrubbed(head) is head
    assert gone.scrubbed({**event, "title": "born"})["title"] == ""
