"""``streamdp plot``: pictures of a stream, from its assignments or from a snapshot."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from streamdp.cli.errors import say
from streamdp.cli.pictures import Place, check_pictures, save
from streamdp.cli.show import open_state
from streamdp.cli.status import counted
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.plots.clock import Clock
from streamdp.plots.data import Answered, DrawError, read_answers, read_events
from streamdp.plots.lives import Life, lives_of_answers, lives_of_clusters, lives_of_events
from streamdp.plots.pages import OF_STREAM, names_of, of_stream
from streamdp.records import ClusterSummary, Event
from streamdp.state.snapshot import MAGIC

ENDINGS = (".jsonl", ".json", ".csv", ".gz")


def plot(source: str, events: str | None, state: str | None, output: str | None, *, overwrite: bool) -> None:
    """Draw what there is to draw, and say what there is not."""
    given = tuple(each for each in (source, events, state) if each is not None)
    if output is None:
        place = Place(Path(), f"{_named_after(source)}-", "the working folder", overwrite, given)
    else:
        place = Place.of("--output", output, overwrite=overwrite, given=given)
    check_pictures(place, OF_STREAM)
    engine = open_state(source)[1] if _is_state(source) else None
    answered = read_answers(source) if engine is None else Answered.of_engine(engine)
    if not len(answered):
        raise DrawError(f"{source}: there is no answer to draw", Exit.BAD_DATA)
    told = None if events is None else read_events(events)
    known = engine if state is None else open_state(state)[1]
    clusters: list[ClusterSummary] = [] if known is None else [*known.closed(), *known.clusters()]
    if engine is not None:
        _tell_of_state(engine, answered)
    save(place, of_stream(answered, _lives(answered, told, engine), names_of(clusters, told or ())))
    if np.isnan(answered.novelty).all():
        say(
            f"{source} has no novelty and no probabilities, so those are not drawn: the assignments have them"
        )


def _named_after(source: str) -> str:
    """The prefix of pictures for which no place was named."""
    name = Path(source).absolute().name
    while Path(name).suffix in ENDINGS:
        name = Path(name).stem
    return name or "streamdp"


def _is_state(source: str) -> bool:
    """Whether this is a folder of snapshots or one of them, and not a file of assignments."""
    path = Path(source)
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise DrawError(f"{source}: cannot be read: {error.strerror or error}", Exit.NO_INPUT) from error


def _lives(answered: Answered, events: list[Event] | None, engine: Engine | None) -> list[Life]:
    """Of clusters, by the best that is known of them."""
    clock = Clock.of(answered)
    if events is not None:
        return lives_of_events(events, clock, answered)
    if engine is None:
        say("without --events no merges, splits and deaths are known: life lines go to the last record")
        return lives_of_answers(answered)
    say("a state knows no merges and splits: with --events, or the assignments, life lines have them")
    return lives_of_clusters(engine.clusters(), engine.closed(), clock)


def _tell_of_state(engine: Engine, answered: Answered) -> None:
    if len(answered) < engine.seq:
        held = counted(len(answered), "record")
        say(f"a state holds the last {held} of {engine.seq:,}: the assignments would show them all")
