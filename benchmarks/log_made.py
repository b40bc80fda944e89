"""Generated logs with known templates: values of many kinds, frequencies by Zipf's law."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.log_lines import Line

CHOOSE, JUDGE = range(40), range(40, 60)
"""Seeds of the logs that constants are chosen on, and of those that they are judged on."""

VERBS = [
    "open",
    "close",
    "start",
    "stop",
    "add",
    "remove",
    "create",
    "delete",
    "attach",
    "detach",
    "load",
    "unload",
    "send",
    "receive",
    "accept",
    "reject",
    "mount",
    "unmount",
    "lock",
    "unlock",
    "pause",
    "resume",
    "enable",
    "disable",
    "read",
    "write",
    "fetch",
    "store",
]
NOUNS = [
    "session",
    "connection",
    "volume",
    "container",
    "pod",
    "target",
    "request",
    "response",
    "body",
    "header",
    "index",
    "snapshot",
    "lease",
    "queue",
    "topic",
    "partition",
    "worker",
    "job",
    "task",
    "cache",
    "table",
    "shard",
    "replica",
    "route",
    "tunnel",
    "socket",
    "channel",
    "stream",
    "certificate",
    "token",
    "policy",
    "bucket",
    "image",
    "layer",
    "device",
    "disk",
    "node",
    "cluster",
    "region",
    "scheduler",
    "listener",
]
REASONS = [
    "timed out",
    "was refused",
    "is not reachable",
    "has expired",
    "is out of range",
    "was reset by its peer",
    "is full",
    "is read only",
    "does not exist",
    "took too long",
    "was cancelled",
    "could not be parsed",
]
LINKS = ["for", "from", "to", "in", "of", "on", "with", "by", "at", "via"]
KEYS = [
    "user",
    "host",
    "path",
    "size",
    "count",
    "name",
    "reason",
    "took",
    "id",
    "addr",
    "owner",
    "state",
    "mode",
    "source",
]
SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "wu",
    "za",
    "an",
    "el",
    "or",
    "in",
]


class Values:
    """Values of one log: of each kind there are some that come again, the first most often."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._names = [self._word() for _ in range(60)]
        self._phrases = [
            " ".join(draw.sample(self._names, draw.choice((1, 2, 2, 3)))).title() for _ in range(40)
        ]
        self._hosts = [f"{self._word()}.{self._word()}.net" for _ in range(20)]
        self.kinds: dict[str, Callable[[], str]] = {
            "number": lambda: str(draw.randrange(10 ** draw.randrange(1, 7))),
            "hex": lambda: f"{draw.getrandbits(48):012x}",
            "address": lambda: f"10.{draw.randrange(9)}.{draw.randrange(99)}.{draw.randrange(250)}",
            "duration": lambda: f"{draw.randrange(900)}{draw.choice(('ms', ' ms', 's'))}",
            "name": lambda: self._some(self._names),
            "host": lambda: self._some(self._hosts),
            "id": lambda: f"{self._some(self._names)}-{draw.getrandbits(20):05x}-{draw.randrange(9)}",
            "path": lambda: "".join(f"/{self._some(self._names)}" for _ in range(draw.randrange(1, 4))),
            "query": lambda: f"/{self._some(self._names)}{self._query()}",
            "quoted": lambda: f'"{self._some(self._phrases)}"',
            "list": lambda: f"[{', '.join(self._several())}]",
            "strings": lambda: "[" + ", ".join(f'"{each}"' for each in self._several()) + "]",
            "object": self._object,
        }

    def _word(self) -> str:
        return "".join(self._draw.choice(SYLLABLES) for _ in range(self._draw.randrange(2, 4)))

    def _some(self, values: list[str]) -> str:
        return values[int(len(values) * self._draw.random() ** 2.5)]

    def _several(self) -> list[str]:
        return [self._some(self._names) for _ in range(self._draw.randrange(1, 5))]

    def _query(self) -> str:
        parts = [
            f"{key}={self._some(self._names)}" for key in self._draw.sample(KEYS, self._draw.randrange(4))
        ]
        return "?" + "&".join(parts) if parts else ""

    def _object(self) -> str:
        keys = self._draw.sample(KEYS, self._draw.randrange(1, 4))
        parts = [f'"{key}": {self._draw.choice((self._quoted, self.kinds["number"]))()}' for key in keys]
        return "{" + ", ".join(parts) + "}"

    def _quoted(self) -> str:
        return f'"{self._some(self._names)}"'


Template = list[tuple[str, str]]
"""Parts: what stands before a value, and its kind; none at the end where that is empty."""


def _tail(draw: random.Random, kinds: list[str]) -> Template:
    """Some values with what is before each: keys, or words."""
    keyed, parts = draw.random() < 0.5, list[tuple[str, str]]()
    for key in draw.sample(KEYS, draw.choice((0, 1, 1, 2, 2, 3))):
        link = f" {draw.choice(LINKS)} " if draw.random() < 0.6 else f" {draw.choice(NOUNS)} "
        parts.append((f" {key}=" if keyed else link, draw.choice(kinds)))
    return parts


def _siblings(draw: random.Random, kinds: list[str]) -> list[Template]:
    """Templates alike but for a first word, a verb or an event's name; often one alone."""
    style, noun, other = draw.randrange(7), draw.choice(NOUNS), draw.choice(NOUNS)
    count = draw.choice((1, 1, 1, 2, 2, 4))
    tail = _tail(draw, kinds)
    verbs = draw.sample(VERBS, count)
    if style == 0:  # an event's name, with its moment
        tail = tail or [(" took=", "duration")]
        return [[(f"{verb}_{noun}.{when}{tail[0][0]}", tail[0][1]), *tail[1:]]
                for verb in verbs for when in ("started", "complete")]  # fmt: skip
    if style == 1:  # a message in quotes
        return [[(f'level=info msg="{verb.title()} {noun} {other}"', ""), *tail] for verb in verbs]
    if style == 2:
        return [[(f"{verb.title()}{noun.title()} for ", "quoted" if draw.random() < 0.3 else "id"), *tail]
                for verb in verbs]  # fmt: skip
    if style == 3:
        reason = draw.choice(REASONS)
        return [[(f"Failed to {verb} {noun}: {other} {reason}", ""), *tail] for verb in verbs]
    if style == 4:
        return [
            [(f"{draw.choice(NOUNS)} ", "name"), (f" {verb}s {noun} {other}", ""), *tail] for verb in verbs
        ]
    if style == 5:  # a value is first
        kind = draw.choice(("name", "host"))
        return [[("", kind), (f" {verb}s the {noun} {other}", ""), *tail] for verb in verbs]
    return [[(f"{verb.title()}ing {noun} of {other}", ""), *tail] for verb in verbs]


def made_log(seed: int, lines: int = 2000) -> list[Line]:
    """A log of one seed."""
    draw = random.Random(seed)
    values = Values(draw)
    kinds = draw.sample(sorted(values.kinds), 8)
    templates: list[Template] = []
    most = draw.randrange(20, 60)
    while len(templates) < most:
        templates += _siblings(draw, kinds)
    shown = list(dict.fromkeys("".join(f"{text}<{kind}>" for text, kind in each) for each in templates))
    by_shown = {"".join(f"{text}<{kind}>" for text, kind in each): each for each in templates}
    draw.shuffle(shown)
    weights = [1 / (rank + 2) for rank in range(len(shown))]
    made = []
    for number, name in enumerate(draw.choices(shown, weights, k=lines)):
        text = "".join(part + (values.kinds[kind]() if kind else "") for part, kind in by_shown[name])
        made.append(Line(str(number), text, text, name, name))
    return made
