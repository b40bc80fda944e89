"""How far each stage of a run is from what the memory of this machine could do: tweets, file to file.

Bytes that a record reads and writes, by kind of memory, are counted: sizes of files, and of what the search
visits (postings, clusters that share a word, size classes, contested columns, answers), record by record.
What the machine moves a second is measured in the same process: copying an array, and reading it at random
places, where it is large and where the cache of a core holds it. A stage takes at least as long as its bytes
at the rate of the copy, and its places: input and output in memory, the search in the cache, which holds the
state of some hundred clusters. What it took is CPU time by the clocks of ``streamdp_stage_seconds_total``,
without start-up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.end_to_end import texts
from benchmarks.workloads import (
    Document,
    chunks,
    documents,
    encode,
    records_of,
    show,
    timed,
    warm,
    word_search,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.engine import Engine
from streamdp.kernels.jit import entry
from streamdp.plots.style import COLOURS, INK, look
from streamdp.settings import Settings

LARGE, SMALL = 2**25, 2**15
"""Numbers of eight bytes: far more than any cache holds, and what that of a core does."""

READS = 4_000_000


class Account(NamedTuple):
    """Of a record: bytes read and written one after another, and places visited at random."""

    read: float
    written: float
    places: float = 0.0


class Moved(NamedTuple):
    """Bytes copied a second, each read and written, and places read a second."""

    copied: float
    places: float

    def least(self, of: Account) -> float:
        """Microseconds that so much takes at least."""
        return 1e6 * ((of.read + of.written) / (2.0 * self.copied) + of.places / self.places)


@entry
def gather(numbers: np.ndarray, places: np.ndarray, total: np.ndarray) -> None:
    """Add the numbers at these places."""
    found = 0.0
    for i in range(places.shape[0]):
        found += numbers[places[i]]
    total[0] = found


def moved(size: int) -> Moved:
    """What the machine moves of an array of so many numbers: the best of three."""
    numbers, other, total = np.ones(size), np.zeros(size), np.zeros(1)
    places, times = np.random.default_rng(1).integers(0, size, READS), LARGE // size

    def copy() -> None:
        for _ in range(times):
            np.copyto(other, numbers)

    def read() -> None:
        gather(numbers, places, total)

    read()
    copied, visited = (min(timed(work) for _ in range(3)) for work in (copy, read))
    return Moved(times * numbers.nbytes / copied, READS / visited)


# ---------------------------------------------------------------- what a record visits


def of_search(search: BeamSearch, batch: Batch) -> dict[str, Account]:
    """The account of the search by kind of memory, on average over the records of a batch."""
    index, scores = search.words.inverted, search.scores
    sums: dict[str, np.ndarray] = {}

    def add(kind: str, read: float, written: float, places: float = 0.0) -> None:
        sums[kind] = sums.get(kind, np.zeros(3)) + np.array([read, written, places])

    for one in chunks(batch, 1):
        words = len(one.words)
        postings = float(index.lists["length"][one.words].sum())
        for _, _, out in search.run(one):
            answer = out.answers.itemsize
        index, scores, state = search.words.inverted, search.scores, search.state
        touched = int(scores.words.counters.touched)
        classes = int(search.words.sizes.counters.high)
        contested, width = int(state.pool.counters.contested), int(state.beam.counters.width)
        cell = scores.words.cells.itemsize
        add("words and counts", 8.0 * words, 0.0, words)
        add("postings", 8.0 * postings, 0.0, words)
        add("clusters that share a word", touched * (2.0 * cell + 40.0), touched * (cell + 8.0), 2 * touched)
        add("size classes", 8.0 * classes * (2 * words + 4), 8.0 * classes * (2 * words + 2))
        add("contested clusters", contested * (width + 24.0), contested * (width + 16.0), contested)
        add("what joins", 12.0 * words, 20.0 * words, 3 * words)
        add("answers", 0.0, answer)
    return {kind: Account(*(total / batch.size)) for kind, total in sums.items()}


def together(accounts: dict[str, Account], times: float = 1.0) -> Account:
    """Their sum, so many times over."""
    return Account(*(times * float(part) for part in np.sum(list(accounts.values()), axis=0)))


# ---------------------------------------------------------------- what a run takes


def run_of(path: Path, records: int, *more: str) -> dict[str, float]:
    """CPU microseconds a record of ``consume``, by stage; with more options."""
    from streamdp.cli import observers
    from streamdp.cli.app import app
    from streamdp.monitor.stages import Stages

    held: list[Stages] = []

    def clocks(_: object) -> Stages:
        held.append(Stages(time.process_time))
        return held[-1]

    observers.Stages = clocks  # type: ignore[misc,assignment]
    try:
        command = ["consume", "--file", str(path), "--output", f"{path}.out", "--overwrite", *more]
        app(command, standalone_mode=False)
    finally:
        observers.Stages = Stages  # type: ignore[misc]
    return {stage: 1e6 * seconds / records for stage, seconds in held[0].seconds().items()}


def looks_of(corpus: list[Document]) -> float:
    """Second looks a record."""
    engine = Engine(Settings())
    engine.advance(records_of(corpus))
    engine.finish()
    return engine.counters()["second_looks"] / len(corpus)


def plot(path: str, rows: Sequence[tuple[str, float, float]]) -> None:
    """Draw each stage's time beside the least."""
    from matplotlib.figure import Figure

    names, taken, least = zip(*rows, strict=True)
    with look():
        figure = Figure(figsize=(9.0, 4.4), dpi=100, layout="constrained")
        axes, at = figure.subplots(), np.arange(len(names))
        for values, shift, colour, label in (
            (taken, -0.2, COLOURS[0], "taken"),
            (least, 0.2, COLOURS[1], "least, by what this machine moves"),
        ):
            axes.barh(at + shift, values, 0.38, color=colour, label=label)
            for y, value in zip(at + shift, values, strict=True):
                axes.text(value, y, f" {value:.2f}", va="center", color=INK, fontsize=9)
        axes.set_yticks(at, names)
        axes.invert_yaxis()
        axes.set_xlabel("CPU microseconds a tweet")
        axes.legend(loc="lower right")
        figure.savefig(path)


def main() -> None:
    """Run, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=4, help="how often the tweets are repeated")
    parser.add_argument("--plot", help="file to draw the stages into")
    options = parser.parse_args()
    warm()
    corpus = documents("tweets_t")
    seen = encode(corpus)
    search = word_search(Settings(), seen.vocabulary)
    kinds = of_search(search, seen.batch)
    words = len(seen.batch.words) / seen.batch.size
    with tempfile.TemporaryDirectory() as name:
        path, records = texts(Path(name), "tweets_t", options.times)
        run_of(path, records)
        taken = run_of(path, records)
        came, went = path.stat().st_size / records, Path(f"{path}.out").stat().st_size / records
    text = float(np.mean([len(d.text.encode()) for d in corpus]))
    memory, cache = moved(LARGE), moved(SMALL)
    stages = {
        "read": ("fetch", memory, Account(came, came)),
        "decode": ("decode", memory, Account(came, came)),
        "tokenise": ("encode", memory, Account(text, 8.0 * words, 2 * words)),
        "search": ("kernel", cache, together(kinds)),
        "second looks": ("looks", cache, together(kinds, looks_of(corpus))),
        "answers to lines": ("announce", memory, Account(kinds["answers"].written, went)),
        "write": ("write", memory, Account(went, went)),
    }
    show(
        f"a tweet of {words:.1f} words, by kind of memory",
        ("", "bytes read", "written", "places"),
        [
            (kind, f"{a.read:,.0f}", f"{a.written:,.0f}", f"{a.places:.0f}")
            for kind, a in {"input": Account(came, 0.0), **kinds, "lines": Account(0.0, went)}.items()
        ],
    )
    show(
        "this machine, by where an array lies",
        ("", "copies GB a second", "reads million places a second"),
        [
            (where, f"{of.copied / 1e9:.1f}", f"{of.places / 1e6:,.0f}")
            for where, of in (("in memory", memory), ("in the cache of a core", cache))
        ],
    )
    drawn = [(stage, taken[clock], of.least(account)) for stage, (clock, of, account) in stages.items()]
    rest = taken["other"] + taken["snapshot"]
    show(
        f"CPU us a tweet of {records:,}, without start-up",
        ("", "taken", "least", "times"),
        [
            *((stage, f"{us:.2f}", f"{least:.3f}", f"{us / least:.0f}") for stage, us, least in drawn),
            ("between batches", f"{rest:.2f}", "", ""),
        ],
    )
    if options.plot:
        plot(options.plot, drawn)


if __name__ == "__main__":
    main()
