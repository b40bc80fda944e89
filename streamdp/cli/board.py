"""The stories of a run as a table on the terminal, while it runs and at its end."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from streamdp.cli.stories import console, story_table
from streamdp.engine import Engine
from streamdp.run.pace import EVERY, Pace
from streamdp.story.story import Stories

WHILE, AT_THE_END = 10, 20
"""Stories that are shown while the run goes on, and at its end."""


class Board:
    """The stories of a run, those that grow fastest first.

    Parameters
    ----------
    every
        Seconds between two looks, at least.
    """

    def __init__(self, every: float = EVERY) -> None:
        self._shown: RenderableType = Text()
        self._pace = Pace(every)

    def update(self, engine: Engine) -> None:
        """Look at the stories, if it is time."""
        with self._pace as due:
            if due:
                growing = engine.stories(records=False).by("growing")
                self._shown = story_table(_title("growing", growing), growing[:WHILE])

    def shown(self) -> RenderableType:
        """The table as of the last look; for any thread."""
        return self._shown

    def print(self, engine: Engine) -> None:
        """Print the largest stories, and how many more there are."""
        stories = engine.stories(records=False)
        if not stories:
            return
        several = stories.like(story for story in stories if story.records > 1)
        shown = several[:AT_THE_END]
        console().print(story_table(_title("largest", stories), shown), highlight=False)
        if len(stories) > len(shown):
            rest = stories.counted(len(stories) - len(shown))
            console().print(f"{rest} not shown: --state FOLDER, and streamdp stories FOLDER", highlight=False)


def _title(what: str, stories: Stories) -> str:
    return f"{what} {stories.nouns}; now: the last {stories.clock.words}"
