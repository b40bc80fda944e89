"""Templates of log lines, beside Drain3 in the same run: what is found, how fast, and how cost grows."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil

from benchmarks.log_choice import NEUTRAL, Choice
from benchmarks.log_lines import (
    LATER,
    SETS,
    Fresh,
    accuracy,
    drain,
    log_lines,
    made_templates,
    write_log,
)
from benchmarks.log_made import CHOOSE, JUDGE, made_log
from benchmarks.workloads import child_used, show, streamdp
from streamdp.lines.base import USUAL, Bounds, Terms
from streamdp.lines.stream import LineStream
from streamdp.records import Record
from streamdp.run.reading import Reader
from streamdp.run.recognise import recognised
from streamdp.settings import Settings
from streamdp.settings.io_options import Input

CHUNK = 1000


def labels_of(texts: Sequence[str], terms: Terms) -> tuple[list[int], list[int]]:
    """Labels as first announced, and as they stand in the end."""
    stream, first = LineStream(terms), []
    for start in range(0, len(texts), CHUNK):
        for told in stream.take(texts[start : start + CHUNK]):
            first += told.answers["label"].tolist()
    older = stream.state.clusters["older"]
    newest = np.array(first)
    while (older[newest] != newest).any():
        newest = older[newest]
    return first, newest.tolist()


def drained(texts: Sequence[str], masks: bool) -> list[int]:
    """Drain3's clusters."""
    miner = drain(masks)
    return [miner.add_log_message(text)["cluster_id"] for text in texts]


def codes(labels: Sequence[object]) -> np.ndarray:
    """Labels as numbers."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels])


def quality(*, left_out: bool) -> None:
    """Group accuracy, first announced and newest, beside Drain3's.

    With ``left_out`` the constants are chosen on twelve logs and judged on the thirteenth, for each of them.
    """
    choice = Choice({name: log_lines(name) for name in SETS + LATER}, labels_of)
    names = list(choice.sets)
    chosen: dict[str, Terms] = {}
    for name in names:
        others = [other for other in names if other != name]
        chosen[name] = choice.best(others, NEUTRAL) if left_out else Terms()
    rows = []
    for name in names:
        corrected, published = choice.figures(name, chosen[name])
        texts = [line.text for line in choice.sets[name]]
        truth = [line.corrected for line in choice.sets[name]]
        peers = (accuracy(drained(texts, masks), truth) for masks in (False, True))
        rows.append((*corrected, *(figure for peer in peers for figure in peer), *published))
    figures = ("GA first", "FGA first", "GA", "FGA")
    head = ("set", *figures, "defaults: GA", "FGA", "masks: GA", "FGA", *figures)
    means = {"mean of all": slice(None), "mean of the eight": slice(8), "mean of the five": slice(8, None)}
    shown = [
        *zip(names, rows, strict=True),
        *((name, np.mean(rows[part], axis=0)) for name, part in means.items()),
    ]
    cells = [(name, *(f"{figure:.3f}" for figure in row)) for name, row in shown]
    for part in (slice(1, 5), slice(5, 9), slice(9, 13)):
        title = ("by corrected labels", "Drain3, by corrected labels", "by published labels")[part.start // 4]
        show(title, ("set", *head[part]), [(row[0], *row[part]) for row in cells])
    for name in names if left_out else []:
        changed = {
            key: value for key, value in chosen[name]._asdict().items() if value != getattr(Terms(), key)
        }
        print(f"without {name}: {changed or 'as they are'}")
    if left_out:
        print(f"with all: {choice.best(names, NEUTRAL)}")


def read(path: Path) -> list[Record]:
    """What is read of a log without an option."""
    settings = recognised(Settings(keep=("level", "component")), str(path))
    reader, found = Reader(settings, Input(file=str(path)), say=lambda line: None), list[Record]()
    with contextlib.closing(reader.source):
        while not reader.source.at_end:
            found += [each for each in reader.read(CHUNK, 1.0) if isinstance(each, Record)]
    return found


def messages(lines: Sequence[str]) -> list[str]:
    """The message of each line of a log; nothing of one that is dropped."""
    texts = [""] * len(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app.log"
        path.write_text("".join(f"{line}\n" for line in lines))
        for record in read(path):
            texts[record.position["line"] - 1] = str(record.value)
    return texts


def heads() -> None:
    """Lines as written: how many are dropped, as messages too, and GA where heads are found in them."""
    rows = []
    for name in SETS + LATER:
        lines = log_lines(name)
        truth = [line.corrected for line in lines]
        told, of_messages = (messages([getattr(line, what) for line in lines]) for what in ("raw", "text"))
        dropped = [each.count("") for each in (told, of_messages)]
        first, newest = labels_of(told, Terms())
        figures = (*accuracy(first, truth), *accuracy(newest, truth))
        rows.append((name, *dropped, *(f"{figure:.3f}" for figure in figures)))
    show("lines as written", ("set", "dropped", "of messages", "GA first", "FGA first", "GA", "FGA"), rows)


def made() -> None:
    """Generated logs: those that constants are chosen on, and those that they are judged on."""
    rows = []
    for name, seeds in (("chosen on", CHOOSE), ("judged on", JUDGE)):
        figures = []
        for seed in seeds:
            lines = made_log(seed)
            truth = [line.corrected for line in lines]
            first, newest = labels_of([line.text for line in lines], Terms())
            figures.append((*accuracy(first, truth), *accuracy(newest, truth)))
        rows.append((name, *(f"{figure:.3f}" for figure in np.mean(figures, axis=0))))
    show("generated logs", ("logs", "GA first", "FGA first", "GA", "FGA"), rows)


def timed(lines: int, peer: int) -> None:
    """Lines a CPU second."""
    rows: list[tuple[object, ...]] = []
    labels_of(Fresh(words=True, seed=1).draw(2000), Terms())  # compiled
    for words in (False, True):
        texts = Fresh(words=words).draw(lines)
        stream, started = LineStream(Terms()), time.process_time()
        for start in range(0, lines, CHUNK):
            for _ in stream.take(texts[start : start + CHUNK]):
                pass
        ours = lines / (time.process_time() - started)
        counters = stream.counters()
        theirs = []
        for masks in (False, True):
            miner, started = drain(masks), time.process_time()
            for text in texts[:peer]:
                miner.add_log_message(text)
            theirs.append(peer / (time.process_time() - started))
        whole = end_to_end(texts)
        rows.append(
            (
                "letters too" if words else "digits",
                f"{ours:,.0f}", f"{whole:,.0f}", *(f"{each:,.0f}" for each in theirs),
                f"{counters['lines_distinct']:,}", counters["clusters_live"], len(miner.drain.clusters),
            )
        )  # fmt: skip
    show(
        "lines a CPU second",
        ("fresh", "kernel", "consume", "Drain3", "with masks", "distinct", "templates", "Drain3's"),
        rows,
    )


def end_to_end(texts: Sequence[str]) -> float:
    """Lines a CPU second of ``streamdp consume --format log``, file to file, start included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.log")
        write_log(path, texts)
        command = streamdp("consume", "--file", str(path), "--format", "log", "--output", f"{folder}/out")
        return len(texts) / child_used(command, stderr=subprocess.DEVNULL).seconds


def scaling(most: int, lines: int) -> None:
    """Microseconds a line against the number of templates: once all are known, and while they are new."""
    warm = LineStream(Terms())
    labels_of(["a line"], Terms())
    warm.score(["a line"])
    rows = []
    count = 10
    while count <= most:
        templates = made_templates(count)
        draw = random.Random(2)

        def line(tokens: list[str], draw: random.Random = draw) -> str:
            return " ".join(str(draw.randrange(10**6)) if token == "0" else token for token in tokens)

        stream, started = LineStream(Terms()), time.process_time()
        founding = [line(tokens) for tokens in templates]
        started = time.process_time()
        for start in range(0, count, CHUNK):
            for _ in stream.take(founding[start : start + CHUNK]):
                pass
        new = (time.process_time() - started) / count
        texts = [line(tokens) for tokens in draw.choices(templates, k=lines)]
        started = time.process_time()
        for start in range(0, lines, CHUNK):
            for _ in stream.take(texts[start : start + CHUNK]):
                pass
        known = (time.process_time() - started) / lines
        unseen = [
            line([*tokens[:-2], f"x{draw.randrange(10**9)}y", "0"])
            for tokens in draw.choices(templates, k=2000)
        ]
        started = time.process_time()
        told = stream.score(unseen)
        scored = (time.process_time() - started) / len(told.answers)
        live = stream.counters()["clusters_live"]
        rows.append(
            (f"{count:,}", f"{live:,}", f"{known * 1e6:.2f}", f"{scored * 1e6:.1f}", f"{new * 1e6:.0f}")
        )
        count *= 10
    show(
        "cost against templates",
        ("templates", "found", "us a known line", "us an unseen line", "us a founding line"),
        rows,
    )


def remembered(lines: int, steps: int) -> None:
    """Memory while hardly any line comes again, and CPU time of the longest thousand, at several bounds."""
    process, rows = psutil.Process(), []
    none = 1 << 60
    for bounds in (Bounds(50_000, 5_000), USUAL, Bounds(none, none)):
        draw, stream = Fresh(words=True), LineStream(Terms(), bounds=bounds)
        before = process.memory_info().rss
        for _step in range(steps):
            spent, longest = 0.0, 0.0
            for _ in range(0, lines // steps, CHUNK):
                texts, started = draw.draw(CHUNK), time.process_time()
                for _ in stream.take(texts):
                    pass
                spent += time.process_time() - started
                longest = max(longest, time.process_time() - started)
            counters = stream.counters()
            rows.append(
                (
                    *(f"{most:,}" if most < none else "none" for most in bounds),
                    f"{counters['lines_distinct'] + counters['lines_forgotten']:,}",
                    f"{counters['lines_distinct']:,}",
                    f"{counters['clusters_created']:,}",
                    f"{counters['clusters_live']:,}",
                    f"{(process.memory_info().rss - before) / 2**20:.0f}",
                    f"{lines / steps / spent:,.0f}",
                    f"{1000 * longest:.0f}",
                )
            )
        del stream
        trim()
    show(
        "memory of lines of which hardly any comes again",
        ("lines", "templates", "distinct", "known", "founded", "live", "MiB", "lines a CPU s", "longest, ms"),
        rows,
    )


def trim() -> None:
    """Give memory that is free back to the system, where that can be asked for."""
    gc.collect()
    release = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if release is not None:
        release(0)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["quality", "heads", "made", "timed", "scaling", "memory"])
    parser.add_argument("--left-out", action="store_true", help="choose on twelve logs, judge on another")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--peer-lines", type=int, default=100_000)
    parser.add_argument("--most", type=int, default=100_000)
    options = parser.parse_args()
    if "quality" in options.what:
        quality(left_out=options.left_out)
    if "heads" in options.what:
        heads()
    if "made" in options.what:
        made()
    if "timed" in options.what:
        timed(options.lines, options.peer_lines)
    if "scaling" in options.what:
        scaling(options.most, 100_000)
    if "memory" in options.what:
        remembered(options.lines, 4)


if __name__ == "__main__":
    main()
