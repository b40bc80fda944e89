"""The soak, shortened to most of a minute, and that its tally notices what it is there for."""

from __future__ import annotations

from pathlib import Path

import msgspec
from broker.process import Broker
from faults.soak import Tally, soak, tally


def test_killed_and_disturbed_nothing_is_lost_or_doubled(own_broker: Broker, tmp_path: Path) -> None:
    found = soak(own_broker, tmp_path, 45.0, rebalance_every=15.0, kill_every=12.0, rate=1500.0)
    assert min(found.kills, found.rebalances) >= 1  # on a busy machine each takes long
    assert found.produced == found.answered > 40_000
    assert (found.lost, found.doubled, found.out_of_turn) == (0, 0, 0)
    assert found.samples[-1].lag == 0
    assert found.memory()[-1] < 2 * found.memory()[0]


def test_what_is_lost_doubled_or_out_of_turn_is_noticed(tmp_path: Path) -> None:
    def answer(seq: int, offset: int, revision: int = 0) -> dict[str, object]:
        position = {"topic": "t", "partition": 0, "offset": offset}
        return {"seq": seq, "revision": revision, "position": position}

    def counted(*lines: dict[str, object]) -> Tally:
        (tmp_path / "out").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        return tally(tmp_path / "out", {0: 3, 1: 0})

    good = [answer(0, 0), answer(1, 1), {"final_through": 0}, answer(1, 1, 1), answer(2, 2)]
    assert counted(*good) == (3, 0, 0, 0)
    assert counted(*good[:-1]) == (2, 1, 0, 0)
    assert counted(*good, answer(3, 2)) == (4, 0, 1, 0)
    assert counted(*good, answer(2, 2)).out_of_turn == 1
    assert counted(*good, answer(1, 1, 1)).out_of_turn == 1
    assert counted(*good, answer(1, 1, 2)).out_of_turn == 0
