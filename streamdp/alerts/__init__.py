"""Telling somebody what happens to stories: what is told, an outbox, and the way to a receiver."""
