"""Answers to records, as objects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from streamdp.ledger.table import NUMBERS, novelty, to_digits
from streamdp.records import Assignment, Record


def assignments(
    rows: np.ndarray | Mapping[str, np.ndarray],
    numbers: np.ndarray,
    records: Sequence[Record],
    first: int,
    *,
    links: Iterable[int] = repeat(-1),
    templates: Iterable[Any] = repeat(msgspec.UNSET),
    params: Iterable[Any] = repeat(msgspec.UNSET),
) -> list[Assignment]:
    """The answers to some records.

    Parameters
    ----------
    rows
        ``label`` and ``founded`` of each: arrays of shape (n,).
    numbers
        Those of :func:`rounded`, shape (8, n).
    records
        The records, n of them.
    first
        Number of the first; the others follow it.
    links
        The likeliest earlier member of each record's cluster, where the prior has links; -1 for none.
    templates, params
        How the template of each reads, and the values of its holes.
    """
    unset, founded, labels = msgspec.UNSET, rows["founded"].tolist(), rows["label"].tolist()
    given = zip(records, labels, founded, links, templates, params, numbers.T.tolist(), strict=False)
    found = []  # not strict: what has no end goes on as long as there are records
    for seq, (record, label, new, link, template, values, told) in enumerate(given, first):
        share, of_new, log_predictive, novelty, lasting, stability, sure, of_labels = told
        found.append(
            Assignment(
                seq=seq,
                id=record.id,
                position=record.position,
                time=record.time,
                cluster=label,
                probability=share,
                new_probability=of_new,
                lasting_probability=unset if lasting != lasting else lasting,
                stability=unset if stability != stability else stability,
                confidence=unset if sure != sure else sure,
                confidence_labels=unset if of_labels != of_labels else int(of_labels),
                new=bool(new),
                link=None if link < 0 else link,
                log_predictive=log_predictive,
                novelty=novelty,
                keep=unset if record.keep is None else record.keep,
                template=template,
                params=values,
            )
        )
    return found


def rounded(rows: np.ndarray | Mapping[str, np.ndarray], sizes: np.ndarray) -> np.ndarray:
    """The numbers of answers that are never revised, as they are announced: ``NUMBERS``, shape (8, n)."""
    found = np.full((len(NUMBERS), len(sizes)), math.nan)
    for k in range(3):
        found[k] = rows[NUMBERS[k]]
    found[3] = novelty(found[2], sizes)
    found[:3] = to_digits(found[:3])
    return found
