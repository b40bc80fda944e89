"""streamdp: stream clustering with Bayesian nonparametric beam search."""

from streamdp._version import __version__

__all__ = ["__version__"]
