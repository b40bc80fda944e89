"""What all that is stored says of itself: the release that wrote it, and its format.

One number serves states, models and what shards hold. Whoever changes what is stored raises ``FORMAT``;
``tests/test_stored.py`` notices a change that does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamdp._version import __version__
from streamdp.errors import Exit, StreamdpError
from streamdp.kernels.sound import require

FORMAT = 18
"""The format that this release writes and reads."""


ANEW = "move the state folder away, or name another --state, and start again from the first record"
"""What to do with a state of an older format."""


class FormatError(StreamdpError):
    """Something is stored in another format than that of this release."""


def stamped(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the release and the format, ready to be written."""
    return {**stored, "release": __version__, "format": FORMAT}


def checked(stored: Any, anew: str = ANEW) -> dict[str, Any]:
    """What was stored, if it is in the format of this release; ``anew`` is what to do with an older one.

    Raises FormatError for another format (78), and UnsoundError where nothing says which it is.
    """
    require(isinstance(stored, dict), "its release is missing")
    release, found = stored.get("release"), stored.get("format", 0)
    require(
        isinstance(release, str) and type(found) is int and found >= 0, "its release or format is missing"
    )
    check_format(found, f"was written by streamdp {release[:40]}", anew)
    return dict(stored)


def check_format(found: int, what: str, anew: str = ANEW) -> None:
    """Raise FormatError unless it is the format of this release; ``what`` begins the message."""
    if found != FORMAT:
        form = f"format {found}" if found else "an older format"
        advice = "upgrade it" if found > FORMAT else anew
        raise FormatError(
            f"{what} in {form}; this is streamdp {__version__}, which reads format {FORMAT} only: {advice}",
            Exit.CONFIG,
        )
