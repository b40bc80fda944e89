"""Data that no constant was chosen on: generated mixtures, scikit-learn's sets and texts, beside others.

Of each kind there are two halves, by the seeds that they come from: constants are chosen on the first, the
second is what the documentation quotes. Rows with a star are public sets that constants may have been chosen
on. streamdp is a stream at its defaults; its newest labels count. Vectors are in
``benchmarks.strange_vectors``, those who cluster them in ``benchmarks.vector_peers``, texts in
``benchmarks.strange_texts``.

python -m benchmarks.strangers --of vectors
python -m benchmarks.strangers --kinds blobs pairs --only streamdp "KMeans, told k"
python -m benchmarks.strangers --file vectors.npy --truth labels.npy
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.strange_texts import OF_TEXTS, Texts, text_sets
from benchmarks.strange_vectors import HALVES, KINDS, ORDERS, Data, from_file, name_of, sets
from benchmarks.vector_peers import OF_VECTORS, Peer
from benchmarks.workloads import show
from streamdp.scoring.agreement import agreement


class Score(NamedTuple):
    """Agreement with the truth, and the number of clusters."""

    nmi: float
    ari: float
    clusters: int


def score(labels: np.ndarray, truth: np.ndarray) -> Score:
    """How good labels are."""
    found = agreement(labels, truth)
    return Score(found.nmi, found.ari, len(np.unique(labels)))


def clusters_of(truth: np.ndarray) -> int:
    """How many there are."""
    return len(np.unique(truth))


# ---------------------------------------------------------------- vectors


class Cells(NamedTuple):
    """What a clusterer has in a row: mean ARI and NMI, and the median number of clusters."""

    ari: str
    nmi: str
    clusters: str


def cells_of(data: Sequence[Data], peer: Peer) -> Cells:
    """How a clusterer does on the sets of a row."""
    scores = [score(peer.labels(each), each.truth) for each in data]
    nmi, ari, _ = np.mean(scores, axis=0)
    return Cells(f"{ari:.3f}", f"{nmi:.3f}", f"{np.median([each.clusters for each in scores]):.0f}")


def compare(found: Mapping[str, Sequence[Data]], peers: Mapping[str, Peer]) -> None:
    """Print ARI, NMI and numbers of clusters; on the way each row to the standard error."""
    tables = dict[str, list[Sequence[str]]](ari=[], nmi=[], clusters=[])
    for name, data in found.items():
        row, spent = list[Cells](), list[str]()
        for peer in peers.values():
            began = time.process_time()
            row.append(cells_of(data, peer))
            spent.append(f"{time.process_time() - began:.1f}")
        true = f"{np.median([each.clusters for each in data]):.0f}"
        tables["ari"].append((name, *(cells.ari for cells in row)))
        tables["nmi"].append((name, *(cells.nmi for cells in row)))
        tables["clusters"].append((name, true, *(cells.clusters for cells in row)))
        said = (
            f"{who} {' / '.join(cells)} in {s} s" for who, cells, s in zip(peers, row, spent, strict=True)
        )
        print(f"{name} ({true})", *said, sep="; ", file=sys.stderr, flush=True)
    show("ARI", ("", *peers), tables["ari"])
    show("NMI", ("", *peers), tables["nmi"])
    show("clusters, median", ("", "true", *peers), tables["clusters"])


def of_vectors(options: argparse.Namespace) -> None:
    """Vectors of a file, or of the kinds that are asked for."""
    peers = dict[str, Peer]()
    for name, peer in OF_VECTORS.items():
        if options.only and name not in options.only:
            continue
        if peer.installed:
            peers[name] = peer
        else:
            print(f"{name} is left out: {peer.package} is not installed", file=sys.stderr)
    if options.file:
        found = {name_of(options.file): [from_file(options.file, options.truth, options.normalise)]}
    else:
        found = sets(options.half, options.kinds)
    with threadpool_limits(1):
        compare(found, peers)


# ---------------------------------------------------------------- texts


def row_of_texts(
    name: str, texts: Sequence[Texts], clusterers: Mapping[str, Callable[[Texts], np.ndarray]]
) -> tuple[str, ...]:
    """Mean NMI and ARI, and in brackets the median multiple of the true number of clusters."""
    cells = [name]
    for labels in clusterers.values():
        scores = [score(labels(each), each.truth) for each in texts]
        nmi, ari, _ = np.mean(scores, axis=0)
        ratios = [s.clusters / clusters_of(t.truth) for s, t in zip(scores, texts, strict=True)]
        cells.append(f"{nmi:.3f} / {ari:.3f} ({np.median(ratios):.1f})")
    print(*cells, sep="; ", file=sys.stderr, flush=True)
    return tuple(cells)


def of_texts(options: argparse.Namespace) -> None:
    """All texts."""
    chosen = {name: each for name, each in OF_TEXTS.items() if not options.only or name in options.only}
    orders = range(HALVES[options.half], HALVES[options.half] + ORDERS)
    with threadpool_limits(1):
        rows = [row_of_texts(name, each, chosen) for name, each in text_sets(orders).items()]
    show("NMI / ARI (clusters found for each true one)", ("", *chosen), rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=list(HALVES), default="table", help="which seeds")
    parser.add_argument("--only", nargs="+", choices=list(OF_VECTORS | OF_TEXTS), help="who takes part")
    parser.add_argument("--of", nargs="+", choices=("vectors", "texts"), default=("vectors", "texts"))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="vectors of these kinds")
    parser.add_argument("--file", help="vectors of yours: .npy, or .parquet")
    parser.add_argument("--truth", help="their true clusters: a .npy file, or a column of the .parquet")
    parser.add_argument("--normalise", action="store_true", help="they are embeddings")
    options = parser.parse_args()
    if bool(options.file) != bool(options.truth):
        parser.error("--file and --truth belong together")
    warnings.filterwarnings("ignore")
    numba.set_num_threads(1)
    alone = options.file or tuple(options.kinds) != KINDS
    if "vectors" in options.of:
        of_vectors(options)
    if "texts" in options.of and not alone:
        of_texts(options)


if __name__ == "__main__":
    main()
