"""What a folder holds is data: no path, module or process that it names is obeyed, no link followed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import call, fail, succeed, write_headlines

from streamdp.state import snapshot
from streamdp.state.claim import Claim, Owner, Standby
from streamdp.state.snapshot import FolderLock, Header, SnapshotError, StateFolder
from streamdp.state.stamp import stamped

RUN = ("consume", "--file", "in.jsonl", "--output", "out", "--state", "state")
VICTIM = b"alias ls='ls --color'\n"
EVIL = "open('imported', 'w').close()\n"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where a stream has run to its end."""
    folder = tmp_path_factory.mktemp("learned")
    write_headlines(folder / "in.jsonl", 200)
    succeed(folder, *RUN)
    return folder


@pytest.fixture
def here(learned: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    subprocess.run(["cp", "-a", f"{learned}/.", tmp_path], check=True)
    (tmp_path / "victim").write_bytes(VICTIM)
    return tmp_path


def forge(folder: Path, alter: Callable[[dict[str, Any]], None]) -> None:
    """Alter the header of the newest snapshot, and make its checksum fit."""
    path = max((folder / "state").glob("*.sdp"))
    header, body = snapshot.read(path)
    plain = msgspec.to_builtins(header)
    alter(plain)
    path.write_bytes(snapshot.pack(msgspec.convert(plain, Header), body))


def left(path: Path, content: bytes) -> dict[str, Any]:
    """What a state says of an output with this content."""
    ends = {"head": zlib.crc32(content[: 1 << 16]), "tail": zlib.crc32(content[-(1 << 16) :])}
    return {"path": str(path), "length": len(content), **ends}


def test_rejects_go_where_the_command_says(here: Path) -> None:
    forge(here, lambda header: header["outputs"].update(rejects=left(here / "victim", VICTIM)))
    with (here / "in.jsonl").open("a") as file:
        file.write('{"text": $(touch run)}\n')
    code, message = fail(here, *RUN)
    assert (here / "victim").read_bytes() == VICTIM
    assert code == 65
    assert "out.rejects.jsonl" in message


def test_rejects_stay_where_they_were_if_the_output_goes_elsewhere(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 50)
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write("none\n")
    run = ("consume", "--file", "in.jsonl", "--state", "state")
    succeed(tmp_path, *run)
    assert (tmp_path / "state" / "rejects.jsonl").read_bytes().count(b"\n") == 1
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write('nor this\n{"text": "but this"}\n')
    succeed(tmp_path, *run, "--output", "out")
    assert (tmp_path / "state" / "rejects.jsonl").read_bytes().count(b"\n") == 2


def test_a_link_is_followed_only_where_the_user_names_it(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("none\n")
    (tmp_path / "victim").write_bytes(b"")
    (tmp_path / "out.rejects.jsonl").symlink_to("victim")
    run = ("consume", "--file", "in.jsonl", "--output", "out")
    code, message = fail(tmp_path, *run)
    assert (code, "is a link" in message) == (73, True)
    assert (tmp_path / "victim").read_bytes() == b""
    call(tmp_path, *run[:-1], "other", "--rejects", "out.rejects.jsonl")
    assert b"none" in (tmp_path / "victim").read_bytes()


@pytest.mark.parametrize("command", ["stories", "plot", "fit", "page", "frozen", "start-from", "resumed"])
@pytest.mark.parametrize("field", ["likelihood", "prior", "decay"])
def test_no_module_is_imported_that_only_a_state_names(here: Path, command: str, field: str) -> None:
    (here / "evil.py").write_text(EVIL)
    forge(here, lambda header: header["settings"].update({field: "evil:Evil"}))
    read = ("consume", "--file", "in.jsonl", "--output", "other")
    commands = {
        "frozen": (*read, "--state", "state", "--frozen"),
        "start-from": (*read, "--start-from", "state"),
        "resumed": RUN,
        "page": ("stories", "state", "--page", "0"),
    }
    code, message = fail(here, *commands.get(command, (command, "state")))
    assert not (here / "imported").exists()
    assert code == 78
    assert f"--{field} evil:Evil" in message


def test_a_module_that_the_command_names_is_imported(here: Path) -> None:
    (here / "evil.py").write_text(EVIL)
    forge(here, lambda header: header["settings"].update(likelihood="evil:Evil"))
    for command in (("stories", "state"), ("fit", "state"), RUN):
        fail(here, *command, "--likelihood", "evil:Evil")  # there is no such class
        (here / "imported").unlink()
        sys.modules.pop("evil", None)
    fail(here, "stories", "state", likelihood="evil:Evil")
    assert (here / "imported").exists()
    sys.modules.pop("evil", None)


def test_a_model_names_no_module_that_the_program_has_not_imported(tmp_path: Path) -> None:
    from streamdp.errors import StreamdpError
    from streamdp.estimators import stored

    path = tmp_path / "model"
    (tmp_path / "evil.py").write_text("raise SystemExit")
    sys.path.insert(0, str(tmp_path))
    state = {"pairs!": [["prior", {"object!": "evil:Evil", "fields": {}}]]}
    body = msgspec.msgpack.encode(stamped({"state": state}))
    path.write_bytes(stored.HEAD + zlib.crc32(body).to_bytes(stored.SUM, "big") + body)
    try:
        with pytest.raises(StreamdpError, match="evil:Evil is not imported"):
            stored.read(path)
    finally:
        sys.path.remove(str(tmp_path))


def test_a_terminal_is_not_spoken_to(here: Path) -> None:
    """Neither by paths of a state nor by records."""
    forge(here, lambda header: header["outputs"]["output"].update(path="/\x1b[2J\x1b]0;mine\x07"))
    done = call(here, *RUN)
    assert done.returncode == 0
    assert b"\x1b" not in done.stderr
    (here / "in.jsonl").write_text('{"text": "storm \\u001b[2J over coast"}\n' * 3)
    succeed(here, *RUN[:3], "--output", "other", "--state", "more")
    shown = succeed(here, "stories", "more")
    assert b"storm" in shown
    assert b"\x1b" not in shown


# ---------------------------------------------------------------- links and pipes


def test_a_snapshot_is_not_written_through_a_link(here: Path) -> None:
    folder = StateFolder(here / "state")
    found = folder.newest(pytest.fail)
    assert found is not None
    header, body = found
    (here / "state" / f"snapshot-{header.seq:015d}.sdp.tmp").symlink_to(here / "victim")
    folder.write(header, body)
    folder.close()
    assert (here / "victim").read_bytes() == VICTIM


@pytest.mark.parametrize("name", ["lock", "snapshot-000000000000001.sdp.tmp"])
def test_nothing_is_created_through_a_link(here: Path, name: str) -> None:
    path = here / "state" / name
    path.unlink(missing_ok=True)
    path.symlink_to(here / "made")
    call(here, *RUN)
    assert not (here / "made").exists()


@pytest.mark.parametrize("what", ["pipe", "link to a pipe", "folder", "device"])
def test_only_regular_files_are_snapshots(here: Path, what: str) -> None:
    path = here / "state" / "snapshot-999999999999999.sdp"
    match what:
        case "pipe":
            os.mkfifo(path)
        case "link to a pipe":
            os.mkfifo(here / "pipe")
            path.symlink_to(here / "pipe")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("/dev/zero")
    shown = subprocess.run(
        [sys.executable, "-m", "streamdp", "stories", "state"],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    assert "trying the one before it" in shown.stderr


def test_a_snapshot_that_is_too_large_is_not_read(here: Path) -> None:
    path = here / "state" / "snapshot-999999999999999.sdp"
    size = 200 << 30
    with path.open("wb") as file:
        file.write(snapshot.PREFIX.pack(snapshot.MAGIC, snapshot.FORMAT, 100, size - 100))
        file.truncate(snapshot.PREFIX.size + size + 4)
    began = time.monotonic()
    done = call(here, "stories", "state")
    assert time.monotonic() - began < 60.0
    assert done.returncode == 0
    assert b"200.0 GiB" in done.stderr
    assert b"trying the one before it" in done.stderr


# ---------------------------------------------------------------- owners


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def owner_of(pid: int) -> Owner:
    """What a run with this number would write of itself."""
    born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return msgspec.structs.replace(Owner.here(), pid=pid, born=born)


def look(standby: Standby, clock: Clock, seconds: float) -> Claim | None:
    found = None
    for _ in range(int(2 * seconds)):
        clock.now += 0.5
        found = found or standby.turn()
        time.sleep(0.001)
    return found


def test_a_planted_owner_ends_no_process(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    state, clock, said = tmp_path / "state", Clock(), list[str]()
    standby = Standby(state, 10.0, said.append, clock=clock)
    (state / "owner-000000007").write_bytes(msgspec.json.encode(owner_of(sleeper.pid)))
    other = FolderLock(state)
    assert other.take()
    assert look(standby, clock, 60.0) is None
    assert sleeper.poll() is None
    assert said[-1] == (
        f"PID {sleeper.pid} on {Owner.here().host} is named as the run with {state}, gives no sign of life, "
        "and is not seen to hold its lock: it is waited for; end it if it is a run that hangs"
    )
    other.close()
    claim = look(standby, clock, 1.0)
    assert claim is not None
    claim.close()


HOLD = """
import fcntl, signal, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("how", "code"), [("hears", -15), ("deaf", -9)])
def test_a_silent_owner_that_holds_the_lock_is_asked_first(tmp_path: Path, how: str, code: int) -> None:
    state, clock, said = tmp_path / "state", Clock(), list[str]()
    standby = Standby(state, 10.0, said.append, clock=clock)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, state / "lock", how], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    (state / "owner-000000007").write_bytes(msgspec.json.encode(owner_of(holder.pid)))
    assert look(standby, clock, 10.5) is None
    if how == "hears":
        assert holder.wait(120) == code
    claim = look(standby, clock, 12.0)
    assert holder.wait(120) == code
    assert claim is not None
    assert said[-1].endswith("it gave no sign of life for 10 s, and was ended")
    claim.close()
    holder.stdout.close()


def test_a_lock_with_two_names_is_no_proof(tmp_path: Path) -> None:
    """Another program may hold it under the other one."""
    state, clock, said = tmp_path / "state", Clock(), list[str]()
    standby = Standby(state, 10.0, said.append, clock=clock)
    os.link(state / "lock", tmp_path / "lock of another program")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "lock of another program", "hears"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    (state / "owner-000000007").write_bytes(msgspec.json.encode(owner_of(holder.pid)))
    assert look(standby, clock, 30.0) is None
    assert holder.poll() is None
    holder.kill()
    holder.wait()
    holder.stdout.close()


@pytest.mark.parametrize("what", ["pipe", "link", "folder", "nonsense", "no process", "all processes"])
def test_a_planted_owner_is_no_obstacle(tmp_path: Path, what: str) -> None:
    state, clock, said = tmp_path / "state", Clock(), list[str]()
    standby = Standby(state, 10.0, said.append, clock=clock)
    path = state / "owner-000000007"
    match what:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "nonsense":
            path.write_bytes(b"[1, 2" * 100_000)
        case _:
            number = -1 if what == "all processes" else 2**22 + 1
            plain = msgspec.to_builtins(Owner.here()) | {"pid": number}
            path.write_bytes(msgspec.json.encode(plain))
    claim = look(standby, clock, 12.0)
    assert claim is not None
    claim.check()
    claim.close()


def test_a_number_of_an_owner_that_nothing_follows(tmp_path: Path) -> None:
    standby = Standby(tmp_path / "state", 10.0, print)
    (tmp_path / "state" / "owner-999999999").write_bytes(msgspec.json.encode(Owner.here()))
    with pytest.raises(SnapshotError, match="owner-999999999 is none of streamdp's: remove it"):
        standby.turn()
    standby.close()


# ---------------------------------------------------------------- who may read


def modes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): oct(stat.S_IMODE(path.lstat().st_mode))
        for path in sorted(folder.rglob("*"))
    }


def test_only_the_user_may_read_what_is_written(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 60)
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write("none\n")
    (tmp_path / "in.jsonl").chmod(0o644)
    before = os.umask(0o000)
    try:
        succeed(tmp_path, *RUN, "--events", "events")
        found = modes(tmp_path)
        assert found.pop("in.jsonl") == "0o644"
        assert found.pop("state") == "0o700"
        assert {"out", "events", "out.rejects.jsonl", "state/lock"} < set(found)
        assert set(found.values()) == {"0o600"}
        succeed(tmp_path, *RUN[:-3], "open", "--state", "shared", "--group-read", "--rejects", "more")
        found = modes(tmp_path)
        assert (found["shared"], found["open"], found["more"]) == ("0o750", "0o640", "0o640")
        assert {mode for name, mode in found.items() if name.startswith("shared/")} == {"0o640"}
        assert os.umask(0) == 0
    finally:
        os.umask(before)
