"""The stream's own search, over a finite set."""

from __future__ import annotations

import numpy as np

from streamdp.beam.search import BeamSearch
from streamdp.errors import Exit
from streamdp.offline.problem import Problem
from streamdp.settings.assemble import build_model
from streamdp.settings.load import ConfigError


def beam_labels(problem: Problem) -> np.ndarray:
    """The clustering of a beam's best hypothesis at the end of the records, shape (N,)."""
    if problem.distances is not None:
        raise ConfigError("the beam does not read distances: use gibbs or astar", Exit.USAGE)
    data = problem.data
    search = BeamSearch(build_model(problem.settings, problem.prior, problem.likelihood), problem.likelihood)
    labels = np.zeros(data.size, np.int64)
    if data.sparse:
        search.ensure_words(int(data.words.max()) + 1)
    for start, stop, out in search.run(data):
        labels[start:stop] = out.answers["label"][start:stop]
        revisions = int(out.counters.revisions)
        for r in range(revisions):  # in order: a record may be revised more than once
            labels[out.revisions["seq"][r]] = out.revisions["label"][r]
    return labels
