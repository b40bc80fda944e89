"""Foreseen errors become one line; the others are defects, and show where they happened."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """One line on stderr."""
    if sys.stderr is not None:  # closed: print would turn to standard output
        print(f"streamdp: {message}", file=sys.stderr, flush=True)


def announce_compilation(*, offline: bool = False) -> None:
    """Say why nothing happens yet, where the kernels have to be compiled first."""
    if offline:
        from streamdp.offline.kernels.jit import kernels_are_cached
    else:
        from streamdp.beam.jit import kernels_are_cached

    if not kernels_are_cached():
        say("compiling the kernels for this machine: a minute or two, only this once")


def report(error: Exception) -> int | None:
    """Print a foreseen error and return its exit code; None for a defect."""
    code = getattr(error, "exit_code", None)
    if type(error).__module__.startswith(("streamdp.", "streamdp_connectors.")) and isinstance(code, int):
        say(str(error))
        return code
    if isinstance(error, MemoryError):
        say("out of memory: bound the clusters (retire_after, max_clusters) or the vocabulary (max_words)")
        return 71
    return None
