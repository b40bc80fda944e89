"""The papers' experiments: tables and pictures, printed as they stand on the page.

python -m benchmarks.papers                                 all of them, in 25 minutes on two cores
python -m benchmarks.papers wallach                         those of one paper
python -m benchmarks.papers wallach growth                  one
python -m benchmarks.papers --page docs/papers.md           written to the page as well, between its marks
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.papers import blei, daume, feng, liang, wallach

PAPERS = {
    module.__name__.rpartition(".")[2]: module.EXPERIMENTS for module in (daume, liang, wallach, feng, blei)
}


def put(page: Path, mark: str, block: str) -> None:
    """Replace what stands between a mark of the page and the next end."""
    text = page.read_text()
    between = re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", re.DOTALL)
    new, found = between.subn(lambda marks: f"{marks[1]}{block}\n{marks[2]}", text)
    if not found:
        sys.exit(f"{page} has no line <!-- {mark} -->")
    page.write_text(new)


def main() -> None:
    """Run those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paper", nargs="?", choices=PAPERS)
    parser.add_argument("experiment", nargs="*", help="names of experiments; none: all of the paper")
    parser.add_argument("--page", type=Path, help="write tables and pictures there")
    options = parser.parse_args()
    papers = PAPERS if options.paper is None else {options.paper: PAPERS[options.paper]}
    known = [experiment.name for experiments in papers.values() for experiment in experiments]
    for name in options.experiment:
        if name not in known:
            parser.error(f"{options.paper} has no experiment {name}, only {', '.join(known)}")
    folder = options.page.parent / "pictures" if options.page else Path(tempfile.gettempdir()) / "papers"
    for paper, experiments in papers.items():
        for experiment in experiments:
            if options.experiment and experiment.name not in options.experiment:
                continue
            began = time.monotonic()
            mark = f"{paper} {experiment.name}"
            print(f"{mark}: {experiment.where}", file=sys.stderr, flush=True)
            block = experiment.block(paper, folder)
            print(
                f"## {mark}: {experiment.where} ({time.monotonic() - began:.0f} s)\n\n{block}\n", flush=True
            )
            if options.page:
                put(options.page, mark, block)
    print(f"pictures are in {folder}", file=sys.stderr)


if __name__ == "__main__":
    main()
