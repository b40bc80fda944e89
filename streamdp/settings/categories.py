"""Whether the settings mean records made of several fields, and which these are."""

from __future__ import annotations

from collections import Counter

from streamdp.records import FieldNames
from streamdp.settings.options import ConfigError, refuse_meaningless
from streamdp.settings.schema import Settings


def takes_categories(settings: Settings) -> bool:
    """Whether the settings alone say that records are categories."""
    return settings.of_categories


def field_names(settings: Settings) -> FieldNames:
    """Which fields records have, and what these hold."""
    return FieldNames(settings.fields, settings.texts, settings.numbers)


def check_meaning(settings: Settings) -> None:
    """Raise ConfigError for settings that have no meaning together, and for fields that are two things."""
    refuse_meaningless(settings)
    uses = Counter(name for kind in field_names(settings) for name in set(kind))
    if uses and max(uses.values()) > 1:
        twice = ", ".join(repr(name) for name in sorted(uses) if uses[name] > 1)
        raise ConfigError(f"fields, texts, numbers: {twice} cannot be two of these")
