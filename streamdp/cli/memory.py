"""Whether this machine has the memory that a stream may take."""

from __future__ import annotations

from pathlib import Path

from streamdp.cli.errors import warn
from streamdp.settings.memory import longest_record
from streamdp.settings.schema import Settings

GROUP = Path("/sys/fs/cgroup/memory.max")
"""The limit of this process's group, in bytes or ``max``; in a container that is the container's."""


def warn_of_memory(settings: Settings, group: Path = GROUP) -> None:
    """Warn if the memory limit refuses records that the settings allow, or if the process may not take it.

    Answers are the same in either case.
    """
    limit, longest = settings.memory_limit, longest_record(settings)
    if longest < settings.max_record_bytes:
        warn(
            f"records of more than {longest:,} bytes are refused: one has an eighth of memory_limit at most; "
            f"for max_record_bytes raise it to {8 * settings.max_record_bytes:,}"
        )
    try:
        allowed = int(group.read_text("utf-8"))
    except (OSError, ValueError):  # no such limit
        return
    if allowed < limit:
        warn(
            f"the memory limit of this container, {allowed >> 20} MiB, is below memory_limit, "
            f"{limit >> 20} MiB of content: the process may be ended for want of memory"
        )
