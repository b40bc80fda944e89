"""``streamdp fit`` of files and of states, and a stream that begins where it ended."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import assignments, call, fail, parsed, start, succeed, wait_for, write_headlines

from streamdp.beam.search import inherit
from streamdp.offline.fit import fit
from streamdp.offline.plan import SAMPLERS, Plan
from streamdp.offline.samplers import METHODS
from streamdp.records import Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 300 headlines, their clustering and its snapshot."""
    folder = tmp_path_factory.mktemp("fitted")
    write_headlines(folder / "in.jsonl", 300)
    succeed(folder, "fit", "in.jsonl", "--budget", "40", "--output", "out", "--state", "state")
    return folder


def labels_of(lines: bytes) -> list[int]:
    """The cluster of every record."""
    return [line["cluster"] for line in assignments(lines)]


def truth(path: Path, n: int = 300) -> list[int]:
    """The true cluster of every record."""
    stories = [json.loads(line)["cluster"] for line in path.read_text().splitlines()[:n]]
    return [stories.index(story) for story in stories]


def write_vectors(path: Path, rows: np.ndarray, times: bool = False) -> None:
    """Vectors as JSON lines."""
    with path.open("w") as file:
        for i, row in enumerate(rows.tolist()):
            line: dict[str, Any] = {"vector": row, "id": i}
            if times:
                line["time"] = float(i)
            file.write(json.dumps(line) + "\n")


def groups(n: int = 60, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Points around three centres, and which centre each is at."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    return rng.normal(size=(n, 2)) * 0.3 + np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])[z], z


def test_fit_finds_the_stories(fitted: Path) -> None:
    lines = assignments((fitted / "out").read_bytes())
    assert [line["seq"] for line in lines] == list(range(300))
    found = [line["cluster"] for line in lines]
    assert agreement(truth(fitted / "in.jsonl"), found).nmi > 0.9
    seen: set[int] = set()
    for line in lines:
        assert line["new"] == (line["cluster"] not in seen)
        assert 0.0 < line["probability"] <= 1.0
        seen.add(line["cluster"])


def test_fit_is_repeatable_by_rounds(fitted: Path) -> None:
    again = succeed(fitted, "fit", "in.jsonl", "--budget", "40")
    assert again == (fitted / "out").read_bytes()
    other = succeed(fitted, "fit", "in.jsonl", "--budget", "10", "--seed", "7", "--chains", "2")
    assert other == succeed(fitted, "fit", "in.jsonl", "--budget", "10", "--seed", "7", "--chains", "2")


def test_show_reads_the_snapshot_of_a_fit(fitted: Path) -> None:
    found = labels_of((fitted / "out").read_bytes())
    clusters = parsed(succeed(fitted, "stories", "state", "--json", "--least", "1"))
    assert {c["label"]: c["records"] for c in clusters} == {k: found.count(k) for k in set(found)}


def test_refine_only_betters_and_keeps_labels(fitted: Path, tmp_path: Path) -> None:
    found = labels_of((fitted / "out").read_bytes())
    done = call(fitted, "fit", "state", "--budget", "20", "--state", str(tmp_path / "refined"))
    assert done.returncode == 0, done.stderr
    changes = parsed(done.stdout)
    for change in changes:
        assert found[change["seq"]] == change["was"] != change["cluster"]
        found[change["seq"]] = change["cluster"]
    clusters = parsed(succeed(tmp_path, "stories", "refined", "--json", "--least", "1"))
    assert {c["label"]: c["records"] for c in clusters} == {k: found.count(k) for k in set(found)}
    before = float(
        done.stderr.decode().split("streamdp: log joint ")[1].split(" nats before")[0].replace(",", "")
    )
    after = float(done.stderr.decode().rsplit("log joint ", 1)[1].split(" nats")[0].replace(",", ""))
    assert after >= before


def test_a_stream_begins_with_a_snapshot(fitted: Path, tmp_path: Path) -> None:
    write_headlines(tmp_path / "all.jsonl", 360)
    more = (tmp_path / "all.jsonl").read_text().splitlines(keepends=True)[300:]
    (tmp_path / "more.jsonl").write_text("".join(more))
    (tmp_path / "first").symlink_to(fitted / "state")
    run = ("consume", "--file", "more.jsonl", "--start-from", "first", "--state", "state", "--output", "out")
    succeed(tmp_path, *run)
    lines = assignments((tmp_path / "out").read_bytes())
    assert [line["seq"] for line in lines if line["revision"] == 0] == list(range(300, 360))
    # the stories go on: most records join clusters that the fit has found
    old = set(labels_of((fitted / "out").read_bytes()))
    stories = truth(tmp_path / "all.jsonl", 360)
    going_on = [story < 300 for story in stories[300:]]
    joined = [line["cluster"] in old for line in lines if line["revision"] == 0]
    assert np.mean(np.array(joined)[going_on]) > 0.8
    # and where the stream has a state of its own, that counts
    succeed(tmp_path, *run)
    code, message = fail(
        tmp_path,
        "consume",
        "--file",
        "more.jsonl",
        "--start-from",
        "first",
        "--prior",
        "uniform",
        "--output",
        "x",
    )
    assert code == 78
    assert "prior: was distance-dependent, is uniform" in message


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "gibbs", "--prior", "uniform"),
        ("--method", "gibbs", "--decay", "exponential", "--decay-scale", "200", "--concentration", "1"),
        ("--method", "gibbs", "--prior", "pitman-yor", "--start", "singletons", "--estimate", "vi"),
        ("--method", "split-merge", "--start", "one"),
        ("--method", "permutation", "--start", "sequential"),
        ("--method", "hybrid", "--chains", "2", "--start", "beam"),
        ("--method", "beam"),
        ("--method", "astar", "--queue", "20"),
        ("--method", "astar", "--queue", "50", "--prior", "uniform", "--look-ahead", "predictive"),
    ],
)
def test_methods(tmp_path: Path, options: tuple[str, ...]) -> None:
    rows, z = groups()
    write_vectors(tmp_path / "in.jsonl", rows, times=True)
    model = ("--likelihood", "gaussian", "--variance", "0.1", "--mean-variance", "10")
    out = succeed(tmp_path, "fit", "in.jsonl", "--budget", "60", *model, *options)
    assert agreement(z.tolist(), labels_of(out)).nmi > 0.95


RARE = ("normal-inverse-gamma", "gamma-poisson", "beta-bernoulli")
"""Kernels of links are compiled for nothing else with these, which test_nine_families.py fits, too."""


@pytest.mark.parametrize(
    "family",
    ["normal-inverse-wishart", "von-mises-fisher", *(pytest.param(f, marks=pytest.mark.slow) for f in RARE)],
)
def test_families(tmp_path: Path, family: str) -> None:
    rng = np.random.default_rng(4)
    z = rng.integers(0, 2, 80)
    centre = np.where(z[:, np.newaxis] == 0, 0.9, -0.9) * np.array([1.0, 1.0, -1.0, -1.0])
    if family == "gamma-poisson":
        rows = rng.poisson(10.0 + 9.0 * centre)
    elif family == "beta-bernoulli":
        rows = (rng.random((80, 12)) < 0.5 + 0.5 * np.tile(centre, 3)).astype(float)
    else:
        rows = centre + 0.1 * rng.normal(size=(80, 4))
        if family == "von-mises-fisher":
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    write_vectors(tmp_path / "in.jsonl", rows)
    out = succeed(tmp_path, "fit", "in.jsonl", "--method", "gibbs", "--budget", "40", "--likelihood", family)
    assert agreement(z.tolist(), labels_of(out)).nmi > 0.95


def test_distances(tmp_path: Path) -> None:
    rows, _ = groups(20)
    write_vectors(tmp_path / "in.jsonl", np.zeros_like(rows))
    near = np.linalg.norm(rows[:, np.newaxis] - rows[np.newaxis], axis=2)
    np.save(tmp_path / "d.npy", near)
    prior = ("--decay", "window", "--decay-scale", "2", "--concentration", "0.01")
    model = ("--likelihood", "gaussian", "--variance", "1", "--mean-variance", "1", *prior)
    for method in ("gibbs", "astar"):
        run = ("fit", "in.jsonl", "--method", method, "--budget", "50", "--distances", "d.npy", *model)
        found = labels_of(succeed(tmp_path, *run))
        # equal records: only the distances tell them apart
        assert agreement(groups(20)[1].tolist(), found).nmi > 0.95
    np.save(tmp_path / "d.npy", near[:5])
    code, message = fail(tmp_path, "fit", "in.jsonl", "--distances", "d.npy", *model)
    assert code == 65
    assert "has shape (5, 20), and there are 20 records" in message


def test_astar_proves_or_ends_in_time(tmp_path: Path) -> None:
    model = ("--likelihood", "gaussian", "--variance", "1", "--mean-variance", "1")
    run = ("fit", "in.jsonl", "--method", "astar", "--queue", "0", "--look-ahead", "admissible", *model)
    rows = np.random.default_rng(1).normal(size=(200, 2))
    write_vectors(tmp_path / "in.jsonl", rows[:8])
    done = call(tmp_path, *run)
    assert b" proved to be the most probable" in done.stderr.replace(b"enqueued;", b"")
    assert b"not proved" not in done.stderr
    write_vectors(tmp_path / "in.jsonl", rows)
    began = time.monotonic()
    done = call(tmp_path, *run, "--budget", "1s")
    assert time.monotonic() - began < 300.0
    assert done.returncode == 0, done.stderr
    assert b"not proved" in done.stderr
    assert len(assignments(done.stdout)) == 200


def test_records_in_any_order_are_sorted_by_time(tmp_path: Path) -> None:
    lines = [{"id": i, "time": 100 - i, "text": f"word{i % 2} and{i % 2}"} for i in range(10)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "no json\n")
    found = assignments(succeed(tmp_path, "fit", "in.jsonl", "--method", "beam"))
    assert [line["id"] for line in found] == list(range(9, -1, -1))
    assert len((tmp_path / "streamdp-rejects.jsonl").read_text().splitlines()) == 1


def test_a_signal_ends_with_what_was_found(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 300)
    process = start(tmp_path, "fit", "in.jsonl", "--budget", "1h", "--method", "gibbs", "--output", "out")
    wait_for((tmp_path / "out").exists, process)
    time.sleep(2.0)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert len(assignments((tmp_path / "out").read_bytes())) == 300


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        (("nowhere.jsonl",), 66, "nowhere.jsonl"),
        (("in.jsonl", "--budget", "5q"), 64, "neither a time"),
        (
            ("in.jsonl", "--method", "permutation", "--prior", "uniform"),
            65,
            "not for Uniform: take the method hybrid",
        ),
        (("in.jsonl", "--method", "split-merge", "--decay", "window"), 65, "not for DistanceDependent"),
        (
            ("in.jsonl", "--method", "astar", "--look-ahead", "guess"),
            64,
            "--look-ahead must be one of admissible",
        ),
        (("in.jsonl", "--likelihood", "beta-bernoulli"), 65, "each 0 or 1"),
        (("in.jsonl", "--likelihood", "dirichlet-multinomial"), 65, "no records to cluster"),
        (("in.jsonl", "--output", "in.jsonl"), 64, "name the same file"),
        (("in.jsonl", "--distances", "in.jsonl"), 65, "no matrix"),
    ],
)
def test_refusals(tmp_path: Path, options: tuple[str, ...], code: int, part: str) -> None:
    write_vectors(tmp_path / "in.jsonl", groups(10)[0])
    got, message = fail(tmp_path, "fit", *options)
    assert got == code
    assert part in message


def test_older_records_stay_where_they_are(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 300)
    succeed(tmp_path, "consume", "--file", "in.jsonl", "--retain", "100", "--state", "s", "--output", "out")
    done = call(tmp_path, "fit", "s", "--budget", "4")
    assert done.returncode == 0, done.stderr
    assert b"100 records can move; older ones stay in" in done.stderr
    labels = labels_of((tmp_path / "out").read_bytes())
    for change in parsed(done.stdout):
        assert change["seq"] >= 200
        assert change["cluster"] != change["was"]
    assert len(labels) >= 300
    assert call(tmp_path, "fit", "s", "--budget", "4").stdout == done.stdout


def test_clusters_of_older_records_that_are_one_are_merged(tmp_path: Path) -> None:
    rows = np.concatenate([np.tile([-2.0, 2.0], 5), np.random.default_rng(3).normal(size=390)])
    write_vectors(tmp_path / "in.jsonl", rows[:, np.newaxis])
    model = ("--likelihood", "gaussian", "--variance", "1", "--prior", "crp", "--beam", "1")
    run = ("consume", "--file", "in.jsonl", *model, "--retain", "50", "--state", "s", "--output", "out")
    succeed(tmp_path, *run)
    labels = np.array(labels_of((tmp_path / "out").read_bytes()))
    assert set(labels.tolist()) == {0, 1}
    done = call(tmp_path, "fit", "s", "--budget", "4")
    assert done.returncode == 0, done.stderr
    *changes, merged = parsed(done.stdout)
    assert all(change["seq"] >= 350 and change["cluster"] == 1 - change["was"] for change in changes)
    assert merged.pop("nats") > 50.0
    left = [change["was"] for change in changes]
    size = int((labels == 1).sum()) - left.count(1) + left.count(0)
    assert merged == {"event": "merged", "cluster": 1, "other": 0, "size": size}
    assert b"1 cluster of older records merged into others" in done.stderr
    assert b"50 records into 1 cluster in" in done.stderr
    assert b"nothing better was found" not in done.stderr


def test_refine_says_what_it_cannot_do(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 300)
    run = ("consume", "--file", "in.jsonl")
    succeed(tmp_path, *run, "--retain", "100", "--state", "s", "--output", "out")
    code, message = fail(tmp_path, "fit", "s", "--state", "t")
    assert code == 65
    assert "--state needs all records, and the state has let older ones go" in message
    assert not (tmp_path / "t").exists()
    code, message = fail(tmp_path, "fit", "s", "--hyper")
    assert code == 65
    assert "--hyper needs all records" in message
    succeed(tmp_path, *run, "--retain", "0", "--state", "none", "--output", "out2")
    code, message = fail(tmp_path, "fit", "none")
    assert code == 65
    assert "holds no records" in message


@pytest.mark.parametrize(("come_and_go", "prior"), [(True, "distance-dependent"), (False, "crp")])
def test_the_prior_of_texts_is_the_likelier_one(come_and_go: bool, prior: str) -> None:
    rng = np.random.default_rng(5)
    topics = np.arange(600) // 50 if come_and_go else rng.integers(12, size=600)
    texts = [" ".join(f"word{40 * t + w}" for w in rng.integers(40, size=6)) for t in topics]
    records = [Record(text, {}, time=float(i)) for i, text in enumerate(texts)]
    found = fit(records, Settings(), Plan(rounds=12, seconds=None))
    assert found.problem.settings.prior == prior
    assert agreement(found.labels, topics).nmi > 0.9
    assert f"prior {prior}, by the log joint so far: distance-dependent -" in found.solution.notes[0]


def test_undated_texts_start_where_they_are_likelier() -> None:
    """Few kinds that have most of their words in common: one cluster, where a stream begins."""
    rng = np.random.default_rng(3)
    kinds, words = rng.integers(4, size=600), [rng.permutation(200) for _ in range(4)]
    shares = 1.0 / np.arange(1, 201)
    texts = [
        " ".join(f"word{word}" for word in words[kind][rng.choice(200, 4, p=shares / shares.sum())])
        for kind in kinds
    ]
    rounds = Plan(rounds=60, seconds=None)
    found = fit(texts, Settings(), rounds)
    begun = fit(texts, Settings(), dataclasses.replace(rounds, start="beam"))
    assert found.solution.notes[0].startswith("prior crp from a random start, by the log joint so far: crp -")
    assert " from a random start" not in begun.solution.notes[0]
    assert found.log_joint > begun.log_joint + 50.0
    assert agreement(found.labels, kinds).nmi > agreement(begun.labels, kinds).nmi + 0.3


def test_labels_are_inherited_by_overlap() -> None:
    before = np.array([0, 0, 0, 4, 4, 7])
    names, minted = inherit(before, np.array([0, 0, 1, 1, 1, 2]))
    assert names.tolist() == [0, 4, 7]
    names, minted = inherit(before, np.array([0, 1, 2, 3, 3, 3]))
    assert names.tolist() == [0, 8, 9, 4]
    assert minted == 10


def test_every_method_that_samples_has_its_samplers() -> None:
    assert tuple(METHODS) == SAMPLERS


@pytest.mark.parametrize(
    ("option", "code", "why"),
    [
        (("--method", "gibbs"), 64, "--method is of a file, and state is a state"),
        (("--output", "out"), 64, "--output is of a file, and state is a state"),
        (("--beam", "3"), 78, "state: was made under other settings (beam: was 8, is 3)"),
    ],
)
def test_what_a_state_does_not_take(fitted: Path, option: tuple[str, ...], code: int, why: str) -> None:
    assert fail(fitted, "fit", "state", *option) == (code, f"streamdp: {why}\n")
