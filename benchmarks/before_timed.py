"""What ``benchmarks.before`` runs in a process that imports ``streamdp`` from some checkout.

A script, as a module of a package would bring that package along.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings


def timed(path: str, count: int, first: int, step: int, settings: dict[str, Any]) -> dict[str, float]:
    """Records per CPU second behind the first ones, milliseconds a call, MiB."""
    records = []
    with Path(path).open() as file:
        for number, line in zip(range(count), file, strict=False):
            read = json.loads(line)
            position = {"line": number + 1}
            value = read["text"] if "text" in read else read["vector"]
            records.append(Record(value=value, position=position, time=read["time"], id=read["id"]))
    engine = Engine(Settings(**settings))
    for start in range(0, first, step):
        engine.advance(records[start : start + step])
    calls = []
    for start in range(first, len(records), step):
        began = time.process_time()
        engine.advance(records[start : start + step])
        calls.append(time.process_time() - began)
    p50, p99, p999, longest = 1000 * np.quantile(calls, (0.5, 0.99, 0.999, 1.0))
    rate = (len(records) - first) / sum(calls)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rate": rate, "p50": p50, "p99": p99, "p99.9": p999, "longest": longest, "MiB": most}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(timed(*json.loads(sys.argv[1]))))
