"""All that an engine must remember, as bytes: the body of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from streamdp.encode.choice import order_of, tokenizer_of
from streamdp.encode.encoders import Encoder, load_encoder
from streamdp.encode.order import ReorderBuffer, dump_record, load_record
from streamdp.likelihoods.base import Moments
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.state.arrays import pack, pack_all, unpack, unpack_all
from streamdp.state.retained import Retained


class Parts(NamedTuple):
    """What an engine consists of, its settings aside.

    ``pending`` are records with their times that are encoded but not yet absorbed; ``announced`` is what
    the announcer remembers, as plain values; ``moments`` are those of vectors once the warm-up has ended;
    ``passes`` is what refinements have come to, and the one under way, as plain values; ``strays`` are
    records that are of another kind than those pending, as long as it may be these that are wrong;
    ``templates`` are those of log lines, as plain values; ``beam`` holds the facts of a running beam
    (``beam/facts.py``).
    """

    order: ReorderBuffer
    encoder: Encoder | None
    pending: list[tuple[float, Record]]
    announced: dict[str, Any]
    moments: Moments | None
    retained: Retained
    beam: dict[str, Any] | None
    passes: dict[str, Any] | None = None
    strays: Sequence[tuple[float, Record]] = ()
    templates: dict[str, Any] | None = None


def dumps(parts: Parts) -> bytes:
    """All parts as msgpack, the same bytes however the records came in batches."""
    body: dict[str, Any] = {
        "order": parts.order.dump(),
        "encoder": None if parts.encoder is None else parts.encoder.dump(),
        "pending": [(time, dump_record(record)) for time, record in parts.pending],
        "announced": parts.announced,
        "moments": None if parts.moments is None else [pack(moment) for moment in parts.moments],
        "retained": parts.retained.dump(),
        "state": None if parts.beam is None else pack_all(parts.beam),
        "passes": parts.passes,
    }
    if parts.strays:
        body["strays"] = [(time, dump_record(record)) for time, record in parts.strays]
    if parts.templates is not None:
        body["templates"] = parts.templates
    return msgspec.msgpack.encode(body)


def loads(data: bytes, settings: Settings) -> Parts:
    """The inverse of :func:`dumps`, under the same model settings."""
    body = msgspec.msgpack.decode(data)
    order = order_of(settings)
    order.load(body["order"])
    retained = Retained(settings.retain)
    retained.load(body["retained"])
    stored, moments, beam = body["encoder"], body["moments"], body["state"]
    encoder = None if stored is None else load_encoder(stored, tokenizer_of(settings))
    pending = [(time, load_record(record)) for time, record in body["pending"]]
    for _, record in pending:
        if encoder is not None:
            encoder.add(record)
    return Parts(
        order,
        encoder,
        pending,
        body["announced"],
        None if moments is None else Moments(*(unpack(moment) for moment in moments)),
        retained,
        None if beam is None else unpack_all(beam),
        body["passes"],
        [(time, load_record(record)) for time, record in body.get("strays", ())],
        body.get("templates"),
    )
