"""``streamdp state``: info, verify, export; and what a new release keeps of the old one."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import call, fail, parsed, succeed, write_headlines

from streamdp._version import __version__
from streamdp.engine import Engine
from streamdp.settings.load import stored_settings
from streamdp.state.snapshot import (
    StateFolder,
    newest,
)
from streamdp.state.stamp import FORMAT

RUN = ("consume", "in.jsonl", "--output", "out", "--state", "st")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A folder in which a stream of headlines has run."""
    write_headlines(tmp_path / "in.jsonl", 200)
    succeed(tmp_path, *RUN, "--retain", "100", "--second-look", "0")
    return tmp_path


def test_info(state: Path) -> None:
    told = succeed(state, "state", "info", "st").decode()
    rows = {line[:11].strip(): line[12:] for line in told.splitlines()}
    assert rows["written by"].startswith(f"streamdp {__version__}, consume, ")
    assert rows["holds"].startswith("200 records, ended; ")
    assert (rows["format"], rows["settings"]) == (str(FORMAT), "second_look 0; retain 100")
    found = json.loads(succeed(state, "state", "info", "st", "--json"))
    assert (found["seq"], found["release"], found["format"]) == (200, __version__, FORMAT)
    assert found["positions"] == json.loads(rows["position"])


def test_verify_tells_which_is_sound(state: Path) -> None:
    folder = StateFolder(state / "st")
    found = newest(state / "st", pytest.fail)
    assert found is not None
    folder.write(msgspec.structs.replace(found[0], seq=201), found[1][:-3])
    folder.write(msgspec.structs.replace(found[0], seq=202), found[1])
    folder.close()
    torn = state / "st" / f"snapshot-{202:015}.sdp"
    torn.write_bytes(torn.read_bytes()[:-1])
    done = call(state, "state", "verify", "st")
    assert done.returncode == 65
    lines = done.stdout.decode().splitlines()
    assert "202.sdp: damaged" in lines[0]
    assert "201.sdp: the state is damaged" in lines[1]
    assert "200.sdp: sound, 200 records of texts" in lines[2]
    one = succeed(state, "state", "verify", f"st/snapshot-{200:015}.sdp").decode()
    assert one == lines[2] + "\n"


def test_what_is_no_state(state: Path) -> None:
    assert fail(state, "state", "info", "in.jsonl")[0] == 65
    for command in ("info", "verify"):
        assert fail(state, "state", command, "nowhere")[0] == 66
    assert not (state / "nowhere").exists()


# ---------------------------------------------------------------- tables


def tables(folder: Path, form: str = "jsonl") -> dict[str, list[dict[str, Any]]]:
    """Tables by name, cells of CSV as texts."""
    if form == "csv":
        return {
            path.stem: list(csv.DictReader(path.read_text("utf-8").splitlines())) for path in folder.iterdir()
        }
    return {path.stem: parsed(path.read_bytes()) for path in folder.iterdir()}


def loaded(folder: Path) -> Engine:
    found = newest(folder / "st", pytest.fail)
    assert found is not None
    return Engine.loads(found[1], stored_settings(found[0].settings))


def test_export_of_texts(state: Path) -> None:
    done = call(state, "state", "export", "st", "--into", "tables")
    assert done.returncode == 0, done.stderr
    assert b"records (100 rows)" in done.stderr
    found, engine = tables(state / "tables"), loaded(state)
    sizes = {c.cluster: c.size for c in engine.clusters()}
    assert {row["cluster"]: row["size"] for row in found["clusters"]} == sizes
    assert [row["seq"] for row in found["records"]] == list(range(100, 200))
    held = engine.retained()
    assert held is not None
    assert [row["cluster"] for row in found["records"]] == held.labels.tolist()
    assert sum(row["count"] for row in found["record_words"]) == held.batch.counts.sum()
    given = [json.loads(line) for line in (state / "in.jsonl").read_text().splitlines()]
    assert all(row["word"] in given[row["seq"]]["text"].lower() for row in found["record_words"])
    assert all(row["time"] == given[row["seq"]]["time"] for row in found["records"])
    for row in found["clusters"]:
        first, last = (given[row[name]]["time"] for name in ("first_seq", "last_seq"))
        assert (row["first_time"], row["last_time"]) == (first, last)
    for name in ("cluster_words", "cluster_samples"):
        ranks = defaultdict(list)
        for row in found[name]:
            ranks[row["cluster"]].append(row["rank"])
        assert all(own == [*range(1, len(own) + 1)] for own in ranks.values())
    assert {type(cell) for rows in found.values() for row in rows for cell in row.values()} <= {
        int, float, str, type(None)
    }  # fmt: skip
    assert {row["name"]: json.loads(row["value"]) for row in found["settings"]}["retain"] == 100
    first = found["clusters"][0]["cluster"]
    words = [(row["word"], row["count"]) for row in found["cluster_words"] if row["cluster"] == first]
    assert [list(pair) for pair in words] == next(
        [[*pair] for pair in c.words or ()] for c in engine.clusters() if c.cluster == first
    )
    succeed(state, "state", "export", "st", "--into", "csv", "--format", "csv")
    cells = tables(state / "csv", "csv")
    assert cells.keys() == found.keys()
    for name, rows in found.items():
        as_text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
        assert cells[name] == as_text, name
    assert fail(state, "state", "export", "st", "--into", "tables")[0] == 73


def test_export_of_vectors_and_lines(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(3).tolist()
    data = "".join(
        json.dumps({"features": {"b": x, "a": y}, "time": i}) + "\n" for i, (x, y) in enumerate(rows)
    )
    (tmp_path / "in.jsonl").write_text(data)
    succeed(tmp_path, *RUN, "--warmup", "20", "--prior", "crp")
    succeed(tmp_path, "state", "export", "st", "--into", "tables")
    found = tables(tmp_path / "tables")
    values = {(row["seq"], row["name"]): row["value"] for row in found["record_values"]}
    assert values == {(i, name): row["ba".index(name)] for i, row in enumerate(rows) for name in "ab"}
    assert {row["name"] for row in found["cluster_means"]} == {"a", "b"}
    (tmp_path / "in.log").write_text("".join(f"GET /cart/{i} 200 ok\n" for i in range(30)))
    succeed(tmp_path, "consume", "in.log", "--format", "log", "--output", "o", "--state", "lines")
    succeed(tmp_path, "state", "export", "lines", "--into", "log")
    found = tables(tmp_path / "log")
    assert [row["template"] for row in found["clusters"]] == ["GET /cart/<num> <num> ok"]
    assert len(found["records"]) == 30
    assert "record_words" not in found
