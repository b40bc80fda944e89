"""From a stream to a finite set and back: the records of an engine, an engine of clustered records."""

from __future__ import annotations

import copy
import time

import numpy as np

from streamdp.encode.batch import Labelled
from streamdp.encode.encoders import Encoded, order_of
from streamdp.encode.vocabulary import BagEncoder
from streamdp.engine import Engine
from streamdp.offline.task import Stream
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint
from streamdp.settings.load import model_settings
from streamdp.state.snapshot import Header, StateFolder, Writer


def stream_of(engine: Engine) -> Stream:
    """What a refinement needs of an engine. ValueError where it holds no records."""
    stream = engine.stream()
    if stream is None:
        raise ValueError("the state holds no records: it was made with --retain 0, or before the first")
    return stream


def engine_of(
    settings: Settings, encoded: Encoded, labels: np.ndarray, names: np.ndarray | None = None, minted: int = 0
) -> Engine:
    """An engine that has seen these records and clustered them so.

    A cluster that the prior would have closed in between is founded anew.

    Parameters
    ----------
    settings, encoded
        The model, and the records in time order.
    labels
        The cluster of every record, shape (N,), numbered from 0 by first members.
    names, minted
        The label of each cluster, shape (K,), all of them below ``minted``; None: the numbers.
    """
    batch, moments = encoded.batch, encoded.moments
    encoder = copy.deepcopy(encoded.encoder)  # what this engine learns is no business of another
    search = Blueprint(encoder.meant(settings)).search(moments)
    first = np.unique(labels, return_index=True)[1]
    if isinstance(encoder, BagEncoder):
        search.ensure_words(encoder.vocabulary.unknown + 1)
        encoder.vocabulary.touch(batch, 0)
    announced = np.zeros(batch.size, np.int64)
    for start, stop, out in search.run(batch, first[labels]):
        announced[start:stop] = out.answers["label"][start:stop]
    if names is not None:
        announced = search.rename(announced, np.asarray(names)[labels], minted)
    order = order_of(settings)
    if batch.times is not None:
        order.first, order.timed = float(batch.times[0]), batch.size
        order.latest = order.released = float(batch.times[-1])
        order.dated = bool(batch.times.any())  # where no record has a time, all are at 0
    return Engine.of_search(settings, order, encoder, moments, Labelled(0, batch, announced), search)


def save(folder: StateFolder, engine: Engine, writer: Writer) -> None:
    """Write a snapshot that ``stories``, ``fit`` and ``consume --start-from`` read. Raises SnapshotError."""
    modes = {"final_only": False, "events": False}
    header = Header(model_settings(engine.settings), engine.seq, {}, {}, modes, time.time(), writer)
    folder.write(header, engine.dumps())
