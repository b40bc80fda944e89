"""Concentration and scale that follow the stream (``adapt``), beside fixed ones: evidence and agreement.

Also what the true clusters would say of both parameters: log p(z) of the truth is highest there.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from benchmarks.quality import PEERS, answers_of, told_of, truth_of
from benchmarks.workloads import Document, documents, records_of, show, warm
from streamdp.beam.looks import adapt as adaptation
from streamdp.engine import Engine
from streamdp.priors.adaptation import slopes
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

FIXED = ((100.0, 15.0), (100.0, 60.0), (200.0, 60.0), (400.0, 20.0), (400.0, 60.0), (400.0, 180.0))
FIXED += ((800.0, 60.0), (1600.0, 60.0), (1600.0, 180.0))
"""Scale and concentration."""


LONGEST = math.log(1e6)
"""Logarithm of a scale that forgets nothing in these streams."""


def measured(corpus: Sequence[Document], truth: np.ndarray, settings: Settings) -> tuple[list[float], Engine]:
    """NMI as first announced and of the newest labels, nats a record; and the engine."""
    engine = Engine(settings)
    first, newest = told_of(answers_of(engine, records_of(corpus)), len(corpus))
    scored = (truth >= 0) & (newest >= 0)
    nmi = [agreement(labels[scored], truth[scored]).nmi for labels in (first, newest)]
    return [*nmi, engine.log_evidence / len(corpus)], engine


def fitted(truth: np.ndarray, start: int = 1000) -> tuple[float, float]:
    """Concentration and scale of the highest log p(z) of the known true clusters."""
    places = np.flatnonzero(truth >= 0)
    labels = truth[places]
    founds = np.zeros(len(labels), bool)
    founds[np.unique(labels, return_index=True)[1]] = True
    at = np.log([10.0, 400.0])
    for _ in range(200):
        s = slopes(labels, founds, places.astype(float), start, math.exp(at[0]), math.exp(at[1]))
        step = np.array([s.concentration / s.sharpness_concentration, s.scale / s.sharpness_scale])
        at = np.minimum(at + np.clip(step, -0.2, 0.2), LONGEST)
    return math.exp(at[0]), math.exp(at[1])


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4, 8, 16, 24, 32])
    parser.add_argument(
        "--pulls", nargs="+", type=float, default=[adaptation.PULL], help="back to the settings"
    )
    parser.add_argument("--fixed", action="store_true", help="other fixed parameters too, at beam 16")
    options = parser.parse_args()
    warm()
    for name in options.corpora:
        corpus = documents(name)
        truth = truth_of(corpus)
        rows: list[tuple[object, ...]] = []

        def add(title: str, settings: Sequence[Settings]) -> None:
            runs = [measured(corpus, truth, each) for each in settings]  # noqa: B023
            mean = np.mean([figures for figures, _ in runs], axis=0)
            spread = np.std([figures[1] for figures, _ in runs])
            now = runs[-1][1].adapted
            end = "" if now is None else f"{now.concentration:.3g}, {now.decay_scale:.3g}"
            figures = f"{mean[0]:.4f}", f"{mean[1]:.4f}", f"{spread:.4f}", f"{mean[2]:.3f}"
            rows.append((title, *figures, end))  # noqa: B023

        add("default", [Settings(beam=width) for width in options.beams])
        for adaptation.PULL in options.pulls:
            add(f"adapt, pull {adaptation.PULL:g}", [Settings(beam=w, adapt=True) for w in options.beams])
        for scale, concentration in FIXED if options.fixed else ():
            title = f"{concentration:g}, {scale:g} (beam 16)"
            add(title, [Settings(decay_scale=scale, concentration=concentration)])
        rows.append(("the true clusters", "", "", "", "", "{:.3g}, {:.3g}".format(*fitted(truth))))
        columns = "NMI first", "newest", "sd over beams", "nats / record", "at the end"
        show(f"{name}: concentration, decay_scale", ("settings", *columns), rows)


if __name__ == "__main__":
    main()
