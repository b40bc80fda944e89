"""The picture at the head of the README: the demo's clusters as a streamgraph.

python -m benchmarks.picture docs/streamgraph.png
"""

from __future__ import annotations

import sys

from matplotlib.figure import Figure

from streamdp.demo.stream import demo_stream
from streamdp.engine import Engine
from streamdp.plots import Answered, names_of, stack, streamgraph
from streamdp.plots.style import look
from streamdp.records import Record
from streamdp.settings import Settings

RECORDS = 5000


def main(path: str) -> None:
    engine = Engine(Settings(), with_events=True)
    stream = demo_stream(RECORDS, 0)
    records = [Record(item.text, {"line": i + 1}, item.time, item.id) for i, item in enumerate(stream)]
    answers = [engine.advance(records), engine.finish()]
    answered = Answered.of(line for answer in answers for line in answer.lines)
    names = names_of([*engine.closed(), *engine.clusters()])
    figure = Figure(figsize=(12, 4.6), dpi=100, layout="constrained")
    with look():
        data = stack(answered)
        told = f"{RECORDS:,} generated headlines, {data.found} clusters found"
        streamgraph(data, names, figure.subplots(), title=told)
        figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
