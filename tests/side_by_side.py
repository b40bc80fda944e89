"""Records read side by side must be those that the decoder reads one by one, and be answered alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from feeds import raws_of

from streamdp.decode.decoder import Decoder
from streamdp.decode.texts import TextReader
from streamdp.engine import Engine
from streamdp.records import Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings import Settings

KEEP = ("source", "n")


def all_of(found: Columns) -> list[Record | Reject]:
    """What was read, one by one."""
    return found.all()


def check_read_as_decoded(decoder: Decoder, reader: TextReader, usual: bytes, line: bytes) -> None:
    """What a line holds is what the decoder says, whatever stands before it."""
    found = all_of(reader.read(raws_of([usual, line])))
    assert repr(found[1]) == repr(decoder.decode(raws_of([b"", line])[1]))


def check_parts(texts: Columns | list[Record | Reject]) -> None:
    """Slices and choices hold the records of the whole."""
    assert isinstance(texts, Columns)
    whole = list(texts)
    assert list(texts[1:4][1:]) == whole[2:4]
    assert list(texts.take(np.array([0, 2, 3]))) == [whole[0], whole[2], whole[3]]
    assert list(texts[1:].take(np.array([0, 2]))) == [whole[1], whole[3]]
    assert texts.times() == [record.time for record in whole]
    parts = [each for at in range(0, len(texts), 2) for each in texts[at : at + 2].all()]
    assert list(map(repr, parts)) == list(map(repr, texts.all()))


def check_answers(
    settings: Settings, lines: Sequence[bytes], sizes: Iterable[int], final_only: bool, anew: int
) -> int:
    """Compare all answers and states; after a batch of size ``anew`` an engine is loaded from its state.

    Returns how many batches were read side by side.
    """
    modes = {"final_only": final_only, "with_events": True}
    one, other = Engine(settings, **modes), Engine(settings, **modes)
    reader, together, at = TextReader(Decoder("jsonl", keep=KEEP)), 0, 0
    for size in sizes:
        read = reader.read(raws_of(lines[at : at + size], first=at + 1))
        at += size
        together += isinstance(read, Columns)
        found, expected = one.advance(read), other.advance(all_of(read))
        assert found.lines.encode() == expected.lines.encode()
        assert list(found.lines) == list(expected.lines)
        assert (found.rejects, found.events) == (expected.rejects, expected.events)
        if size > 100 or size == 1:
            assert one.dumps() == other.dumps()
            assert one.open_answers() == other.open_answers()
        if size == anew:  # its open answers are objects
            one = Engine.loads(one.dumps(), settings, **modes)
    assert at >= len(lines)
    ended, expected = one.finish(), other.finish()
    assert (ended.lines.encode(), ended.rejects) == (expected.lines.encode(), expected.rejects)
    return together
