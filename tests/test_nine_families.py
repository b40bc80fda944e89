"""Every likelihood family from the command line: streams, crashes, what is shown, and offline work."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from commands import assignments, call, newest_lines, parsed, start, succeed
from nine_streams import REFUSED_AT, TOPICS, Model, N, kind_of, lines_of, models, write

from streamdp.reports.source import opened
from streamdp.scoring.agreement import agreement

RUN = ("consume", "--file", "in.jsonl", "--output", "out", "--state", "st")
TRUTH = [i % 3 for i in range(N)]


@pytest.fixture(scope="module", params=models())
def model(request: pytest.FixtureRequest) -> Model:
    assert isinstance(request.param, Model)
    return request.param


@pytest.fixture(scope="module")
def family(model: Model) -> str:
    return model.family


@pytest.fixture(scope="module")
def whole(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stream of a family and one run over it."""
    folder = tmp_path_factory.mktemp(model.family)
    write(folder, lines_of(model.family))
    succeed(folder, *RUN, *model.settings)
    return folder


def labels_of(output: bytes) -> list[int]:
    return [line["cluster"] for line in newest_lines(output)]


def test_the_kinds_are_found(whole: Path) -> None:
    found = labels_of((whole / "out").read_bytes())
    assert len(found) == N
    assert agreement(TRUTH, found).nmi > 0.8


def test_what_is_no_record_is_rejected_and_the_stream_goes_on(whole: Path, family: str) -> None:
    rejects = parsed((whole / "out.rejects.jsonl").read_bytes())
    expected = (REFUSED_AT + 1, kind_of(family).reason)
    assert [(line["position"]["line"], line["reason"]) for line in rejects] == [expected]
    ids = [line["id"] for line in newest_lines((whole / "out").read_bytes())]
    assert ids == [str(i) for i in range(N)] or ids == list(range(N))


def wait_for_answers(folder: Path, n: int) -> None:
    """Wait until so many records have been answered."""
    deadline = time.monotonic() + 300.0
    while time.monotonic() < deadline:
        if (folder / "out").exists() and (folder / "out").read_bytes().count(b'"revision":0') >= n:
            return
        time.sleep(0.01)
    raise TimeoutError(f"no {n} answers in {folder}")


def test_killed_twice(whole: Path, model: Model, tmp_path: Path) -> None:
    """Each time with answers written that no snapshot knows of."""
    lines = lines_of(model.family)
    for before, after in ((130, 160), (230, 260)):
        write(tmp_path, lines[:before])
        with start(tmp_path, *RUN, *model.settings, "--follow") as process:
            try:
                wait_for_answers(tmp_path, before - 1)
                with (tmp_path / "in.jsonl").open("a") as file:
                    file.writelines(lines[before:after])
                wait_for_answers(tmp_path, after - 1)
            finally:
                process.kill()
                process.communicate()
        assert process.returncode == -signal.SIGKILL
    write(tmp_path, lines)
    done = call(tmp_path, *RUN, *model.settings)
    assert done.returncode == 0, done.stderr
    assert b"resuming from record" in done.stderr
    for name in ("out", "out.rejects.jsonl"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name
    assert succeed(tmp_path, "stories", "st", "--json", "--least", "1") == succeed(
        whole, "stories", "st", "--json", "--least", "1"
    )


def test_clusters_are_told(whole: Path, family: str) -> None:
    clusters = sorted(opened(whole / "st")[1].clusters(), key=lambda cluster: -cluster.size)
    found = labels_of((whole / "out").read_bytes())
    assert {c.cluster: c.size for c in clusters} == {k: found.count(k) for k in set(found)}
    stories = parsed(succeed(whole, "stories", "st", "--json", "--least", "1"))
    assert {s["label"]: s["records"] for s in stories} == {c.cluster: c.size for c in clusters}
    centres = kind_of(family).centres
    for cluster in clusters[:3]:
        kind = TRUTH[found.index(cluster.cluster)]
        if centres is None:
            assert cluster.mean is None
            told = {
                word.removeprefix(word[:2]) if word[1] == "=" else word for word, _ in cluster.words or ()
            }
            assert told == set(TOPICS[kind].split())
        else:
            assert cluster.words is None
            scale = np.abs(centres).max()
            assert cluster.mean == pytest.approx(centres[kind], abs=0.1 * scale)


def test_fit_and_a_stream_that_begins_there(whole: Path, model: Model, tmp_path: Path) -> None:
    lines = lines_of(model.family)
    write(tmp_path, lines[:200])
    write(tmp_path, lines[200:], "more.jsonl")
    fit = ("fit", "in.jsonl", *model.options, "--budget", "8", "--method", "gibbs")
    succeed(tmp_path, *fit, "--output", "fitted", "--state", "f")
    fitted = labels_of((tmp_path / "fitted").read_bytes())
    assert agreement(TRUTH[:199], fitted).nmi > 0.7
    clusters = parsed(succeed(tmp_path, "stories", "f", "--json", "--least", "1"))
    assert {c["label"]: c["records"] for c in clusters} == {k: fitted.count(k) for k in set(fitted)}
    more = succeed(tmp_path, "consume", "--file", "more.jsonl", "--start-from", "f", "--state", "st")
    first = [line for line in assignments(more) if line["revision"] == 0]
    assert [line["seq"] for line in first] == list(range(199, N))
    assert agreement(TRUTH, fitted + labels_of_later(more)).nmi > 0.7


def labels_of_later(output: bytes) -> list[int]:
    newest = {line["seq"]: line["cluster"] for line in assignments(output)}
    return [newest[seq] for seq in range(199, N)]


def test_refine(whole: Path, tmp_path: Path) -> None:
    found = labels_of((whole / "out").read_bytes())
    done = call(whole, "fit", "st", "--budget", "4", "--state", str(tmp_path / "refined"))
    assert done.returncode == 0, done.stderr
    for change in parsed(done.stdout):
        assert found[change["seq"]] == change["was"] != change["cluster"]
        found[change["seq"]] = change["cluster"]
    clusters = parsed(succeed(tmp_path, "stories", "refined", "--json", "--least", "1"))
    assert {c["label"]: c["records"] for c in clusters} == {k: found.count(k) for k in set(found)}
    assert agreement(TRUTH, found).nmi > 0.9
