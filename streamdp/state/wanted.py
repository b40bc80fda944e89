"""Corrections as people and programs send them to a page or a service."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from streamdp.state.corrections import Correction, What


def now() -> str:
    """When a correction is made."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A correction that somebody wants: what each names is said in docs/stories.md."""

    what: What
    stories: tuple[int, ...] = ()
    records: tuple[str, ...] = ()
    title: str | None = None
    undone: int | None = None
    who: str = ""

    def correction(self, who: str = "") -> Correction:
        """The correction, of ``who`` where it names nobody. Raises ValueError where it says nothing."""
        said = msgspec.structs.asdict(self) | {"who": self.who or who}
        return Correction(**said, when=now())
