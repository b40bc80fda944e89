"""A run: from a source through the engine to the sinks, and back after a crash.

Commands and Python programs run streams by what is here. It asks nothing of who called it: what it has to
say goes to Python's logging, and what shows or serves a run observes it.
"""
