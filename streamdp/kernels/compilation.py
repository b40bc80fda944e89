"""Which kernels are being compiled, and for how long: shown to people, and left out of time budgets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from streamdp.kernels.prebuilt import mismatch

MOMENT = 0.25
"""Seconds of compiling that pass in silence."""

EVERY = 10.0
"""Seconds of compiling between two messages where no line can move."""


class Compiling(NamedTuple):
    """A compilation under way.

    Attributes
    ----------
    kernel
        What Python called.
    functions, seconds
        Functions compiled and seconds spent since the process began, for kernels before this one too: neither
        ever decreases.
    number, total, left
        Which of how many kernels it is, and about how many seconds all take yet; 0 where that is not known.
    """

    kernel: str
    functions: int
    seconds: float
    number: int = 0
    total: int = 0
    left: float = 0.0

    def __str__(self) -> str:
        """``4 of 15 (advance), 12 s, about 10 s left``; where that is not known, how much is done."""
        if self.total:
            which = f"{self.number} of {self.total} ({self.kernel})"
            return f"{which}, {self.seconds:.0f} s, about {max(self.left, 1.0):.0f} s left"
        return f"{self.kernel}, {self.functions} functions, {self.seconds:.0f} s"


def _plan(kernels: str) -> dict[str, float]:
    return {f"streamdp.{name}": float(seconds) for name, seconds in map(str.split, kernels.split(","))}


PLANS = (
    _plan(
        "encode.bags.count .3, beam.step.advance.advance 8.7, "
        "ledger.step.put_all 1.4, ledger.step.write_again .2, "
        "beam.looks.rearrange.keep_head .3, beam.looks.recent.gather .2, "
        "beam.looks.second_look.look_again 2.6, likelihoods.words._invert_base .1, "
        "likelihoods.words.log_gammas .1, beam.looks.dividing.try_as_two .5, "
        "beam.looks.dividing.weigh_strangers .2"
    ),
    _plan(
        "likelihoods.base.find_nearest .2, likelihoods.vectors.clear_entry .1, beam.step.advance.advance "
        "5.0, ledger.step.put_all 1.4, ledger.step.write_again .2, beam.looks.rearrange.keep_head .2, "
        "beam.looks.recent.gather .2, beam.looks.uniting.collect_rows .2, beam.looks.uniting.weigh_rows .2, "
        "beam.looks.uniting.weigh_pairs .1, beam.looks.uniting.ratios_of_unions .2, "
        "beam.looks.uniting.weigh_strays .2, beam.looks.uniting.move_members "
        ".2, likelihoods.vectors.merge_entry .2, likelihoods.vectors.log_marginal_entry .1, "
        "beam.looks.uniting.settle_records .6, beam.looks.uniting.evidence_of_tail .2, "
        "beam.looks.uniting.rebase_slots .1, beam.looks.rearrange.found_clusters .1, "
        "likelihoods.vectors.coarsen_rows .1, beam.looks.rearrange.move_records .8, "
        "beam.looks.rearrange.tidy .2"
    ),
    _plan(
        "lines.state._fill .2, lines.step.advance 5.9, lines.scan.mark_line .2, ledger.step.put_all 1.4, "
        "ledger.step.write_again .2"
    ),
)
"""The kernels of a stream of texts, of vectors, and of lines, and the seconds that each takes to compile."""


_thread = threading.local()


class _Watch:
    """Counts compilations inside one another, and in several threads, once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._kernel = ""
        self._functions = 0
        self._began = 0.0
        self._spent = 0.0
        self._asked: dict[str, float] = {}
        self.begun: list[Callable[[], None]] = []

    def begin(self, kernel: str) -> None:
        if getattr(_thread, "beside", False):
            return
        with self._lock:
            self._depth += 1
            first = self._depth == 1
            if first:
                self._kernel = kernel
                self._began = time.monotonic()
        if first:
            for hear in self.begun:
                hear()

    def count(self) -> None:
        with self._lock:
            self._functions += 1

    def end(self) -> None:
        if getattr(_thread, "beside", False):
            return
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                took = time.monotonic() - self._began
                self._spent += took
                self._asked[self._kernel] = took

    def loaded(self, kernel: str) -> None:
        self._asked.setdefault(kernel, 0.0)

    def now(self) -> Compiling | None:
        with self._lock:
            if self._depth == 0:
                return None
            took = time.monotonic() - self._began
            named = self._kernel.rpartition(".")[2], self._functions, self._spent + took
            return Compiling(*named, *self._progress({**self._asked, self._kernel: 0.0}, took))

    def _progress(self, asked: dict[str, float], took: float) -> tuple[int, int, float]:
        """The number of this kernel, how many there are, and how long it takes yet.

        A machine is taken to be as slow as it was so far, at first as one for which the plan was written.
        """
        plan = next((plan for plan in PLANS if asked.keys() <= plan.keys()), None)
        if plan is None:
            return 0, 0, 0.0
        seconds = [(taken, plan[name]) for name, taken in asked.items() if taken]
        slow = (1.0 + sum(taken for taken, _ in seconds)) / (1.0 + sum(planned for _, planned in seconds))
        left = slow * sum(planned for name, planned in plan.items() if name not in asked)
        return len(asked), len(plan), left + max(slow * plan[self._kernel] - took, 0.0)

    def working_time(self) -> float:
        with self._lock:
            at = time.monotonic() if self._depth == 0 else self._began
            return at - self._spent


_watch = _Watch()


def loaded(kernel: str) -> None:
    """A kernel need not be compiled."""
    _watch.loaded(kernel)


def count_function() -> None:
    """A function of the kernel that is being compiled is done."""
    _watch.count()


def compiling() -> Compiling | None:
    """What is being compiled just now; None where nothing is."""
    return _watch.now()


@contextmanager
def under_way(kernel: str) -> Iterator[None]:
    """While it lasts, a kernel is being compiled, here or by another process for which this one waits."""
    _watch.begin(kernel)
    try:
        yield
    finally:
        _watch.end()


@contextmanager
def aside() -> Iterator[None]:
    """While it lasts, this thread loads or compiles a kernel: its CPU seconds do not count as work."""
    entered = time.thread_time()
    try:
        yield
    finally:
        _thread.inside = getattr(_thread, "inside", 0.0) + time.thread_time() - entered


@contextmanager
def beside() -> Iterator[None]:
    """While it lasts, nobody waits for what this thread compiles: it is not reported."""
    _thread.beside = True
    try:
        yield
    finally:
        _thread.beside = False


@contextmanager
def when_begun(hear: Callable[[], None]) -> Iterator[None]:
    """While it lasts, ``hear`` is called when the compilation of a kernel begins."""
    _watch.begun.append(hear)
    try:
        yield
    finally:
        _watch.begun.remove(hear)


def announce(say: Callable[[str], None]) -> None:
    """Log that kernels are being compiled if it takes longer than MOMENT, and how far it is every EVERY."""
    lock = threading.Lock()
    due, telling = MOMENT, False

    def tell() -> None:
        nonlocal due, telling
        while True:
            time.sleep(MOMENT / 2)
            with lock:
                now = compiling()
                if now is None:
                    telling = False
                    return
                if now.seconds >= due:
                    say(first_message(now) if due == MOMENT else f"compiling kernels: {now}")
                    due = now.seconds + EVERY

    def begun() -> None:
        nonlocal telling
        with lock:
            if telling:
                return
            telling = True
        threading.Thread(target=tell, daemon=True).start()

    _watch.begun.append(begun)


def first_message(now: Compiling, then: str = "; ") -> str:
    """How far it is with the compiling, and why it must be where a wheel has brought kernels."""
    why = mismatch()
    line = f"compiling kernels, only this once: {now}"
    return f"{line}{then}those of the wheel are {why}" if why else line


def working_time() -> float:
    """A clock in seconds that stands still while kernels are compiled."""
    return _watch.working_time()


def working_cpu() -> float:
    """A clock of this thread's CPU seconds that stands still while it compiles or loads kernels."""
    return time.thread_time() - getattr(_thread, "inside", 0.0)
