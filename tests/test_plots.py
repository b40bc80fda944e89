"""Pictures: what is drawn is what was answered, and no file is harmed."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import environment, fail, newest_lines, succeed
from matplotlib.figure import Figure

from streamdp.cli.plot import check_picture
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit
from streamdp.plots import (
    Answered,
    Clock,
    names_of,
    prominent,
    read_answers,
    stack,
    streamgraph,
)
from streamdp.plots.stream import smoothed
from streamdp.plots.style import filled, look, plain, style, styles_of
from streamdp.records import Record
from streamdp.settings import Settings


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    start = path.read_bytes()[:24]
    assert start.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", start[16:24])
    return width, height


def axes() -> Any:
    return Figure(figsize=(12.0, 7.0), dpi=100).subplots()


def line(seq: int, cluster: int, revision: int = 0, **more: Any) -> str:
    answer = {"seq": seq, "cluster": cluster, "revision": revision, "time": None, "probability": 0.5, **more}
    return json.dumps(answer) + "\n"


@pytest.fixture
def folder(learned: Path, tmp_path: Path) -> Path:
    """A fresh folder with the files that the page names."""
    for name, there in (("out.jsonl", "out"), ("events.jsonl", "events"), ("st", "state")):
        (tmp_path / name).symlink_to(learned / there)
    return tmp_path


def test_a_stack_counts_the_newest_answers(learned: Path) -> None:
    newest = newest_lines((learned / "out").read_bytes())
    answered = read_answers(learned / "out")
    data = stack(answered, bins=50)
    assert data.counts.sum() == len(newest) == len(answered)
    assert data.found == len({each["cluster"] for each in newest})
    width = data.edges[1] - data.edges[0]
    expected: Counter[tuple[int, int]] = Counter()
    for each in newest:
        b = min(int((each["time"] - data.edges[0]) / width), 49)
        row = data.clusters.index(each["cluster"]) if each["cluster"] in data.clusters else -1
        expected[row % len(data.counts), b] += 1
    found = {place: int(data.counts[place]) for place in zip(*np.nonzero(data.counts), strict=True)}
    assert found == expected


def outline(band: Any, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper edge of a band at each place."""
    vertices = band.get_paths()[0].vertices
    place = np.abs(vertices[:, :1] - middle).argmin(axis=1)
    low, high = np.full(len(middle), np.inf), np.full(len(middle), -np.inf)
    np.minimum.at(low, place, vertices[:, 1])
    np.maximum.at(high, place, vertices[:, 1])
    return low, high


def test_bands_are_as_thick_as_the_counts(learned: Path) -> None:
    data = stack(read_answers(learned / "out"), bins=40)
    drawn = streamgraph(data, ax=axes(), smooth=0.0)
    middle = data.clock.on_axis(0.5 * (data.edges[1:] + data.edges[:-1]))
    bands = drawn.collections
    assert len(bands) == len(data.counts)
    totals = [f"({n:,})" for n in data.counts.sum(axis=1)]
    listed = [text.get_text().rpartition(" ")[2] for text in drawn.get_legend().get_texts()]
    assert listed[::-1] == [totals[-1], *totals[:-1]]
    for band, counts in zip(bands, [data.counts[-1], *data.counts[:-1]], strict=True):
        low, high = outline(band, middle)
        assert np.allclose(high - low, counts)
    below = -np.inf
    for band in bands:
        low, high = outline(band, middle)
        assert (low >= below - 1e-9).all()
        below = high


def test_the_highest_revision_counts_wherever_it_stands(tmp_path: Path) -> None:
    lines = [line(0, 0), line(1, 3, 2, probability=0.9), line(1, 0), line(1, 1, 1), line(0, 5, 1)]
    (tmp_path / "out").write_text("".join(lines) + '{"final_through":1}\n{"seq":2,"clu')
    answered = read_answers(tmp_path / "out")
    assert answered.seq.tolist() == [0, 1]
    assert answered.cluster.tolist() == [5, 3]


def test_a_table_says_what_the_lines_say(learned: Path, tmp_path: Path) -> None:
    succeed(learned, "consume", "--file", "in.jsonl", "--output", str(tmp_path / "out.csv"))
    lines, table = read_answers(learned / "out"), read_answers(tmp_path / "out.csv")
    for name in Answered.__dataclass_fields__:
        assert np.array_equal(getattr(lines, name), getattr(table, name), equal_nan=True), name
    whole = (tmp_path / "out.csv").read_bytes()
    (tmp_path / "torn.csv").write_bytes(whole[: whole.rindex(b",")])
    assert len(read_answers(tmp_path / "torn.csv")) >= len(lines) - 1


def stream(n: int = 600) -> list[Record]:
    words = ("storm coast flood", "vote count poll", "goal match cup")
    return [Record(f"{words[i % 3]} w{i % 5}", {"line": i + 1}, None, str(i)) for i in range(n)]


@pytest.mark.parametrize(
    ("settings", "held_records"), [(Settings(), 600), (Settings(retain=400, second_look=0), 400)]
)
def test_a_state_gives_what_it_remembers(settings: Settings, held_records: int) -> None:
    engine = Engine(settings, with_events=True)
    lines = engine.advance(stream()).lines
    held, whole = Answered.of_engine(engine), Answered.of(lines)
    assert len(whole) == 600
    assert held.seq[-1] == 599
    there = np.isin(whole.seq, held.seq)
    assert np.array_equal(held.cluster, whole.cluster[there])
    assert len(held) == held_records
    assert Clock.of(held).kind == "records"
    telling = {"storm", "coast", "flood", "vote", "count", "poll", "goal", "match", "cup"}
    assert all(telling.intersection(name.split()) for name in names_of(engine.clusters()).values())


def test_a_state_of_vectors_that_are_final_at_once(tmp_path: Path) -> None:
    data = b"".join(b'{"vector": [%d, 0.5], "time": %d}\n' % (9 * (i % 2), i) for i in range(300))
    succeed(tmp_path, "consume", "--file", "-", "--state", "st", "--beam", "1", stdin=data)
    succeed(tmp_path, "plot", "st")
    assert (tmp_path / "st-streamgraph.png").exists()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_few_records_can_be_drawn(n: int) -> None:
    answered = Answered.of(Engine(Settings()).advance(stream(n)).lines)
    streamgraph(stack(answered), ax=axes()).figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        ([1.7e9, np.nan, 1.7e9 + 60], "dates"),
        ([0.0, 5.0, 9.0], "seconds"),
        ([-5.0, 1.7e9, 1.7e9], "seconds"),
        ([1e39, 2e39, 3e39], "seconds"),
        ([np.nan] * 3, "records"),
        ([3.0, 3.0, 3.0], "records"),
    ],
)
def test_the_axis_follows_the_times(times: list[float], kind: str) -> None:
    answered = Answered.of_labels([0, 1, 1], times)
    assert Clock.of(answered).kind == kind
    drawn = streamgraph(stack(answered), ax=axes())
    drawn.figure.draw_without_rendering()
    told = {"dates": "event time (UTC)", "seconds": "event time (seconds)"}.get(kind, "number of the record")
    assert drawn.get_xlabel() == told


def test_dates_are_those_of_the_records() -> None:
    from matplotlib.dates import num2date

    (at,) = Clock("dates").on_axis([1_767_571_200.0])
    assert num2date(at).isoformat() == "2026-01-05T00:00:00+00:00"


def test_a_record_without_a_time_counts_as_it_comes() -> None:
    assert filled([np.nan, 2.0, np.nan, np.nan, 5.0]).tolist() == [2.0, 2.0, 2.0, 2.0, 5.0]


def test_the_prominent_are_the_largest_and_the_growing() -> None:
    labels = [0] * 500 + [1] * 300 + [2] * 150 + [3] * 10 + [4] * 40
    assert prominent(Answered.of_labels(labels), 3) == [0, 1, 2]
    late = [0] * 500 + [1] * 300 + [2] * 100 + [3] * 40 + [1] * 40 + [4] * 20
    assert set(prominent(Answered.of_labels(late * 3), 3)) >= {0, 1}
    frozen = Answered.of_labels([-1, -1, 0])
    assert prominent(frozen) == [0]
    assert stack(frozen, bins=1).counts.tolist() == [[1], [2]]


def test_smoothing_keeps_a_constant_and_the_ends() -> None:
    assert np.allclose(smoothed(np.full((2, 30), 4.0), 1.5), 4.0)
    assert smoothed(np.eye(3), 0.0).tolist() == np.eye(3).tolist()


def test_styles_differ_and_stay() -> None:
    assert len({style(i) for i in range(28)}) == 28
    labels = [3, 10, 17, 40, 41]
    styles = styles_of(labels)
    assert len(set(styles.values())) == len(labels)
    assert {c: s for c, s in styles_of([*labels, 90]).items() if c in styles} == styles


def test_texts_are_shown_as_they_are() -> None:
    assert plain("pay $5 for  $6") == r"pay \$5 for \$6"
    assert plain("a" * 50, 10) == "a" * 9 + "…"
    names = {0: "$x^2$ \\frac{", 1: "日本 😂"}
    data = stack(Answered.of_labels([0, 0, 1]))
    with look():
        streamgraph(data, names, axes()).figure.draw_without_rendering()


def test_refusals(folder: Path) -> None:
    (folder / "empty").write_text("")
    (folder / "prose").write_text("no JSON\n")
    for arguments, code, told in (
        (("nothing",), 66, "nothing: cannot be read"),
        (("empty",), 65, "no answer"),
        (("prose",), 65, "prose, line 1"),
        (("events.jsonl",), 65, "line 1: not an assignment"),
        (("out.jsonl", "--state", "empty"), 65, "empty"),
        (("out.jsonl", "--output", "no/where"), 73, "no does not exist"),
        (("out.jsonl", "--output", "no/where/"), 73, "no does not exist"),
        ((".",), 66, "no snapshot"),
    ):
        assert fail(folder, "plot", *arguments)[0] == code, arguments
        assert told in fail(folder, "plot", *arguments)[1]
    assert list(folder.rglob("*.png")) == []


def test_no_file_is_replaced_unasked(folder: Path) -> None:
    mine = folder / "out-streamgraph.png"
    mine.write_text("mine")
    assert fail(folder, "plot", "out.jsonl")[0] == 73
    assert [path.name for path in folder.glob("*.png")] == [mine.name]
    assert mine.read_text() == "mine"
    (folder / "p-streamgraph.png").symlink_to(folder / "out.jsonl")
    before = (folder / "out.jsonl").read_bytes()
    assert fail(folder, "plot", "out.jsonl", "--output", "p", "--overwrite")[0] == 64
    assert (folder / "out.jsonl").read_bytes() == before
    succeed(folder, "plot", "out.jsonl", "--overwrite")
    assert size_of(mine) == (1200, 700)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[plot\]'") as error:
        check_picture(tmp_path / "p", None, (), overwrite=False)
    assert error.value.exit_code == Exit.UNAVAILABLE


def test_matplotlib_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, streamdp.plots, streamdp.cli.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment(), timeout=180).returncode == 0
