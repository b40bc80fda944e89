"""Foreseen errors become one line; the others are defects, and show where they happened."""

from __future__ import annotations

import sys

from streamdp.errors import Exit, StreamdpError


def say(message: str) -> None:
    """One line on stderr."""
    if sys.stderr is not None:  # closed: print would turn to standard output
        print(f"streamdp: {message}", file=sys.stderr, flush=True)


def announce_compilation() -> None:
    """Say why nothing happens for a while, should kernels have to be compiled."""
    from streamdp.kernels.jit import watch_compilation

    said = False

    def begun(_: str) -> None:
        nonlocal said
        if not said:
            say("compiling the kernels for this prior and likelihood: about half a minute, only this once")
        said = True

    watch_compilation(begun)


def report(error: Exception) -> Exit | None:
    """Print a foreseen error and return its exit code; None for a defect."""
    if isinstance(error, StreamdpError):
        say(error.message)
        return error.exit_code
    if isinstance(error, MemoryError):
        say("out of memory: bound the clusters (retire_after, max_clusters) or the vocabulary (max_words)")
        return Exit.OUT_OF_MEMORY
    return None
