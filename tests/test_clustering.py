"""Data frames in, data frames out; and what speaks for two records being together, against sums by hand."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from feeds import headlines
from oracle.families import Categorical, HierarchicalPitmanYor

import streamdp
from streamdp import Clustering, Engine, Evidence, Record, Settings
from streamdp.encode.batch import Batch
from streamdp.errors import ConfigError
from streamdp.records.columns import Columns

KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def columns(n: int = 700, seed: int = 3) -> dict[str, list[Any]]:
    records = headlines(n, seed)
    return {"text": [str(r.value) for r in records], "time": [r.time for r in records]}


def as_pandas(frame: Any) -> pd.DataFrame:
    return frame if isinstance(frame, pd.DataFrame) else pa.table(frame).to_pandas()


@pytest.fixture(scope="module")
def found() -> Clustering:
    return streamdp.cluster(pd.DataFrame(columns()), "text")


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_comes_back_as_the_same_kind_with_labels_in_order(kind: str, found: Clustering) -> None:
    given = columns()
    order = np.random.default_rng(0).permutation(len(given["text"]))
    mixed = KINDS[kind]({name: [values[i] for i in order] for name, values in given.items()})
    got = streamdp.cluster(mixed, "text")
    assert isinstance(got.frame, type(mixed))
    assert isinstance(got.stories, type(mixed))
    assert as_pandas(got.frame)["text"].tolist() == [given["text"][i] for i in order]
    for name in ("label", "probability", "lasting_probability"):
        expected = found.frame[name].to_numpy()[order]
        assert as_pandas(got.frame)[name].to_numpy() == pytest.approx(expected, nan_ok=True)
    back = np.append(np.argsort(order), -1)  # the rows that caused it are called by where they stand
    assert as_pandas(got.frame)["stable_since"].tolist() == back[found.frame["stable_since"]][order].tolist()
    assert as_pandas(got.stories).equals(as_pandas(found.stories)) or kind != "pandas"
    assert as_pandas(got.stories)["title"].tolist() == found.stories["title"].tolist()


def test_labels_are_those_of_the_stream_and_since_is_when_they_came(found: Clustering) -> None:
    engine, newest, since = Engine(), dict[int, int](), dict[int, int]()
    records = headlines(700, 3)
    for number, answers in enumerate([*(engine.advance([r]) for r in records), engine.finish()]):
        for answer in answers.assignments:
            if newest.get(answer.seq) != answer.cluster:
                newest[answer.seq], since[answer.seq] = answer.cluster, min(number, len(records) - 1)
    assert found.frame["label"].tolist() == [newest[i] for i in range(700)]
    assert found.frame["stable_since"].tolist() == [since[i] for i in range(700)]
    assert any(since[i] != i for i in since)


def test_stories_are_those_of_the_labels(found: Clustering) -> None:
    assert Counter(found["label"]) == dict(zip(found.stories["story"], found.stories["records"], strict=True))
    assert len(found) == 700
    assert found.groupby("label").size().sum() == 700  # what the frame can do
    assert pl.DataFrame(found).shape == (700, 6)


def test_an_index_of_pandas_stays() -> None:
    frame = pd.DataFrame(columns(30), index=[i % 4 for i in range(30)])
    found = streamdp.cluster(frame, "text")
    assert found.frame.index.equals(frame.index)
    assert found["label"].tolist() == streamdp.cluster(frame.reset_index(), "text")["label"].tolist()
    assert list(frame.columns) == ["text", "time"]  # what was given is as it was


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("missing", [(0,), (0, 1, 5), (3,), (5,), range(6)])
def test_rows_without_a_time_are_placed_and_the_others_keep_theirs(kind: str, missing: Any) -> None:
    texts = ["storm over the coast", "coast storm", "tax vote", "vote on taxes", "storm coast", "late vote"]
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (3, 1, 2, 4, 6, 5)]  # in no order
    when = [None if row in missing else day for row, day in enumerate(days)]
    found = streamdp.cluster(KINDS[kind]({"text": texts, "when": when}), "text", time_field="when")
    assert (as_pandas(found.frame)["label"] >= 0).all()
    timed = [day for day in when if day]
    times = as_pandas(found.stories)
    for side, extreme in (("began", min), ("last", max)):
        said = sorted(datetime.fromisoformat(each) for each in times[side].dropna())
        assert (extreme(said) if said else None) == (extreme(timed) if timed else None)


WARNED = r"^row 1 cannot be clustered: column 'text' holds nothing; nor can row 2; their labels are -1$"


def test_what_cannot_be_clustered_has_no_label() -> None:
    frame = pl.DataFrame({"text": ["coast storm", None, "", "storm at the coast"]})
    with pytest.warns(UserWarning, match=WARNED):
        found = streamdp.cluster(frame, "text")
    assert found["label"].to_list() == [0, -1, -1, 0]
    assert found["probability"].is_null().to_list() == [False, True, True, False]
    with pytest.raises(ValueError, match="row 1 cannot be clustered"):
        found.explain(0, 1)
    with pytest.raises(IndexError, match="there is no row 4: there are 4"):
        found.explain(0, 4)
    for row in ("a", 0.5, None):
        with pytest.raises(TypeError, match=r"^a row is called by its number, from 0 on, not by"):
            found.explain(0, row)  # type: ignore[arg-type]
    assert len(streamdp.cluster(frame.head(0), "text").stories) == 0


@pytest.mark.parametrize(
    ("frame", "column", "given", "told"),
    [
        (pl.DataFrame({"text": ["a"]}), "txt", {}, "the frame has no column 'txt'; it has text"),
        (["a text"], "text", {}, "columns are named of a data frame.* and this is a list"),
        (pd.DataFrame([["a", 1, 2]], columns=["text", "n", "n"]), "text", {}, "names of their own: .*'n' 2"),
        (pa.table([["a"], ["b"]], ["text", "text"]), "text", {}, "names of their own: .*'text' 2"),
        (pd.DataFrame({0: ["a"], 1: ["b"]}), "text", {}, "^the frame has no column 'text'; it has 0, 1$"),
        (pd.DataFrame({"text": ["a"]}), 0, {}, "^the frame has no column 0; it has text$"),
        (pl.DataFrame({"text": ["a"]}), [], {}, "^columns: name a column"),
        (pl.DataFrame({"time": [1.0]}), ["time"], {}, "^columns: name a column"),
        (pl.DataFrame({"text": [b"a"]}), "text", {}, "'text' holds neither .* but bytes: decode them"),
        (pl.DataFrame({"text": ["a"], "label": [1]}), "text", {}, "has a column 'label' already"),
        (pl.DataFrame({"text": ["a"]}), "text", {"time_field": "at"}, "no column 'at' for times"),
        (
            pl.DataFrame({"a": [1.0]}),
            "a",
            {},
            "holds neither texts nor vectors, but numbers: name features as",
        ),
        (pl.DataFrame({"text": ["a"]}), "text", {"beem": 3}, "^beem: no such setting, did you mean beam\\?$"),
        (["a text"], None, {"beem": 3}, "^beem: no such setting, did you mean beam\\?$"),
        (["a text"], None, {"beam": 3, "settings": Settings()}, "^beam: say it in settings, or leave"),
    ],
)
def test_what_is_wrong_is_said(frame: Any, column: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, ConfigError), match=told):
        streamdp.cluster(frame, column, **given)


@pytest.mark.parametrize(
    ("stray", "shown"),
    [
        (["a list"], "list ['a list'], which is no text"),
        (b"bytes", "bytes b'bytes', which is no text"),
        ({"a": 1}, "dict {'a': 1}, which is no text"),
        (3, "int 3, which is no text"),
    ],
)
@pytest.mark.parametrize("row", [0, 1])
def test_a_value_that_is_no_text_costs_its_row_alone(stray: Any, shown: str, row: int) -> None:
    texts: list[Any] = ["coast storm", "storm at the coast", "storm coast"]
    texts[row] = stray
    said = f"row {row} cannot be clustered: column 'text' holds {shown}; its label is -1"
    with pytest.warns(UserWarning, match=f"^{re.escape(said)}$"):
        found = streamdp.cluster(pd.DataFrame({"text": texts}), "text")
    assert found["label"].tolist() == [-1 if n == row else 0 for n in range(3)]


def test_a_row_of_vectors_or_features_that_are_none_has_no_label() -> None:
    frame = pd.DataFrame({"v": [[1.0, 2.0], None, "text", [1.0, None]] * 3, "n": [1.0, b"x", 1.0, 1.0] * 3})
    rows = "nor can rows 2, 3, 5, 6, 7 and 3 more; their labels are -1$"
    with pytest.warns(UserWarning, match=f"^row 1 cannot be clustered: column 'v' holds nothing; {rows}"):
        assert streamdp.cluster(frame, "v")["label"].tolist() == [0, -1, -1, -1] * 3
    with pytest.warns(UserWarning, match="^row 1 cannot be .*: a column holds what is no number"):
        assert streamdp.cluster(frame, ["n"])["label"].tolist() == [0, -1, 0, 0] * 3
    with pytest.warns(UserWarning, match=r"row 0 cannot be clustered: column 'v\[1\]' is null"):
        streamdp.cluster(pd.DataFrame({"v": [[1.0, None], [1.0, 2.0]]}), "v")


def test_half_of_a_surrogate_pair_costs_nothing() -> None:
    frame = pd.DataFrame({"text": pd.Series(["coast \ud800 storm", "storm at the coast"], dtype=object)})
    assert streamdp.cluster(frame, "text")["label"].tolist() == [0, 0]
    answers = Engine(Settings(keep=("by",))).advance([{"text": "coast storm", "by": ["\udfff", 3]}])
    assert answers.assignments[0].keep == {"by": ["\ufffd", 3]}


@pytest.mark.parametrize("name", [0, "id", "time", "vector", "features", "text"])
def test_a_column_may_have_any_name(name: Any) -> None:
    texts = ["coast storm", "storm at the coast", "vote on taxes"]
    found = streamdp.cluster(pd.DataFrame({name: texts, "other": texts}), name)
    assert found["label"].tolist() == [0, 0, 1]
    vectors = pd.DataFrame({name: [[0.0, 0.0], [9.0, 9.0]] * 20, 7: 1.0})
    assert streamdp.cluster(vectors, name)["label"].tolist() == [0, 1] * 20
    assert len(streamdp.cluster(vectors[[7]], [7, 7])) == 40


def test_without_narwhals_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals.stable.v1", None)
    for use in (lambda frame: streamdp.cluster(frame, "text"), Engine().advance, streamdp.fit):
        for kind in KINDS.values():
            with pytest.raises(
                ImportError, match=r"^data frames need one more package: pip install narwhals$"
            ):
                use(kind({"text": ["a"]}))


@pytest.mark.parametrize(
    "given", [3, None, "storm over the coast", b"storm", {"text": "storm"}, Record("storm")]
)
def test_a_record_by_itself_is_no_list_of_them(given: Any) -> None:
    for use in (Engine().advance, Engine().score, streamdp.fit, lambda given: list(streamdp.cluster(given))):
        with pytest.raises(TypeError, match=f"^records come in a list .*, not as {type(given).__name__}"):
            use(given)


def test_a_clustering_says_where_its_frame_is(found: Clustering) -> None:
    for use in (pd.DataFrame, list):
        with pytest.raises(TypeError, match=r"^this is no frame, but has one: use its attribute frame$"):
            use(found)


def test_vectors_features_and_lines() -> None:
    points = np.random.default_rng(1).normal(size=(120, 2)) + 20.0 * (np.arange(120) % 2)[:, None]
    frame = pl.DataFrame({"x": points[:, 0], "y": points[:, 1], "v": points.tolist()})
    truth = [i % 2 for i in range(120)]
    assert streamdp.cluster(frame, "v")["label"].to_list() == truth
    assert streamdp.cluster(frame, ["x", "y"])["label"].to_list() == truth
    lines = pd.DataFrame({"line": ["user 1 in", "disk full", "user 2 in", "disk full"] * 5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = streamdp.cluster(lines, "line", format="log")
    assert found["label"].tolist() == [0, 1, 0, 1] * 5
    assert found.stories["title"].tolist() == ["user <num> in", "disk full"]
    with pytest.raises(ValueError, match="lines of logs"):
        found.explain(0, 1)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_means_have_the_names_of_their_columns(kind: Any) -> None:
    points = np.random.default_rng(1).normal(size=(120, 2)) + 20.0 * (np.arange(120) % 2)[:, None]
    frame = kind({"warmth": points[:, 0], "damp": points[:, 1]})
    found = streamdp.cluster(frame, ["warmth", "damp"])
    assert isinstance(found.means, kind)
    assert list(found.means.columns) == ["label", "warmth", "damp"]
    for row, label in enumerate(found.means["label"].to_list()):
        means = [found.means[name].to_list()[row] for name in ("warmth", "damp")]
        assert means == pytest.approx(points[np.array(found["label"]) == label].mean(axis=0), abs=0.5)
    assert re.fullmatch(r"damp=\S+ warmth=\S+", found.stories["title"].to_list()[0])
    vectors = streamdp.cluster(pl.DataFrame({"v": points.tolist()}), "v")
    assert list(vectors.means.columns) == ["label", "0", "1"]
    with pytest.raises(ValueError, match="have no means: see stories"):
        streamdp.cluster(kind({"text": ["a storm", "the storm"]}), "text").means  # noqa: B018


LOG = """\
2026-01-02 10:00:00 INFO app: user 1 in
2026-01-02 10:00:01 ERROR app: disk full
java.lang.IllegalStateException: bad 7
\tat com.x.A.b(A.java:3)
\tat com.x.A.c(A.java:4)
2026-01-02 10:00:02 WARN app: user 2 in
2026-01-02 10:00:03 ERROR app: disk full
Traceback (most recent call last):
  File "a.py", line 3, in f
ValueError: no
2026-01-02 10:00:04 INFO app: user 3 in
java.lang.Broken: worse 8
\tat java.util.B.c(B.java:3)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_a_log_are_read_as_those_of_a_file(kind: str, tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(LOG)
    run = streamdp.Run(str(tmp_path / "app.log"), Settings(format="log"))
    answers = {line.position["line"] - 1: line for batch in run for line in batch.assignments}
    lines = LOG.splitlines()
    found = streamdp.cluster(KINDS[kind]({"line": lines}), "line", format="log")
    assert isinstance(found.frame, KINDS[kind] if kind != "pyarrow" else pa.Table)
    rows = as_pandas(found.frame).to_dict("records")
    assert sorted(answers) == [0, 1, 2, 5, 6, 7, 10, 11]
    assert rows[12]["template"] == answers[11].template == "java.lang.Broken-Error@java.util.B.c: worse <num>"
    for row, line in answers.items():
        assert (rows[row]["label"], rows[row]["stable_since"]) == (line.cluster, row)
    assert [rows[row]["template"] for row in (0, 1, 5, 9)] == [
        *("user <num> in", "disk full", "user <num> in"),
        "ValueError@a.py#f: no",
    ]
    for row, before in ((3, 2), (4, 2), (8, 7), (9, 7), (12, 11)):  # they go on with the line before
        assert {**rows[row], "line": ""} == {**rows[before], "line": ""}
    began = as_pandas(found.stories).set_index("title")["began"]
    assert began["user <num> in"] == "2026-01-02T10:00:00Z"


def test_times_of_a_log_without_years_and_of_a_column() -> None:
    lines = ["Dec 31 23:59:58 host app[1]: user 1 in", None, "Jan  1 00:00:01 host app[1]: user 2 in"]
    with pytest.warns(UserWarning, match="^row 1 cannot be clustered: column 'line' holds nothing"):
        found = streamdp.cluster(pl.DataFrame({"line": lines}), "line", format="log")
    assert found["template"].to_list() == ["user <num> in", None, "user <num> in"]
    began, last = found.stories["began", "last"].row(0)
    assert int(last[:4]) == int(began[:4]) + 1
    times = [datetime(2026, 5, day, tzinfo=UTC) for day in (1, 2, 3)]
    dated = pl.DataFrame({"line": [lines[0], lines[2], lines[2]], "at": times})
    found = streamdp.cluster(dated, "line", format="log", time_field="at")
    assert found.stories["began", "last"].row(0) == ("2026-05-01T00:00:00Z", "2026-05-03T00:00:00Z")
    with pytest.raises(ValueError, match="has a column 'template' already"):
        streamdp.cluster(pl.DataFrame({"line": lines, "template": lines}), "line", format="log")


# ---------------------------------------------------------------- evidence


def by_hand(one: list[str], other: list[str], beta: float, size: int) -> float:
    """log p of two texts in one cluster less that of each in its own: one token after the other of an urn."""

    def log_p(tokens: list[str]) -> float:
        counts, total = Counter[str](), 0.0
        for n, token in enumerate(tokens):
            total += math.log((beta + counts[token]) / (beta * size + n))
            counts[token] += 1
        return total

    return log_p(one + other) - log_p(one) - log_p(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("storm coast", "coast storm"),
        ("storm coast rain", "rain"),
        ("goal", "vote tax"),
        ("a1 a1 b1", "a1 c1"),
    ],
)
def test_evidence_is_the_sum_by_hand_and_a_word_what_it_is_less_without(one: str, other: str) -> None:
    family = streamdp.likelihoods.DirichletMultinomial(beta=0.4, vocabulary_size=12)
    engine = Engine(Settings(prior="crp", stop_words="none"), likelihood=family)
    engine.advance(["storm coast rain", "goal match", "vote tax law", "a1 b1 c1"])
    before, found = engine.dumps(), engine.together(one, other)
    a, b = one.split(), other.split()
    whole = by_hand(a, b, 0.4, 12)
    assert found.nats == pytest.approx(whole, abs=0.006)
    expected = {
        word: whole - by_hand([w for w in a if w != word], [w for w in b if w != word], 0.4, 12)
        for word in {*a, *b}
    }
    assert dict(found.words) == pytest.approx(expected, abs=0.011)
    assert [abs(by) for _, by in found.words] == sorted((abs(by) for _, by in found.words), reverse=True)
    assert engine.dumps() == before


def test_of_two_clusterings_of_two_records_it_is_the_odds() -> None:
    """Under CRP(1) both are as likely before; so it is the difference of their log joints."""
    family = streamdp.likelihoods.Gaussian(2, variance=1.0, mean_variance=9.0)
    prior = streamdp.priors.CRP(1.0)
    engine = Engine(prior=prior, likelihood=family)
    rows = [[0.5, 1.0], [0.0, 2.0]]
    engine.advance(rows)
    apart = family.log_marginal(rows[:1]) + family.log_marginal(rows[1:])
    found = engine.together(*rows)
    assert found == Evidence(
        nats=round(family.log_marginal(rows) - apart, 2), words=[("meaning", found.nats)]
    )


def pair_of(engine: Engine, *records: Any) -> Batch:
    """Two records as the model has them."""
    scorer = engine.stream().encoded.encoder.for_scoring()  # type: ignore[union-attr]
    assert not scorer.add(Columns.of([*records]))
    return scorer.take(np.zeros(2))


def test_of_texts_it_is_the_family_of_the_stream_both_ways() -> None:
    engine = Engine()
    records = [*headlines(300, 5), Record("short"), Record("storm coast"), Record("storm coast")]
    engine.advance(records)
    assert engine.search is not None
    family: Any = engine.search.likelihood
    base = dict(enumerate(family.measure(engine.search.words.learned).tolist()))
    numbers = family.base_concentration, family.word_discount, family.short_concentrations
    oracle = HierarchicalPitmanYor(*numbers)
    assert numbers[2]
    for one, other in zip(records[250:], records[243:], strict=False):
        batch = pair_of(engine, one, other)
        x, y = (
            [(int(w), int(n)) for w, n in zip(part.words, part.counts, strict=True)]
            for part in (batch.slice(0, 1), batch.slice(1, 2))
        )
        ways = [(x, y), (y, x)]
        whole = sum(oracle.log_predictive([a], b, base) - oracle.log_predictive([], b, base) for a, b in ways)
        assert engine.together(one, other).nats == pytest.approx(whole / 2.0, abs=0.006)
    same = engine.together("storm coast", "storm coast")
    assert same.nats > 2.0
    assert all(by > 0.0 for _, by in same.words)  # a word less does not make a short text of a longer one


def test_of_fields_and_of_a_vector_beside_them() -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "os": [("mac", "linux", None)[i % 3] for i in range(90)],
            "shell": [("fish", "bash")[i % 2] for i in range(90)],
            "v": (rng.normal(size=(90, 4)) + 3.0 * np.eye(4)[np.arange(90) % 2]).tolist(),
        }
    )
    found = streamdp.cluster(frame, ["os", "shell", "v"], fields=("os", "shell"), vector_field="v")
    engine = Engine(Settings(fields=("os", "shell"), vector_field="v"))
    engine.advance(list(frame.iter_rows(named=True)))
    engine.finish()
    assert engine.search is not None
    family: Any = engine.search.likelihood
    base = dict(enumerate(family.bag.measure(engine.search.words.learned).tolist()))
    oracle, words = Categorical(family.bag.beta), engine.stream().encoded.encoder.words  # type: ignore[union-attr]
    for a, b in ((0, 6), (0, 1), (0, 2), (2, 5), (3, 4)):
        evidence = found.explain(a, b)
        rows = [frame.row(i, named=True) for i in (a, b)]

        def record(row: dict[str, Any], left_out: str = "") -> list[tuple[int, int]]:
            pairs = [(f, f"{f}={row[f]}") for f in ("os", "shell") if row[f] and f"{f}={row[f]}" != left_out]
            return [(0, 1), *((words.index(name), 1) for pair in pairs for name in pair)]

        def log_odds(rows: list[dict[str, Any]], left_out: str = "") -> float:
            x, y = (record(row, left_out) for row in rows)
            return oracle.log_predictive([x], y, base) - oracle.log_predictive([], y, base)

        told = dict(evidence.words)
        meaning = told.pop("meaning")
        whole = log_odds(rows)
        assert evidence.nats == pytest.approx(whole + meaning, abs=0.02)
        assert told == pytest.approx({name: whole - log_odds(rows, name) for name in told}, abs=0.011)
        assert {*told} == {f"{f}={row[f]}" for row in rows for f in ("os", "shell") if row[f]}
        known = [Record({name: value for name, value in row.items() if value}) for row in rows]
        vectors = pair_of(engine, *known).vectors
        assert vectors is not None
        alone = sum(family.vector.log_marginal([v]) for v in vectors)
        assert meaning == pytest.approx(family.vector.log_marginal([*vectors]) - alone, abs=0.011)


# ---------------------------------------------------------------- Arrow


def test_answers_and_stories_are_tables_of_arrow() -> None:
    engine = Engine(with_events=True)
    records = [
        Record(str(r.value), {"file": "a", "line": i}, r.time, f"n{i}", keep={"source": ("press", 7)[i % 2]})
        for i, r in enumerate(headlines(300, 4), 1)
    ]
    answers = engine.advance(records)
    rows = pa.table(answers).to_pylist()
    lines = [msgspec.to_builtins(answer) for answer in answers.assignments]
    assert [row["source"] for row in rows] == [str(line.pop("keep")["source"]) for line in lines]
    expected = [line | line.pop("position") for line in lines]
    assert [{name: row[name] for name in line} for row, line in zip(rows, expected, strict=True)] == expected
    assert pl.DataFrame(answers).to_dicts() == rows
    assert pd.DataFrame.from_arrow(answers)["cluster"].tolist() == [row["cluster"] for row in rows]
    empty = pa.table(engine.advance([]))
    assert empty.num_rows == 0
    assert empty.schema.field("seq").type == pa.int64()
    stories = engine.stories()
    for found in (stories, stories.themed(3), stories[:0]):
        assert pa.table(found).to_pylist() == found.rows()
        assert pl.DataFrame(found).to_dicts() == found.rows()
        assert duckdb.sql("select * from found").to_arrow_table().to_pylist() == found.rows()
    fitted = streamdp.fit(["storm coast", "coast storm", "late goal"])
    assert pa.table(fitted)["cluster"].to_pylist() == fitted.labels.tolist()
    assert duckdb.sql("select cluster from fitted").fetchall() == [(label,) for label in fitted.labels]
    one_each = "select cluster, count(*) from answers group by all order by all"
    assert duckdb.sql(one_each).fetchall() == sorted(Counter(row["cluster"] for row in rows).items())


def test_stories_are_still_a_list() -> None:
    engine = Engine()
    engine.advance(headlines(100, 4))
    stories = engine.stories()
    assert stories == list(stories) == engine.stories() != []
    assert stories[0] in stories
    assert stories[-1] == next(reversed(stories))
    assert isinstance(stories[1:], streamdp.Stories)
    assert bool(stories)
    assert not stories[:0]
