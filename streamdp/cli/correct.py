"""``streamdp correct``: corrections by hand, as they are typed."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from streamdp.errors import ConfigError, Exit
from streamdp.reports.source import append_correction, open_state
from streamdp.run.messages import say
from streamdp.settings.schema import Classes
from streamdp.state import claim
from streamdp.state.corrections import (
    LONGEST,
    Correction,
    CorrectionError,
    CorrectionRequest,
    CorrectionsFile,
    What,
)
from streamdp.state.lock import is_locked

USAGE = """rename STORY TITLE, merge STORY STORY, split STORY ID... [--seq NUMBER]..., move ID... STORY [--seq
NUMBER]..., keep-apart STORY STORY..., pin STORY, mute STORY, split STORY hole N VALUE, close STORY hole N,
undo NUMBER, list"""


def correction_of(what: str, given: Sequence[str], who: str, seqs: Sequence[int] = ()) -> Correction:
    """The correction that somebody has typed, with records of these numbers, too. Raises CorrectionError."""
    parts: dict[str, Any] = {"who": who, "seqs": tuple(seqs)}
    stories, rest = list(given), list[str]()
    if what == "rename":
        stories, rest = stories[:1], stories[1:]
        parts["title"] = " ".join(rest)
    elif what == "close" or (what == "split" and len(given) == 4 and given[1] == "hole"):
        stories, rest = stories[:1], stories[1:]
        if rest[:1] != ["hole"] or len(rest) != (2 if what == "close" else 3):
            raise CorrectionError("close names a story and a hole: close 7 hole 2", Exit.USAGE)
        (parts["hole"],) = _numbers(rest[1:2])
        parts["value"] = rest[2] if what == "split" else None
    elif what == "split":
        stories, rest = stories[:1], stories[1:]
    elif what == "move":
        stories, rest = stories[-1:], stories[:-1]
    elif what == "undo":
        (parts["undone"], *more), stories = _numbers(given or [""]), []
        if more:
            raise CorrectionError("undo names the number of one correction", Exit.USAGE)
    elif what not in get_args(What):
        raise CorrectionError(f"{what!r} is no correction: {' '.join(USAGE.split())}", Exit.USAGE)
    if what in ("split", "move") and "hole" not in parts:
        parts["ids"] = tuple(rest)
    try:
        return CorrectionRequest(what=what, stories=tuple(_numbers(stories)), **parts).correction()  # type: ignore[arg-type]
    except ValueError as error:
        raise CorrectionError(str(error), Exit.USAGE) from None


def _numbers(given: Sequence[str]) -> list[int]:
    for text in given:
        if not text.isdecimal() or len(text) > 15:
            raise CorrectionError(f"{text!r} is no number of a story, or of a correction", Exit.USAGE)
    return [int(text) for text in given]


def correct(
    state: str, what: str, given: Sequence[str], seqs: Sequence[int], who: str | None, classes: Classes
) -> None:
    """Append a correction to those of a state, or list them. Raises StreamdpError where it makes no sense."""
    if not Path(state).is_dir():
        raise ConfigError(f"{state}: corrections are kept in the folder of a state", Exit.NO_INPUT)
    file = CorrectionsFile(state)
    file.read()
    if what == "list":
        for each in file.noted(0, len(file.corrections)).corrections:
            applied = "not applied yet" if each.at is None else f"at record {each.at:,}"
            print(f"{each.number}  {each}  ({each.who}, {each.when}, {applied})")
        return
    wanted = correction_of(what, given, (getpass.getuser() if who is None else who)[:LONGEST], seqs)
    made = append_correction(state, open_state(state, classes)[1], wanted)
    sign = claim.newest(Path(state))
    owner = None if sign is None else sign.owner
    elsewhere = owner is not None and not owner.ended and not owner.same_machine(claim.Owner.here())
    if elsewhere or is_locked(Path(state)):
        when = "the running process takes it with its next records"
    else:
        when = f"the next run takes it, and its store; streamdp stories {state} shows it now"
    say(f"correction {made.number}: {made}; {when}")
