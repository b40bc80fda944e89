"""The version of streamdp, read by the build and by ``streamdp --version``."""

__version__ = "0.9.0"
