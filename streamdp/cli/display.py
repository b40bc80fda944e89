"""What moves on a terminal: a line of how far a run is or what is being compiled, and bars of chains."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.spinner import Spinner
from rich.text import Text

from streamdp.cli.errors import say
from streamdp.cli.status import span
from streamdp.kernels.compilation import announce, compiling, working_time
from streamdp.offline.chain import Chain
from streamdp.offline.plan import SAMPLERS, Plan
from streamdp.offline.schedule import Trace, mixing

FUNCTIONS = 210
"""Functions that the largest kernel is made of, about."""

PER_SECOND = 5


def compilation_line() -> str | None:
    """Which part is being compiled and how far that is; None where nothing is."""
    now = compiling()
    if now is None:
        return None
    return (
        f"compiling for this prior and likelihood, only this once: {now.kernel}, "
        f"{now.functions} of about {max(FUNCTIONS, now.functions)} functions, {now.seconds:.0f} s"
    )


class Display:
    """While active, shows one line on a terminal; in a pipe it says once that kernels are compiled.

    ``line`` says what is shown while nothing is compiled; it is called from a thread of the display's own.
    """

    def __init__(self, line: Callable[[], str] = str) -> None:
        self._line = line
        self._spinner = Spinner("dots")
        self._live = Live(
            console=Console(stderr=True),
            get_renderable=self._render,
            refresh_per_second=PER_SECOND,
            transient=True,
            redirect_stdout=False,
        )

    def _render(self) -> Spinner | Text:
        line = compilation_line() or self._line()
        if not line:
            return Text()
        self._spinner.update(text=Text(line, no_wrap=True, overflow="ellipsis"))
        return self._spinner

    def __enter__(self) -> Display:
        if sys.stderr is not None and sys.stderr.isatty():
            self._live.start()
        else:
            announce_compilation()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


@functools.cache
def announce_compilation() -> None:
    """Say once why nothing happens for a while, should a compilation take more than a moment."""
    announce(say)


EVERY = 0.1
"""Seconds between two updates of the bar."""


class _Bars(Bar):
    """Bars that give way to what is being compiled."""

    def get_renderables(self) -> Iterable[RenderableType]:
        line = compilation_line()
        yield self.make_tasks_table(self.tasks) if line is None else Text(line)


class Progress:
    """Log joint, clusters, moves a second and time left, a bar for each chain."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._began = working_time()
        self._told = [0.0] * plan.chains
        self._before = [0.0] * plan.chains
        self._records = [0] * plan.chains
        self._shown = sys.stderr.isatty() and plan.method in SAMPLERS
        self._bar = _Bars(
            TextColumn("chain {task.fields[number]}"),
            BarColumn(),
            TextColumn("log joint {task.fields[joint]}  K {task.fields[k]}  {task.fields[rate]} moves/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self._shown,
        )

    def __enter__(self) -> Progress:
        total = self._plan.seconds or self._plan.rounds
        self._quiet = None if self._shown else Display(self._line)
        if self._quiet is not None:
            self._quiet.__enter__()
        self._tasks = [
            self._bar.add_task("", total=total, number=c, joint="?", k="?", rate="?")
            for c in range(self._plan.chains)
        ]
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(None, None, None)
        if self._quiet is not None:
            self._quiet.__exit__(None, None, None)

    def _line(self) -> str:
        return f"{self._plan.method}, {span(working_time() - self._began)}"

    def __call__(self, number: int, chain: Chain, trace: Trace) -> None:
        """After every round."""
        now = time.monotonic()
        if not self._shown or now - self._told[number] < EVERY:
            return
        with self._lock:
            elapsed = working_time() - self._began
            done = elapsed if self._plan.seconds else len(trace.seconds)
            self._told[number] = now
            self._bar.update(
                self._tasks[number],
                completed=done,
                joint=f"{chain.log_joint:,.1f}",
                k=chain.clusters,
                rate=f"{trace.records / max(trace.seconds[-1], 1e-9):,.0f}",
            )


def summarise_chains(traces: Sequence[Trace]) -> list[str]:
    """How well the second halves of the chains have mixed, a line for each quantity."""
    return [
        f"{d.name}: mean {d.mean:,.2f}, sd {d.sd:,.2f}, effective draws {d.ess:,.0f}, R-hat {d.r_hat:.3f}"
        for d in mixing(traces)
    ]
