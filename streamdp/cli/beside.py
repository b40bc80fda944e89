"""Compile in two processes at once: what looks back at texts beside what takes them in.

python -m streamdp.cli.beside SETTINGS
"""

from __future__ import annotations

import sys

import msgspec
import numpy as np

from streamdp.beam.clusters.places import Places
from streamdp.beam.data.state import Incoming
from streamdp.beam.looks.parting import Few
from streamdp.beam.looks.rearrange import keep_head
from streamdp.beam.looks.review import gather_recent
from streamdp.beam.looks.second_look import Look, look_again
from streamdp.beam.search import NONE
from streamdp.kernels.rows import made
from streamdp.offline.problem import Collection
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint


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
