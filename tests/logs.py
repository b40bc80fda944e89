"""Logs with known templates, made up."""

from __future__ import annotations

import random
from collections.abc import Callable

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
