"""Themes against true labels: the tree of stories cut at the true number of groups, beside other trees.

Each corpus is a stream at the defaults. All of its stories, those that ended too, with the words that their
records have in the end, are united in four ways:

* joint: the pair is united that raises the log joint most (what streamdp does);
* evidence: the same without the prior, by the log Bayes factor alone;
* per token: by the log Bayes factor for each token of the smaller of the two;
* average: average linkage of the log Bayes factors of pairs, for each token of the smaller one.

With ``--embed NAME`` the stream is run with that embedding beside the words too, and the stories that it
has then (*fine*) are united the first way.

*others choose* is the way that has the best mean over the other corpora. *kept* is the share of records
whose story is of the theme (of 20, by its number, kept up to date by the stream) that it was of at the look
before; looks are every 1,000 records.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from benchmarks.quality import PEERS, answers_of, labels_of, told_of, truth_of
from benchmarks.workloads import CHUNK, Document, documents, records_of, show, warm
from streamdp.beam.looks.uniting import collect_rows
from streamdp.encode.embedding import load_embedding
from streamdp.engine import Engine
from streamdp.likelihoods import Categorical
from streamdp.likelihoods.categorical import RECORD, TEXT
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.story.answers import statistics_of
from streamdp.story.statistics import Statistics
from streamdp.story.tree import Uniting, tree_of
from streamdp.story.words import Bag

THEMES = 20


def joint(statistics: Statistics, themes: int) -> dict[int, int]:
    """What streamdp does."""
    return tree_of(statistics).cut(themes)


def evidence(statistics: Statistics, themes: int) -> dict[int, int]:
    """By the log Bayes factor alone."""
    return _agglomerate(statistics, themes, per_token=False)


def per_token(statistics: Statistics, themes: int) -> dict[int, int]:
    """By the log Bayes factor for each token of the smaller."""
    return _agglomerate(statistics, themes, per_token=True)


def gains_of(statistics: Statistics) -> np.ndarray:
    """log Bayes factor of each pair, without the prior."""
    found = Uniting(statistics._replace(sizes=[1] * len(statistics.sizes), concentration=1.0))
    found.weigh_all()
    return found.gains


def tokens_of(statistics: Statistics) -> np.ndarray:
    """Tokens of each story."""
    return np.array([bag.counts.sum() for bag in statistics.bags], float)


def _agglomerate(statistics: Statistics, themes: int, *, per_token: bool) -> dict[int, int]:
    """Unite the best pair until so many are left, in plain numpy."""
    k = len(statistics.bags)
    word = np.concatenate([bag.words for bag in statistics.bags])
    count = np.concatenate([bag.counts for bag in statistics.bags])
    owner = np.repeat(np.arange(k), [len(bag.words) for bag in statistics.bags])
    by_word, by_story = np.bincount(word, count).astype(np.int64), np.bincount(word)
    terms = statistics.family.set_terms(2 * by_word, by_story, statistics.family.base_of(by_word, by_story))
    tokens, types, group = tokens_of(statistics), np.bincount(owner, minlength=k), np.arange(k)
    scores = gains_of(statistics)
    if per_token:
        scores /= np.minimum(tokens[:, None], tokens)
    np.fill_diagonal(scores, -np.inf)

    def whole(tokens: np.ndarray, types: np.ndarray) -> np.ndarray:
        return np.asarray(terms.tokens[0] - terms.tokens[tokens.astype(int)] + terms.types[types])

    for _ in range(k - themes):
        a, b = map(int, np.unravel_index(np.argmax(scores), scores.shape))
        own = (owner == a) | (owner == b)
        bag = np.bincount(word[own], count[own], len(by_word)).astype(np.int64)
        held = np.flatnonzero(bag)
        word, count = np.append(word[~own], held), np.append(count[~own], bag[held])
        owner = np.append(owner[~own], np.full(len(held), a))
        tokens[a] += tokens[b]
        types[a], types[b] = len(held), 0
        group[group == group[b]] = group[a]
        shared = np.flatnonzero(bag[word])
        w, n, m, whose = word[shared], count[shared], bag[word[shared]], owner[shared]
        other = owner != a
        safe = np.where(whose == a, 0, n)  # with itself it is not asked
        nats = terms.word[m + safe] - terms.word[m] - terms.word[n] + terms.word[1] - terms.mass[w]
        row = np.bincount(whose, nats, k)
        kinds = types[a] + types - np.bincount(whose, minlength=k)
        both = np.where(np.arange(k) == a, tokens, tokens[a] + tokens)
        row += whole(both, kinds) - whole(tokens, types) - whole(tokens[[a]], types[[a]])
        if per_token:
            row /= np.minimum(tokens[a], tokens)
        row[[a, b]] = -np.inf
        row[np.setdiff1d(np.arange(k), owner[other])] = -np.inf
        scores[b], scores[:, b] = -np.inf, -np.inf
        scores[a] = scores[:, a] = row
    return dict(zip(statistics.labels, group.tolist(), strict=True))


def average(statistics: Statistics, themes: int) -> dict[int, int]:
    """Average linkage of pairs."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    tokens, gains = tokens_of(statistics), gains_of(statistics)
    near = gains / np.minimum(tokens[:, None], tokens)
    far = near.max() - near
    np.fill_diagonal(far, 0.0)
    found = fcluster(linkage(squareform(far, checks=False), "average"), themes, "maxclust")
    return dict(zip(statistics.labels, found.tolist(), strict=True))


def with_meaning(corpus: list[Document], embed: str, themes: int) -> tuple[np.ndarray, np.ndarray]:
    """Newest labels of records with an embedding beside their words, and those of their themes.

    Vectors are seen from the mean of all.
    """
    engine, records = Engine(Settings(embed=embed)), records_of(corpus)
    _, newest = told_of(answers_of(engine, records), len(corpus))
    statistics = statistics_of(*stories_in(corpus, newest))
    assert statistics is not None
    assert engine.search is not None
    family = engine.search.likelihood
    assert isinstance(family, Categorical)
    assert family.text is not None
    assert family.vector is not None
    rows = load_embedding(embed).rows([d.text for d in corpus]).astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows -= np.nanmean(rows, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    places = {label: k for k, label in enumerate(statistics.labels)}
    known = ~np.isnan(rows[:, 0]) & np.isin(newest, statistics.labels)
    block = np.zeros((len(places), family.vector.width))
    place = np.array([places[label] for label in newest[known].tolist()])
    collect_rows(family.vector.terms(), np.ascontiguousarray(rows[known]), place, block)
    by_word = np.zeros(1 + max(int(bag.words.max()) for bag in statistics.bags), np.int64)
    for bag in statistics.bags:
        by_word[bag.words] += 1
    base = np.append([0.0, -1.0], -family.text.of_set(by_word))
    bags = [
        Bag(np.append([RECORD, TEXT], bag.words + 2), np.append([size, bag.counts.sum()], bag.counts))
        for bag, size in zip(statistics.bags, statistics.sizes, strict=True)
    ]
    group = joint(statistics._replace(family=family, bags=bags, rows=block, base=base), themes)
    return newest, np.array([group.get(label, -1 - label) for label in newest.tolist()])


def stories_in(
    corpus: list[Document], labels: np.ndarray
) -> tuple[dict[int, int], Iterator[tuple[int, str]]]:
    """How many records each story has, and the label and text of each record."""
    found, counts = np.unique(labels[labels >= 0], return_counts=True)
    texts = ((k, d.text) for k, d in zip(labels.tolist(), corpus, strict=True) if k >= 0)
    return dict(zip(found.tolist(), counts.tolist(), strict=True)), texts


WAYS = {"joint": joint, "evidence": evidence, "per token": per_token, "average": average}


def kept(corpus: list[Document]) -> float:
    """Share of records whose story keeps its theme from one look to the next."""
    engine, records = Engine(Settings(themes=THEMES)), records_of(corpus)
    looks = []
    for start in range(0, len(records), CHUNK):
        engine.advance(records[start : start + CHUNK])
        found = engine.stories(records=False).themed(THEMES)
        looks.append({story.label: (story.records, story.theme) for story in found})
    same = total = 0
    for before, after in pairwise(looks):
        for label in before.keys() & after.keys():
            total += after[label][0]
            same += after[label][0] * (before[label][1] == after[label][1])
    return same / max(total, 1)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--embed", help="also run with this embedding beside the words")
    options = parser.parse_args()
    warm()
    fine, found, rows = dict[str, float](), dict[str, dict[str, float]](), dict[str, list[str]]()
    meant: list[tuple[object, ...]] = []
    for name in options.corpora:
        corpus = documents(name)
        truth = truth_of(corpus)
        _, newest, clusters, _ = labels_of(corpus, Settings())
        statistics = statistics_of(*stories_in(corpus, newest))
        assert statistics is not None
        tree_of(
            statistics._replace(
                labels=statistics.labels[:2], sizes=statistics.sizes[:2], bags=statistics.bags[:2]
            )
        )
        started = time.process_time()
        tree_of(statistics)
        seconds = time.process_time() - started
        scored = truth >= 0
        themes = int(truth.max()) + 1
        fine[name], found[name] = agreement(newest[scored], truth[scored]).nmi, {}
        for way in options.ways:
            group = WAYS[way](statistics, themes)
            united = np.array([group.get(label, -1 - label) for label in newest.tolist()])
            found[name][way] = agreement(united[scored], truth[scored]).nmi
        rows[name] = [f"{clusters:,}", f"{themes}", f"{seconds:.2f}", f"{kept(corpus):.3f}"]
        if options.embed:
            both, united = with_meaning(corpus, options.embed, themes)
            for what, labels in (("fine", both), ("themes", united)):
                each = agreement(labels[scored], truth[scored])
                meant.append((name, what, len(np.unique(labels)), f"{each.nmi:.3f}", f"{each.ari:.3f}"))
    if meant:
        show(f"with {options.embed} beside the words", ("corpus", "labels", "groups", "NMI", "ARI"), meant)
    table: list[tuple[object, ...]] = []
    for name, values in found.items():
        others = [other for other in found if other != name]
        chosen = max(options.ways, key=lambda way: sum(found[other][way] for other in others))
        nmi = [f"{values[way]:.3f}" for way in options.ways]
        table.append((name, *rows[name][:2], f"{fine[name]:.3f}", *nmi, chosen, *rows[name][2:]))
    show(
        "themes, NMI at the true number of groups",
        ("corpus", "stories", "true", "fine", *options.ways, "others choose", "CPU s of joint", "kept"),
        table,
    )


if __name__ == "__main__":
    main()
