"""Vectors beside other fields are seen from a centre, and retained in single precision."""

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


def retained(stored: dict[str, Any]) -> dict[str, Any]:
    """Those that were retained stay in double precision, so that they can be taken out of their clusters."""
    return stored
