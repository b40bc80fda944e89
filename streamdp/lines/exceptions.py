"""How kinds of exceptions end whose names, with a frame behind ``@``, are never values of a hole."""

from __future__ import annotations

ENDS = ("Error", "ption", "wable", "panic", "rrupt", "Fault")
"""Equally long. Whoever names another kind adds ``-Error``."""
