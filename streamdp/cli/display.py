"""The line that moves on a terminal: how far a run is, or what is being compiled."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from streamdp.cli.errors import say
from streamdp.kernels.compilation import announce, compiling

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
