"""Refinement of a running stream: a pass begins at one record, and is adopted at a later one.

A worker thread searches on from the clustering that the stream had when the pass began; its budget is
counted in moves. The stream goes on meanwhile, and waits where the worker is late, so that what comes out
never depends on the timing of threads. What arrives before a pass is adopted has been put beside the old
clusters: the more, the less of what the pass has found still holds. So that is soon.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.beam.looks.moves import Moves
from streamdp.encode.batch import Labelled
from streamdp.kernels.packed import as_type
from streamdp.kernels.sound import require
from streamdp.offline.adopt import Proposal, better, prepared, task_of_pass
from streamdp.offline.plan import Plan
from streamdp.offline.solve import solve
from streamdp.offline.task import Stream, Task
from streamdp.settings import Settings


@dataclass
class Counts:
    """What passes have come to since the stream began."""

    refinements: int = 0
    refinements_adopted: int = 0
    refinement_moves: int = 0
    records_refined: int = 0
    refinement_nats: float = 0.0


class _Begun(NamedTuple):
    """A pass under way."""

    seq: int
    found: Future[Proposal]


class Passes:
    """The passes over one stream.

    Parameters
    ----------
    settings
        ``refine_every``, rounded up to a multiple of 512 records, ``refine_moves`` and ``refine``.
    """

    def __init__(self, settings: Settings) -> None:
        self.every = _rounded(settings.refine_every)
        self.budget, self.waits = settings.refine_moves, settings.refine == "fixed"
        self.counts = Counts()
        self.waited = 0.0
        """Seconds that the stream has waited for a worker, in this process."""
        self._begun: _Begun | None = None
        self._worker: ThreadPoolExecutor | None = None

    def turn(
        self, stream: Callable[[], Stream | None], seq: int, *, last: bool = False
    ) -> Iterator[tuple[Labelled, Moves]]:
        """Adopt what is due, begin what is due; the records and what of them is to be moved.

        Parameters
        ----------
        stream
            Gives the stream as it is, None where it holds no record.
        seq
            Number of the next record, a multiple of 512 unless it is the last turn.
        last
            The stream has ended: a last pass goes over what there is.
        """
        if self._due(seq, last=last):
            yield from self._adopt(stream())
        if seq % self.every == 0 or last:
            self._begin(stream(), seq)
            if last:
                yield from self._adopt(stream())

    def _due(self, seq: int, *, last: bool) -> bool:
        begun = self._begun
        if begun is None or last:
            return begun is not None
        return seq - begun.seq >= REVIEW_EVERY if self.waits else begun.found.done()

    def _begin(self, stream: Stream | None, seq: int) -> None:
        if stream is None or self._begun is not None:
            return
        try:
            task = task_of_pass(prepared(stream), (stream.settings.seed + seq) % 2**32)
        except ValueError:
            return  # nothing can move, now
        if len(stream.fixed) and not math.isfinite(task.log_joint(task.before)):
            return  # what the prior calls impossible was put together by hand
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "streamdp-refinement")
        rounds = max(-(-self.budget // task.problem.data.size), 2)  # a search of a part each
        self.counts.refinements += 1
        self.counts.refinement_moves += rounds * task.problem.data.size
        self._begun = _Begun(seq, self._worker.submit(_search, task, rounds))

    def _result(self) -> Proposal | None:
        """What the pass under way has found, once it has."""
        if self._begun is None:
            return None
        began = time.perf_counter()
        found = self._begun.found.result()
        self.waited += time.perf_counter() - began
        return found

    def _adopt(self, stream: Stream | None) -> Iterator[tuple[Labelled, Moves]]:
        proposal = self._result()
        self._begun = None
        if proposal is None or stream is None or len(proposal.seqs) == 0:
            return
        moves = better(stream, proposal)
        if moves is not None:
            self.counts.refinements_adopted += 1
            self.counts.records_refined += len(moves.seqs)
            self.counts.refinement_nats += moves.nats or 0.0
            yield stream.held, moves

    def counters(self) -> dict[str, float]:
        """Counts for metrics and summaries."""
        return {**asdict(self.counts), "refinement_waited_seconds": self.waited}

    # ---------------------------------------------------------------- state

    def dump(self) -> dict[str, Any]:
        """All of it as plain values; waits for a pass under way."""
        stored: dict[str, Any] = asdict(self.counts)
        found = self._result()
        if self._begun is not None and found is not None:
            stored["begun"] = {"seq": self._begun.seq, "found": found}
        return stored

    def check(self, seq: int, minted: int) -> None:
        """See that what was loaded fits a stream of so many records and labels. Raises UnsoundError."""
        for count in asdict(self.counts).values():
            require(isinstance(count, int | float), "a count of refinements of another type")
        if self._begun is not None:
            found = self._begun.found.result()
            require(type(self._begun.seq) is int and 0 <= self._begun.seq <= seq, "a refinement out of range")
            found.check(seq, minted)

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`."""
        begun = stored.get("begun")
        self.counts = Counts(**{name: value for name, value in stored.items() if name != "begun"})
        if begun is not None:
            found: Future[Proposal] = Future()
            found.set_result(as_type(begun["found"], Proposal))
            self._begun = _Begun(begun["seq"], found)


def _rounded(records: int) -> int:
    """The next multiple of what the engine pauses after."""
    return max(-(-records // REVIEW_EVERY), 1) * REVIEW_EVERY


def _search(task: Task, rounds: int) -> Proposal:
    plan = Plan("gibbs", rounds=rounds, seconds=None, hyper=False)
    return Proposal.of(task, solve(task.problem, plan, labels=task.start))
