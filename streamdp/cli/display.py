"""What moves on a terminal: a line about a run, the bars of a search, and the progress of a compilation."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.spinner import Spinner
from rich.text import Text

from streamdp.answers.listing import span
from streamdp.kernels.compilation import announce, compiling, first_message, working_time
from streamdp.offline.chain import Chain
from streamdp.offline.plan import SAMPLERS, Plan
from streamdp.offline.schedule import Trace, mixing
from streamdp.run.messages import say

PER_SECOND = 5


def compilation_line() -> str | None:
    """The progress of a compilation; None if nothing is compiled."""
    now = compiling()
    return None if now is None else first_message(now, "\n")


class Display:
    """While active, shows one line on a terminal; in a pipe it says that kernels are compiled, if they are.

    ``line`` says what is shown while nothing is compiled, ``above`` what stands above it; both are called
    from a thread of the display's own.
    """

    def __init__(
        self, line: Callable[[], str] = str, above: Callable[[], RenderableType] | None = None
    ) -> None:
        self._line, self._above = line, above
        self._spinner = Spinner("dots")
        self._live = Live(
            console=Console(stderr=True),
            get_renderable=self._render,
            refresh_per_second=PER_SECOND,
            transient=True,
            redirect_stdout=False,
        )

    def _render(self) -> RenderableType:
        line = compilation_line() or self._line()
        if not line:
            return Text()
        self._spinner.update(text=Text(line, no_wrap=True, overflow="ellipsis"))
        return self._spinner if self._above is None else Group(self._above(), self._spinner)

    def __enter__(self) -> Display:
        if sys.stderr is not None and sys.stderr.isatty():
            self._live.start()
        else:
            announce_compilation()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


@functools.cache
def announce_compilation() -> None:
    """Have it said that kernels are being compiled, if it takes longer than a moment."""
    announce(say)


EVERY = 0.1
"""Seconds between two updates of the bar."""


class _Bars(Bar):
    """Bars, replaced by the line of a compilation while there is one."""

    def get_renderables(self) -> Iterable[RenderableType]:
        line = compilation_line()
        yield self.make_tasks_table(self.tasks) if line is None else Text(line)


class Progress:
    """Log joint, clusters, moves a second and time left, a bar for each chain."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._began = working_time()
        self._reported = [0.0] * plan.chains
        self._shown = sys.stderr.isatty() and plan.method in SAMPLERS
        self._bar = _Bars(
            TextColumn("chain {task.fields[number]}"),
            BarColumn(),
            TextColumn("log joint {task.fields[joint]}  K {task.fields[k]}  {task.fields[rate]} records/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self._shown,
        )

    def __enter__(self) -> Progress:
        total = self._plan.seconds or self._plan.rounds
        method, began = self._plan.method, self._began
        self._quiet = None if self._shown else Display(lambda: f"{method}, {span(working_time() - began)}")
        if self._quiet is not None:
            self._quiet.__enter__()
        self._tasks = [
            self._bar.add_task("", total=total, number=c, joint="?", k="?", rate="?")
            for c in range(self._plan.chains)
        ]
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__(None, None, None)
        if self._quiet is not None:
            self._quiet.__exit__(None, None, None)

    def __call__(self, number: int, chain: Chain, trace: Trace) -> None:
        """After every round."""
        now = time.monotonic()
        if not self._shown or now - self._reported[number] < EVERY:
            return
        with self._lock:
            elapsed = working_time() - self._began
            done = elapsed if self._plan.seconds else len(trace.seconds)
            self._reported[number] = now
            self._bar.update(
                self._tasks[number],
                completed=done,
                joint=f"{chain.log_joint:,.1f}",
                k=chain.clusters,
                rate=f"{len(trace.seconds) * chain.size / max(trace.seconds[-1], 1e-9):,.0f}",
            )


def summarise_chains(traces: Sequence[Trace]) -> list[str]:
    """How well the second halves of the chains have mixed, a line for each quantity."""
    return [
        f"{d.name}: mean {d.mean:,.2f}, sd {d.sd:,.2f}, effective draws {d.ess:,.0f}, R-hat {d.r_hat:.3f}"
        for d in mixing(traces)
    ]
