"""streamdp: stream clustering with Bayesian nonparametric beam search.

Everything here is imported when it is first used, so that ``import streamdp`` costs nothing.
"""

from __future__ import annotations

import functools
import importlib
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

from streamdp._version import __version__ as __version__

if TYPE_CHECKING:
    from streamdp import likelihoods as likelihoods
    from streamdp import priors as priors
    from streamdp import scoring as scoring
    from streamdp.answers.evidence import Evidence as Evidence
    from streamdp.engine import Engine as Engine
    from streamdp.errors import StreamdpError as StreamdpError
    from streamdp.estimators import cluster as cluster
    from streamdp.estimators.clusterer import StreamDPClusterer as StreamDPClusterer
    from streamdp.estimators.frames import Clustering as Clustering
    from streamdp.estimators.novelty import Novelty as Novelty
    from streamdp.estimators.stream_dp import StreamDP as StreamDP
    from streamdp.offline.fit import Fit as Fit
    from streamdp.offline.fit import fit as fit
    from streamdp.offline.plan import Plan as Plan
    from streamdp.records import Answers as Answers
    from streamdp.records import Assignment as Assignment
    from streamdp.records import ClusterSummary as ClusterSummary
    from streamdp.records import Event as Event
    from streamdp.records import Final as Final
    from streamdp.records import Record as Record
    from streamdp.records import Reject as Reject
    from streamdp.reports.source import stories as stories
    from streamdp.run.stream import Run as Run
    from streamdp.settings import Settings as Settings
    from streamdp.settings.alerts import Alert as Alert
    from streamdp.settings.io_options import Input as Input
    from streamdp.settings.io_options import Outputs as Outputs
    from streamdp.settings.io_options import Serving as Serving
    from streamdp.state.corrections import Correction as Correction
    from streamdp.state.corrections import CorrectionError as CorrectionError
    from streamdp.story.story import Stories as Stories
    from streamdp.story.story import Story as Story
    from streamdp.story.story import Theme as Theme

_PLACES = {
    "streamdp.answers.evidence": ("Evidence",),
    "streamdp.engine": ("Engine",),
    "streamdp.errors": ("StreamdpError",),
    "streamdp.estimators.clusterer": ("StreamDPClusterer",),
    "streamdp.estimators": ("cluster",),
    "streamdp.estimators.frames": ("Clustering",),
    "streamdp.estimators.novelty": ("Novelty",),
    "streamdp.estimators.stream_dp": ("StreamDP",),
    "streamdp.offline.fit": ("Fit", "fit"),
    "streamdp.offline.plan": ("Plan",),
    "streamdp.records": (
        "Answers",
        "Assignment",
        "ClusterSummary",
        "Event",
        "Final",
        "Record",
        "Reject",
    ),
    "streamdp.reports.source": ("stories",),
    "streamdp.run.stream": ("Run",),
    "streamdp.settings": ("Settings",),
    "streamdp.settings.alerts": ("Alert",),
    "streamdp.settings.io_options": ("Input", "Outputs", "Serving"),
    "streamdp.state.corrections": ("Correction", "CorrectionError"),
    "streamdp.story.story": ("Stories", "Story", "Theme"),
}
_ROOMS = ("likelihoods", "priors", "scoring")

__all__ = sorted(["__version__", *_ROOMS, *chain(*_PLACES.values())])


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _ROOMS:
        return importlib.import_module(f"streamdp.{name}")
    for place, names in _PLACES.items():
        if name in names:
            try:
                found = getattr(importlib.import_module(place), name)
            except ModuleNotFoundError as error:
                missing = (error.name or "").partition(".")[0]
                if missing == "fcntl":
                    raise ImportError("streamdp needs fcntl: use Linux, macOS, or WSL on Windows") from error
                if missing not in ("river", "sklearn"):
                    raise
                package = "scikit-learn" if missing == "sklearn" else missing
                raise ImportError(f"streamdp.{name} needs {package}: pip install {package}") from error
            if "streamdp.kernels.compilation" in sys.modules:
                _tell_of_compilation()
            globals()[name] = found
            return found
    raise AttributeError(f"module 'streamdp' has no attribute {name!r}")


@functools.cache
def _tell_of_compilation() -> None:
    """Have it logged why the first record takes a while."""
    import logging

    from streamdp.kernels.compilation import announce

    announce(logging.getLogger("streamdp").warning)


def __dir__() -> list[str]:
    """What there is."""
    return __all__
