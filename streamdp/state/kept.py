"""The last snapshot of another release, kept beside those that this one writes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from streamdp._version import __version__
from streamdp.errors import Exit, foreseen
from streamdp.safe_files import create, open_regular
from streamdp.state.snapshot import SUFFIX, Header, SnapshotError

_NAMED = re.compile(r"[0-9A-Za-z.+-]{1,40}")


def keep_of_another_release(folder: Path, header: Header) -> Path | None:
    """Give the newest snapshot of a folder a second name, if another release wrote it: the path, or None.

    So it stays when that one is replaced, or dropped for newer ones. Raises SnapshotError (74).
    """
    return None if header.release == __version__ else keep(folder, header)


def keep(folder: Path, header: Header) -> Path:
    """Give a snapshot of a folder a second name, which lasts. Raises SnapshotError (74)."""
    path = folder / f"snapshot-{header.seq:015d}{SUFFIX}"
    release = header.release if _NAMED.fullmatch(header.release) else "another"
    kept = path.with_name(f"{path.name}.of-{release}")
    fresh = kept.with_name(f"{kept.name}.tmp")
    with foreseen(SnapshotError, kept, "written", Exit.IO_ERROR):
        fresh.unlink(missing_ok=True)
        try:
            os.link(path, fresh, follow_symlinks=False)
        except OSError:  # a file system without second names
            with open(open_regular(path), "rb") as source, open(create(fresh), "wb") as target:
                shutil.copyfileobj(source, target)
        os.replace(fresh, kept)  # of two names of one file it leaves both
    with contextlib.suppress(OSError):
        fresh.unlink(missing_ok=True)
    return kept
