"""Erase records from a stream: what they say, and their ids. What was counted of them stays.

A word that no other record is known to have had is theirs, too: it loses its name. A record that is retained
keeps one word, the most frequent of its own, and stays in its cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.encode.vocabulary import BagEncoder, short
from streamdp.encode.word_encoder import WordEncoder
from streamdp.ledger.samples import text_of
from streamdp.lines.erase import erase_lines
from streamdp.records import Record
from streamdp.records.erased import Erased
from streamdp.story.beam import bag_of
from streamdp.streams.beam import BeamStream
from streamdp.streams.stream import Stream
from streamdp.streams.templates import TemplateStream


def erase(stream: Stream, gone: Erased) -> Erased:
    """Erase records; returns what more is known of them. The stream is to be stored and loaded again."""
    told, memory = stream.announcer, stream.memory
    named = {str(a.id): a.seq for a in told.undecided.values() if gone.named(a.id)}
    gone = gone.with_more(seqs=named.values())
    waiting = [*stream.order.heap, *stream.order.leaps]
    records = [record for _, _, record in waiting]
    if isinstance(stream, BeamStream):
        records += [record for _, record in [*stream.intake.pending, *stream.intake.strays]]
    for record in records:
        if gone.named(record.id) or gone.meant(record.keep):
            said, ids = (
                [text_of(record, stream.settings.texts)],
                [] if record.id is None else [str(record.id)],
            )
            gone = gone.with_more(ids=ids, texts=said, places=[record.position])
    gone = gone.with_more(texts=[text for seq, _, text in told.ledger.samples.all() if seq in gone.seqs])
    gone = gone.with_more(texts=[title.text for title in memory.titles.all() if title.seq in gone.seqs])
    if isinstance(stream, TemplateStream):
        lines, most = stream.lines, max(len(gone.seqs), 1)
        said, words = erase_lines(
            lines.state, lines.history, stream.readings.pieces, gone.texts, gone.said, most
        )
        gone = gone.with_more(texts=said, words=map(str.casefold, words))
        stream.retained.erase(gone.seqs, np.zeros(0))
    elif isinstance(stream, BeamStream):
        gone = gone.with_more(words=_erase_words(stream, gone))
    told.erase(gone)
    memory.titles.erase(lambda title: title.seq in gone.seqs or gone.said(title.text))
    stream.corrections.erase(gone, named)

    def is_gone(record: Record) -> bool:
        return gone.named(record.id) or gone.meant(record.keep)

    stream.order.erase(is_gone)
    if isinstance(stream, BeamStream):
        stream.intake.erase(is_gone)
    return gone


def _erase_words(stream: BeamStream, gone: Erased) -> list[str]:
    """Erase what is retained of records, and the words that only they had; returns these."""
    search, encoder = stream.search, stream.encoder
    seqs = [seq for seq in gone.seqs if seq < stream.seq]
    if search is None or not isinstance(encoder, BagEncoder):
        stream.retained.erase(seqs, np.zeros(0))
        return []
    often = np.array(search.words.learned.counts, float)
    often[: encoder.vocabulary.fixed] = np.inf
    had: Counter[int] = Counter()
    for words, counts in stream.retained.erase(seqs, often):
        had.update(dict(zip(words.tolist(), counts.tolist(), strict=True)))
    whole = [text for text in gone.texts if not any(o != text and o.startswith(text) for o in gone.texts)]
    had |= Counter(_words_of(encoder, whole))  # those of records that are retained no more among them
    stream.corrections.gone.add(seqs, had)
    known = stream.corrections.gone
    everywhere: Counter[int] = Counter()
    for slot in search.head_slots().tolist():
        bag = bag_of(search, slot)
        here = np.isin(bag.words, list(had))
        everywhere.update(dict(zip(bag.words[here].tolist(), bag.counts[here].tolist(), strict=True)))
    held = stream.retained.collect()
    others = set[int]()
    if held is not None:
        of_others = ~np.isin(held.first + held.batch.rows, known.seqs)
        others = set(held.batch.words[of_others].tolist())
    seen = encoder.vocabulary.last_seen
    only = [
        word
        for word in sorted(had)
        if word not in others and int(seen[word]) in known.seqs and everywhere[word] <= known.words[word]
    ]
    return encoder.vocabulary.erase(only)


def _words_of(encoder: BagEncoder, texts: Iterable[str]) -> list[int]:
    """The ids of the words of records, as far as it is known what they say."""
    found = list[str]()
    for text in texts:
        if isinstance(encoder, WordEncoder):
            found += encoder.tokenizer.tokens(text)
        elif isinstance(encoder, CategoryEncoder):
            found += _categories(text)
    ids = encoder.vocabulary.ids
    return [ids[word] for word in map(short, found) if word in ids]


def _categories(text: str) -> list[str]:
    """The words of fields that are written as JSON."""
    try:
        fields = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return []
    return [f"{name}={value}" for name, value in fields.items()] if isinstance(fields, dict) else []
