"""Compile in two processes at once: what looks back at texts beside what takes them in.

python -m streamdp.cli.beside SETTINGS
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import numpy as np

from streamdp.beam.clusters.places import Places
from streamdp.beam.data.state import Incoming
from streamdp.beam.looks.parting import Few
from streamdp.beam.looks.rearrange import keep_head
from streamdp.beam.looks.review import gather_recent
from streamdp.beam.looks.second_look import Look, look_again
from streamdp.beam.search import NONE
from streamdp.kernels.compilation import PLANS, compiling, when_begun
from streamdp.kernels.rows import made
from streamdp.offline.problem import Collection
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint

TEXTS = 0
"""Which of the plans is of texts."""


@contextlib.contextmanager
def two_processes(settings: Settings) -> Iterator[None]:
    """While it lasts, another process compiles what looks back at texts, if this one compiles the rest."""
    started: list[subprocess.Popen[bytes]] = []

    def begun() -> None:
        now = compiling()
        if started or now is None or now.total != len(PLANS[TEXTS]) or (os.cpu_count() or 1) < 2:
            return
        given = msgspec.json.encode(settings).decode()
        # -P: a module of the folder where the user is must not stand for one of ours
        command = [sys.executable, "-P", "-m", __name__, given]
        nowhere = subprocess.DEVNULL
        started.append(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))  # noqa: S603

    with when_begun(begun):
        try:
            yield
        finally:
            for each in started:
                each.kill()
                each.wait()


def compile_looks(settings: Settings) -> None:
    """Compile what looks back at texts. No record is taken for that: it would need the rest."""
    encoded = Collection(settings, ["two words", "two more"]).encoded
    search = Blueprint(encoded.encoder.meant(settings)).search(encoded.moments)
    search.ensure_words(int(encoded.batch.words.max()) + 1)
    empty = encoded.batch.slice(0, 0)
    out, recent = search.output_for(1, 1), gather_recent(search, 0, empty, NONE)
    look = Look(search.model, search.state, search.scores, made(Places, {}), recent, out)
    counts = np.zeros(1, np.int32)
    bag = Incoming(-1, 0.0, counts, counts, np.zeros(0), -1)
    look_again(look, search.prepare(empty), 0, NONE, NONE, bag)
    keep_head(search.model, search.state, out, search.choice)
    Few(search, encoded.batch, 1).as_two(np.array([0, encoded.batch.size]))


if __name__ == "__main__":
    compile_looks(msgspec.json.decode(sys.argv[1], type=Settings))
