"""Data, generated streams and clocks that the benchmarks share."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np
import psutil

from benchmarks.tables import show as show
from benchmarks.tables import show_named as show_named
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.encode.encoders import tokenizer_of
from streamdp.encode.vocabulary import Vocabulary
from streamdp.encode.word_encoder import WordEncoder
from streamdp.records import Record
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood, build_model, build_prior

CHUNK = 1000
"""Records in one call of the beam."""

# ---------------------------------------------------------------- real data


class Document(msgspec.Struct, frozen=True):
    """A line of a text corpus; ``cluster`` is None where the truth is unknown."""

    id: str
    time: float
    text: str
    cluster: str | int | None = None


def data_folder() -> Path:
    """Where the corpora lie: ``BENCH_DATA``, else ``../shared/data`` beside the repository."""
    given = os.environ.get("BENCH_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        sys.exit(f"no data in {folder}: name the folder in the environment variable BENCH_DATA")
    return folder


class _Line(msgspec.Struct, frozen=True):
    """A line as it is written; some corpora name the truth ``topic``, and have neither times nor ids."""

    text: str
    id: str | None = None
    time: float | None = None
    cluster: str | int | None = None
    topic: str | int | None = None


def documents(name: str) -> list[Document]:
    """All records of ``NAME.jsonl.gz``, or of ``more/NAME.jsonl.gz``."""
    folder, decode = data_folder(), msgspec.json.Decoder(_Line).decode
    if not (folder / f"{name}.jsonl.gz").exists():
        folder = folder / "more"
    with gzip.open(folder / f"{name}.jsonl.gz", "rb") as file:
        return [_document(i, decode(line)) for i, line in enumerate(file)]


def _document(i: int, line: _Line) -> Document:
    time = float(i) if line.time is None else line.time
    return Document(line.id or str(i), time, line.text, line.topic if line.cluster is None else line.cluster)


def records_of(texts: Iterable[Document]) -> list[Record]:
    """What ``Engine.advance`` takes."""
    return [
        Record(value=d.text, position={"line": i}, time=d.time, id=d.id) for i, d in enumerate(texts, start=1)
    ]


def mnist() -> tuple[np.ndarray, np.ndarray]:
    """60,000 digits: pixels / 255 projected on 50 principal components, unwhitened; and their labels."""
    from sklearn.decomposition import PCA

    with np.load(data_folder() / "mnist.npz") as file:
        pixels, truth = file["x_train"].reshape(-1, 784) / 255.0, file["y_train"].astype(np.int64)
    return np.ascontiguousarray(PCA(50, random_state=0).fit_transform(pixels)), truth


# ---------------------------------------------------------------- generated streams


class ShortTexts:
    """Texts of up to 6 to 12 different words about topics: 40 % of the words from a common background.

    The background has 20,000 words with Zipf's frequencies (1 / rank). A topic has ten words of its
    own, drawn from 100,000, of which a text takes any: with many topics, several share each word.
    """

    BACKGROUND, TOPICAL, OWN = 20_000, 100_000, 10
    WORDS = BACKGROUND + TOPICAL

    def __init__(self, topics: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.own = self.BACKGROUND + self.rng.integers(0, self.TOPICAL, (topics, self.OWN))
        frequency = 1.0 / np.arange(1, self.BACKGROUND + 1)
        self.totals = np.cumsum(frequency) / frequency.sum()

    def about(self, topics: np.ndarray) -> Encoded:
        """One text about each of the given topics, encoded."""
        rng, n = self.rng, topics.shape[0]
        lengths = rng.integers(6, 13, n)
        own = np.minimum(rng.binomial(lengths, 0.6), self.OWN)
        ranks = rng.permuted(np.tile(np.arange(self.OWN), (n, 1)), axis=1)
        taken = ranks < own[:, None]  # any ``own`` of a topic's words, each once
        of_own = np.nonzero(taken)[0]
        of_common = np.repeat(np.arange(n), lengths - own)
        common = np.searchsorted(self.totals, rng.random(of_common.shape[0]))
        keys = np.unique(
            np.concatenate([of_own * self.WORDS + self.own[topics][taken], of_common * self.WORDS + common])
        )
        texts, words = np.divmod(keys, self.WORDS)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(texts, minlength=n))])
        batch = Batch(
            offsets.astype(np.int64),
            words.astype(np.int32),
            np.ones(words.shape[0], np.int32),
            times=np.arange(n, dtype=float),
        )
        return Encoded(batch, self.WORDS)


# ---------------------------------------------------------------- records as the beam reads them


class Encoded(NamedTuple):
    """Texts, and how many words there are."""

    batch: Batch
    vocabulary: int


def chunks(batch: Batch, size: int = CHUNK) -> list[Batch]:
    """What one call of ``BeamSearch.run`` after another is given."""
    return [batch.slice(first, first + size) for first in range(0, batch.size, size)]


def encode(texts: Sequence[Document]) -> Encoded:
    """Texts tokenised and counted with the default settings."""
    s = Settings()
    encoder = WordEncoder(tokenizer_of(s), Vocabulary(s.max_words))
    kept = [d for d, r in zip(texts, records_of(texts), strict=True) if not encoder.add(Columns.of([r]))]
    return Encoded(encoder.take(np.array([d.time for d in kept], float)), len(encoder.vocabulary))


def word_search(settings: Settings, vocabulary: int) -> BeamSearch:
    """A new beam for word counts."""
    likelihood = build_likelihood(settings, None)
    search = BeamSearch(build_model(settings, build_prior(settings, True), likelihood), likelihood)
    search.ensure_words(vocabulary)
    return search


def feed(search: BeamSearch, batches: Iterable[Batch]) -> np.ndarray:
    """Let the beam absorb everything; the labels as first announced."""
    labels = []
    for batch in batches:
        for start, stop, out in search.run(batch):
            labels.append(out.answers["label"][start:stop].copy())
    return np.concatenate(labels)


@cache
def warm() -> None:
    """Compile the kernels, or load them, outside all measurements."""
    texts = ShortTexts(3, seed=0).about(np.array([0, 1, 2, 0, 1, 2]))
    feed(word_search(Settings(), texts.vocabulary), chunks(texts.batch))


# ---------------------------------------------------------------- clocks


def timed(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Seconds that ``work`` takes, CPU seconds of this process unless another clock is given."""
    started = clock()
    work()
    return clock() - started


def median_of(runs: int, measure: Callable[[], float]) -> float:
    """The median of several measurements."""
    return median(measure() for _ in range(runs))


class Used(NamedTuple):
    """CPU seconds of a child process, its start-up included, and the most MiB that it was seen to hold."""

    seconds: float
    peak: float


def child_used(command: Sequence[str], **options: Any) -> Used:
    """What a child process uses, and no other; CalledProcessError where it fails."""
    process, peak = subprocess.Popen(command, **options), 0
    watched = psutil.Process(process.pid)
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        # the kernel's own figure begins with what this process holds
        peak = max(peak, watched.memory_info().rss)
        time.sleep(0.05)
    _, status, used = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Used(used.ru_utime + used.ru_stime, peak / 2**20)


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without settings of streamdp, but for the folder of its compiled kernels."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STREAMDP_")}
    if "STREAMDP_CACHE_DIR" in os.environ:
        kept["STREAMDP_CACHE_DIR"] = os.environ["STREAMDP_CACHE_DIR"]
    return kept | more


def streamdp(*arguments: str) -> list[str]:
    """The command line of a ``streamdp`` command under this interpreter."""
    return [sys.executable, "-m", "streamdp", *arguments]
