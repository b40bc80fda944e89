import csv
import gzip
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streamdp_connectors.files.lines import Lines, leaves_quote_open
from streamdp_connectors.files.source import FileSource
from streamdp_connectors.protocol import Replayable, Source, SourceError, Watched, share_of

from streamdp.records import Raw

Rows = list[tuple[int, bytes]]


def seen(records: list[Raw]) -> Rows:
    return [(record.position["line"], record.data) for record in records]


def place(source: FileSource) -> tuple[int, int]:
    """The line and the offset of a source."""
    positions = source.positions()
    assert positions["file"] == source.path
    return positions["line"], positions["offset"]


def go_on(source: FileSource, positions: dict[str, Any]) -> Sequence[Raw]:
    """Seek and read: the length of a packed file shows only then."""
    source.seek(positions)
    return source.read(1, 0.0)


def drain(source: FileSource, batch: int = 1000) -> Rows:
    rows: Rows = []
    while not source.at_end:
        rows += seen(source.read(batch, 0.0))
    source.close()
    return rows


def read(path: Path, data: bytes, format: Any = "jsonl", **options: Any) -> Rows:
    path.write_bytes(data)
    return drain(FileSource(str(path), format, **options))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in"


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"a", [(1, b"a")]),
        (b"a\nb\n", [(1, b"a"), (2, b"b")]),
        (b"a\r\n \r\n\n b\r\r\nc", [(1, b"a"), (4, b" b\r"), (5, b"c")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [(1, b"a"), (2, b"\xef\xbb\xbfb")]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\na", [(2, b"a")]),
    ],
)
def test_lines(path: Path, data: bytes, rows: Rows) -> None:
    for format in ("jsonl", "text"):
        assert read(path, data, format) == rows
    assert read(path, gzip.compress(data[:2]) + gzip.compress(data[2:]) + b"\0" * 9) == rows


def test_record(path: Path) -> None:
    path.write_bytes(b"a\n")
    source = FileSource(str(path), clock=lambda: 12.5)
    assert source.read(9, 0.0) == [Raw(b"a", {"file": str(path), "line": 1}, 12.5)]
    assert source.read(9, 0.0) == []
    assert source.at_end


@given(st.binary(), st.lists(st.integers(1, 5)), st.integers(1, 9))
@example(b"a\nlong line\nb", [3, 3], 4)
def test_any_chunking_gives_the_same_lines(data: bytes, cuts: list[int], longest: int) -> None:
    lines = Lines(longest)
    blocks, at = [], 0
    for cut in cuts:
        blocks += lines.feed(data[at : at + cut]) if data[at : at + cut] else []
        at += cut
    blocks += lines.feed(data[at:]) + lines.finish()
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert [line for block in blocks for line in block.lines] == [line[:longest] for line in expected]
    assert sum(sum(map(len, block.lines)) + len(block.lines) + block.extra for block in blocks) == len(data)


CELL = st.text('a,"\n é', max_size=4)


@given(st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_rows_are_those_of_the_csv_module(tmp_path_factory: Any, rows: list[list[str]], end: str) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows([["x", "y"], *rows])
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    found = read(path, text.getvalue().encode(), "csv")
    assert [next(csv.reader([data.decode()])) for _, data in found] == rows
    physical = text.getvalue().split("\n")
    for line, data in found:
        assert physical[line - 1].startswith(data.decode().split("\n")[0])


@given(st.text('a,"', max_size=12).map(str.encode))
def test_quotes_stay_open_as_in_the_csv_module(line: bytes) -> None:
    try:
        next(csv.reader([line.decode() + "\n"], strict=True), None)
        unfinished = False
    except csv.Error as error:
        unfinished = "unexpected end" in str(error)
        if "expected after" in str(error):
            return  # malformed: rejected whichever way it is cut
    assert leaves_quote_open(line) == unfinished


def test_a_stray_quote_costs_one_row(path: Path) -> None:
    rows = [(2, b'"open,1'), (3, b"b,2"), (4, b"c,3")]
    assert read(path, b'x,y\n"open,1\nb,2\nc,3', "csv") == rows
    assert read(path, b'x,y\n"open,1\nb,2\nc,3\n', "csv", max_line=9) == rows


def test_csv_header(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf\n"id, no", x \n1,2\n')
    source = FileSource(str(path), "csv")
    assert source.header == ["id, no", "x"]
    assert place(source) == (2, 17)
    assert drain(source) == [(3, b"1,2")]
    path.write_bytes(b"a,b,a,a.1\n1,2,3,4\n")
    assert FileSource(str(path), "csv").header == ["a", "b", "a.2", "a.1"]
    for bad in (b"", b"\n\n", b",\n", b"\xff,b\n"):
        path.write_bytes(bad)
        with pytest.raises(SourceError, match="header") as caught:
            FileSource(str(path), "csv")
        assert caught.value.exit_code == 65


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_long_lines_are_cut_short(path: Path, end: bytes) -> None:
    data = b"ab\n" + b"x" * 3_000_000 + b"\nabcd\n" + b"y" * 5 + end
    assert read(path, data, max_line=4) == [(1, b"ab"), (2, b"xxxx"), (3, b"abcd"), (4, b"yyyy")]
    csv_rows = [(2, b"xxxx"), (3, b'"yyy'), (4, b"b")]
    assert (
        read(path, b"a\n" + b"x" * 3_000_000 + b'\n"' + b"y" * 9 + b"\nb" + end, "csv", max_line=4)
        == csv_rows
    )


FILES = st.lists(
    st.sampled_from([b"a\n", b"\n", b" \r\n", b"bc\r\n", b'"q\nr",2\n', b"longest line\n", b'"\n']),
    max_size=12,
)


@settings(max_examples=60)
@given(
    FILES,
    st.sampled_from(["jsonl", "csv"]),
    st.booleans(),
    st.sampled_from([b"", b"end", b'"end']),
    st.integers(1, 3),
)
def test_seek_continues_exactly(
    tmp_path_factory: Any, pieces: list[bytes], format: Any, packed: bool, tail: bytes, batch: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "seek"
    data = b"\xef\xbb\xbfh,k\n" + b"".join(pieces) + tail
    path.write_bytes(gzip.compress(data) if packed else data)
    whole = drain(FileSource(str(path), format, max_line=8))
    source = FileSource(str(path), format, max_line=8)
    rows: Rows = []
    stored = {}
    while not source.at_end:
        stored[len(rows)] = source.positions()
        rows += seen(source.read(batch, 0.0))
    assert rows == whole
    for done, positions in stored.items():
        again = FileSource(str(path), format, max_line=8)
        again.read(2, 0.0)
        again.seek(positions)
        assert again.positions() == positions
        assert drain(again) == whole[done:]


def test_positions_depend_on_the_last_record_alone(path: Path) -> None:
    path.write_bytes(b"a\n\n\nb\n\n")
    source = FileSource(str(path))
    source.read(1, 0.0)
    assert place(source) == (1, 2)
    source.read(9, 0.0)
    assert source.at_end
    assert place(source) == (4, 6)


def test_seek_after_an_unfinished_last_line(path: Path) -> None:
    path.write_bytes(b"a\nb")
    source = FileSource(str(path))
    source.read(9, 0.0)
    positions = source.positions()
    for more, rows in [(b"", []), (b"\n", []), (b"\nc\n", [(3, b"c")]), (b"\r\nc", [(3, b"c")])]:
        path.write_bytes(b"a\nb" + more)
        again = FileSource(str(path))
        again.seek(positions)
        assert drain(again) == rows
    path.write_bytes(b"a\nbcd\n")
    again = FileSource(str(path))
    again.seek(positions)
    with pytest.raises(SourceError, match="changed") as caught:
        again.read(9, 0.0)
    assert caught.value.exit_code == 65


@pytest.mark.parametrize("packed", [False, True])
def test_seek_refuses_another_file(path: Path, packed: bool) -> None:
    path.write_bytes(gzip.compress(b"abc\n") if packed else b"abc\n")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"offset": 99}, "shorter"),
        ({"file": "other"}, "other"),
        ({"line": None}, "position"),
    ]
    for change, words in cases:
        with pytest.raises(SourceError, match=words) as caught:
            go_on(FileSource(str(path)), {"file": str(path), "line": 1, "offset": 4} | change)
        assert caught.value.exit_code == 65


def test_errors_have_one_line_and_a_code(path: Path, tmp_path: Path) -> None:
    packed = gzip.compress(b"line\n" * 1000)
    cases: list[tuple[bytes | None, str, int]] = [
        (None, "No such file", 66),
        (packed[:-9], "too early", 65),
        (packed[:-6] + b"xxxxxx", "not valid gzip", 65),
        (packed + b"garbage", "not valid gzip", 65),
    ]
    for data, words, code in cases:
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(SourceError, match=words) as caught:
            drain(FileSource(str(path)))
        assert caught.value.exit_code == code
        assert str(path) in caught.value.message
        assert "\n" not in caught.value.message
    with pytest.raises(SourceError, match="directory"):
        FileSource(str(tmp_path))
    with pytest.raises(SourceError, match="followed"):
        FileSource(str(path), follow=True)
    with pytest.raises(SourceError, match="not UTF-8"):
        FileSource("\udcff")


def test_a_file_has_one_order_and_no_known_end(path: Path) -> None:
    path.write_bytes(b"a\nb\n")
    source: Source = FileSource(str(path))
    assert not isinstance(source, Replayable | Watched)
    assert (share_of(source), [raw.data for raw in source.read(9, 0.0)]) == (0.0, [b"a", b"b"])
    assert share_of(source) == 1.0
    source.close()


def test_unreadable_file(path: Path) -> None:
    path.write_bytes(b"a")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(SourceError, match="Permission"):
        FileSource(str(path))


def test_gzip_bomb_is_unpacked_piecewise(path: Path) -> None:
    path.write_bytes(gzip.compress(b"a" * 50_000_000 + b"\nb\n", 1))
    assert drain(FileSource(str(path), max_line=10)) == [(1, b"a" * 10), (2, b"b")]
