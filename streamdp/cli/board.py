"""The stories of a run as a table on the terminal, while it runs and at its end."""

from __future__ import annotations

import time
from typing import IO

from rich.console import RenderableType
from rich.text import Text

from streamdp.cli.stories import console, story_table
from streamdp.engine import Engine
from streamdp.story.story import Stories

EVERY = 1.0
"""Seconds between two looks."""

SHARE = 33.0
"""The wait for the next look is this many times what one takes: they cost at most 3 %."""

WHILE, AT_THE_END = 10, 20
"""Stories that are shown while the run goes on, and at its end."""


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether people read what is written there."""
    return stream is not None and stream.isatty()


class Board:
    """The stories of a run, those that grow fastest first.

    Parameters
    ----------
    every
        Seconds between two looks, at least.
    """

    def __init__(self, every: float = EVERY) -> None:
        self._shown: RenderableType = Text()
        self._every = every
        self._due = 0.0

    def update(self, engine: Engine) -> None:
        """Look at the stories, if it is time."""
        began = time.monotonic()
        if began < self._due:
            return
        growing = engine.stories(records=False).by("growing")
        self._shown = story_table(_title("growing", growing), growing[:WHILE])
        now = time.monotonic()
        self._due = now + max(self._every, SHARE * (now - began))

    def shown(self) -> RenderableType:
        """The table as of the last look; for any thread."""
        return self._shown

    def print(self, engine: Engine) -> None:
        """Print the largest stories, and how many more there are."""
        stories = engine.stories(records=False)
        if not stories:
            return
        several = stories.like(story for story in stories if story.size > 1)
        shown = several[:AT_THE_END]
        console().print(story_table(_title("largest", stories), shown), highlight=False)
        if len(stories) > len(shown):
            rest = stories.counted(len(stories) - len(shown))
            console().print(f"{rest} not shown: --state FOLDER, and streamdp stories FOLDER", highlight=False)


def _title(what: str, stories: Stories) -> str:
    return f"{what} {stories.nouns}; now: the last {stories.clock.words}"
