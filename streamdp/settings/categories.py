"""Whether the settings mean records made of several fields: categories, texts and numbers."""

from __future__ import annotations

from collections import Counter

from streamdp.records import FieldNames
from streamdp.registry import CATEGORICAL
from streamdp.settings.load import ConfigError
from streamdp.settings.schema import AUTO, Settings


def takes_categories(settings: Settings) -> bool:
    """Whether the settings alone say that records are categories."""
    return settings.likelihood == CATEGORICAL or (
        settings.likelihood == AUTO and bool(field_names(settings).all)
    )


def field_names(settings: Settings) -> FieldNames:
    """Which fields records have, and what these hold."""
    return FieldNames(settings.fields, settings.texts, settings.numbers)


def check_categories(settings: Settings) -> None:
    """Raise ConfigError where fields are named that nothing reads, or for two things."""
    names = field_names(settings)
    for setting, named in (("fields", names.categories), ("texts", names.texts), ("numbers", names.numbers)):
        if named and not takes_categories(settings):
            raise ConfigError(
                f"{setting} are for the {CATEGORICAL} likelihood, not for {settings.likelihood}: "
                "leave out one"
            )
    uses = Counter(name for kind in names for name in set(kind))
    if uses and max(uses.values()) > 1:
        twice = ", ".join(repr(name) for name in sorted(uses) if uses[name] > 1)
        raise ConfigError(f"fields, texts, numbers: {twice} cannot be two of these")
    if takes_categories(settings) and settings.format in ("text", "log"):
        raise ConfigError(f"categories are fields of JSON or columns of a table: {settings.format} has none")
