"""Answers to records, as objects with rounded numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np

from streamdp.answers.written import to_digits
from streamdp.kernels.jit import Bound, entry
from streamdp.records import Assignment, Record


class Chances(NamedTuple):
    """What is calibrated on the stream itself, of n records: in [0, 1], NaN where it is not told."""

    lasting: np.ndarray  # float64[n] ``lasting_probability``
    stability: np.ndarray  # float64[n]
    confidence: np.ndarray  # float64[n]
    confidence_labels: np.ndarray  # float64[n] how many labels that rests on


@entry
def round_numbers(numbers: np.ndarray, sizes: np.ndarray) -> None:
    """Write novelties and round all.

    ``numbers`` is of shape (4, n): two probabilities, the log predictive and the novelty of each record.
    """
    for i in range(sizes.shape[0]):
        # never -0; long records would else look novel
        numbers[3, i] = 0.0 - numbers[2, i] / max(sizes[i], 1)
        for k in range(4):
            numbers[k, i] = to_digits(numbers[k, i])


_round_numbers = Bound(round_numbers)


def rounded(rows: np.ndarray | Mapping[str, np.ndarray], sizes: np.ndarray) -> np.ndarray:
    """The numbers that are announced: shape (4, n), as :func:`round_numbers` has them."""
    numbers = np.empty((4, len(sizes)))
    numbers[0], numbers[1] = rows["probability"], rows["new_probability"]
    numbers[2] = rows["log_predictive"]
    _round_numbers((), numbers, np.ascontiguousarray(sizes, np.int64))
    return numbers


def assignments(
    rows: np.ndarray | Mapping[str, np.ndarray],
    sizes: np.ndarray,
    records: Sequence[Record],
    first: int,
    *,
    chances: Chances | None = None,
    links: Iterable[int | None] = repeat(None),
    templates: Iterable[Any] = repeat(msgspec.UNSET),
    params: Iterable[Any] = repeat(msgspec.UNSET),
) -> list[Assignment]:
    """The answers to some records.

    Parameters
    ----------
    rows
        ``label``, ``probability``, ``new_probability``, ``founded`` and ``log_predictive`` of each: arrays of
        shape (n,).
    sizes
        Tokens of each record, its fields, or numbers of its vector, shape (n,).
    records
        The records, n of them.
    first
        Number of the first; the others follow it.
    chances
        What is told of each in a stream beside the shares of the posterior.
    links
        The likeliest earlier member of each record's cluster, where the prior has links.
    templates, params
        How the template of each reads, and the values of its holes.
    """
    *shares, log_predictives, novelties = rounded(rows, sizes).tolist()
    unset, news = msgspec.UNSET, map(bool, rows["founded"].tolist())
    labels = rows["label"].tolist()
    chances = chances or Chances(*np.full((4, len(records)), math.nan))
    seqs = range(first, first + len(records))
    given = zip(
        seqs,
        records,
        labels,
        *shares,
        *(map(chance_of, column.tolist()) for column in chances),
        news,
        links,
        log_predictives,
        novelties,
        templates,
        params,
        strict=False,
    )  # not strict: what has no end goes on as long as there are records
    return [
        Assignment(
            seq=seq,
            id=record.id,
            position=record.position,
            time=record.time,
            cluster=label,
            probability=share,
            new_probability=of_new,
            lasting_probability=lasting,
            stability=stability,
            confidence=confidence,
            confidence_labels=counted(labels),
            new=new,
            link=link,
            log_predictive=log_predictive,
            novelty=novelty,
            keep=unset if record.keep is None else record.keep,
            template=template,
            params=values,
        )
        for (
            seq,
            record,
            label,
            share,
            of_new,
            lasting,
            stability,
            confidence,
            labels,
            new,
            link,
            log_predictive,
            novelty,
            template,
            values,
        ) in given
    ]


def chance_of(chance: float) -> float | msgspec.UnsetType:
    """A chance as answers have it: nothing for NaN."""
    return msgspec.UNSET if chance != chance else float(chance)


def counted(number: float | msgspec.UnsetType) -> int | msgspec.UnsetType:
    """A number that is told, as a whole one."""
    return msgspec.UNSET if number is msgspec.UNSET else int(number)
