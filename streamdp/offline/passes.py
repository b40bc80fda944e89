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
from typing import Any

import msgspec

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


class Passed(msgspec.Struct):
    """What passes have come to since the stream began. It is stored as it is.

    ``begun`` is the pass under way: the number of the next record when it began, and what it has found.
    """

    refinements: int = 0
    refinements_adopted: int = 0
    refinement_moves: int = 0
    records_refined: int = 0
    refinement_nats: float = 0.0
    begun: tuple[int, Proposal] | None = None

    def counts(self) -> dict[str, float]:
        """Counts for metrics and summaries."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "begun"}


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
        self._passed = Passed()
        self.waited = 0.0
        """Seconds that the stream has waited for a worker, in this process."""
        self._begun: tuple[int, Future[Proposal]] | None = None
        """The pass under way: when it began, and what it will have found."""
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
        return seq - begun[0] >= REVIEW_EVERY if self.waits else begun[1].done()

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
        self._passed.refinements += 1
        self._passed.refinement_moves += rounds * task.problem.data.size
        self._begun = (seq, self._worker.submit(search_pass, task, rounds))

    def _result(self) -> Proposal | None:
        """What the pass under way has found, once it has."""
        if self._begun is None:
            return None
        began = time.perf_counter()
        found = self._begun[1].result()
        self.waited += time.perf_counter() - began
        return found

    def _adopt(self, stream: Stream | None) -> Iterator[tuple[Labelled, Moves]]:
        proposal = self._result()
        self._begun = None
        if proposal is None or stream is None or len(proposal.seqs) == 0:
            return
        moves = better(stream, proposal)
        if moves is not None:
            self._passed.refinements_adopted += 1
            self._passed.records_refined += len(moves.seqs)
            self._passed.refinement_nats += moves.nats or 0.0
            yield stream.held, moves

    def counters(self) -> dict[str, float]:
        """Counts for metrics and summaries."""
        return {**self._passed.counts(), "refinement_waited_seconds": self.waited}

    # ---------------------------------------------------------------- state

    def passed(self) -> Passed:
        """What passes have come to; waits for a pass under way."""
        found, begun = self._result(), self._begun
        self._passed.begun = None if begun is None or found is None else (begun[0], found)
        return self._passed

    def resume(self, stored: Any, seq: int, minted: int) -> None:
        """Go on with what was stored of a stream of so many records and labels. Raises UnsoundError."""
        self._passed = passed = as_type(stored, Passed)
        if passed.begun is not None:
            began, proposal = passed.begun
            require(0 <= began <= seq, "a refinement out of range")
            proposal.check(seq, minted)
            found: Future[Proposal] = Future()
            found.set_result(proposal)
            self._begun = began, found


def _rounded(records: int) -> int:
    """The next multiple of what the engine pauses after."""
    return max(-(-records // REVIEW_EVERY), 1) * REVIEW_EVERY


def search_pass(task: Task, rounds: int) -> Proposal:
    """What Gibbs sampling proposes after so many rounds."""
    plan = Plan("gibbs", rounds=rounds, seconds=None, hyper=False)
    return Proposal.of(task, solve(task.problem, plan, labels=task.start))
