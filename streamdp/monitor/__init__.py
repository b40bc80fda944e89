"""Metrics and health of a running service."""
