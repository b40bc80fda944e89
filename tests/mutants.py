"""Snapshots that somebody has tampered with: run as a program, with a file of bodies, over seeded mutants.

Each mutant is loaded in a process of its own, which goes on with the records after the snapshot. It must be
refused in one line, or run. Prints how many did what; the exit code is 1 where any crashed, raised or hung.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import random
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from streamdp.engine import Engine
from streamdp.state.snapshot import SnapshotError

RAN, REFUSED, RAISED = 0, 3, 4
SECONDS = 60
NUMBERS = (-2, -1, 0, 1, 2, 7, 63, 64, 1000, 2**31 - 1, 2**31, 2**40, 2**62, -(2**31), -(2**62))


def is_packed(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[2], bytes)


def sites(value: Any, put: Callable[[Any], None], found: list[tuple[Any, Callable[[Any], None]]]) -> None:
    """All values that can be altered, and how."""
    if is_packed(value) or isinstance(value, int | float | str | bytes) or value is None:
        found.append((value, put))
    elif isinstance(value, dict):
        for key in value:
            sites(value[key], lambda new, key=key: value.__setitem__(key, new), found)
    elif isinstance(value, list):
        found.append((value, put))
        step = max(1, len(value) // 20)  # of thousands of records a few
        for i in range(0, len(value), step):
            sites(value[i], lambda new, i=i: value.__setitem__(i, new), found)


def number(rng: random.Random, old: int) -> int:
    near = old + rng.choice((-1, 1, 2, 64)) if rng.random() < 0.5 else rng.choice(NUMBERS)
    return min(max(near, -(2**63)), 2**63 - 1)


def array(packed: list[Any], rng: random.Random) -> list[Any]:
    """A packed array with another element, another shape or another end."""
    kind, shape, data = packed
    dtype = np.dtype(kind if isinstance(kind, str) else [(name, of) for name, of in kind])
    way = rng.random()
    if way < 0.1 or not data:
        return [kind, [max(0, n + rng.choice((-1, 1))) for n in shape], data]
    if way < 0.2:
        fewer = rng.randrange(shape[0] + 1) if shape else 0
        values = np.frombuffer(data, dtype).reshape(shape)
        return [kind, [fewer, *shape[1:]], values[:fewer].tobytes()] if shape else [kind, shape, b""]
    if way < 0.25:
        return [rng.choice(("<i4", "<f8", "|u1", "<i8")), shape, data]
    values = np.frombuffer(data, dtype).copy()
    for _ in range(rng.choice((1, 1, 1, 5))):
        i = rng.randrange(len(values))
        row, name = (values[i : i + 1], None) if dtype.names is None else (values, rng.choice(dtype.names))
        cell = row if name is None else values[name][i : i + 1]
        if cell.dtype.kind == "f":
            cell[0] = rng.choice((np.nan, np.inf, -1.0, 0.0, 1e300, -1e300, 2.0**62, cell[0] + 1))
        else:
            limits = np.iinfo(cell.dtype)
            cell[0] = min(max(number(rng, int(cell[0])), limits.min), limits.max)
    return [kind, shape, values.tobytes()]


def another(value: Any, rng: random.Random) -> Any:
    if is_packed(value):
        return array(value, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return number(rng, value)
    if isinstance(value, float):
        return rng.choice((float("nan"), float("inf"), -1.0, value * 2 + 1, 1e300, 3))
    if isinstance(value, list):
        shorter = list(value)
        if shorter and rng.random() < 0.7:
            del shorter[rng.randrange(len(shorter))]
            return shorter
        return shorter + shorter[-1:]
    if isinstance(value, bytes):
        return value[:-8] if rng.random() < 0.5 else bytes(rng.randrange(256) for _ in range(len(value)))
    return rng.choice((None, 7, "other", [], {}))


def mutant(body: bytes, seed: int) -> bytes:
    """The body with one to three values altered."""
    rng = random.Random(seed)
    value = msgspec.msgpack.decode(body)
    parts = list(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found: list[tuple[Any, Callable[[Any], None]]] = []
        part = rng.choice([*parts, "state", "state", "state", "state"])  # where most indices are
        sites(value[part], lambda new, part=part: value.__setitem__(part, new), found)
        if found:  # the alteration before may have left nothing here
            old, put = rng.choice(found)
            put(another(old, rng))
    return msgspec.msgpack.encode(value)


def outcome(body: bytes, seed: int, settings: Any, records: Any) -> int:
    """What a child process makes of a mutant: an exit code, or less than nothing for a signal."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        code = RAISED
        try:
            engine = Engine.loads(mutant(body, seed), settings, with_events=True)
            engine.advance(records)
            engine.finish()
            code = RAN
        except SnapshotError as error:
            known = error.exit_code in (65, 78)  # 78: it says that a later release wrote it
            code = REFUSED if "\n" not in error.message and known else RAISED
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(path: str, first: int, count: int) -> int:
    faulthandler.enable()
    counts: Counter[str] = Counter()
    with open(path, "rb") as file:
        cases = pickle.load(file)  # of the test's own
    for name, body, settings, records in cases:
        engine = Engine.loads(body, settings, with_events=True)  # kernels are compiled once, before the forks
        engine.advance(records)
        engine.finish()
        for seed in range(first, first + count):
            code = outcome(body, seed, settings, records)
            what = {RAN: "ran", REFUSED: "refused"}.get(code, "failed")
            counts[what] += 1
            if what == "failed":
                print(f"{name}, seed {seed}: {code}", flush=True)
    print(dict(counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
