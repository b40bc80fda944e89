"""Logs with known templates, made up."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

USERS = "root mysql ftp news uucp games daemon backup nobody sync proxy irc list man lp mail gnats".split()  # noqa: SIM905

Made = Callable[[random.Random], str]


def ip(r: random.Random) -> str:
    """An address."""
    return ".".join(str(r.randrange(1, 255)) for _ in range(4))


def uuid(r: random.Random) -> str:
    """A random UUID."""
    digits = f"{r.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


TEMPLATES: tuple[Made, ...] = (
    lambda r: f"Accepted password for {r.choice(USERS)} from {ip(r)} port {r.randrange(65536)} ssh2",
    lambda r: f"Failed password for {r.choice(USERS)} from {ip(r)} port {r.randrange(65536)} ssh2",
    lambda r: f"session {uuid(r)} opened for user {r.choice(USERS)}",
    lambda r: f"session {uuid(r)} closed for user {r.choice(USERS)} after {r.randrange(10**5)} ms",
    lambda r: f"GET /cart/{r.randrange(10**4)} 200 {r.randrange(900)}ms",
    lambda r: f"POST /order/{uuid(r)} 201 {r.randrange(900)}ms",
    lambda r: f"checkpoint complete: wrote {r.randrange(10**5)} buffers in {r.random() * 9:.3f} s",
    lambda r: f"connection from {ip(r)}:{r.randrange(65536)} refused",
    lambda r: f"job {uuid(r)} was given to worker-{r.randrange(40)}",
    lambda r: f"replica 0x{r.getrandbits(32):08x} is behind by {r.randrange(10**6)} bytes",
    lambda r: "deleting blocks " + " ".join(f"blk_{r.getrandbits(40)}" for _ in range(r.randrange(1, 6))),
    lambda r: "out of memory: cannot allocate",
)
"""Twelve templates: numbers, addresses, UUIDs, words and a list are in their holes."""


def lines(count: int, seed: int = 0) -> tuple[list[str], list[int]]:
    """Lines of all templates, and the number of the template of each."""
    r = random.Random(seed)
    kinds = [r.randrange(len(TEMPLATES)) for _ in range(count)]
    return [TEMPLATES[kind](r) for kind in kinds], kinds


def stamped(form: str, stem: str = "") -> Callable[[float], str]:
    """A time of UTC written by a form of ``strftime``, with its fraction of a second behind ``stem``."""

    def written(at: float) -> str:
        moment = datetime.fromtimestamp(at, UTC)
        return moment.strftime(form) + (f"{stem}{moment.microsecond // 1000:03d}" if stem else "")

    return written


LEVELS = ("INFO", "INFO", "INFO", "WARN", "ERROR", "DEBUG")
PARTS = ("cart", "store", "sshd", "DataNode", "quorum")

Head = Callable[[random.Random, float, str, str], str]

HEADS: dict[str, Head] = {
    "iso": lambda r, at, level, part: f"{stamped('%FT%T', '.')(at)}Z {level} [worker-{r.randrange(9)}] ",
    "python": lambda r, at, level, part: f"{stamped('%F %T', ',')(at)} - shop.{part} - {level} - ",
    "java": lambda r, at, level, part: f"{stamped('%F %T', ',')(at)} {level} [main] org.{part}.Node: ",
    "hdfs": lambda r, at, level, part: (
        f"{stamped('%y%m%d %H%M%S')(at)} {r.randrange(999)} {level} dfs.{part}: "
    ),
    "zookeeper": lambda r, at, level, part: f"{stamped('%F %T', ',')(at)} - {level}  [{part}:Peer@7] - ",
    "spark": lambda r, at, level, part: f"{stamped('%y/%m/%d %T')(at)} {level} {part}.Executor: ",
    "firewall": lambda r, at, level, part: f"{stamped('%b %d %Y %T')(at)} fw {level} {part}: ",
    "android": lambda r, at, level, part: (
        f"{stamped('%m-%d %T', '.')(at)}  {r.randrange(9999)}  7 {level[0]} {part}: "
    ),
    "health": lambda r, at, level, part: f"{stamped('%Y%m%d-%T', ':')(at)}|Step_{part}|{r.randrange(10**8)}|",
    "apache": lambda r, at, level, part: f"[{stamped('%a %b %d %T %Y')(at)}] [{level.lower()}] ",
    "syslog": lambda r, at, level, part: (
        f"{stamped('%b %d %T')(at)} combo {part}(auth)[{r.randrange(9999)}]: "
    ),
    "glog": lambda r, at, level, part: (
        f"{level[0]}{stamped('%m%d %T', '.')(at)} {r.randrange(99)} {part}.cc:99] "
    ),
    "epoch": lambda r, at, level, part: f"{at:.3f} {level} ",
    "supercomputer": lambda r, at, level, part: (
        f"- {at:.0f} {stamped('%Y.%m.%d')(at)} R02 "
        f"{stamped('%Y-%m-%d-%H.%M.%S.%f')(at)} R02 RAS KERNEL {level} "
    ),
    "none": lambda r, at, level, part: "",
}
"""How programs begin a line, by names of their kinds."""


def program(kind: str, count: int, seed: int = 0) -> tuple[list[str], list[int]]:
    """Lines as a program writes them, some with a stack trace; the template of each that has a head."""
    r, at, found = random.Random(seed), 1767607200.0, list[str]()
    messages, kinds = lines(count, seed)
    for message in messages:
        at += r.random() * 5
        found.append(HEADS[kind](r, at, r.choice(LEVELS), r.choice(PARTS)) + message)
        if kind != "none" and r.random() < 0.01:
            found += [
                "java.io.IOException: disk full",
                f"\tat java.io.File.write(File.java:{r.randrange(99)})",
            ]
    return found, kinds


def worded(count: int, seed: int = 0) -> tuple[list[str], list[int]]:
    """Lines of forty templates of made-up words, with numbers and other words in their holes."""
    r = random.Random(seed)

    def word() -> str:
        return "".join(r.choice("bdfgklmnprstvz") + r.choice("aeiou") for _ in range(r.randrange(1, 5)))

    templates = [[r.choice((word(), word(), "#", "*")) for _ in range(r.randrange(3, 10))] for _ in range(40)]
    kinds = [min(int(r.expovariate(0.1)), 39) for _ in range(count)]
    drawn = {"#": lambda: str(r.randrange(10**5)), "*": word}
    return [" ".join(drawn.get(t, lambda t=t: t)() for t in templates[kind]) for kind in kinds], kinds
