"""The constants of the template model, chosen by how well they do on some logs and judged on another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.log_lines import Line, accuracy
from streamdp.lines.base import Terms

GRID: dict[str, tuple[float, ...]] = {
    "rho_word": (1e-17, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7),
    "rho": (1e-3, 1e-2, 0.03, 0.1, 0.3),
    "copies": (0.2, 0.5, 0.8),
    "mutation": (0.01, 0.05, 0.2),
    "elsewhere": (0.03, 0.1, 0.3),
    "class_strength": (0.1, 0.3, 1.0),
    "concentration": (0.3, 1.0, 3.0),
    "discount": (0.1, 0.3, 0.5),
}
"""The values each constant is tried at."""

NEUTRAL = Terms(**{name: values[len(values) // 2] for name, values in GRID.items()})
"""The middle of each: the search begins there, so that what is in use has no advantage."""

SWEEPS, MARGIN = 2, 0.001

Figures = tuple[float, float, float, float]
"""GA and FGA as first announced, and as they stand in the end."""


class Choice:
    """Figures of settings on logs, each computed once.

    ``labels_of`` gives the labels of texts as first announced and in the end.
    """

    def __init__(
        self,
        sets: Mapping[str, Sequence[Line]],
        labels_of: Callable[[Sequence[str], Terms], tuple[Sequence[object], Sequence[object]]],
    ) -> None:
        self.sets, self._labels_of = sets, labels_of
        self._known: dict[tuple[str, Terms], tuple[Figures, Figures]] = {}

    def figures(self, name: str, terms: Terms) -> tuple[Figures, Figures]:
        """Those of one log by its labels as corrected, and as published."""
        found = self._known.get((name, terms))
        if found is None:
            lines = self.sets[name]
            first, newest = self._labels_of([line.text for line in lines], terms)
            corrected, published = [line.corrected for line in lines], [line.cluster for line in lines]
            found = self._known[name, terms] = (
                (*accuracy(first, corrected), *accuracy(newest, corrected)),
                (*accuracy(first, published), *accuracy(newest, published)),
            )
        return found

    def worth(self, names: Sequence[str], terms: Terms) -> float:
        """What is chosen by: the mean of all figures by the corrected labels."""
        return float(np.mean([self.figures(name, terms)[0] for name in names]))

    def best(self, names: Sequence[str], start: Terms) -> Terms:
        """The constants chosen on some logs: one after the other, the value from the grid that is best.

        A value is given up for one that is better by more than the margin.
        """
        terms = start
        for _ in range(SWEEPS):
            before = terms
            for constant, values in GRID.items():
                found = self.worth(names, terms)
                for value in values:
                    other = terms._replace(**{constant: value})
                    if (worth := self.worth(names, other)) > found + MARGIN:
                        terms, found = other, worth
            if terms == before:
                break
        return terms
