"""The journal: what was accepted is read again as it came, and what is torn or damaged is told apart."""

from __future__ import annotations

import os
import tempfile
import threading
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamdp_connectors.journal import writer
from streamdp_connectors.journal.segments import segments
from streamdp_connectors.journal.source import JournalSource
from streamdp_connectors.journal.writer import Journal
from streamdp_connectors.protocol import SinkError, SourceError

from streamdp.records import Raw


def filled(folder: Path, *groups: list[bytes]) -> None:
    """A journal of these groups, the i-th of which came at 10 + i seconds."""
    times = iter(range(10, 10_000))
    journal = Journal(folder, lambda: float(next(times)))
    for group in groups:
        journal.append(group)
    journal.close()


def everything(folder: Path) -> list[tuple[int, bytes, float]]:
    """All that a journal gives, one by one."""
    source, found = JournalSource(folder), list[Raw]()
    while not source.at_end:
        found += source.read(1, 0.0)
    source.close()
    return [(raw.position["line"], raw.data, raw.arrival) for raw in found]


def test_records_come_back_in_order_with_the_time_they_came_at(tmp_path: Path) -> None:
    filled(tmp_path, [b'{"a":1}', b"# 1.0 2 3 00000000"], [b"x" * 100_000], [b"last"])
    assert everything(tmp_path) == [
        (1, b'{"a":1}', 10.0),
        (2, b"# 1.0 2 3 00000000", 10.0),
        (3, b"x" * 100_000, 11.0),
        (4, b"last", 12.0),
    ]


def test_a_position_goes_on_there_however_reads_were_cut(tmp_path: Path) -> None:
    lines = [b"%d" % i for i in range(50)]
    filled(tmp_path, lines[:7], lines[7:8], lines[8:])
    for at in range(51):
        source = JournalSource(tmp_path)
        assert source.seek({"file": "journal", "line": at})
        assert source.positions() == {"file": "journal", "line": at}
        assert source.read(100, 0.0).data == lines[at:]
        assert source.at_end


def test_a_last_group_that_is_torn_anywhere_is_cut_off_and_the_others_stay(tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    filled(whole, [b"one", b"two"])
    (path,) = whole.iterdir()
    first = path.stat().st_size
    journal = Journal(whole)
    journal.append([b"three", b"four", b"five"])
    journal.close()
    data = path.read_bytes()
    for size in range(first, len(data)):
        torn.mkdir(exist_ok=True)
        (torn / path.name).write_bytes(data[:size])
        assert [line for line, _, _ in everything(torn)] == [1, 2]
        again = Journal(torn)
        assert again.records == 2
        assert again.append([b"anew"]) == 3
        again.close()
        assert [data for _, data, _ in everything(torn)] == [b"one", b"two", b"anew"]


def test_damage_before_the_end_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    filled(tmp_path, [b"one"], [b"two"], [b"three"])
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"two", b"tvo"))
    with pytest.raises(SourceError, match="damaged after record 1 "):
        Journal(tmp_path)
    assert path.stat().st_size == len(data)


def test_what_no_snapshot_needs_is_removed_but_for_the_newest_bytes(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(5):
        journal.append([b"%d" % number] * 10)
        journal.prune(0)
    assert [each.before for each in segments(tmp_path)] == [0, 10, 20, 30, 40]
    size = segments(tmp_path)[0].path.stat().st_size
    journal.prune(29, 2 * size)
    assert [each.before for each in segments(tmp_path)] == [0, 10, 20, 30, 40]
    journal.prune(39, size)
    assert [each.before for each in segments(tmp_path)] == [20, 30, 40]
    journal.prune(50)
    assert [each.before for each in segments(tmp_path)] == [40]
    journal.close()
    assert Journal(tmp_path).records == 50
    with pytest.raises(SourceError, match="lacks records"):
        JournalSource(tmp_path).seek({"file": "journal", "line": 39})
    with pytest.raises(SourceError, match="lacks records"):
        JournalSource(tmp_path).seek({"file": "journal", "line": 51})
    with pytest.raises(SourceError, match="no journal"):
        JournalSource(tmp_path).seek({"file": "in.jsonl", "line": 1, "offset": 10})


def test_a_file_that_is_gone_from_the_middle_is_noticed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        journal.append([b"%d" % number])
        journal.prune(0)
    journal.close()
    segments(tmp_path)[1].path.unlink()
    with pytest.raises(SourceError, match="damaged after record 1 "):
        everything(tmp_path)


def test_readers_wait_for_what_is_released(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    source = JournalSource(tmp_path, journal)
    journal.append([b"one"])
    assert not source.read(10, 0.0)  # nobody has been told of it
    threading.Timer(0.1, journal.release).start()
    assert source.read(10, 120.0).data == [b"one"]
    assert not source.at_end
    journal.close()
    assert source.at_end


def test_a_group_that_could_not_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    journal.append([b"one"])

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(writer.os, "fdatasync", full)
        with pytest.raises(OSError, match="No space"):
            journal.append([b"lost"])
    assert journal.append([b"two"]) == 2
    journal.close()
    assert [data for _, data, _ in everything(tmp_path)] == [b"one", b"two"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="the journal cannot be used"):
        Journal(tmp_path / "file" / "journal")


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    filled(tmp_path / "real", [b"one"])
    (path,) = (tmp_path / "real").iterdir()
    (tmp_path / "other").mkdir()
    os.symlink(path, tmp_path / "other" / path.name)
    with pytest.raises(SourceError, match="link"):
        Journal(tmp_path / "other")


LIKE_HEADS = st.builds(
    lambda slashes, end, body: [b"\\" * slashes + head_of(body) + end, *body],
    st.integers(0, 2),
    st.sampled_from([b"", b" e"]),
    st.lists(st.sampled_from([b"{}", b"", b"\\# a", b"# a", b"\\"]), min_size=1, max_size=2),
)
"""Records that look like a whole group, or nearly."""


def head_of(records: list[bytes]) -> bytes:
    """The line that begins a group."""
    body = b"".join(record + b"\n" for record in records)
    return b"# 1.000000 %d %d %08x" % (len(records), len(body), zlib.crc32(body))


@given(st.lists(st.lists(LIKE_HEADS, min_size=1, max_size=2), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_records_that_look_like_groups_are_records_wherever_the_last_group_is_torn(found: list[Any]) -> None:
    groups = [[record for some in group for record in some] for group in found]
    with tempfile.TemporaryDirectory() as made:
        whole, torn = Path(made, "whole"), Path(made, "torn")
        torn.mkdir()
        filled(whole, *groups)
        (path,) = whole.iterdir()
        data = path.read_bytes()
        assert [record for _, record, _ in everything(whole)] == list(chain(*groups))
        filled(Path(made, "before"), *groups[:-1])
        for size in range(len((Path(made, "before") / path.name).read_bytes()), len(data)):
            (torn / path.name).write_bytes(data[:size])
            again = Journal(torn)
            assert again.records == len(list(chain(*groups[:-1])))
            again.close()


def test_a_journal_of_an_earlier_release_is_read_as_it_was_written(tmp_path: Path) -> None:
    records = [b"\\# as it is", b"# 1.0 2 3 00000000", b"{}"]
    (tmp_path / "journal-000000000000001.sdj").write_bytes(
        head_of(records) + b"\n" + b"".join(record + b"\n" for record in records)
    )
    journal = Journal(tmp_path)
    assert journal.append(records) == 4
    journal.close()
    assert [record for _, record, _ in everything(tmp_path)] == [*records, *records]
