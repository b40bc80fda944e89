"""Pictures of a clustering: traces, cluster sizes, posterior similarity."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from streamdp.errors import Exit
from streamdp.offline.problem import Solution
from streamdp.offline.similarity import similarity_matrix
from streamdp.settings.load import ConfigError

MOST_SIMILAR = 2_000
"""Records in a picture of similarities; a larger set is thinned out."""


NAMES = ("trace", "sizes", "similarity")


def check_pictures(prefix: Path, overwrite: bool) -> None:
    """Raise ConfigError, before any work, where pictures could not be drawn or would replace others."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigError(
            "pictures need one more package: pip install matplotlib", Exit.UNAVAILABLE
        ) from None
    if not os.access(prefix.parent, os.W_OK | os.X_OK):
        why = "is no folder that can be written" if prefix.parent.exists() else "does not exist"
        raise ConfigError(f"--plot {prefix}: {prefix.parent} {why}", Exit.CANNOT_CREATE)
    for name in NAMES:
        path = _path(prefix, name)
        if path.exists() and not overwrite:
            raise ConfigError(f"{path} exists: --overwrite replaces it", Exit.CANNOT_CREATE)


def _path(prefix: Path, name: str) -> Path:
    return prefix.with_name(f"{prefix.name}-{name}.png")


def draw_fit(prefix: Path, found: Solution) -> list[Path]:
    """Draw what there is to draw as PREFIX-trace.png, -sizes.png and -similarity.png; returns the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    drawn = [_sizes(prefix, found)]
    if found.traces:
        drawn.append(_trace(prefix, found))
    if len(found.draws) > 1:
        drawn.append(_similarity(prefix, found))
    return drawn


def _trace(prefix: Path, found: Solution) -> Path:
    from matplotlib import pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    for number, trace in enumerate(found.traces):
        top.plot(trace.seconds, trace.log_joint, linewidth=0.8, label=f"chain {number}")
        bottom.plot(trace.seconds, trace.clusters, linewidth=0.8)
    top.set_ylabel("log joint (nats)")
    bottom.set_ylabel("clusters")
    bottom.set_xlabel("seconds")
    if len(found.traces) > 1:
        top.legend(frameon=False)
    return _save(figure, prefix, "trace")


def _sizes(prefix: Path, found: Solution) -> Path:
    from matplotlib import pyplot as plt

    sizes = np.sort(np.bincount(found.labels))[::-1]
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.loglog(np.arange(1, len(sizes) + 1), sizes, marker=".", linewidth=0.8)
    axes.set_xlabel("cluster by size")
    axes.set_ylabel("records")
    return _save(figure, prefix, "sizes")


def _similarity(prefix: Path, found: Solution) -> Path:
    from matplotlib import pyplot as plt

    step = -(-len(found.labels) // MOST_SIMILAR)
    chosen = np.argsort(found.labels, kind="stable")[::step]
    matrix = similarity_matrix(np.array(found.draws)[:, chosen])
    figure, axes = plt.subplots(figsize=(6, 5.4), layout="constrained")
    image = axes.imshow(matrix, vmin=0.0, vmax=1.0, cmap="magma", interpolation="nearest")
    figure.colorbar(image, label="share of draws in which two records are together")
    axes.set_xlabel("records by cluster")
    return _save(figure, prefix, "similarity")


def _save(figure: object, prefix: Path, name: str) -> Path:
    path = _path(prefix, name)
    try:
        figure.savefig(path, dpi=120)  # type: ignore[attr-defined]
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror or error}", Exit.CANNOT_CREATE
        ) from error
    return path
