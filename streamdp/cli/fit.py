"""``streamdp fit``: cluster a finite file, or go over the records of a state, offline."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Set
from pathlib import Path

import msgspec
import numpy as np
from streamdp_connectors.files.sink import FileSink
from streamdp_connectors.protocol import SinkClosed

from streamdp.answers.listing import counted
from streamdp.cli.display import Display, Progress, summarise_chains
from streamdp.cli.options import FitOptions
from streamdp.errors import ConfigError, Exit, foreseen
from streamdp.kernels.compilation import working_time
from streamdp.offline.fit import Fit
from streamdp.offline.handover import save as save_engine
from streamdp.offline.plan import check
from streamdp.offline.problem import Collection, NothingLeftError, Solution, problems_of
from streamdp.offline.refine import need_all_records, refine_task, task_of
from streamdp.offline.solve import solve_likelier
from streamdp.records import Answers, Lines, Record, Reject
from streamdp.reports.source import is_state, open_state
from streamdp.run.hints import hint
from streamdp.run.interrupt import Interrupt
from streamdp.run.messages import say
from streamdp.run.reading import Reader
from streamdp.run.recognise import recognised
from streamdp.run.writing import Sinks, refuse_double_use
from streamdp.settings import Settings
from streamdp.settings.assemble import is_sparse
from streamdp.settings.io_options import Input, Outputs, Results
from streamdp.settings.load import differences, model_settings
from streamdp.settings.options import options_of
from streamdp.settings.schema import Classes
from streamdp.state.snapshot import StateFolder

BATCH = 10_000


def read_all(settings: Settings, input: Input) -> Collection:
    """Read all records of a file."""
    is_sparse(settings)  # what is not for sets is refused before it is read
    settings = recognised(settings, input.file, logs=False)
    reader = Reader(settings, input)
    records: list[Record | Reject] = []
    try:
        with Display(lambda: f"reading {input.label}: {counted(len(records), 'record')}"):
            while not reader.source.at_end:
                records += reader.read(BATCH, 1.0)
    finally:
        reader.source.close()
    try:
        return Collection(settings, records)
    except NothingLeftError as error:
        help_ = hint(error.rejects, settings, reader.decoder.format, reader.decoder.header or ())
        raise ConfigError(error.message + (f" ({help_})" if help_ else ""), error.exit_code) from None


def load_distances(path: str | None, collection: Collection) -> np.ndarray | None:
    """Load a matrix of distances, in the order of the input. Raises ConfigError."""
    if path is None:
        return None
    try:
        with foreseen(ConfigError, path, "read", Exit.NO_INPUT):
            distances = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise ConfigError(f"{path}: is no matrix of numbers that numpy has saved", Exit.BAD_DATA) from error
    n = len(collection.records)
    if getattr(distances, "shape", None) != (n, n):
        shape = getattr(distances, "shape", None)
        raise ConfigError(f"{path}: has shape {shape}, and there are {n} records", Exit.BAD_DATA)
    if collection.rejects or not collection.in_order:
        raise ConfigError(f"{path}: distances need every record of the input, in time order", Exit.BAD_DATA)
    return np.asarray(distances, np.float64)


OF_STATE = ("budget", "chains", "hyper", "state", "overwrite", "group_read")
"""What means something for a state."""


def run_fit(settings: Settings, written: Set[str], file: str, search: FitOptions, results: Results) -> None:
    """Read a file, cluster it, write the answers and a snapshot; or refine a state.

    ``written`` names the settings that the user has written.
    """
    if file != "-" and Path(file).exists() and is_state(file):
        _refine(settings, written, file, search, results)
        return
    plan = search.plan
    check(plan)
    input, outputs = Input(file=file), Outputs(**msgspec.structs.asdict(results))
    refuse_double_use(input, outputs)
    collection = read_all(settings, input)
    problems = problems_of(settings, collection.encoded, load_distances(search.distances, collection))
    folder = None if results.state is None else StateFolder(results.state, settings.snapshot_keep)
    if folder is not None:
        folder.claim(results.overwrite)
    sinks = Sinks(input, outputs, None, settings, keep=settings.kept)
    began = working_time()
    with Interrupt() as interrupt, Progress(plan) as progress:
        found = Fit(collection, *solve_likelier(problems, plan, progress, interrupt.event))
    with contextlib.suppress(SinkClosed):  # whoever read the answers may have seen enough
        sinks.write(Answers(Lines(found.assignments), found.rejects, []))
        sinks.flush(sync=True)
        sinks.close()
    if folder is not None:
        save_engine(folder, found.to_engine(), "fit")
        folder.close()
    report(found.solution, found.solution.chain.clusters, found.log_joint, working_time() - began)


def report(found: Solution, clusters: int, log_joint: float, seconds: float) -> None:
    """Report the result."""
    for note in [*found.notes, *summarise_chains(found.traces)]:
        say(note)
    chain = found.chain
    model = ", ".join(
        f"{name} {value:.4g}"
        for owner in (chain.prior, chain.likelihood.main)
        for name, value in dataclasses.asdict(owner).items()  # type: ignore[arg-type]
        if isinstance(value, float)
    )
    say(f"model: {model}")
    say(
        f"{counted(chain.size, 'record')} into {counted(clusters, 'cluster')} in {seconds:.1f} s; "
        f"log joint {log_joint:,.2f} nats"
    )


def _refine(settings: Settings, written: Set[str], state: str, search: FitOptions, results: Results) -> None:
    """Refine the clustering of a snapshot, print what changed, keep the result where that was asked for."""
    for struct in (search, results):
        for each in options_of(type(struct)):
            if each.name not in OF_STATE and getattr(struct, each.name) != each.default:
                raise ConfigError(f"{each.flag} is of a file, and {state} is a state", Exit.USAGE)
    plan, into = search.plan_of_state, results.state
    check(plan)
    header, engine = open_state(state, Classes.of(settings))
    own = {name: value for name, value in header.settings.items() if name not in written - {"seed"}}
    changed = differences(header.settings, model_settings(settings) | own)
    if changed:
        raise ConfigError(f"{state}: was made under other settings ({'; '.join(changed)})", Exit.CONFIG)
    try:
        task = task_of(engine, settings.seed if "seed" in written else None)
        if into is not None:
            need_all_records(task, "--state")
            if engine.corrections.held:
                raise ValueError("--state makes a state without corrections by hand: undo those in force")
        if plan.hyper:
            need_all_records(task, "--hyper")
    except ValueError as error:
        raise ConfigError(f"{state}: {error}", Exit.BAD_DATA) from None
    for note in task.notes:
        say(note)
    folder = None if into is None else StateFolder(into, engine.settings.snapshot_keep)
    if folder is not None:
        folder.claim(results.overwrite)
    began = working_time()
    with Interrupt() as interrupt, Progress(plan) as progress:
        found = refine_task(task, plan, report=progress, stop=interrupt.event)
    if not found.improved:
        say(f"nothing better was found: log joint {found.started:,.2f} nats")
    if folder is not None:
        save_engine(folder, found.to_engine(), "refine")
        folder.close()
    lines = msgspec.json.Encoder().encode_lines([*found.changes, *found.merged])
    sink = FileSink("-")
    with contextlib.suppress(SinkClosed):  # whoever read the changes may have seen enough
        sink.write(lines)
        sink.close()
    say(f"log joint {found.started:,.2f} nats before")
    if found.united > 0.0:
        gone = counted(len(found.merged), "cluster")
        say(f"{gone} of older records merged into others; unions won {found.united:,.2f} nats")
    report(found.solution, found.clusters, found.log_joint, working_time() - began)
