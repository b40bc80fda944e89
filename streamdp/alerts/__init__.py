"""Telling somebody what happens to stories.

What is told is decided from events and rows of answers, and put into an outbox that survives a crash. A
thread takes it from there to a receiver, as often as it takes.
"""
