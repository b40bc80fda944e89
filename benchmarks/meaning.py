"""Words alone beside words and meaning: agreement with the truth in the given order and in others; costs.

Each set is read in its own order, and in others in which neighbouring records change places while times
stay. All settings are the defaults but for the model. What the defaults of ``--embed`` are was chosen on the
sets of ``CHOSEN``; those of ``JUDGED`` were not looked at for it. Where there is a true cluster for part of a
set only, that part counts.

``--cost`` measures instead: CPU microseconds a record of ``consume``, file to file, the most memory, and the
size of the state, without a model and with it.

``--peers`` measures others too in the same run, on the first records of each set: those of
``benchmarks.strange_texts`` but for ``fit``, each on one thread, embedding included, after it has seen some
records uncounted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.quality import Found, answers_of, clocked, ours, told_of, truth_of
from benchmarks.strange_texts import OF_TEXTS, Texts
from benchmarks.workloads import (
    Document,
    child_used,
    clean_environment,
    documents,
    records_of,
    show,
    streamdp,
    warm,
)
from streamdp.engine import Engine
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

CHOSEN = ("tweets_t", "news", "stackoverflow10k", "banking77")
JUDGED = ("tweets", "news_t", "reuters21578", "pascal_flickr")
BLOCK = 10
"""Neighbours that change places in another order."""
HEAD = 1600
"""Records that are read once before the clock runs."""
PEERS_RECORDS = 10_000
"""Of each set at most, where peers take part."""
NAMES = {
    "streamdp": "streamdp, words",
    "and meaning": "streamdp, words and meaning",
    "embeddings": "streamdp, embeddings alone",
    "KMeans, told k": "KMeans of words, k",
    "KMeans of these, told k": "KMeans of embeddings, k",
    "BERTopic, told k": "BERTopic online, k",
    "HDBSCAN of these": "HDBSCAN",
}
"""As in the table."""
SETTINGS = {"streamdp": False, "and meaning": True}
"""Whether a stream that revises has a model."""


class Run(NamedTuple):
    """Agreement as first announced and newest, clusters in the end, CPU microseconds a record."""

    first_nmi: float
    first_ari: float
    nmi: float
    ari: float
    clusters: int
    cost: float


def order_of(n: int, seed: int) -> np.ndarray:
    """Neighbours in another order; seed 0: as they are."""
    if seed == 0:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    return np.concatenate([i + rng.permutation(min(BLOCK, n - i)) for i in range(0, n, BLOCK)])


def reordered(corpus: Sequence[Document], seed: int) -> list[Document]:
    """The texts of neighbours in another order, at the times of those whose places they take."""
    order = order_of(len(corpus), seed).tolist()
    return [msgspec.structs.replace(corpus[j], time=corpus[i].time) for i, j in enumerate(order)]


def run(corpus: Sequence[Document], model: str | None) -> Run:
    """Read a corpus in the order that it has."""
    records, truth = records_of(corpus), truth_of(corpus)
    engine, started = Engine(Settings(embed=model)), time.process_time()
    answers = answers_of(engine, records)
    seconds = time.process_time() - started
    first, newest = told_of(answers, len(records))
    known = (truth >= 0) & (newest >= 0)
    announced, revised = (agreement(labels[known], truth[known]) for labels in (first, newest))
    cost = 1e6 * seconds / len(records)
    return Run(announced.nmi, announced.ari, revised.nmi, revised.ari, revised.found, cost)


def pair(nmi: float, ari: float) -> str:
    """As in tables."""
    return f"{nmi:.3f} / {ari:.3f}"


def cells(runs: Sequence[Run]) -> tuple[str, ...]:
    """The mean of some runs: first announced, newest, clusters, cost."""
    mean = Run(*np.mean(runs, axis=0).tolist())
    newest = pair(mean.nmi, mean.ari)
    return pair(mean.first_nmi, mean.first_ari), newest, f"{mean.clusters:,.0f}", f"{mean.cost:.0f}"


def compare(corpora: dict[str, list[Document]], model: str, orders: int) -> None:
    """Read all sets in all orders, without a model and with it; print means."""
    rows = list[tuple[str, ...]]()
    for name, corpus in corpora.items():
        true = len({str(d.cluster) for d in corpus if d.cluster is not None})
        for form in (None, model):
            run(corpus[:HEAD], form)  # compiles, or loads what is
            found = [run(reordered(corpus, seed), form) for seed in range(orders)]
            print(name, form or "words", *cells(found), sep="; ", file=sys.stderr, flush=True)
            for order, part in (("given", found[:1]), (f"{orders - 1} others", found[1:])):
                if part:
                    rows.append((name, order, f"{true:,}", form or "words", *cells(part)))
    columns = ("NMI / ARI", "order", "true K", "", "first announced", "newest", "K", "us a record")
    show("words alone, and words and meaning", columns, sorted(rows, key=lambda row: _place(row, corpora)))


def _place(row: tuple[str, ...], corpora: dict[str, list[Document]]) -> tuple[int, bool]:
    """Rows of a set and an order stand together."""
    return list(corpora).index(row[0]), row[1] != "given"


# ---------------------------------------------------------------- cost


def costs(name: str, corpus: Sequence[Document], model: str | None) -> tuple[str, ...]:
    """CPU microseconds a record, start-up included, most memory, and the size of a state."""
    with tempfile.TemporaryDirectory() as folder:
        path, state = Path(folder, "in.jsonl"), Path(folder, "state")
        rows = ({"id": d.id, "time": d.time, "text": d.text} for d in corpus)
        path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        more = () if model is None else ("--embed", model)
        command = streamdp(
            "consume", str(path), "--output", f"{path}.out", "--overwrite", "--state", str(state)
        )
        used = child_used([*command, *more], env=clean_environment())
        size = sum(file.stat().st_size for file in state.rglob("*") if file.is_file())
    cost = f"{1e6 * used.seconds / len(corpus):.1f}"
    return f"{name}, {model or 'words'}", cost, f"{used.peak:.0f}", f"{size / 1e6:.2f}"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=[*CHOSEN, *JUDGED], help="corpora of the data folder")
    parser.add_argument("--orders", type=int, default=5, help="the given one, and others")
    parser.add_argument("--records", type=int, help="at most so many of each set, the first")
    parser.add_argument("--model", default="wordllama")
    parser.add_argument("--cost", action="store_true", help="measure time, memory and state")
    parser.add_argument("--peers", action="store_true", help="measure others too")
    options = parser.parse_args()
    warm()
    corpora = {name: documents(name)[: options.records] for name in options.sets}
    if options.cost:
        measure_costs(corpora, options.model)
    elif options.peers:
        measure_peers(corpora, options.model)
    else:
        compare(corpora, options.model, options.orders)


def measure_peers(corpora: dict[str, list[Document]], model: str) -> None:
    """Print what everyone reaches on the first records of each set, and at what cost."""
    import numba
    import sklearn.cluster
    import sklearn.decomposition  # noqa: F401  its threads are there to be limited
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, corpus in corpora.items():
            known = [document for document in corpus if document.cluster is not None][:PEERS_RECORDS]
            texts, rows = Texts(known, truth_of(known), model), list[tuple[object, ...]]()
            for who in (who for who in OF_TEXTS if who != "fit"):
                contender(who, texts._replace(corpus=known[:HEAD], truth=texts.truth[:HEAD]))
                first, newest, seconds = contender(who, texts)
                announced, revised = (agreement(labels, texts.truth) for labels in (first, newest))
                figures = pair(announced.nmi, announced.ari), pair(revised.nmi, revised.ari)
                cost = f"{1e6 * seconds / len(known):,.0f}"
                rows.append((NAMES.get(who, who), *figures, revised.found, cost))
            title = f"{name}, {len(known):,} records, {len(np.unique(texts.truth))} clusters"
            show(title, ("NMI / ARI", "first", "newest", "K", "us a record"), rows)


def contender(who: str, texts: Texts) -> Found:
    """Labels, and the CPU seconds that they took."""
    if who in SETTINGS:
        return ours(texts.corpus, **({"embed": texts.model} if SETTINGS[who] else {}))
    return clocked(lambda: OF_TEXTS[who](texts))


def measure_costs(corpora: dict[str, list[Document]], model: str) -> None:
    """Print costs without the model and with it."""
    rows = [costs(name, corpus, each) for name, corpus in corpora.items() for each in (None, model)]
    show("CPU us a record, file to file", ("", "us", "MiB", "state, MB"), rows)


if __name__ == "__main__":
    main()
