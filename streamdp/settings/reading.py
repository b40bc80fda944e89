"""From settings to what reads records, and to the weights of templates of log lines."""

from __future__ import annotations

from streamdp.decode.decoder import Decoder, Format
from streamdp.lines.model import USUAL, Bounds, Terms
from streamdp.settings.options import AUTO, ConfigError
from streamdp.settings.schema import Settings

PRIORS = (AUTO, "crp", "pitman-yor")
"""Priors over clusterings that templates are found under; automatic is Pitman-Yor."""


def decoder_of(settings: Settings, input_format: Format) -> Decoder:
    """What reads records of a format, as the settings name their fields. Raises ConfigError."""
    settings.check()
    try:
        return Decoder(
            input_format,
            text_field=settings.text_field,
            vector_field=settings.vector_field,
            features_field=settings.features_field,
            time_field=settings.time_field,
            time_unit=settings.time_unit,
            id_field=settings.id_field,
            keep=settings.keep,
            max_bytes=settings.max_record_bytes,
            timestamp_format=settings.timestamp_format,
            pattern=settings.pattern,
            categories=settings.field_names if settings.of_categories else None,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def template_terms(settings: Settings) -> Terms:
    """The weights that the settings mean. ConfigError for a setting that has no meaning with templates."""
    settings.check()
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
