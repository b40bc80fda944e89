"""The contract between samplers and clusters: one routine for each thing that is done to a slot.

The first argument is the store; words and vectors implement each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.kernels.jit import entry, generic


@generic
def score(store: Any, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x_i | S) for the first n of ``slots``."""


@generic
def clear(store: Any, slot: int) -> None:
    """Empty a slot that no record is in."""


@generic
def add(store: Any, slot: int, i: int) -> None:
    """Let a record join a slot."""


@generic
def hold(store: Any, slot: int, i: int) -> None:
    """Put the frozen records of a cluster into a clear slot: the statistics numbered i, from N on.

    Their number is for the caller to set.
    """


@generic
def remove(store: Any, slot: int, i: int) -> None:
    """Take a record out of a slot; an emptied slot is as new."""


@generic
def drop_run(store: Any, slot: int, order: np.ndarray, first: int, last: int) -> None:
    """Empty a slot that holds the records ``order[first .. last - 1]``."""


@generic
def empty_group(store: Any) -> None:
    """No record is under consideration."""


@generic
def add_to_group(store: Any, i: int) -> None:
    """Let a record join the group under consideration."""


@generic
def copies_in_group(store: Any, i: int, n: int) -> None:
    """Let the group be n copies of a record."""


@generic
def group_of_slot(store: Any, slot: int, labels: np.ndarray) -> None:
    """Let the group be all records of a slot, those that are frozen and those with that label."""


@generic
def score_group(store: Any, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    """log H(S + group) - log H(S) for the first n slots; returns log H(group)."""
    raise NotImplementedError


@generic
def prepare_all(store: Any) -> None:
    """Clear all slots and take log H of every record alone; after the parameters or the capacity change."""


@entry
def prepare(store: Any) -> None:
    """Clear all slots and take log H of every record alone; after the parameters or the capacity change."""
    prepare_all(store)
