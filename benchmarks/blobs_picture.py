"""A picture for newcomers: the fifty blobs of ``examples/blobs.py``, found as their records come.

python -m benchmarks.blobs_picture docs/pictures/blobs.png
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure

from streamdp.engine import Engine
from streamdp.plots.style import REST, look
from streamdp.settings import Settings

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "blobs.py"
PANELS = (200, 1000, 5000)
"""Records after which it is drawn; those of the stream are as many as the last."""
FEW = 4
"""A cluster of fewer records is drawn in grey, and not counted."""
GOLDEN = 0.61803398875


def blobs() -> tuple[np.ndarray, np.ndarray]:
    """Records in their order, and the blobs that they are truly of."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(EXAMPLE)], cwd=folder, check=True)
        read = [json.loads(line) for line in Path(folder, "blobs.jsonl").read_text().splitlines()]
    return np.array([each["vector"] for each in read]), np.array([each["blob"] for each in read])


def large(labels: np.ndarray) -> set[int]:
    """Clusters that count; -1 stands for records without an answer."""
    return {label for label, size in Counter(labels.tolist()).items() if size >= FEW and label >= 0}


def colours(labels: np.ndarray) -> list[Any]:
    """A colour for each record, by the label of its cluster in each picture alike."""
    hues = hsv_to_rgb(
        np.column_stack([labels * GOLDEN % 1.0, np.full(len(labels), 0.85), 0.5 + 0.4 * (labels % 5 % 2)])
    )
    counted = large(labels)
    return [
        tuple(hue) if label in counted else REST for hue, label in zip(hues, labels.tolist(), strict=True)
    ]


def main(path: str) -> None:
    """Draw."""
    vectors, truth = blobs()
    engine, labels, done = Engine(Settings()), np.full(len(vectors), -1), 0
    figure = Figure(figsize=(12, 4.2), dpi=100, layout="constrained")
    with look():
        for axes, until in zip(
            figure.subplots(1, len(PANELS), sharex=True, sharey=True), PANELS, strict=True
        ):
            for line in engine.advance(vectors[done:until].tolist()).assignments:
                labels[line.seq] = line.cluster
            done = until
            axes.scatter(*vectors[:until].T, s=7.0, c=colours(labels[:until]), linewidths=0.0)
            found, true = len(large(labels[:until])), len(np.unique(truth))
            axes.set_title(f"{until:,} records: {found} clusters found, {true} true", loc="left")
            axes.set(xticks=[], yticks=[], aspect="equal")
        figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
