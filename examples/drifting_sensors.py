"""Vectors with drift: a machine's readings in windows, its modes found, a fault noticed when it begins.

python examples/drifting_sensors.py
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from statistics import fmean, stdev

from streamdp.engine import Engine
from streamdp.records import Assignment, Record
from streamdp.settings import Settings

READINGS, WINDOW = 72_000, 60
MODES = {"idle": (20.0, 0.1, 1.0), "load": (45.0, 0.5, 6.0), "fault": (50.0, 2.0, 6.0)}
"""Temperature, vibration and current; the temperature rises by 10 degrees in the course of the run."""


def readings(seed: int = 0) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """One reading a second, with the mode that the machine is truly in; the fault comes late."""
    rng = random.Random(seed)
    mode = "idle"
    for second in range(READINGS):
        if second % 900 == 0:
            mode = rng.choice(["idle", "load", "load"] if second < 54_000 else ["idle", "load", "fault"])
        warm, shake, current = MODES[mode]
        warm += 10.0 * second / READINGS
        yield mode, (rng.gauss(warm, 1.0), rng.gauss(0.0, shake), rng.gauss(current, 0.3))


def windows(
    stream: Iterable[tuple[str, tuple[float, float, float]]],
) -> Iterator[tuple[str, float, list[float]]]:
    """Mode, time of the last reading, and the means and deviations of each minute."""
    coming = iter(stream)
    number = 0
    while minute := list(islice(coming, WINDOW)):
        number += 1
        warm, shake, current = zip(*(values for _, values in minute), strict=True)
        yield minute[-1][0], float(number * WINDOW), [fmean(warm), stdev(shake), fmean(current)]


def main() -> None:
    """Tell when a cluster is new, and compare clusters with modes in the end."""
    engine = Engine(Settings(), with_events=True)
    truth: list[str] = []
    found: dict[int, int] = {}
    for mode, time, vector in windows(readings()):
        truth.append(mode)
        answers = engine.advance([Record(vector, {"line": len(truth)}, time)])
        found |= {line.seq: line.cluster for line in answers.lines if isinstance(line, Assignment)}
        for event in answers.events:
            if event.event != "closed":
                print(
                    f"minute {len(truth):4}: cluster {event.cluster} {event.event}, truly {truth[event.seq]}"
                )
    table = Counter((truth[seq], cluster) for seq, cluster in found.items())
    for (mode, cluster), n in sorted(table.items()):
        print(f"{mode:5} in cluster {cluster}: {n:4} minutes")


if __name__ == "__main__":
    main()
