"""``streamdp consume``: a run, what moves on the terminal meanwhile, and its summary."""

from __future__ import annotations

import gc
import sys
from collections.abc import Container

from streamdp_connectors.protocol import SinkClosed

from streamdp.cli.board import Board
from streamdp.cli.display import Display, two_processes
from streamdp.cli.errors import speak_of
from streamdp.cli.summary import Status, exit_code, print_summary
from streamdp.kernels.compilation import working_time
from streamdp.run.interrupt import LIMIT, Interrupt
from streamdp.run.messages import is_terminal, say
from streamdp.run.stream import Run
from streamdp.run.writing import UndeliveredError
from streamdp.settings import Settings
from streamdp.settings.alerts import Alerting
from streamdp.settings.io_options import NOWHERE, Input, Outputs, Serving


def consume(
    settings: Settings,
    written: Container[str],
    input: Input,
    outputs: Outputs,
    serving: Serving,
    alerting: Alerting,
) -> int:
    """Run until the source ends, the reader of the output goes away, or a signal comes.

    ``written`` names the settings that the user has written. Returns the exit code.
    """
    if input.partition is not None:
        speak_of(f"partition {input.partition}: ")
    resumable = input.topic is not None or outputs.state is not None
    limit = None if input.topic is None else LIMIT
    with Interrupt(limit=limit, resumable=resumable) as interrupt:
        interrupt.opened = False
        run = Run(input, settings, outputs, serving, alerting.all, written=written, interrupt=interrupt)
        return run_to_end(run, Board() if run.outputs.output == NOWHERE else None)


def run_to_end(run: Run, board: Board | None = None) -> int:
    """Run until the source ends, or a signal comes; show the line of a run, and stories on the ``board``."""
    started, interrupt = working_time(), run.interrupt
    on_terminal = run.outputs.output == "-" and not run.outputs.has_output and is_terminal(sys.stdout)
    status = Status()
    try:
        # not before all is open: a wrong file name is reported at once
        line = Display(lambda: "" if on_terminal else status.line, None if board is None else board.shown)
        with line, two_processes(run.settings):
            gc.freeze()  # what is there stays: the collector need not look at it again and again
            for _ in run.batches():
                status.update(run)
                if board is not None and run.engine.seq:
                    board.update(run.engine)
        seconds = working_time() - started
        if not interrupt.asked:
            run.watch.ended(run.engine, lambda: interrupt.asked)
        if board is not None:
            board.print(run.engine)
        print_summary(run, seconds)
        return exit_code(run)
    except SinkClosed:
        return 0
    except UndeliveredError as error:
        run.sinks.give_up()
        say(error.message, "error")
        return interrupt.code()
    finally:
        run.close()
