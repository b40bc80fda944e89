"""The version of streamdp, read by the build and by ``streamdp --version``."""

__version__ = "0.9.0"

READS_SINCE = "0.9"
"""The first release whose states this one and all later ones read."""
