"""Whether this machine has the memory that a stream may take."""

from __future__ import annotations

from pathlib import Path

from streamdp.cli.errors import warn

GROUP = Path("/sys/fs/cgroup/memory.max")
"""The limit of this process's group, in bytes or ``max``; in a container that is the container's."""


def warn_of_memory(limit: int, group: Path = GROUP) -> None:
    """Warn if the process may not take as much as the memory limit of the settings; answers stay the same."""
    try:
        allowed = int(group.read_text("utf-8"))
    except (OSError, ValueError):  # no such limit
        return
    if allowed < limit:
        warn(
            f"the memory limit of this container, {allowed >> 20} MiB, is below memory_limit, "
            f"{limit >> 20} MiB of content: the process may be ended for want of memory"
        )
