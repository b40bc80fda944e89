"""How far a long run has come: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from streamdp.cli.display import Display, compilation_line
from streamdp.cli.status import span
from streamdp.kernels.compilation import working_time
from streamdp.offline.chain import Chain
from streamdp.offline.plan import SAMPLERS, Plan
from streamdp.offline.schedule import Trace, mixing

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
