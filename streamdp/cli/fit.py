"""``streamdp fit``: cluster a finite file, offline."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from streamdp.answers.announcer import DIGITS
from streamdp.cli.errors import announce_compilation, say
from streamdp.cli.interrupt import Interrupt
from streamdp.cli.plots import draw_fit
from streamdp.cli.progress import Progress, summarise_chains
from streamdp.cli.reading import Origin, Reader
from streamdp.cli.writing import Paths, Sinks, refuse_double_use
from streamdp.encode.encoders import Encoded
from streamdp.errors import Exit
from streamdp.offline.collection import Collection, likelihood_of
from streamdp.offline.fit import DRAWN, Fit, Plan, Problem, check, fit, with_base
from streamdp.offline.handover import engine_of
from streamdp.offline.starts import sureness
from streamdp.priors import DistanceDependent, PitmanYor
from streamdp.records import Answers, Assignment
from streamdp.settings import Settings
from streamdp.settings.assemble import OFFLINE_FAMILIES, build_prior
from streamdp.settings.load import ConfigError, model_settings
from streamdp.state.snapshot import Header, StateFolder

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
    reader = Reader(settings, origin)
    records = []
    try:
        while not reader.source.at_end:
            records += reader.read(BATCH, 1.0)
    finally:
        reader.source.close()
    return Collection(settings, records)


def load_distances(path: str | None, collection: Collection) -> np.ndarray | None:
    """A matrix of distances, in the order of the input. Raises ConfigError."""
    if path is None:
        return None
    try:
        distances = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: not a matrix of numbers that numpy has saved: {error}", Exit.NO_INPUT
        ) from error
    n = len(collection.records)
    if getattr(distances, "shape", None) != (n, n):
        shape = getattr(distances, "shape", None)
        raise ConfigError(f"{path}: has shape {shape}, and there are {n} records", Exit.BAD_DATA)
    if collection.rejects or not collection.in_order:
        raise ConfigError(f"{path}: distances need every record of the input, in time order", Exit.BAD_DATA)
    return np.asarray(distances, np.float64)


def offline_settings(settings: Settings, sparse: bool) -> Settings:
    """A finite set has no pace: without a wish, nothing is forgotten."""
    changes: dict[str, object] = {}
    if settings.prior == "auto" and settings.decay is None and settings.decay_scale is None:
        changes["prior"] = "crp"
    forgetting = settings.likelihood in ("auto", "gaussian", "normal-inverse-gamma")
    if not sparse and forgetting and settings.forget is None:
        changes["forget"] = 1.0
    return msgspec.structs.replace(settings, **changes)


def problem_of(settings: Settings, encoded: Encoded, distances: np.ndarray | None) -> Problem:
    """What is clustered, and under which model."""
    settings = offline_settings(settings, encoded.moments is None)
    data = encoded.batch
    asked = likelihood_of(settings, encoded)
    likelihood = with_base(data, asked)
    prior = build_prior(settings, encoded.moments is None)
    return Problem(data, likelihood, prior, settings, distances, learned=likelihood is not asked)


def settled(settings: Settings, found: Fit) -> Settings:
    """The settings with the hyperparameters that were drawn."""
    prior, likelihood = found.chain.prior, found.chain.likelihood
    changes: dict[str, object] = {"concentration": prior.concentration}  # type: ignore[attr-defined]
    if isinstance(prior, PitmanYor):
        changes["discount"] = prior.discount
    if isinstance(prior, DistanceDependent):
        changes["decay_scale"] = prior.decay.scale
    for name in DRAWN:
        value = getattr(likelihood, name, None)
        if getattr(settings, name) is None and isinstance(value, float):
            changes[name] = value
    return msgspec.structs.replace(settings, **changes)


def lines_of(collection: Collection, found: Fit) -> list[Assignment]:
    """The answer to every record, in time order, as ``consume`` would write it."""
    labels = found.labels
    probability, log_predictive = sureness(found.chain)
    prior, seen = found.chain.prior, set()
    linked = isinstance(prior, DistanceDependent) and found.chain.distances is None
    times = collection.times.tolist()
    lines = []
    for i, (record, label) in enumerate(zip(collection.records, labels.tolist(), strict=True)):
        link = None
        if linked and label in seen:
            shares = prior.link_posterior(labels[: i + 1].tolist(), i, times[: i + 1])  # type: ignore[attr-defined]
            link = max(shares, key=lambda j: (shares[j], j))
        lines.append(
            Assignment(
                seq=i,
                id=record.id,
                position=record.position,
                time=record.time,
                cluster=label,
                probability=round(float(probability[i]), DIGITS),
                new=label not in seen,
                link=link,
                log_predictive=round(float(log_predictive[i]), DIGITS),
                keep=msgspec.UNSET if record.keep is None else record.keep,
            )
        )
        seen.add(label)
    return lines


def run_fit(settings: Settings, file: str, plan: Plan, places: Places, distances: str | None) -> None:
    """Read a file, cluster it, write the answers, a snapshot and pictures."""
    check(plan)
    if places.state is not None and settings.likelihood in OFFLINE_FAMILIES:
        raise ConfigError(
            f"no snapshot can hold {settings.likelihood} clusters yet: leave --state out", Exit.USAGE
        )
    origin, paths = Origin(file), Paths(places.output, places.state, places.rejects)
    refuse_double_use(origin, paths)
    collection = read_all(settings, origin)
    encoded = collection.encoded
    problem = problem_of(settings, encoded, load_distances(distances, collection))
    folder = None if places.state is None else StateFolder(places.state, settings.snapshot_keep)
    sinks = Sinks(origin, paths, None, places.overwrite)
    announce_compilation()
    began = time.monotonic()
    with Interrupt() as interrupt, Progress(plan) as progress:
        found = fit(problem, plan, progress, interrupt.event)
    sinks.write(Answers([*lines_of(collection, found)], collection.rejects, []))
    sinks.flush(sync=True)
    sinks.close()
    if folder is not None:
        retain = max(settings.retain, len(collection.records))  # so that it can be refined
        final = msgspec.structs.replace(settled(problem.settings, found), retain=retain)
        save(folder, final, encoded, found.labels)
    if places.plot is not None:
        for path in draw_fit(Path(places.plot), found):
            say(f"drew {path}")
    tell(found, time.monotonic() - began)


def save(
    folder: StateFolder,
    settings: Settings,
    encoded: Encoded,
    labels: np.ndarray,
    names: np.ndarray | None = None,
    minted: int = 0,
) -> None:
    """Write a snapshot that ``show``, ``refine`` and ``consume --start-from`` read."""
    engine = engine_of(settings, encoded, labels, names, minted)
    modes = {"final_only": False, "events": False}
    header = Header(model_settings(settings), engine.seq, {}, {}, modes, time.time())
    folder.write(header, engine.dumps())
    folder.close()


def tell(found: Fit, seconds: float) -> None:
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
        f"{chain.size:,} records into {chain.clusters:,} clusters in {seconds:.1f} s; "
        f"log joint {chain.log_joint:,.2f} nats"
    )
