"""``streamdp check --compile``: compile beforehand what a settings file needs."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from streamdp.answers.listing import counted
from streamdp.beam.looks.moves import apply
from streamdp.beam.looks.parting import LEAST, STRANGERS, part
from streamdp.beam.looks.review import Due
from streamdp.beam.search import NONE
from streamdp.cli.display import Display
from streamdp.decode.log_reader import LogReader
from streamdp.decode.texts import TextReader
from streamdp.demo.stream import demo_stream
from streamdp.encode.embedding import is_function
from streamdp.encode.encoders import decoder_of
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit
from streamdp.kernels.cache import cache_folder
from streamdp.offline.chain import canonical
from streamdp.offline.fit import fit
from streamdp.offline.handover import engine_of
from streamdp.offline.plan import Plan
from streamdp.offline.problem import Collection
from streamdp.offline.refine import refine
from streamdp.records import FieldNames, Value
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch
from streamdp.run.messages import say
from streamdp.settings import Settings
from streamdp.settings.assemble import LONG, is_sparse, records_for_all

FEW = 60
"""Records that are fitted."""

TOPICS = STRANGERS + 3
"""Of texts with a cluster that is parted."""

STRAYS, FLIPS = 0.0012, 0.02
"""Shares of vectors of no kind, for each dimension (where there are few, strays would meet and be kinds), and
of numbers that are not their kind's."""


def warm(settings: Settings, *, offline: bool) -> None:
    """Compile the kernels of the settings' streams; those of ``fit`` where ``offline``.

    Raises ConfigError (73) where no folder can be written.
    """
    folder = cache_folder()
    if folder is None:
        why = "no folder can be written for kernels: set STREAMDP_CACHE_DIR to one that can"
        raise ConfigError(why, Exit.CANNOT_CREATE)
    before = _kernels_in(folder)
    for values in _streams(settings):
        with Display():
            _run(settings, values, offline=offline and settings.no_lines)
    say(f"{counted(_kernels_in(folder) - before, 'kernel')} compiled, in {folder}")


def prepare(settings: Settings) -> None:
    """Load or compile the kernels of a stream with these settings; of texts where the kind is left open.

    A family from outside compiles as records come: it may refuse those that are made up here.
    """
    if ":" in settings.likelihood:
        return
    _run(settings, next(_streams(settings)), offline=False)
    gc.collect()


def _kernels_in(folder: Path) -> int:
    return sum(1 for _ in folder.glob("*.kernel"))


def _streams(settings: Settings) -> Iterator[list[Value]]:
    """Records of each kind that the settings may be for."""
    sparse = True if settings.of_lines else is_sparse(settings)
    count = records_for_all(settings)
    if settings.of_categories:
        yield _records(count, settings.field_names)
        return
    if sparse is not False:
        yield [record.text for record in demo_stream(count, 0)]
    if sparse is not True:
        for dimension in (8, LONG):
            yield _vectors(count, dimension)


def _vectors(count: int, dimension: int) -> list[Value]:
    """Zeros and ones, which every family for vectors takes: three kinds, and strays, so that some unite."""
    generator = random.Random(0)  # noqa: S311 - records to compile with

    def ones(share: float) -> list[float]:
        return [float(generator.random() < share) for _ in range(dimension - 1)]

    kinds = [ones(0.5) for _ in range(3)]
    found: list[Value] = []
    for _ in range(count):
        kind = ones(0.5) if generator.random() < STRAYS * dimension else generator.choice(kinds)
        found.append([1.0, *(abs(number - flip) for number, flip in zip(kind, ones(FLIPS), strict=True))])
    return found


def _records(count: int, names: FieldNames) -> list[Value]:
    """Random values of each field, some of them missing."""
    generator = random.Random(0)  # noqa: S311 - records to compile with
    fields = names.all or ("one", "two", "three")

    def value(name: str) -> str | float | list[float]:
        if name in names.vectors:
            return [1.0, generator.random()]
        if name in names.texts:
            return " ".join(generator.choices("abcdefgh", k=8))
        return generator.random() if name in names.numbers else "abc"[generator.randrange(3)]

    return [
        {name: value(name) for name in fields if name == fields[0] or generator.random() < 0.9}
        for _ in range(count)
    ]


def _as_read(settings: Settings, values: list[Value]) -> Columns:
    """Texts or vectors as they are read from lines of JSON; texts from lines of a log, for their stream."""
    text = isinstance(values[0], str)
    field = settings.text_field if text else settings.vector_name
    lines = [msgspec.json.encode({field: value}) for value in values]
    if settings.of_lines:
        lines = [str(value).encode() for value in values]
    decoder = decoder_of(settings, "log" if settings.of_lines else "jsonl")
    if decoder.log is not None:
        return LogReader(decoder, decoder.log, decoder.decode).read(_raws(lines), together=True)
    return TextReader(decoder).read(_raws(lines))


def _part(settings: Settings) -> None:
    """Let a cluster of two topics be parted, beside some of one topic each."""
    generator = random.Random(0)  # noqa: S311 - records to compile with
    topics = [generator.randrange(TOPICS) for _ in range(TOPICS * LEAST)]
    texts: list[Value] = [
        " ".join(generator.choices([f"word{t}x{k}" for k in range(9)], k=6)) for t in topics
    ]
    engine = engine_of(settings, Collection(settings, texts).encoded, canonical(np.maximum(topics, 1)))
    search, held = engine.search, engine.retained()
    if search is not None and held is not None:
        for moves in part(search, held, held.labels, Due(NONE, settings.second_look, last=True)):
            for _ in apply(search, held, moves, with_events=True):
                pass


def _raws(lines: list[bytes]) -> RawBatch:
    raws = RawBatch({"file": ""}, ("line",))
    raws.data, raws.places, raws.arrivals = lines, list(range(len(lines))), [0.0] * len(lines)
    return raws


def stand_in(texts: list[str]) -> list[list[float]]:
    """Vectors of the texts that are made up here, about which nobody's function is asked."""
    return [[1.0, len(text) % 7, len(text) % 5] for text in texts]


def _run(settings: Settings, values: list[Value], *, offline: bool) -> None:
    if settings.embed is not None and is_function(settings.embed):
        settings = msgspec.structs.replace(settings, embed=f"{__name__}:{stand_in.__name__}")
    engine = Engine(settings)
    engine.advance(values)
    if not isinstance(values[0], dict):
        engine.advance(_as_read(settings, values))
    engine.score(values[:2])
    if isinstance(values[0], str) and settings.no_lines and settings.second_look:
        _part(settings)
    if offline:
        plan = Plan(rounds=2, seconds=None)
        refine(engine, plan)
        _ = fit(values[:FEW], settings, plan).assignments
        forgetful = Engine(msgspec.structs.replace(settings, retain=FEW, second_look=0, refine_every=0))
        forgetful.advance(values)
        with contextlib.suppress(ValueError):  # beside what its family has forgotten, nothing is refined
            refine(forgetful, dataclasses.replace(plan, hyper=False))
    engine.finish()
