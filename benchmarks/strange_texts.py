"""Texts for the bench of strangers: those at hand in random orders, joined end to end, and made ones.

Support tickets put what they want in one of several ways that share few words; short labels are names of
one or two words, 300 of them by Zipf's law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from benchmarks import embedded, textclust
from benchmarks.quality import labels_of, truth_of
from benchmarks.workloads import Document, documents
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.settings import Settings

RECORDS = 2000
"""Of each order; half as many of each of two subjects."""

SECONDS = 10.0
"""That ``fit`` may take for each of them."""

SHUFFLED = ("news", "tweets", "reuters21578", "stackoverflow10k", "banking77")
JOINED = {"news, then tweets": ("news_t", "tweets_t"), "tweets, then news": ("tweets_t", "news_t")}


MODEL, MINILM = "wordllama", "benchmarks.minilm:rows"
"""What makes embeddings of texts; of banking77 a transformer does, too."""

LABELS = 300
JOBS = (
    "nurse",
    "teacher",
    "driver",
    "cook",
    "farmer",
    "sailor",
    "clerk",
    "baker",
    "tailor",
    "guard",
    "pilot",
)
WORK = ("head", "night", "school", "ship", "store", "data", "sales", "line", "bus", "court", "fire", "field")
LABEL_WORDS = (*JOBS, *WORK)

TICKETS = {
    "refund": "money back please|refund not received|you owe me a reimbursement|when is my payment returned",
    "parcel": "parcel never came|delivery is missing|where is my package|the courier lost my order",
    "password": "cannot log in|forgot my password|my account is locked|sign in keeps failing",
    "crash": "the app crashes on start|program closes by itself|it freezes and quits|black screen on opening",
    "invoice": "invoice shows the wrong amount|billed too much|overcharged this month|my bill has an error",
    "cancel": "cancel my subscription|I want to stop the plan|end my membership|please unsubscribe me",
    "broken": "arrived damaged|the item is broken|it came with a crack|product was smashed in the box",
    "slow": "everything is slow|pages take ages to load|terrible performance today|it lags all the time",
    "address": "change my address|I have moved house|update where you ship to|new street and city",
    "praise": "great service|thank you so much|very happy with it|excellent, I love it",
    "print": "printer does nothing|cannot print a document|paper jams each time|the scanner and toner fail",
    "trial": "extend my free trial|more days to test|can I try it longer|evaluation period is over",
}
"""What tickets want, and ways to put it."""

AROUND = ("", "hello, ", "hi team, ", "again: ", "urgent! ", "good morning, ")
BEHIND = ("", " please help", " since Monday", ", order {}", " (customer {})", ", thanks")


class Texts(NamedTuple):
    """Texts of known clusters, in the order of a stream, these clusters, and what makes embeddings."""

    corpus: list[Document]
    truth: np.ndarray
    model: str = MODEL


def _numbered(corpus: list[Document]) -> Texts:
    """The same, each a unit of time after the one before it."""
    made = [replace(document, time=float(i)) for i, document in enumerate(corpus)]
    return Texts(made, truth_of(made))


def _known(name: str) -> list[Document]:
    return [document for document in documents(name) if document.cluster is not None]


def shuffled(name: str, seed: int) -> Texts:
    """Some of a corpus, drawn and ordered at random."""
    corpus = _known(name)
    order = np.random.default_rng(seed).permutation(len(corpus))[:RECORDS]
    return _numbered([corpus[i] for i in order.tolist()])


def joined(first: str, second: str, seed: int) -> Texts:
    """A stretch of one corpus in order of time, then one of another, each from where chance has it begin."""
    rng, found = np.random.default_rng(seed), list[Document]()
    for name in (first, second):
        corpus = _known(name)
        begin = int(rng.integers(len(corpus) - RECORDS // 2))
        part = corpus[begin : begin + RECORDS // 2]
        found += [replace(document, cluster=f"{name} {document.cluster}") for document in part]
    return _numbered(found)


def tickets(seed: int) -> Texts:
    """Support tickets, of some kinds more than of others."""
    rng, made = np.random.default_rng(seed), list[Document]()
    kinds = rng.choice(list(TICKETS), RECORDS, p=rng.dirichlet(np.full(len(TICKETS), 5.0)))
    for kind in kinds.tolist():
        middle = str(rng.choice(TICKETS[kind].split("|")))
        text = f"{rng.choice(AROUND)}{middle}{rng.choice(BEHIND)}".format(rng.integers(1000, 10_000))
        made.append(Document("", 0.0, text, kind))
    return _numbered(made)


def short_labels(seed: int) -> Texts:
    """Records that are nothing but one of some names, of one word or two."""
    rng = np.random.default_rng(seed)
    pairs = [f"{one} {other}" for one in LABEL_WORDS for other in LABEL_WORDS if one != other]
    names = [*LABEL_WORDS, *rng.choice(pairs, LABELS - len(LABEL_WORDS), replace=False).tolist()]
    names = rng.permutation(names).tolist()
    often = 1.0 / np.arange(1, LABELS + 1)
    drawn = rng.choice(names, RECORDS, p=often / often.sum()).tolist()
    return _numbered([Document("", 0.0, name, name) for name in drawn])


def text_sets(orders: range) -> dict[str, list[Texts]]:
    """All of them by row of the table, each in these orders."""
    found = {f"{name}, shuffled": [shuffled(name, seed) for seed in orders] for name in SHUFFLED}
    found["banking77, MiniLM"] = [each._replace(model=MINILM) for each in found["banking77, shuffled"]]
    found |= {"tickets": [tickets(seed) for seed in orders]}
    found |= {"short labels": [short_labels(seed) for seed in orders]}
    return found | {name: [joined(*two, seed) for seed in orders] for name, two in JOINED.items()}


def ours(texts: Texts) -> np.ndarray:
    """What the stream says of each text in the end."""
    return labels_of(texts.corpus, Settings())[1]


def with_meaning(texts: Texts) -> np.ndarray:
    """The same with embeddings beside the words."""
    return labels_of(texts.corpus, Settings(embed=texts.model))[1]


def fitted(texts: Texts) -> np.ndarray:
    """What ``fit`` says of them, told no times and no options but how long it may take."""
    found = fit([document.text for document in texts.corpus], plan=Plan(seconds=SECONDS))
    assert not found.rejects
    return found.labels


def kmeans(texts: Texts) -> np.ndarray:
    """Told the number of clusters; of all texts as TF-IDF of hashed words."""
    from sklearn.cluster import KMeans

    rows = embedded.hashed([document.text for document in texts.corpus])
    return np.asarray(KMeans(clusters_of(texts), n_init=3, random_state=0).fit_predict(rows))


def of_textclust(texts: Texts) -> np.ndarray:
    """With its paper's settings, asked for each text once it has learned it."""
    return np.array(textclust.labels_of(texts.corpus))


def clusters_of(texts: Texts) -> int:
    """The true number of clusters."""
    return len(np.unique(texts.truth))


def of_embeddings(cluster: Callable[[np.ndarray], np.ndarray]) -> Callable[[Texts], np.ndarray]:
    """What a peer says of embeddings alone."""
    return lambda texts: cluster(vectors_of(texts))


def vectors_of(texts: Texts) -> np.ndarray:
    """Embeddings of texts at length one."""
    return embedded.embedded([document.text for document in texts.corpus], texts.model)


def of_bertopic(texts: Texts) -> np.ndarray:
    """Its online mode, told the number of clusters."""
    written = [document.text for document in texts.corpus]
    return embedded.bertopic(written, vectors_of(texts), clusters_of(texts))


OF_TEXTS: dict[str, Callable[[Texts], np.ndarray]] = {
    "streamdp": ours,
    "and meaning": with_meaning,
    "fit": fitted,
    "KMeans, told k": kmeans,
    "TextClust": of_textclust,
    "GSDMM": lambda texts: embedded.gsdmm(texts.corpus),
    "embeddings": of_embeddings(embedded.ours),
    "KMeans of these, told k": lambda texts: embedded.kmeans(vectors_of(texts), clusters_of(texts)),
    "HDBSCAN of these": of_embeddings(embedded.hdbscan),
    "fast_hdbscan": of_embeddings(embedded.fast_hdbscan),
    "evoc": of_embeddings(embedded.evoc),
    "BERTopic, told k": of_bertopic,
}
"""Those of embeddings alone come last: "embeddings" is streamdp with ``normalise``."""
