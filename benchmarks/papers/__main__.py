"""The papers' experiments: tables and pictures, printed; docs/research/papers.md quotes them.

python -m benchmarks.papers                                 all of them, in 25 minutes on two cores
python -m benchmarks.papers wallach                         those of one paper
python -m benchmarks.papers wallach growth                  one
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.papers import blei, daume, feng, liang, wallach

PAPERS = {
    module.__name__.rpartition(".")[2]: module.EXPERIMENTS for module in (daume, liang, wallach, feng, blei)
}


def main() -> None:
    """Run those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paper", nargs="?", choices=PAPERS)
    parser.add_argument("experiment", nargs="*", help="names of experiments; none: all of the paper")
    parser.add_argument("--pictures", type=Path, default=Path(tempfile.gettempdir()) / "papers")
    options = parser.parse_args()
    papers = PAPERS if options.paper is None else {options.paper: PAPERS[options.paper]}
    known = [experiment.name for experiments in papers.values() for experiment in experiments]
    for name in options.experiment:
        if name not in known:
            parser.error(f"{options.paper} has no experiment {name}, only {', '.join(known)}")
    for paper, experiments in papers.items():
        for experiment in experiments:
            if options.experiment and experiment.name not in options.experiment:
                continue
            began = time.monotonic()
            mark = f"{paper} {experiment.name}"
            print(f"{mark}: {experiment.where}", file=sys.stderr, flush=True)
            block = experiment.block(paper, options.pictures)
            print(
                f"## {mark}: {experiment.where} ({time.monotonic() - began:.0f} s)\n\n{block}\n", flush=True
            )
    print(f"pictures are in {options.pictures}", file=sys.stderr)


if __name__ == "__main__":
    main()
