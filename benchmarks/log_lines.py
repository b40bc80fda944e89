"""Logs with known templates, made-up ones, and Drain3, for ``benchmarks.logs``."""

from __future__ import annotations

import gzip
import random
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.workloads import data_folder

SETS = ("HDFS", "Apache", "BGL", "Zookeeper", "Hadoop", "HealthApp", "OpenSSH", "Android")
"""Those of loghub (Zhu et al., ISSRE 2023), 2,000 lines each."""

LATER = ("Linux", "OpenStack", "Proxifier", "Thunderbird", "HiBench")
"""Four more of loghub, and one of LUNAR (Huang et al., FSE 2025), 1,879 lines."""

EDGE, END = r"((?<=[^A-Za-z0-9])|^)", r"((?=[^A-Za-z0-9])|$)"
MASKS = (
    (rf"{EDGE}(([0-9a-f]{{2,}}:){{3,}}([0-9a-f]{{2,}})){END}", "ID"),
    (rf"{EDGE}(\d{{1,3}}\.\d{{1,3}}\.\d{{1,3}}\.\d{{1,3}}){END}", "IP"),
    (rf"{EDGE}([0-9a-f]{{6,}} ?){{3,}}{END}", "SEQ"),
    (rf"{EDGE}([0-9A-F]{{4}} ?){{4,}}{END}", "SEQ"),
    (rf"{EDGE}(0x[a-f0-9A-F]+){END}", "HEX"),
    (rf"{EDGE}([\-\+]?\d+){END}", "NUM"),
    (r"(?<=executed cmd )(\".+?\")", "CMD"),
)
"""The masks of Drain3's example."""


class Line(msgspec.Struct):
    """A line of a set: as written, its message, its true template as published, and as corrected later.

    The corrections are of Khan et al. (ICSE 2022).
    """

    id: str
    raw: str
    text: str
    cluster: str
    corrected: str = ""


class Correction(msgspec.Struct):
    """The corrected template of a line of a set, counted from 1."""

    set: str
    line: int
    corrected: str


def log_lines(name: str) -> list[Line]:
    """All lines of one set."""
    decode, folder = msgspec.json.Decoder(Line).decode, data_folder() / "logs"
    with gzip.open(next(folder.glob(f"{name}_*.jsonl.gz")), "rb") as file:
        lines = [decode(line) for line in file]
    if not lines[0].corrected:
        corrected = corrections()
        for line in lines:
            line.corrected = corrected[name, int(line.id)]
    return lines


@cache
def corrections() -> dict[tuple[str, int], str]:
    """The corrected templates of the sets whose files do not hold them."""
    decode = msgspec.json.Decoder(Correction).decode
    with gzip.open(data_folder() / "logs" / "corrected.jsonl.gz", "rb") as file:
        found = [decode(line) for line in file]
    return {(each.set, each.line): each.corrected for each in found}


def drain(masks: bool = False) -> Any:
    """Drain3 with its defaults, or with the masks of its example."""
    from drain3 import TemplateMiner
    from drain3.masking import MaskingInstruction
    from drain3.template_miner_config import TemplateMinerConfig

    config = TemplateMinerConfig()
    if masks:
        config.masking_instructions = [MaskingInstruction(pattern, name) for pattern, name in MASKS]
    return TemplateMiner(config=config)


def accuracy(found: Sequence[object], truth: Sequence[object]) -> tuple[float, float]:
    """Group accuracy, and F1 over groups found exactly (FGA)."""
    ours, theirs = groups(found), groups(truth)
    exact = ours & theirs
    share = 2 * len(exact) / (len(ours) + len(theirs))
    return sum(map(len, exact)) / len(truth), share


def groups(labels: Sequence[object]) -> set[frozenset[int]]:
    """The sets of lines of each label."""
    members: dict[object, list[int]] = defaultdict(list)
    for i, label in enumerate(labels):
        members[label].append(i)
    return {frozenset(lines) for lines in members.values()}


class Fresh:
    """Lines of the sets again and again, with fresh values in the holes of their true templates.

    Digits are drawn anew in every line; with ``words``, letters of tokens that vary within a template too.
    """

    def __init__(self, *, words: bool, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._lines: list[list[tuple[str, bool]]] = []
        for name in SETS:
            lines = log_lines(name)
            values: dict[tuple[str, int], list[set[str]]] = {}
            split = [line.text.split() for line in lines]
            for line, tokens in zip(lines, split, strict=True):
                seen = values.setdefault((line.cluster, len(tokens)), [set() for _ in tokens])
                for i, token in enumerate(tokens):
                    seen[i].add(token)
            for line, tokens in zip(lines, split, strict=True):
                varies = [len(each) > 1 for each in values[line.cluster, len(tokens)]]
                self._lines.append([(token, words and v) for token, v in zip(tokens, varies, strict=True)])

    def draw(self, count: int) -> list[str]:
        """So many lines, in random order."""
        choose = self._random.choices(self._lines, k=count)
        return [" ".join(self._token(token, hole) for token, hole in line) for line in choose]

    def _token(self, token: str, hole: bool) -> str:
        if not hole and token.isalpha():
            return token
        draw = self._random.random
        return "".join(
            chr(48 + int(draw() * 10)) if "0" <= c <= "9"
            else chr(97 + int(draw() * 26)) if hole and "a" <= c <= "z"
            else chr(65 + int(draw() * 26)) if hole and "A" <= c <= "Z"
            else c
            for c in token
        )  # fmt: skip


def write_log(path: Path, texts: Sequence[str]) -> None:
    """A log of these messages, all of one time."""
    path.write_text("".join(f"2026-01-05 10:00:00 INFO {text}\n" for text in texts))


def made_templates(count: int, seed: int = 0) -> list[list[str]]:
    """Templates of 6 to 12 random words of a vocabulary, with two numbers in each."""
    draw = np.random.default_rng(seed)
    words = ["".join(chr(97 + c) for c in draw.integers(0, 26, n)) for n in draw.integers(3, 10, 5000)]
    made = []
    for _ in range(count):
        tokens = [words[i] for i in draw.zipf(1.3, int(draw.integers(6, 13))) % len(words)]
        tokens[int(draw.integers(1, 3))] = "0"
        tokens[-1] = "0"
        made.append(tokens)
    return made
