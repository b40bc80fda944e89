"""``streamdp refine``: offline passes over the records that a snapshot holds."""

from __future__ import annotations

import contextlib

import msgspec
from streamdp_connectors.files.sink import FileSink
from streamdp_connectors.protocol import SinkClosed

from streamdp.cli.errors import say
from streamdp.cli.fit import tell
from streamdp.cli.interrupt import Interrupt
from streamdp.cli.progress import Progress
from streamdp.cli.show import open_state
from streamdp.cli.status import counted
from streamdp.errors import Exit
from streamdp.kernels.compilation import working_time
from streamdp.offline.handover import save
from streamdp.offline.plan import Plan, check
from streamdp.offline.refine import need_all_records, refine_task, task_of
from streamdp.settings.load import ConfigError
from streamdp.state.snapshot import StateFolder


def run_refine(state: str, plan: Plan, into: str | None, seed: int | None, *, overwrite: bool) -> None:
    """Refine the clustering of a snapshot, print what changed, keep the result where that was asked for."""
    check(plan)
    _, engine = open_state(state)
    try:
        task = task_of(engine, seed)
        if into is not None:
            need_all_records(task, "--into")
        if plan.hyper:
            need_all_records(task, "--hyper")
    except ValueError as error:
        raise ConfigError(f"{state}: {error}", Exit.BAD_DATA) from None
    for note in task.notes:
        say(note)
    folder = None if into is None else StateFolder(into, engine.settings.snapshot_keep)
    if folder is not None:
        folder.claim(overwrite)
    began = working_time()
    with Interrupt() as interrupt, Progress(plan) as progress:
        found = refine_task(task, plan, report=progress, stop=interrupt.event)
    if not found.improved:
        say(f"nothing better was found: log joint {found.started:,.2f} nats")
    if folder is not None:
        save(folder, found.to_engine(), "refine")
        folder.close()
    lines = msgspec.json.Encoder().encode_lines([*found.changes, *found.merged])
    sink = FileSink("-")
    with contextlib.suppress(SinkClosed):  # whoever read the changes may have seen enough
        sink.write(lines)
        sink.close()
    say(f"log joint {found.started:,.2f} nats before")
    if found.united > 0.0:
        gone = counted(len(found.merged), "cluster")
        say(f"{gone} of older records merged into others; unions won {found.united:,.2f} nats")
    tell(found.solution, found.clusters, found.log_joint, working_time() - began)
