"""Whose a state folder is: seen by processes of one machine and of several."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from streamdp.state.claim import Claim, Owner, Standby, newest
from streamdp.state.snapshot import FolderLock, SnapshotError, StateFolder

HERE = Owner.here()
ELSEWHERE = msgspec.structs.replace(HERE, host="elsewhere", boot="another", pid=1)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def standby(
    tmp_path: Path, said: list[str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Owner], Standby]]:
    """Makes processes that stand by for ten seconds; one whose turn it is stands still."""
    monkeypatch.setattr("streamdp.state.claim.BEAT", 3600.0)
    made: list[Standby] = []

    def make(me: Owner, **more: bool) -> Standby:
        made.append(Standby(tmp_path / "state", 10.0, said.append, me=me, clock=clock, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(params=[True, False])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the lock of the folder holds between machines; where not, everyone is given it."""
    if not request.param:
        monkeypatch.setattr(FolderLock, "take", lambda lock: True)
    return bool(request.param)


def test_who_does_not_want_to_wait_is_refused_by_one_that_lives(
    tmp_path: Path,
    standby: Callable[..., Standby],
    clock: Clock,
    shared: bool,
) -> None:
    first = standby(ELSEWHERE).turn()
    assert first is not None
    other = standby(HERE, waits=False)
    if not shared:  # it may have died
        assert turn_after(other, clock, 5.0) is None
        os.utime(tmp_path / "state" / "owner-000000001", (7, 7))
    with pytest.raises(SnapshotError, match="in use by another"):
        other.turn()
    first.close()
    assert standby(HERE, waits=False).turn() is not None


def turn_after(standby: Standby, clock: Clock, seconds: float, step: float = 0.5) -> Claim | None:
    """Look so long."""
    found = None
    for _ in range(int(seconds / step)):
        clock.now += step
        found = found or standby.turn()
    return found


def test_an_empty_folder_is_free_and_one_that_was_given_back(
    standby: Callable[[Owner], Standby], said: list[str], tmp_path: Path
) -> None:
    for number, me in enumerate((HERE, ELSEWHERE, HERE), 1):
        claim = standby(me).turn()
        assert claim is not None
        claim.check()
        found = newest(tmp_path / "state")
        assert found is not None
        assert (found.number, found.owner) == (number, me)
        claim.close()
        claim.close()
    assert said == []
    assert sorted(os.listdir(tmp_path / "state")) == ["lock", "owner-000000003"]


def test_one_that_gives_signs_of_life_is_left_alone_wherever_it_is(
    tmp_path: Path, standby: Callable[[Owner], Standby], clock: Clock, said: list[str]
) -> None:
    first = standby(HERE).turn()
    assert first is not None
    others = [standby(HERE), standby(ELSEWHERE)]
    for beat in range(1, 40):
        os.utime(tmp_path / "state" / "owner-000000001", (beat, beat))
        clock.now += 0.9
        assert [other.turn() for other in others] == [None, None]
    assert said == [f"standing by: PID {os.getpid()} on {HERE.host} runs with {tmp_path / 'state'}"] * 2
    first.check()


def test_silence_counts_only_while_one_looks(standby: Callable[[Owner], Standby], clock: Clock) -> None:
    first = standby(HERE).turn()
    assert first is not None
    other = standby(ELSEWHERE)
    assert turn_after(other, clock, 600.0, step=60.0) is None  # it stood still itself
    assert turn_after(other, clock, 12.0) is not None


def test_of_many_that_wait_one_takes_over_from_who_is_silent_elsewhere(
    tmp_path: Path,
    standby: Callable[[Owner], Standby],
    clock: Clock,
    said: list[str],
    shared: bool,
) -> None:
    first = standby(ELSEWHERE).turn()
    assert first is not None
    names = [msgspec.structs.replace(HERE, boot=f"machine {n}") for n in range(3)]
    others = [*map(standby, names)]
    found: list[Claim] = []
    for _ in range(20):
        clock.now += 0.9
        waiting = [] if found else others
        found += [claim for other in waiting if (claim := other.turn()) is not None]
    assert len(found) == 1
    owner = newest(tmp_path / "state").owner  # type: ignore[union-attr]
    others = [other for other, me in zip(others, names, strict=True) if me != owner]
    assert "taking over from PID 1 on elsewhere: it gave no sign of life for 10 s" in said
    found[0].check()
    with pytest.raises(SnapshotError, match="has taken over while this run stood still") as caught:
        first.check()
    assert caught.value.exit_code == 73
    first.close()  # says nothing of the one that runs
    assert [other.turn() for other in others] == [None, None]


def test_a_claim_that_is_being_written_is_one(standby: Callable[[Owner], Standby], clock: Clock) -> None:
    other = standby(HERE)
    (other.folder / "owner-000000004").touch()
    assert turn_after(other, clock, 9.0) is None
    claim = turn_after(other, clock, 3.0)  # whoever wanted it died within
    assert claim is not None
    assert os.listdir(other.folder).count("owner-000000005") == 1


def test_another_command_is_waited_for(
    standby: Callable[[Owner], Standby], clock: Clock, said: list[str]
) -> None:
    other = standby(HERE)
    folder = StateFolder(other.folder)
    assert turn_after(other, clock, 30.0) is None
    assert said == [f"standing by: another process runs with {other.folder}"]
    folder.close()
    claim = other.turn()
    assert claim is not None
    with pytest.raises(SnapshotError, match="in use by another"):
        StateFolder(other.folder)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError, match="cannot be used") as caught:
        Standby(tmp_path / "file" / "state", 10.0, print)
    assert caught.value.exit_code == 73
