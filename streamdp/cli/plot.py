"""Pictures as files, and ``streamdp plot``: that of a stream, from its assignments or a snapshot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streamdp.answers.listing import counted
from streamdp.errors import ConfigError, Exit, foreseen, how_to_install
from streamdp.plots.data import Answered, DrawError, read_answers
from streamdp.plots.pages import OF_STREAM, names_of, of_stream
from streamdp.reports.source import is_state, opened
from streamdp.run.messages import say
from streamdp.settings.schema import Classes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Place(NamedTuple):
    """The folder of pictures, and the prefix of their names.

    ``wanted`` is what the user wrote, with its option; ``given`` are files that the command reads.
    """

    folder: Path
    prefix: str
    wanted: str
    overwrite: bool = False
    given: tuple[str, ...] = ()

    @classmethod
    def of(cls, option: str, output: str, *, overwrite: bool = False, given: Sequence[str] = ()) -> Place:
        """Of FOLDER, if it exists or ends with a slash, else of PREFIX."""
        place = Path(output)
        inside = place.is_dir() or output.endswith(os.sep)
        folder, prefix = (place, "") if inside else (place.parent, f"{place.name}-")
        return cls(folder, prefix, f"{option} {output}", overwrite, tuple(given))

    def path(self, name: str) -> Path:
        """The file of a picture."""
        return self.folder / f"{self.prefix}{name}.png"


def check_pictures(place: Place, names: Iterable[str]) -> None:
    """Raise ConfigError, before any work, if pictures cannot be drawn or would replace others."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"pictures need one more package: pip install matplotlib, or {how_to_install('plot')}",
            Exit.UNAVAILABLE,
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
    """Write pictures, and report each."""
    for name, figure in figures:
        path = place.path(name)
        with foreseen(ConfigError, path, "written", Exit.CANNOT_CREATE):
            place.folder.mkdir(exist_ok=True)
            figure.savefig(path)
        say(f"drew {path}")


ENDINGS = (".jsonl", ".json", ".csv", ".gz")


def plot(source: str, state: str | None, output: str | None, classes: Classes, *, overwrite: bool) -> None:
    """Draw a stream, named by what its clusters are about where a state says that."""
    given = tuple(each for each in (source, state) if each is not None)
    if output is None:
        place = Place(Path(), f"{_named_after(source)}-", "the working folder", overwrite, given)
    else:
        place = Place.of("--output", output, overwrite=overwrite, given=given)
    check_pictures(place, OF_STREAM)
    engine = None
    if is_state(source):
        _, engine, newest = opened(source, classes)
        answered = Answered.of_engine(engine, newest.values())
    else:
        answered = read_answers(source)
    if not len(answered):
        raise DrawError(f"{source}: there is no answer to draw", Exit.BAD_DATA)
    known = engine if state is None else opened(state, classes)[1]
    names = {} if known is None else names_of([*known.closed(), *known.clusters()])
    if engine is not None and len(answered) < engine.seq:
        held = counted(len(answered), "record")
        say(f"a state holds the last {held} of {engine.seq:,}: the assignments would show them all")
    save(place, of_stream(answered, names))


def _named_after(source: str) -> str:
    """The prefix of pictures if no place was named."""
    name = Path(source).absolute().name
    while Path(name).suffix in ENDINGS:
        name = Path(name).stem
    return name or "streamdp"
