"""Agreement with the stories of invented headlines, in ten languages and in mixed streams.

Each file of ``tests/data/languages`` has twelve invented stories of five headlines each, in order.
The first six of each language are to choose by, the last six to judge: each half is a stream of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import show_named
from streamdp import Engine, Settings
from streamdp.scoring.agreement import agreement

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "languages"

ORDERS = 5
"""Ways in which stories are interleaved, over which figures are means."""

MIXED = ("german+english", "chinese+english")


def stories(language: str, half: str) -> list[list[str]]:
    """The stories of a half, "choose" or "judge"; of several languages joined by "+", those of all."""
    found = list[list[str]]()
    for name in language.split("+"):
        text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        all_of_it = [block.splitlines() for block in text.strip().split("\n\n")]
        found += all_of_it[: len(all_of_it) // 2] if half == "choose" else all_of_it[len(all_of_it) // 2 :]
    return found


def interleaved(given: list[list[str]], seed: int) -> tuple[list[str], np.ndarray]:
    """The headlines of stories in one order, those of a story in their own, and the story of each."""
    truth = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(given)), [*map(len, given)]))
    parts = [iter(story) for story in given]
    return [next(parts[story]) for story in truth], truth


def agreed(language: str, half: str, **given: Any) -> tuple[float, float]:
    """NMI of labels as first announced and newest, each the mean over orders."""
    scores = list[tuple[float, float]]()
    for seed in range(ORDERS):
        texts, truth = interleaved(stories(language, half), seed)
        engine = Engine(Settings(**given))
        first = np.array([answer.cluster for answer in engine.advance(texts).lines if answer.revision == 0])
        engine.finish()
        newest = np.array(engine.lately()[0])
        scores.append((agreement(first, truth).nmi, agreement(newest, truth).nmi))
    first_nmi, newest_nmi = np.mean(scores, 0).tolist()
    return first_nmi, newest_nmi


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="judge", choices=["choose", "judge"])
    parser.add_argument("--stop-words", default="auto")
    parser.add_argument("--stem", default=Settings().stem)
    options = parser.parse_args()
    names = [*sorted(path.stem for path in FOLDER.glob("*.txt")), *MIXED]
    rows = list[dict[str, object]]()
    for name in names:
        first, newest = agreed(name, options.half, stop_words=options.stop_words, stem=options.stem)
        rows.append({"language": name, "NMI first": f"{first:.3f}", "newest": f"{newest:.3f}"})
    show_named("", rows)


if __name__ == "__main__":
    main()
