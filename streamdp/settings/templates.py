"""Whether the settings mean templates of log lines, and with which weights."""

from __future__ import annotations

from streamdp.lines.model import USUAL, Bounds, Terms
from streamdp.settings.categories import check_meaning
from streamdp.settings.options import AUTO, ConfigError
from streamdp.settings.schema import Settings

PRIORS = (AUTO, "crp", "pitman-yor")
"""Priors over clusterings that templates are found under; automatic is Pitman-Yor."""


def for_templates(settings: Settings) -> bool:
    """Whether records are lines of a log, to be clustered by their templates."""
    return settings.of_lines


def template_terms(settings: Settings) -> Terms:
    """The weights that the settings mean. ConfigError for a setting that has no meaning with templates."""
    check_meaning(settings)
    if settings.prior not in PRIORS:
        raise ConfigError(
            f"prior: templates of log lines are found under crp or pitman-yor, not {settings.prior}"
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
