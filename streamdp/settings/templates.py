"""Whether the settings mean templates of log lines, and with which weights."""

from __future__ import annotations

from streamdp.lines.model import USUAL, Bounds, Terms
from streamdp.registry import TEMPLATE
from streamdp.settings.categories import check_categories
from streamdp.settings.load import ConfigError
from streamdp.settings.schema import AUTO, Settings, setting_fields

PRIORS = (AUTO, "crp", "pitman-yor")
"""Priors over clusterings that templates are found under; automatic is Pitman-Yor."""

KNOWN = (
    "likelihood",
    "prior",
    "concentration",
    "discount",
    "rho_word",
    "max_lines",
    "max_clusters",
    "seed",
    "max_undecided",
)
"""Settings of model and search that mean something with templates."""


def for_templates(settings: Settings) -> bool:
    """Whether records are lines of a log, to be clustered by their templates."""
    return settings.likelihood == TEMPLATE or (settings.likelihood == AUTO and settings.format == "log")


def template_terms(settings: Settings) -> Terms:
    """The weights that the settings mean. ConfigError for a setting that has no meaning with templates."""
    check_categories(settings)
    if settings.prior not in PRIORS:
        raise ConfigError(
            f"prior: templates of log lines are found under crp or pitman-yor, not {settings.prior}"
        )
    for field in setting_fields():
        if field.group not in ("text", "model", "search") or field.name in KNOWN:
            continue
        value = getattr(settings, field.name)
        if value != field.default and (field.name, value) != ("beam", 1):
            raise ConfigError(
                f"{field.name} has no meaning with the {TEMPLATE} likelihood: leave it out, or choose another"
            )
    given = {name: getattr(settings, name) for name in ("concentration", "discount", "rho_word")}
    if settings.prior == "crp":
        if settings.discount is not None:
            raise ConfigError("discount has no meaning with the crp prior: leave it out, or choose another")
        given["discount"] = 0.0
    return Terms()._replace(**{name: value for name, value in given.items() if value is not None})


def template_bounds(settings: Settings) -> Bounds:
    """What is remembered at most."""
    return Bounds(settings.max_lines or USUAL.lines, max(settings.max_clusters or USUAL.templates, 2))


def check_templates(settings: Settings) -> None:
    """Raise ConfigError where a setting of log lines is given and there are none."""
    for name in ("rho_word", "max_lines"):
        if getattr(settings, name) is not None:
            raise ConfigError(
                f"{name} has a meaning with the {TEMPLATE} likelihood alone: leave it out, or choose that"
            )
    for name in ("timestamp_format", "pattern"):
        if getattr(settings, name) is not None and settings.format != "log":
            raise ConfigError(f"{name} is for lines of a log: say --format log, or leave it out")
    if settings.rate_window is not None:
        raise ConfigError(f"rate_window is of templates: choose the {TEMPLATE} likelihood, or leave it out")
    if settings.params:
        raise ConfigError(f"params are of templates: choose the {TEMPLATE} likelihood, or leave it out")
