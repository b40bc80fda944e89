"""Whether the settings mean records whose fields are categories."""

from __future__ import annotations

from streamdp.registry import CATEGORICAL
from streamdp.settings.load import ConfigError
from streamdp.settings.schema import AUTO, Settings


def takes_categories(settings: Settings) -> bool:
    """Whether the settings alone say that records are categories."""
    return settings.likelihood == CATEGORICAL or (settings.likelihood == AUTO and bool(settings.fields))


def check_categories(settings: Settings) -> None:
    """Raise ConfigError where fields are named that nothing reads."""
    if settings.fields and not takes_categories(settings):
        raise ConfigError(
            f"fields are for the {CATEGORICAL} likelihood, not for {settings.likelihood}: leave out one"
        )
    if takes_categories(settings) and settings.format in ("text", "log"):
        raise ConfigError(f"categories are fields of JSON or columns of a table: {settings.format} has none")
