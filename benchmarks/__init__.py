"""Benchmarks of speed, memory and quality; README.md says what each measures."""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""An installed package has its bytecode. With this set, a child would parse all sources anew."""
