"""Categories, version 2: vectors beside fields are seen from a centre, which is kept with the encoder."""

from __future__ import annotations

from typing import Any


def convert(stored: dict[str, Any]) -> dict[str, Any]:
    """A centre of which nothing is known yet. What clusters hold of vectors stays as it was."""
    encoder = stored.get("encoder")
    if encoder is None or encoder.get("dimension") is None:
        return stored
    dimension = encoder["dimension"]
    centre = {"total": bytes(8 * dimension), "mean": bytes(8 * dimension), "counts": bytes(24)}
    return stored | {"encoder": encoder | {"centre": centre}}
