"""Snapshots that somebody has tampered with: a program that runs commands over seeded mutants.

    python tests/mutants.py --count 20000

A mutant is a sound snapshot with something altered: values of the body, values of the header, or bytes of
either; its lengths and checksum hold again, but for some that are altered too. It becomes the newest
snapshot of a state. In a process of its own ``stories`` and ``fit`` read it, and ``consume`` goes on
with it. It must run, or be refused in a line, whereupon the snapshot before it is used. No command may raise,
crash, hang, ask for memory that there is not, or touch a file that is not the run's. Prints what became of
the mutants, the slowest and the largest; the exit code is 1 where any failed. The mutants follow from the
seed, and the snapshots from the release.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import typer
from inside import run_inside

from benchmarks.drifting import demo_stream
from streamdp.cli import main as streamdp
from streamdp.state.snapshot import MAGIC, PREFIX, snapshots
from streamdp.state.stamp import FORMAT

RAN, REFUSED, RAISED, TOUCHED = 0, 3, 4, 5
SECONDS = 60
MOST = 3 << 30
"""Bytes of address space beyond what a mutant's process has at its start."""
NUMBERS = (-2, -1, 0, 1, 2, 7, 63, 64, 1000, 2**31 - 1, 2**31, 2**40, 2**62, -(2**31), -(2**62))
AFTER = 60
"""Records after the snapshot."""


def texts(count: int) -> Iterator[dict[str, Any]]:
    for i, each in enumerate(demo_stream(count, 0)):
        yield {"text": each.text, "time": each.time, "id": str(i)}


def vectors(count: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 1.0], [0.0, 5.0, -4.0]])
    for i, row in enumerate(centres[np.arange(count) % 3] + rng.normal(0, 0.4, (count, 3))):
        yield {"vector": row.tolist(), "time": float(i)}


def categories(count: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(0)
    for i in range(count):
        kind = rng.randrange(3)
        yield {"a": "xyz"[kind], "b": rng.choice("uv"), "c": f"{kind}{rng.randrange(2)}", "time": float(i)}


def log(count: int) -> Iterator[str]:
    rng = random.Random(0)
    for i in range(count):
        what = rng.choice(("request {} took {} ms", "user {} logged in", "disk {} is full", "retry {}"))
        yield f"2026-01-05 10:{i // 60 % 60:02}:{i % 60:02} INFO worker: " + what.format(i, rng.randrange(9))


LOOKS = ("--retain", "400", "--second-look", "100", "--events", "events")
CASES: dict[str, tuple[Callable[[int], Iterator[Any]], int, tuple[str, ...]]] = {
    "texts": (texts, 1000, LOOKS),
    "window": (texts, 700, (*LOOKS, "--decay", "window", "--decay-scale", "100", "--distance", "records")),
    "waiting": (texts, 400, ("--max-lateness", "30", "--final-only")),
    "refined": (texts, 1100, ("--refine-every", "512", "--refine", "fixed", "--refine-moves", "64")),
    "vectors": (vectors, 600, ()),
    "warming": (vectors, 100, ()),
    "categories": (categories, 500, ("--likelihood", "categorical", "--fields", "a,b,c")),
    "log": (log, 600, ("--format", "log", "--events", "events")),
}
"""Records, how many are learned, and options: of each kind of state that there is."""


SHOW, REFINE = ("stories", "state", "--limit", "3"), ("fit", "state", "--budget", "1")

typer.main.get_command = functools.cache(typer.main.get_command)  # making all options takes half of the time


class Case(NamedTuple):
    name: str
    folder: Path
    run: tuple[str, ...]
    newest: str
    content: bytes


def make(name: str, folder: Path) -> Case:
    """Run a stream with snapshots, and leave more input for the next run."""
    records, learned, options = CASES[name]
    lines = [each if isinstance(each, str) else json.dumps(each) for each in records(learned + AFTER)]
    folder.mkdir()
    source = folder / "in"
    source.write_text("{not JSON\n")
    fixed = () if "--format" in options else ("--format", "jsonl")
    run = ("consume", "--file", "in", "--output", "out", "--state", "state", *fixed, *options)
    here = dict(os.environ)
    for part in (lines[: learned // 2], lines[learned // 2 : learned]):
        with source.open("a") as file:
            file.write("\n".join(part) + "\n")
        done = run_inside(run, folder, here, b"")
        assert done.returncode == 0, done.stderr.decode()
    with source.open("a") as file:
        file.write("\n".join(lines[learned:]) + "\n")
    newest = snapshots(folder / "state")[0]
    shutil.copytree(folder, kept(folder))
    case = Case(name, folder, run, newest.name, newest.read_bytes())
    with restored(case, case.content) as copy:  # so that all that is needed is loaded before the forks
        for command in (SHOW, REFINE, case.run):
            done = run_inside(command, copy, here, b"")
            assert done.returncode in (0, 65 if command == REFINE else 0), done.stderr.decode()
    return case


@contextlib.contextmanager
def restored(case: Case, content: bytes) -> Iterator[Path]:
    """The case's folder as it was, but for its newest snapshot."""
    shutil.rmtree(case.folder, ignore_errors=True)
    shutil.copytree(kept(case.folder), case.folder)
    (case.folder / "state" / case.newest).write_bytes(content)
    yield case.folder


def kept(folder: Path) -> Path:
    """Where a folder is kept as it was."""
    return folder.with_name(f"{folder.name} as it was")


# ---------------------------------------------------------------- what is altered


def is_packed(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[2], bytes)


def sites(value: Any, put: Callable[[Any], None], found: list[tuple[Any, Callable[[Any], None]]]) -> None:
    """All values that can be altered, and how."""
    if is_packed(value) or isinstance(value, int | float | str | bytes) or value is None:
        found.append((value, put))
    elif isinstance(value, dict):
        found.append((value, put))
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
    """A packed array with another element, another shape, type or end."""
    kind, shape, data = packed
    try:
        dtype = np.dtype(kind if isinstance(kind, str) else [(name, of) for name, of in kind])
        np.frombuffer(data, dtype)
    except (TypeError, ValueError):  # it was altered before
        return [kind, shape, data[:-1]]
    way = rng.random()
    if way < 0.1 or not data:
        return [kind, [max(0, n + rng.choice((-1, 1))) for n in shape], data]
    if way < 0.15:
        return [kind, rng.choice(([2**40], [0, 2**40], [-1], [2**62, 4], ["a"], 7, [1] * 40)), data]
    if way < 0.2:
        fewer = rng.randrange(shape[0] + 1) if shape else 0
        values = np.frombuffer(data, dtype).reshape(shape)
        return [kind, [fewer, *shape[1:]], values[:fewer].tobytes()] if shape else [kind, shape, b""]
    if way < 0.25:
        kinds = ("<i4", "<f8", "|u1", "<i8", "O", "V0", "<U9999", "(2,)i8", "M8[s]", [["a", "<i8"]], None)
        return [rng.choice(kinds), shape, data]
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
    if rng.random() < 0.1:
        deep: Any = []
        for _ in range(rng.choice((3, 600))):
            deep = [deep]
        choice = (
            None,
            7,
            -1,
            0.5,
            "other",
            b"\xff",
            [],
            {},
            [[1]],
            {"a": {}},
            True,
            "\x1b[2J\0",
            "x" * 70000,
        )
        return rng.choice((*choice, deep))
    if isinstance(value, bool):
        return rng.choice((not value, None, 2))
    if isinstance(value, int):
        return number(rng, value)
    if isinstance(value, float):
        return rng.choice((float("nan"), float("inf"), -1.0, value * 2 + 1, 1e300, 3))
    if isinstance(value, dict):
        other = dict(value)
        if other and rng.random() < 0.6:
            gone = other.pop(rng.choice(list(other)))
            return other if rng.random() < 0.7 else other | {"another": gone}
        return other | {rng.choice(("more", "", 7)): rng.choice((1, None, "x", other))}
    if isinstance(value, list):
        shorter = list(value)
        if shorter and rng.random() < 0.7:
            del shorter[rng.randrange(len(shorter))]
            return shorter
        return shorter + shorter[-1:]
    if isinstance(value, bytes):
        return value[:-8] if rng.random() < 0.5 else bytes(rng.randrange(256) for _ in range(len(value)))
    if isinstance(value, str) and value and rng.random() < 0.5:
        return rng.choice((value[:-1], value + "x", "../" + value, value.upper()))
    return rng.choice((None, 7, "other", [], {}))


def altered(packed: bytes, rng: random.Random, favourite: str = "") -> bytes:
    """Values of msgpack altered: one to three."""
    value = msgspec.msgpack.decode(packed)
    parts = list(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found: list[tuple[Any, Callable[[Any], None]]] = []
        part = rng.choice([*parts, favourite, favourite, favourite] if favourite in value else parts)
        sites(value.get(part), functools.partial(value.__setitem__, part), found)
        if rng.random() < 0.03:
            value = another(value, rng)
            parts = list(value) if isinstance(value, dict) else []
            if not parts:
                break
        elif found:  # the alteration before may have left nothing here
            old, put = rng.choice(found)
            put(another(old, rng))
    return msgspec.msgpack.encode(value)


def scrambled(data: bytes, rng: random.Random) -> bytes:
    """Bytes altered: some flipped, some left out, some more, some twice."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(4):
            case 0 if at < len(found):
                found[at] = rng.choice((0x00, 0x7F, 0x80, 0xC1, 0xC6, 0xDD, 0xDF, 0xFF, rng.randrange(256)))
            case 1:
                del found[at : at + rng.choice((1, 1, 4, 100))]
            case 2:
                found[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
            case _:
                found[at:at] = found[at : at + rng.choice((1, 8, 300))]
    return bytes(found)


FAVOURITES = {"log": "templates"}


def mutant(case: Case, seed: int) -> bytes:
    """The newest snapshot of a case, altered."""
    rng = random.Random(f"{case.name} {seed}")
    _, version, head, _ = PREFIX.unpack_from(case.content)
    header = case.content[PREFIX.size : PREFIX.size + head]
    state = case.content[PREFIX.size + head : -4]
    way = rng.random()
    if way < 0.4:
        state = altered(state, rng, FAVOURITES.get(case.name, "state"))
    elif way < 0.7:
        header = altered(header, rng)
    elif way < 0.85:
        state = scrambled(state, rng)
    elif way < 0.97:
        header = scrambled(header, rng)
    lengths = [len(header), len(state)]
    if way >= 0.97:
        lengths[rng.randrange(2)] = rng.choice((0, 1, 2**31, 2**32 - 1))
        version = rng.choice((version, version, 0, 1, FORMAT + 1, 65535))
    start = PREFIX.pack(MAGIC, version, *lengths) + header + state
    return start + zlib.crc32(start).to_bytes(4, "little")


# ---------------------------------------------------------------- what becomes of it


def outcome(case: Case, seed: int) -> tuple[int, float, int, str]:
    """What a process makes of a mutant: an exit code, or minus a signal; seconds; MiB; what it said."""
    with restored(case, mutant(case, seed)) as folder:
        began, said = time.monotonic(), folder.parent / "said"
        said.unlink(missing_ok=True)
        around = set(folder.parent.iterdir())
        child = os.fork()
        if child == 0:
            os._exit(_try(case, folder, said, refined=seed % 3 == 0))
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code in (RAN, REFUSED):
            allowed = {"in", "out", "out.rejects.jsonl", "events", "state"}
            more = {path.name for path in folder.iterdir()} - allowed
            if more or set(folder.parent.iterdir()) != around | {said}:
                code = TOUCHED
        text = said.read_text(errors="replace") if said.exists() else ""
        return code, time.monotonic() - began, used.ru_maxrss >> 10, text


def _try(case: Case, folder: Path, said: Path, *, refined: bool) -> int:
    signal.alarm(SECONDS)
    code = RAISED
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + MOST
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        out = os.open(said, os.O_RDWR | os.O_CREAT)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(out, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, closefd=False)  # noqa: SIM115
        os.chdir(folder)
        codes = []
        for arguments in (SHOW, *((REFINE,) if refined else ()), case.run):
            sys.argv = ["streamdp", *arguments]
            try:
                streamdp()
            except SystemExit as end:
                codes.append(end.code)
        text = said.read_text(errors="replace")
        refused = any(codes) or "trying the one before it" in text
        code = REFUSED if refused else RAN
        if 1 in codes or 71 in codes or "Unable to allocate" in text:
            code = RAISED
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
    return code


def search(wanted: Iterable[tuple[Case, int]]) -> dict[str, Any]:
    """Try mutants, and print what those say that fail."""
    counts: Counter[str] = Counter()
    slowest, largest = 0.0, 0
    for case, seed in wanted:
        code, seconds, mebibytes, said = outcome(case, seed)
        what = {RAN: "ran", REFUSED: "refused"}.get(code, "failed")
        counts[what] += 1
        slowest, largest = max(slowest, seconds), max(largest, mebibytes)
        if what == "failed":
            last = "".join(said.splitlines(keepends=True)[-12:])
            print(f"{case.name}, seed {seed}: {code}\n{last}", flush=True)
    return {**counts, "seconds": round(slowest, 1), "mebibytes": largest}


def main() -> int:
    parser = argparse.ArgumentParser(description="Tamper with snapshots, and see what becomes of it.")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, action="append", help="only this one")
    parser.add_argument("--case", action="append", choices=CASES, help="only this kind of state")
    options = parser.parse_args()
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        cases = [make(name, Path(folder) / name) for name in options.case or CASES]
        seeds = options.seed or range(options.first, options.first + options.count)
        found = search((cases[seed % len(cases)], seed) for seed in seeds)
    print(json.dumps(found))
    return 1 if found.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
