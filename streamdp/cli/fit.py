"""``streamdp fit``: cluster a finite file, offline."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from streamdp.cli.display import Display
from streamdp.cli.errors import say
from streamdp.cli.hints import hint
from streamdp.cli.interrupt import Interrupt
from streamdp.cli.pictures import Place, check_pictures, save
from streamdp.cli.progress import Progress, summarise_chains
from streamdp.cli.reading import Origin, Reader
from streamdp.cli.status import counted
from streamdp.cli.writing import Paths, Sinks, refuse_double_use
from streamdp.errors import Exit
from streamdp.kernels.compilation import working_time
from streamdp.offline.collection import Collection, NothingLeftError
from streamdp.offline.fit import Fit
from streamdp.offline.handover import save as save_engine
from streamdp.offline.plan import Plan, check
from streamdp.offline.problem import Solution, problem_of
from streamdp.offline.solve import solve
from streamdp.plots.pages import OF_FIT, of_fit
from streamdp.records import Answers, Record, Reject
from streamdp.settings import Settings
from streamdp.settings.assemble import is_sparse
from streamdp.settings.load import ConfigError
from streamdp.state.snapshot import StateFolder

BATCH = 10_000


class Places(NamedTuple):
    """Where the result goes."""

    output: str = "-"
    state: str | None = None
    plot: str | None = None
    rejects: str | None = None
    overwrite: bool = False


def parse_budget(text: str) -> tuple[int | None, float | None]:
    """Rounds or seconds of ``500``, ``30s``, ``10m`` or ``1h``. Raises ConfigError."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], text[-1:]) if text[-1:] in units else (text, "")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e9 or (not unit and value != int(value)):
        raise ConfigError(
            f"--budget: {text!r} is neither a time such as 30s, 10m or 1h nor a number of rounds",
            Exit.USAGE,
        )
    return (None, value * units[unit]) if unit else (int(value), None)


def read_all(settings: Settings, origin: Origin) -> Collection:
    """All records of a file."""
    is_sparse(settings)  # what is not for sets is refused before it is read
    reader = Reader(settings, origin)
    records: list[Record | Reject] = []
    try:
        with Display(lambda: f"reading {origin.label}: {counted(len(records), 'record')}"):
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
    """A matrix of distances, in the order of the input. Raises ConfigError."""
    if path is None:
        return None
    try:
        distances = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}", Exit.NO_INPUT) from error
    except ValueError as error:
        raise ConfigError(f"{path}: is no matrix of numbers that numpy has saved", Exit.BAD_DATA) from error
    n = len(collection.records)
    if getattr(distances, "shape", None) != (n, n):
        shape = getattr(distances, "shape", None)
        raise ConfigError(f"{path}: has shape {shape}, and there are {n} records", Exit.BAD_DATA)
    if collection.rejects or not collection.in_order:
        raise ConfigError(f"{path}: distances need every record of the input, in time order", Exit.BAD_DATA)
    return np.asarray(distances, np.float64)


def run_fit(settings: Settings, file: str, plan: Plan, places: Places, distances: str | None) -> None:
    """Read a file, cluster it, write the answers, a snapshot and pictures."""
    check(plan)
    if places.plot is not None:
        pictures = Place.of("--plot", places.plot, overwrite=places.overwrite, given=(file,))
        check_pictures(pictures, OF_FIT)
    origin = Origin(file)
    paths = Paths(places.output, places.state, places.rejects, overwrite=places.overwrite)
    refuse_double_use(origin, paths)
    collection = read_all(settings, origin)
    problem = problem_of(settings, collection.encoded, load_distances(distances, collection))
    folder = None if places.state is None else StateFolder(places.state, settings.snapshot_keep)
    if folder is not None:
        folder.claim(places.overwrite)
    sinks = Sinks(origin, paths, None, keep=settings.keep)
    began = working_time()
    with Interrupt() as interrupt, Progress(plan) as progress:
        found = Fit(collection, problem, solve(problem, plan, progress, interrupt.event))
    sinks.write(Answers([*found.assignments], found.rejects, []))
    sinks.flush(sync=True)
    sinks.close()
    if folder is not None:
        save_engine(folder, found.to_engine(), "fit")
        folder.close()
    if places.plot is not None:
        save(pictures, of_fit(found))
    tell(found.solution, found.solution.chain.clusters, found.log_joint, working_time() - began)


def tell(found: Solution, clusters: int, log_joint: float, seconds: float) -> None:
    """Say how it went."""
    for note in [*found.notes, *summarise_chains(found.traces)]:
        say(note)
    chain = found.chain
    model = ", ".join(
        f"{name} {value:.4g}"
        for owner in (chain.prior, chain.likelihood)
        for name, value in dataclasses.asdict(owner).items()  # type: ignore[call-overload]
        if isinstance(value, float)
    )
    say(f"model: {model}")
    say(
        f"{counted(chain.size, 'record')} into {counted(clusters, 'cluster')} in {seconds:.1f} s; "
        f"log joint {log_joint:,.2f} nats"
    )
