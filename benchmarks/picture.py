"""The picture at the head of the README: the demo's clusters as a streamgraph.

python -m benchmarks.picture docs/streamgraph.png
"""

from __future__ import annotations

import sys
from collections import Counter

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from streamdp.demo.stream import demo_stream
from streamdp.engine import Engine
from streamdp.records import Assignment, Record
from streamdp.settings import Settings

RECORDS, BINS, NAMED = 5000, 120, 12


def main(path: str) -> None:
    engine = Engine(Settings(), with_events=True)
    stream = list(demo_stream(RECORDS, 0))
    records = [Record(item.text, {"line": i + 1}, item.time, item.id) for i, item in enumerate(stream)]
    answers = [engine.advance(records), engine.finish()]
    newest: dict[int, int] = {}
    for answer in answers:
        for line in answer.lines:
            if isinstance(line, Assignment):
                newest[line.seq] = line.cluster
    names = {c.cluster: c.words for c in engine.clusters()}
    names |= {e.cluster: e.words for a in answers for e in a.events if e.event == "closed"}
    hours = np.array([(item.time - stream[0].time) / 3600 for item in stream])
    sizes = Counter(newest.values())
    labels = sorted(sizes, key=lambda c: c)
    edges = np.linspace(0, hours[-1], BINS + 1)
    labelled = np.array([newest[i] for i in range(RECORDS)])
    rows = np.array([np.histogram(hours[labelled == c], edges)[0] for c in labels], float)
    kernel = np.exp(-0.5 * (np.arange(-6, 7) / 2.0) ** 2)
    smooth = np.array([np.convolve(row, kernel / kernel.sum(), "same") for row in rows])
    figure, axes = plt.subplots(figsize=(11, 4.2))
    colours = plt.get_cmap("tab20")(np.arange(len(labels)) % 20)
    middle = 0.5 * (edges[1:] + edges[:-1])
    bands = axes.stackplot(middle, smooth, baseline="wiggle", colors=colours, alpha=0.85)
    for c, _ in sizes.most_common(NAMED):
        outline = bands[labels.index(c)].get_paths()[0].vertices
        at = int(smooth[labels.index(c)].argmax())
        inside = outline[np.isclose(outline[:, 0], middle[at])]
        words = " ".join(word for word, _ in (names.get(c) or [])[:2])
        axes.annotate(words, (middle[at], inside[:, 1].mean()), ha="center", va="center", fontsize=8)
    axes.set_xlabel("hours")
    axes.set_yticks([])
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(f"{RECORDS:,} generated headlines, {len(labels)} clusters found", fontsize=10, loc="left")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
