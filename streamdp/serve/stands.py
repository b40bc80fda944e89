"""What the service stands on, once it is open."""

from __future__ import annotations

from typing import NamedTuple

from streamdp.serve.door import Door
from streamdp.serve.stored import Stored
from streamdp.settings import Settings


class Stands(NamedTuple):
    """The door; answers of the store; where store and state are; whether records are lines of text; how they
    are read.
    """

    door: Door
    stored: Stored
    store: str
    state: str
    of_text: bool
    settings: Settings
