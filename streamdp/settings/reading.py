"""From settings to a decoder."""

from __future__ import annotations

from streamdp.decode.decoder import Decoder, Format
from streamdp.settings.categories import check_meaning, field_names, takes_categories
from streamdp.settings.load import ConfigError
from streamdp.settings.schema import Settings


def decoder_of(settings: Settings, input_format: Format) -> Decoder:
    """What reads records of a format, as the settings name their fields. Raises ConfigError."""
    check_meaning(settings)
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
            categories=field_names(settings) if takes_categories(settings) else None,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error
