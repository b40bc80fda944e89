"""``streamdp plot``: the picture of a stream as a file, from its assignments or a snapshot."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from streamdp.answers.listing import counted
from streamdp.errors import ConfigError, Exit, foreseen, how_to_install
from streamdp.plots.data import Answered, DrawError, read_answers
from streamdp.plots.stream import names_of, stack, streamgraph
from streamdp.plots.style import DPI, SIZE, look
from streamdp.reports.source import is_state, opened
from streamdp.run.messages import say
from streamdp.settings.schema import Classes

NAME = "streamgraph.png"

ENDINGS = (".jsonl", ".json", ".csv", ".gz")


def place_of(output: str | None, source: str) -> Path:
    """The file of the picture: in FOLDER, if it exists or ends with a slash, else behind PREFIX.

    Where neither was named, the name of what is read is the prefix.
    """
    if output is None:
        return Path(f"{_named_after(source)}-{NAME}")
    if Path(output).is_dir() or output.endswith(os.sep):
        return Path(output, NAME)
    return Path(f"{output}-{NAME}")


def check_picture(path: Path, output: str | None, read: Iterable[str], *, overwrite: bool) -> None:
    """Raise ConfigError, before any work, if it cannot be drawn or would replace another file."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"pictures need one more package: pip install matplotlib, or {how_to_install('plot')}",
            Exit.UNAVAILABLE,
        ) from None
    made = path.name == NAME and not path.parent.exists()
    folder = path.parent.parent if made else path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        why = "is no folder that can be written" if folder.exists() else "does not exist"
        wanted = "the working folder" if output is None else f"--output {output}"
        raise ConfigError(f"{wanted}: {folder} {why}", Exit.CANNOT_CREATE)
    if path.exists() and any(os.path.exists(each) and path.samefile(each) for each in read):
        raise ConfigError(f"{path} is what this command reads", Exit.USAGE)
    if os.path.lexists(path) and not overwrite:
        raise ConfigError(f"{path} exists: --overwrite replaces it", Exit.CANNOT_CREATE)


def plot(source: str, state: str | None, output: str | None, classes: Classes, *, overwrite: bool) -> None:
    """Draw a stream, named by what its clusters are about where a state says that."""
    path = place_of(output, source)
    check_picture(path, output, filter(None, (source, state)), overwrite=overwrite)
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
    with look():
        # not by pyplot, which would keep it, and open a window where there are some
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = Figure(figsize=SIZE, dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
        streamgraph(stack(answered), names, figure.subplots())
        with foreseen(ConfigError, path, "written", Exit.CANNOT_CREATE):
            path.parent.mkdir(exist_ok=True)
            figure.savefig(path)
    say(f"drew {path}")


def _named_after(source: str) -> str:
    """The prefix of the picture if no place was named."""
    name = Path(source).absolute().name
    while Path(name).suffix in ENDINGS:
        name = Path(name).stem
    return name or "streamdp"
