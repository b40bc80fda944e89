"""A topic to a store, SIGKILLs at seeded moments: in the end the rows of one quiet run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from commands import succeed
from test_killed_fifty_times import SETTINGS, command, filled, kill_at
from test_store import assert_same, everything


@pytest.mark.parametrize(("kills", "records"), [(2, 9_000), pytest.param(20, 40_000, marks=pytest.mark.slow)])
def test_rows_are_those_of_a_quiet_run(broker: Any, tmp_path: Path, kills: int, records: int) -> None:
    run = [*command(filled(broker, records)), "--store", "news.db", "--store-answers"]
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    quiet.mkdir()
    killed.mkdir()
    succeed(quiet, *run, **SETTINGS)
    whole, chance = (quiet / "out").stat().st_size, random.Random(kills)
    kill_at(killed, run, [chance.randrange(1, whole - whole // 20) for _ in range(kills)], chance)
    assert_same(everything(killed), everything(quiet))
    assert (killed / "out").read_bytes() == (quiet / "out").read_bytes()
