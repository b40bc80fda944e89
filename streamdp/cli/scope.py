"""``consume --scope partition``: a run for each partition, shared among the processes of a group.

The group only says who begins with which partition. Whose a partition's state is, its folder says: a run
waits there until the one before it has ended, or has given no sign of life for long enough (``standby``).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from streamdp_connectors.kafka.client import Members

from streamdp.errors import Exit, StreamdpError
from streamdp.run.interrupt import LIMIT, Interrupt
from streamdp.run.messages import say, warn
from streamdp.run.reading import Client
from streamdp.run.writing import default_state, state_of
from streamdp.settings.io_options import Input, Outputs, Serving
from streamdp.state.snapshot import snapshots

LOOK = 0.2
"""Seconds between two looks at the runs and at the group."""

AGAIN = 1.0
"""Seconds after which a partition whose run was killed is begun again."""

_DEATH = 1
"""PR_SET_PDEATHSIG of Linux: sets the signal that a process gets when its parent dies."""


def of_partition(name: str, partition: int) -> str:
    """A file's name with the number of a partition before its endings: answers-3.jsonl, answers-3.csv.gz."""
    folder, file = os.path.split(name)
    stem, dot, endings = file.partition(".")
    return os.path.join(folder, f"{stem}-{partition}{dot}{endings}")


def arguments(partition: int, state: str, outputs: Outputs, serving: Serving) -> list[str]:
    """Flags for the run of a partition, after those of this process: the last of a repeated flag counts."""
    arguments = ["--scope", "topic", "--partition", str(partition)]
    arguments += ["--state", state_of(state, partition)]
    if outputs.output_topic is None:
        arguments += ["--output", of_partition(outputs.output, partition)]
    for option in ("rejects", "events", "finality"):
        name = getattr(outputs, option)
        if name is not None:
            arguments += [f"--{option}", of_partition(name, partition)]
    if serving.metrics_port:
        arguments += ["--metrics-port", str(serving.metrics_port + partition)]
    return arguments


def _state(input: Input, outputs: Outputs) -> str:
    """The folder of all partitions' states. Raises StreamdpError (73)."""
    assert input.topic is not None
    state = outputs.state or default_state(input.topic)
    if snapshots(Path(state)):
        raise StreamdpError(
            f"{state}: holds the state of one stream, which is not divided: name another --state",
            Exit.CANNOT_CREATE,
        )
    return state


class Runs:
    """The runs of this process's partitions, each a process of its own.

    ``command`` gives that of a partition. With ``until_end`` a run that ends of itself has come to the end.
    """

    def __init__(self, command: Callable[[int], list[str]], *, until_end: bool) -> None:
        self._command, self._until_end = command, until_end
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._stopping: set[int] = set()
        self._done: set[int] = set()
        self._again: dict[int, float] = {}
        self._wanted: set[int] = set()

    @property
    def over(self) -> bool:
        """Whether every wanted partition has been read to its end."""
        return self._wanted <= self._done and not self._running

    def want(self, partitions: set[int]) -> None:
        """Set the partitions to run."""
        self._wanted = partitions
        for partition in sorted(set(self._running) - partitions):
            self._stop(partition)

    def look(self) -> int:
        """Start wanted partitions that do not run. Returns the exit code of a failed run, else 0."""
        for partition, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[partition]
            if partition in self._stopping:
                self._stopping.discard(partition)
            elif code > 0:
                return code
            elif code == 0 and self._until_end:
                self._done.add(partition)
            else:
                how = f"by signal {-code}" if code else "though nobody here asked it to"
                warn(f"the run of partition {partition} has ended {how}: it begins again")
                self._again[partition] = time.monotonic() + AGAIN
        now = time.monotonic()
        for partition in sorted(self._wanted - set(self._running) - self._done):
            if self._again.get(partition, 0.0) <= now:
                self._running[partition] = _begin(self._command(partition))
        return 0

    def _stop(self, partition: int) -> None:
        """Ask a run to end, only once: a second signal would kill it."""
        if partition not in self._stopping:
            self._stopping.add(partition)
            self._running[partition].send_signal(signal.SIGTERM)

    def hang_up(self) -> None:
        """Have all runs begin others in the place of output files that were renamed."""
        for process in self._running.values():
            process.send_signal(signal.SIGHUP)

    def end(self) -> int:
        """End all runs. Returns the largest exit code."""
        for partition in self._running:
            self._stop(partition)
        deadline, worst = time.monotonic() + LIMIT + 1.0, 0
        for process in self._running.values():
            try:
                worst = max(worst, process.wait(max(0.0, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()
        return worst


def _begin(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a child that gets SIGTERM when this process dies (Linux only)."""
    parent = os.getpid()
    control = getattr(ctypes.CDLL(None), "prctl", None)

    def follow() -> None:
        if control is not None:
            control(_DEATH, signal.SIGTERM)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGTERM)

    return subprocess.Popen(  # noqa: S603 - this command line itself
        command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=follow
    )


def share(input: Input, outputs: Outputs, serving: Serving) -> int:
    """Run this process's share of the partitions until they end, one fails, or a signal comes."""
    assert input.topic is not None
    client, state = Client.of(input), _state(input, outputs)
    before = [sys.executable, "-m", "streamdp", *sys.argv[1:]]
    runs = Runs(
        lambda partition: [*before, *arguments(partition, state, outputs, serving)], until_end=input.until_end
    )
    with Interrupt(resumable=True) as interrupt:
        members = Members(
            input.topic,
            client.bootstrap,
            f"{input.group or f'streamdp-{input.topic}'}.members",
            client.options,
            10.0 if input.give_up_after is None else input.give_up_after,
            input.session_timeout,
        )
        failed, known, worst = 0, False, 0
        alone, shared_at = False, 0.0
        try:
            while not (interrupt.asked or failed):
                # a first share may be none, and who has died keeps its for a while: more may come
                settled = alone or time.monotonic() > shared_at + input.session_timeout + LOOK
                if known and runs.over and settled:
                    break
                mine = members.share(LOOK)
                if mine is not None:
                    alone, shared_at = bool(mine) and mine >= members.partitions(), time.monotonic()
                    named = ", ".join(map(str, sorted(mine))) or "none, it stands by"
                    say(f"partitions of topic {input.topic} that are this process's: {named}")
                    runs.want(mine)
                    known = input.until_end
                failed = runs.look()
                if interrupt.hung_up:
                    interrupt.hung_up = False
                    runs.hang_up()
        finally:
            worst = runs.end()
            members.close()
    return failed or worst
