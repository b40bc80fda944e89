"""SIGKILLs at seeded moments, fifty of them: in the end all bytes are those of one quiet run."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from broker.topics import make_topic, produce
from commands import run_killed, succeed

from benchmarks.drifting import demo_stream
from streamdp.state.snapshot import newest

PARTITIONS = 3
FILES = ("out", "out.rejects.jsonl", "events")
SETTINGS = {"snapshot_every": "700", "snapshot_keep": "2", "refine_every": "4096", "refine_moves": "2000"}


def filled(broker: Any, records: int) -> tuple[str, str]:
    """Broker and topic: records and rubbish, their times a little out of order."""
    topic = make_topic(broker.bootstrap, PARTITIONS)
    chance = random.Random(7)
    values = []
    for number, record in enumerate(demo_stream(records, 3)):
        line = {"time": record.time - 5 * chance.random(), "text": record.text}
        values.append(b"{rubbish" if number % 101 == 100 else msgspec.json.encode(line))
    produce(broker.bootstrap, topic, ((i % PARTITIONS, value) for i, value in enumerate(values)))
    return broker.bootstrap, topic


def command(filled: tuple[str, str]) -> list[str]:
    bootstrap, topic = filled
    where = ["consume", "--topic", topic, "--bootstrap", bootstrap, "--until", "end", "--max-lateness", "10"]
    return [*where, "--output", "out", "--events", "events", "--state", "state"]


def kill_at(folder: Path, arguments: list[str], sizes: list[int], chance: random.Random) -> None:
    """Start and kill it whenever its output has grown to a size; and then let it come to its end."""
    for size in sorted(sizes):
        code = run_killed(folder, *arguments, size=size, later=chance.random() * 0.05, **SETTINGS)
        assert code == -signal.SIGKILL
    succeed(folder, *arguments, **SETTINGS)


@pytest.mark.parametrize(
    ("kills", "records"), [(4, 24_000), pytest.param(50, 60_000, marks=pytest.mark.slow)]
)
def test_bytes_are_those_of_a_quiet_run(broker: Any, tmp_path: Path, kills: int, records: int) -> None:
    run = command(filled(broker, records))
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    quiet.mkdir()
    killed.mkdir()
    succeed(quiet, *run, **SETTINGS)
    whole = (quiet / "out").stat().st_size
    chance = random.Random(50)
    sizes = [chance.randrange(1, whole - whole // 20) for _ in range(kills)]
    kill_at(killed, run, sizes, chance)
    for name in FILES:
        assert (killed / name).read_bytes() == (quiet / name).read_bytes(), name
    ours, theirs = newest(killed / "state", pytest.fail), newest(quiet / "state", pytest.fail)
    assert ours is not None
    assert theirs is not None
    assert ours[1] == theirs[1]
    assert ours[0].positions == theirs[0].positions
