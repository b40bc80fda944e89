"""Snapshot files: whole or refused, the newest sound one is found, one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from streamdp_connectors.files.checkpoint import FileCheckpoint

from streamdp.errors import Exit
from streamdp.state import snapshot
from streamdp.state.snapshot import PREFIX, Header, SnapshotError, StateFolder, snapshots
from streamdp.state.stamp import FORMAT

BODY = bytes(range(256)) * 2


def header(seq: int) -> Header:
    """A header like that of a run over a file."""
    return Header(
        settings={"beam": 16, "keep": ["a"], "variance": None},
        seq=seq,
        positions={"file": "x", "line": seq, "offset": 10 * seq},
        outputs={"output": FileCheckpoint("/out", 3).plain()},
        modes={"final_only": False, "events": True},
        written=1.5,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state"


def filled(folder: Path, count: int = 2) -> list[Path]:
    """A folder with snapshots 1 .. count, newest first."""
    state = StateFolder(folder)
    for seq in range(1, count + 1):
        state.write(header(seq), BODY + b"%d" % seq)
    state.close()
    return snapshot.snapshots(folder)


def newest_seq(folder: Path) -> tuple[int | None, list[str]]:
    """Which snapshot is used, and the warnings on the way."""
    warnings: list[str] = []
    found = snapshot.newest(folder, warnings.append)
    if found is None:
        return None, warnings
    assert found == (header(found[0].seq), BODY + b"%d" % found[0].seq)
    return found[0].seq, warnings


@pytest.mark.parametrize("body", [b"", b"x", BODY])
def test_round_trip(body: bytes) -> None:
    assert snapshot.unpack(snapshot.pack(header(7), body), "name") == (header(7), body)


def test_every_truncation_is_noticed() -> None:
    data = snapshot.pack(header(1), BODY)
    for length in range(len(data)):
        with pytest.raises(SnapshotError, match=r"^name: .*(cut off|damaged)") as caught:
            snapshot.unpack(data[:length], "name")
        assert caught.value.exit_code == 65
    with pytest.raises(SnapshotError, match="damaged"):
        snapshot.unpack(data + b"\0", "name")


def test_every_flipped_bit_is_taken_for_damage() -> None:
    """Also in the version: only a sound file of a newer format asks for an upgrade."""
    data = snapshot.pack(header(1), BODY)
    for at in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            with pytest.raises(SnapshotError) as caught:
                snapshot.unpack(bytes(damaged), "name")
            assert caught.value.exit_code == 65, (at, bit, str(caught.value))


@pytest.mark.parametrize("at", [0, 8, 9, 10, 14, PREFIX.size, PREFIX.size + 40, -200, -1])
def test_a_damaged_newest_gives_way_to_the_one_before(folder: Path, at: int) -> None:
    path = filled(folder)[0]
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)
    seq, warnings = newest_seq(folder)
    assert seq == 1
    assert len(warnings) == 1
    assert path.name in warnings[0]


@pytest.mark.parametrize("length", [0, 1, 8, PREFIX.size, 100, 500])
def test_a_torn_newest_gives_way_to_the_one_before(folder: Path, length: int) -> None:
    path = filled(folder)[0]
    os.truncate(path, length)
    seq, warnings = newest_seq(folder)
    assert (seq, len(warnings)) == (1, 1)


def test_all_damaged(folder: Path) -> None:
    for path in filled(folder, 3):
        os.truncate(path, 50)
    warnings: list[str] = []
    with pytest.raises(SnapshotError, match="none of its 3 snapshots") as caught:
        snapshot.newest(folder, warnings.append)
    assert caught.value.exit_code == 78
    assert len(warnings) == 3


def test_no_snapshot_yet(folder: Path) -> None:
    assert newest_seq(folder) == (None, [])
    state = StateFolder(folder)
    assert state.newest(pytest.fail) is None
    state.close()


def test_a_newer_format_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a later release would write it; older snapshots must not be used in its stead."""
    filled(folder)
    monkeypatch.setattr(snapshot, "FORMAT", FORMAT + 1)
    filled(folder, 3)
    monkeypatch.setattr(snapshot, "FORMAT", FORMAT)
    with pytest.raises(
        SnapshotError, match=rf"format {FORMAT + 1}; this is .* {FORMAT} only: upgrade"
    ) as caught:
        newest_seq(folder)
    assert caught.value.exit_code == 78


def test_an_older_snapshot_is_found_by_number(folder: Path) -> None:
    state = StateFolder(folder, keep=20)
    for seq in (9, 10, 11, 100, 99):
        state.write(header(seq), BODY + b"%d" % seq)
    state.close()
    assert newest_seq(folder)[0] == 100
    assert [int(path.stem.split("-")[1]) for path in snapshot.snapshots(folder)] == [100, 99, 11, 10, 9]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_last_few_are_kept(folder: Path, keep: int) -> None:
    state = StateFolder(folder, keep)
    for seq in (5, 6, 7, 7, 8):
        state.write(header(seq), BODY)
    kept = sorted(p.name for p in folder.glob("snapshot-*"))
    assert kept == [f"snapshot-{seq:015d}.sdp" for seq in (5, 6, 7, 8)][-keep:]
    state.close()


def test_unsound_ones_of_later_records_do_not_displace_sound_ones(folder: Path) -> None:
    filled(folder)
    for seq in range(100, 120):
        (folder / f"snapshot-{seq:015d}.sdp").write_bytes(b"planted")
    state = StateFolder(folder, 2)
    for seq in (5, 6, 7):
        state.write(header(seq), BODY + b"%d" % seq)
    state.close()
    seq, warnings = newest_seq(folder)
    assert seq == 7
    assert len(warnings) == snapshot.REPORTED + 1
    assert warnings[-1].endswith("trying those before it, 16, without a word")
    assert [int(path.stem.split("-")[1]) for path in snapshot.snapshots(folder)[20:]] == [7, 6]


def test_leftovers_are_removed(folder: Path) -> None:
    paths = filled(folder)
    leftover = paths[0].with_suffix(".sdp.tmp")
    leftover.write_bytes(b"half")
    StateFolder(folder).close()
    assert not leftover.exists()
    assert newest_seq(folder) == (2, [])


def test_one_process_at_a_time(folder: Path) -> None:
    state = StateFolder(folder)
    leftover = folder / "snapshot-1.sdp.tmp"
    leftover.write_bytes(b"being written")
    script = (
        "import sys; from streamdp.state.snapshot import StateFolder, SnapshotError\n"
        "try: StateFolder(sys.argv[1])\n"
        "except SnapshotError as e: print(e); sys.exit(e.exit_code)\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(command, capture_output=True, timeout=120, text=True)
    assert done.returncode == 73
    assert "in use by another streamdp process" in done.stdout
    assert leftover.exists(), "the second process must touch nothing"
    state.close()
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 0


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "state", Path("/proc/streamdp")):
        with pytest.raises(SnapshotError) as caught:
            StateFolder(path)
        assert caught.value.exit_code == 73
        assert str(path) in str(caught.value)


def test_a_full_disk_leaves_the_old_snapshot(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(folder, 1)
    state = StateFolder(folder)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SnapshotError, match="No space left") as caught:
        state.write(header(2), BODY)
    assert caught.value.exit_code == 74
    monkeypatch.undo()
    assert sorted(p.name for p in folder.iterdir()) == ["lock", "snapshot-000000000000001.sdp"]
    assert newest_seq(folder) == (1, [])
    state.close()


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(SnapshotError) as caught:
            snapshot.read(path)
        assert caught.value.exit_code == 66
    (tmp_path / "text").write_text("hello, this is no snapshot at all, just some text\n")
    with pytest.raises(SnapshotError, match="not a streamdp snapshot") as caught:
        snapshot.read(tmp_path / "text")
    assert caught.value.exit_code == 65


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")  # as one without permission, which stops no superuser
    with pytest.raises(SnapshotError, match="loop: cannot be read: ") as caught:
        snapshots(tmp_path / "loop")
    assert caught.value.exit_code == Exit.NO_INPUT
    assert snapshots(tmp_path / "none") == []
