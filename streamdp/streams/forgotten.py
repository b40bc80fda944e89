"""Let go of what records of a beam say: what was counted of them stays.

A word that no other record is known to have had is theirs, too: it loses its name. A record that is retained
keeps one word, the most frequent of its own, and stays in its cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from streamdp.beam.search import BeamSearch
from streamdp.encode.vocabulary import BagEncoder, short
from streamdp.state.retained import Retained
from streamdp.story.beam import bag_of
from streamdp.streams.corrections import Blank


def forget(
    search: BeamSearch,
    encoder: BagEncoder,
    retained: Retained,
    blank: Blank,
    seqs: Collection[int],
    texts: Collection[str],
) -> list[str]:
    """Let go of what records say of these numbers, which had these ``texts``, as far as that is known.

    Returns the words that lose their names; ``blank`` is what is known of such records from before.
    """
    often = np.array(search.words.learned.counts, float)
    often[: encoder.vocabulary.fixed] = np.inf
    had, known = Counter[int](), encoder.vocabulary.ids
    for words, counts in retained.blank(seqs, often):
        had.update(dict(zip(words.tolist(), counts.tolist(), strict=True)))
    whole = [text for text in texts if not any(o != text and o.startswith(text) for o in texts)]
    words_of = (short(word) for text in whole for word in encoder.words_in(text))
    had |= Counter(known[word] for word in words_of if word in known)  # of records let go of among them
    blank.add(seqs, had)
    everywhere: Counter[int] = Counter()
    for slot in search.head_slots().tolist():
        bag = bag_of(search, slot)
        here = np.isin(bag.words, list(had))
        everywhere.update(dict(zip(bag.words[here].tolist(), bag.counts[here].tolist(), strict=True)))
    held = retained.collect()
    others = set[int]()
    if held is not None:
        of_others = ~np.isin(held.first + held.batch.rows, blank.seqs)
        others = set(held.batch.words[of_others].tolist())
    seen = encoder.vocabulary.last_seen
    only = [
        word
        for word in sorted(had)
        if word not in others
        and (int(seen[word]) in blank.seqs or not everywhere[word])  # a form of another word is never seen
        and everywhere[word] <= blank.words[word]
    ]
    return encoder.vocabulary.strike(only)
