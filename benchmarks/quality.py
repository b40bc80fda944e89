"""Agreement of the default settings with the truth of five corpora, beside the best peers' figures."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.workloads import CHUNK, Document, documents, records_of, show_named, warm
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

PEERS = {
    "tweets_t": (0.928, "TextClust", None, ""),
    "tweets": (0.847, "OSDM", 0.854, "GSDMM"),
    "news_t": (0.890, "TextClust", None, ""),
    "news": (0.847, "MStream", 0.880, "GSDMM"),
    "reuters21578": (None, "", None, ""),
}
"""Best stream method and, where better, best batch method: overall NMI as measured on these files."""


FORMS = {
    "text": {},
    "field": {"texts": ("text",)},
    "category": {"texts": ("text",), "fields": ("drawn",)},
}
"""What a record is: a text, a mapping that holds it, or one with a category beside it that says nothing."""


def formed(corpus: Sequence[Document], form: str) -> list[Record]:
    """The records of a corpus in one of ``FORMS``."""
    records = records_of(corpus)
    if form == "text":
        return records
    drawn = np.random.default_rng(0).integers(4, size=len(corpus)).tolist()
    beside = [{"drawn": f"v{v}"} if form == "category" else {} for v in drawn]
    return [
        msgspec.structs.replace(record, value={"text": record.value, **more})
        for record, more in zip(records, beside, strict=True)
    ]


def labels_of(
    corpus: Sequence[Document], settings: Settings, form: str = "text"
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Labels as first announced and as they stand in the end, clusters found, CPU seconds."""
    records = formed(corpus, form)
    engine = Engine(settings)
    started = time.process_time()
    answers = answers_of(engine, records)
    seconds = time.process_time() - started
    first, newest = told_of(answers, len(records))
    return first, newest, len(np.unique(newest[newest >= 0])), seconds


def answers_of(engine: Engine, records: list[Record]) -> list[Answers]:
    """All answers to a stream, to its end."""
    answers = [engine.advance(records[i : i + CHUNK]) for i in range(0, len(records), CHUNK)]
    return [*answers, engine.finish()]


def told_of(answers: Iterable[Answers], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of n records as first announced and as they stand in the end; -1 for what was refused."""
    first, newest = np.full((2, n), -1)
    for answer in answers:
        for line in answer.lines:
            if isinstance(line, Assignment):
                at = line.position["line"] - 1
                newest[at] = line.cluster
                if line.revision == 0:
                    first[at] = line.cluster
    return first, newest


class Found(NamedTuple):
    """Labels as first announced and newest, and the CPU seconds that they took."""

    first: np.ndarray
    newest: np.ndarray
    seconds: float


def ours(corpus: Sequence[Document], **given: Any) -> Found:
    """What streamdp says of texts."""
    first, newest, _, seconds = labels_of(corpus, Settings(**given))
    return Found(first, newest, seconds)


def clocked(work: Callable[[], Any]) -> Found:
    """Labels that are never revised, and the CPU seconds of getting them."""
    started = time.process_time()
    labels = np.asarray(work())
    return Found(labels, labels, time.process_time() - started)


def truth_of(corpus: Sequence[Document]) -> np.ndarray:
    """True clusters as numbers from 0 on; -1 where the truth is unknown."""
    classes = sorted({str(d.cluster) for d in corpus if d.cluster is not None})
    codes = {c: i for i, c in enumerate(classes)}
    return np.array([-1 if d.cluster is None else codes[str(d.cluster)] for d in corpus])


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--forms", nargs="+", default=["text"], choices=list(FORMS), help="see FORMS")
    options = parser.parse_args()
    warm()
    rows = list[dict[str, object]]()
    for name in options.corpora:
        corpus = documents(name)
        truth = truth_of(corpus)
        stream, stream_name, batch, batch_name = PEERS[name]
        for width, form in itertools.product(options.beams, options.forms):
            settings = Settings(beam=width, **FORMS[form])
            labels_of(corpus[:CHUNK], settings, form)  # compiled
            first, newest, found, seconds = labels_of(corpus, settings, form)
            scored = (truth >= 0) & (newest >= 0)
            announced, revised = (agreement(x[scored], truth[scored]) for x in (first, newest))
            rows.append(
                {
                    "corpus": name,
                    "beam": width,
                    "form": form,
                    "NMI first": f"{announced.nmi:.3f}",
                    "newest": f"{revised.nmi:.3f}",
                    "ARI": f"{revised.ari:.3f}",
                    "found": found,
                    "true": int(truth.max()) + 1,
                    "best stream peer": "-" if stream is None else f"{stream:.3f} {stream_name}",
                    "best batch": "-" if batch is None else f"{batch:.3f} {batch_name}",
                    "rec / CPU s": f"{len(corpus) / seconds:,.0f}",
                }
            )
    show_named("default settings, text in, labels out", rows)


if __name__ == "__main__":
    main()
