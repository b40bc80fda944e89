"""The defaults on real streams whose truth is known; the data is not part of the project."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import call

from streamdp.lines.base import Terms
from streamdp.lines.stream import LineStream
from tests.oracle.templates import tokens_of

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.mark.skipif(not DATA.exists(), reason=f"the public data sets are not at {DATA}")
@pytest.mark.parametrize(
    ("name", "least"), [("tweets_t", 0.94), ("tweets", 0.91), ("news_t", 0.91), ("news", 0.885)]
)
def test_first_announced_labels_agree_with_the_truth(tmp_path: Path, name: str, least: float) -> None:
    """Overall NMI (arithmetic) with no option but where the files are."""
    source = DATA / f"{name}.jsonl.gz"
    assert call(tmp_path, "consume", "--file", str(source), "--output", "out.jsonl").returncode == 0
    done = call(tmp_path, "score", "out.jsonl", "--truth", str(source), "--json")
    assert msgspec.json.decode(done.stdout)["first"]["nmi"] >= least


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason=f"the public data sets are not at {DATA}")
@pytest.mark.parametrize("path", sorted((DATA / "logs").glob("[A-Z]*.jsonl.gz")), ids=lambda path: path.name)
def test_predictives_of_the_lines_of_a_log_sum_to_one_at_most(path: Path) -> None:
    with gzip.open(path) as file:
        texts = [msgspec.json.decode(line)["text"] for line in file]
    stream, seen = LineStream(Terms()), dict[tuple[str, ...], str]()
    for start in range(0, len(texts), 200):
        for text in texts[start : start + 200]:
            seen[tokens_of(text)] = text
        list(stream.take(texts[start : start + 200]))
        logs = stream.score(list(seen.values())).answers["log_predictive"]
        assert 0.0 < np.exp(logs).sum() <= 1.0


LOGS = ("HDFS", "Apache", "BGL", "Zookeeper", "Hadoop", "HealthApp", "OpenSSH", "Android")


def exact(found: list[int], truth: list[str]) -> set[frozenset[int]]:
    """The groups of lines that are those of a true template."""

    def groups(labels: list[Any]) -> set[frozenset[int]]:
        members: dict[Any, list[int]] = defaultdict(list)
        for i, label in enumerate(labels):
            members[label].append(i)
        return {frozenset(each) for each in members.values()}

    return groups(found) & groups(truth)


@pytest.mark.skipif(not DATA.exists(), reason=f"the public data sets are not at {DATA}")
def test_templates_are_those_of_eight_logs_from_their_raw_lines(tmp_path: Path) -> None:
    """Mean group accuracy, first announced and newest, with no option but the format."""
    first = newest = 0.0
    for name in LOGS:
        with gzip.open(DATA / "logs" / f"{name}_2k.jsonl.gz", "rb") as file:
            records = [msgspec.json.decode(line) for line in file]
        (tmp_path / "in.log").write_text("".join(record["raw"] + "\n" for record in records))
        done = call(tmp_path, "consume", "in.log", "--format", "log")
        assert done.returncode == 0
        lines = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
        told = {line["position"]["line"]: line for line in lines if line.get("revision") == 0}
        last = {line["position"]["line"]: line for line in lines if "position" in line}
        truth = [record["cluster"] for record in records]
        for answers, which in ((told, "first"), (last, "newest")):
            found = exact([answers[i + 1]["cluster"] for i in range(2000)], truth)
            share = sum(map(len, found)) / 2000 / len(LOGS)
            first, newest = (first + share, newest) if which == "first" else (first, newest + share)
    assert first >= 0.88
    assert newest >= 0.95
