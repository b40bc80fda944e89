"""What moves on a terminal: a line about a run, the line of a search, and the progress of a compilation."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from streamdp.answers.listing import span
from streamdp.kernels.compilation import (
    PLANS,
    announce,
    compiling,
    first_message,
    when_begun,
    working_time,
)
from streamdp.offline.chain import Chain
from streamdp.offline.plan import Plan
from streamdp.offline.schedule import Trace, mixing
from streamdp.run.messages import say
from streamdp.settings import Settings

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

    def __enter__(self) -> Self:
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


TEXTS = 0
"""Which of the plans is of texts."""


@contextlib.contextmanager
def two_processes(settings: Settings) -> Iterator[None]:
    """While it lasts, another process compiles what looks back at texts, if this one compiles the rest."""
    started: list[subprocess.Popen[bytes]] = []

    def begun() -> None:
        now = compiling()
        if started or now is None or now.total != len(PLANS[TEXTS]) or (os.cpu_count() or 1) < 2:
            return
        given = msgspec.json.encode(settings).decode()
        # -P: a module of the folder where the user is must not stand for one of ours
        command = [sys.executable, "-P", "-m", "streamdp.cli.beside", given]
        nowhere = subprocess.DEVNULL
        started.append(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))  # noqa: S603

    with when_begun(begun):
        try:
            yield
        finally:
            for each in started:
                each.kill()
                each.wait()


class Progress(Display):
    """The line of a search: how long it takes, and of each chain its log joint and number of clusters."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._began = plan, working_time()
        self._chains: dict[int, str] = {}
        super().__init__(self._of_search)

    def _of_search(self) -> str:
        of = f" of {span(self._plan.seconds)}" if self._plan.seconds else ""
        begun = f"{self._plan.method}, {span(working_time() - self._began)}{of}"
        return "; ".join([begun, *self._chains.copy().values()])

    def __call__(self, number: int, chain: Chain, trace: Trace) -> None:
        """After every round."""
        rounds = f"round {len(trace.seconds)} of {self._plan.rounds}, " if self._plan.rounds else ""
        self._chains[number] = f"{rounds}log joint {chain.log_joint:,.1f}, {chain.clusters} clusters"


def summarise_chains(traces: Sequence[Trace]) -> list[str]:
    """How well the second halves of the chains have mixed, a line for each quantity."""
    return [
        f"{d.name}: mean {d.mean:,.2f}, sd {d.sd:,.2f}, effective draws {d.ess:,.0f}, R-hat {d.r_hat:.3f}"
        for d in mixing(traces)
    ]
