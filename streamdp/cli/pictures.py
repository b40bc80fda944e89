"""Pictures as files: where they go, that they can, and that none is in the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streamdp.cli.errors import say
from streamdp.errors import Exit
from streamdp.settings.load import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Place(NamedTuple):
    """Where pictures go: into a folder, their names after a prefix.

    ``wanted`` is what the user wrote, with its option; ``given`` are files that the command reads.
    """

    folder: Path
    prefix: str
    wanted: str
    overwrite: bool = False
    given: tuple[str, ...] = ()

    @classmethod
    def of(cls, option: str, output: str, *, overwrite: bool = False, given: Sequence[str] = ()) -> Place:
        """FOLDER, which is there or named with a slash at its end, or else PREFIX."""
        place = Path(output)
        inside = place.is_dir() or output.endswith(os.sep)
        folder, prefix = (place, "") if inside else (place.parent, f"{place.name}-")
        return cls(folder, prefix, f"{option} {output}", overwrite, tuple(given))

    def path(self, name: str) -> Path:
        """The file of a picture."""
        return self.folder / f"{self.prefix}{name}.png"


def check_pictures(place: Place, names: Iterable[str]) -> None:
    """Raise ConfigError, before any work, where pictures could not be drawn or would replace others."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigError(
            "pictures need one more package: pip install matplotlib (the extra 'plot')", Exit.UNAVAILABLE
        ) from None
    made = not place.prefix and not place.folder.exists()
    folder = place.folder.parent if made else place.folder
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        why = "is no folder that can be written" if folder.exists() else "does not exist"
        raise ConfigError(f"{place.wanted}: {folder} {why}", Exit.CANNOT_CREATE)
    for path in map(place.path, names):
        if path.exists() and any(os.path.exists(each) and path.samefile(each) for each in place.given):
            raise ConfigError(f"{path} is what this command reads", Exit.USAGE)
        if os.path.lexists(path) and not place.overwrite:
            raise ConfigError(f"{path} exists: --overwrite replaces it", Exit.CANNOT_CREATE)


def save(place: Place, figures: Iterable[tuple[str, Figure]]) -> None:
    """Write pictures, and say so of each."""
    for name, figure in figures:
        path = place.path(name)
        try:
            place.folder.mkdir(exist_ok=True)
            figure.savefig(path)
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be written: {error.strerror or error}", Exit.CANNOT_CREATE
            ) from error
        say(f"drew {path}")
