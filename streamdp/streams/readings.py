"""The texts of templates: lines before a change are reported with the text as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from streamdp.ledger.lines import as_member
from streamdp.lines.masks import Masks
from streamdp.lines.shown import Marker, filled, holes, pieces_of, template_of, values_of
from streamdp.lines.state import State


class Readings:
    """The templates that live, by label: tokens of the first line, which are holes, how they are shown."""

    def __init__(self, masks: Masks) -> None:
        self.pieces: dict[int, list[str]] = {}
        self.shown: dict[int, str] = {}
        self.written: dict[int, bytes] = {}
        """As answers have it, in JSON."""
        self._holes: dict[int, list[bool | None]] = {}
        self._masks, self._marker = masks.named, Marker(masks)

    def found(self, cluster: int, text: str) -> bool:
        """A line has this template; whether it is the first."""
        founded = cluster not in self.pieces
        if founded:
            self.pieces[cluster] = pieces_of(text, self._marker)
        return founded

    def show(self, state: State, cluster: int) -> None:
        """Make out how a template reads now."""
        self._holes[cluster] = holes(state, cluster)
        self.shown[cluster] = template_of(state, cluster, self.pieces[cluster])
        self.written[cluster] = as_member("template", self.shown[cluster])

    def keep_living(self, state: State) -> None:
        """Forget how templates read that have become part of others."""
        if len(self.pieces) != int(state.counters.alive):
            self.let_go([cluster for cluster in self.pieces if not state.clusters[cluster]["alive"]])

    def let_go(self, clusters: Iterable[int]) -> None:
        """Forget how templates that are gone read."""
        for cluster in clusters:
            for held in (self.pieces, self._holes, self.shown, self.written):
                held.pop(cluster, None)

    def template(self, links: np.ndarray, cluster: int) -> str:
        """The template of a cluster, which may just have become part of another: see :func:`last_of`."""
        shown = self.shown.get(cluster)
        return self.shown[last_of(links, cluster)] if shown is None else shown

    def values(self, rows: np.ndarray, text: str, cluster: int) -> list[str]:
        """The values of a text's holes; its template may just have become part of an older one."""
        found = self._holes.get(cluster)
        if found is None:
            found = self._holes[last_of(rows["into"], cluster)]
        return values_of(text, found, self._marker)

    def refilled(self, among: Iterable[int], template: str, values: Sequence[str]) -> tuple[str, list[str]]:
        """The template of today of a line that was told with this one and these values, and its values now.

        It is the first of the templates ``among`` that gives the same line; else that which it was.
        """
        text = filled(template, values, self._masks)
        if text is None:
            return template, list(values)
        count = len(self._marker.parts(text.encode("utf-8", "replace")))
        for cluster in among:
            if len(self._holes[cluster]) == count:
                found = values_of(text, self._holes[cluster], self._marker)
                again = filled(self.shown[cluster], found, self._masks) or ""
                if "".join(again.split()) == "".join(text.split()):
                    return self.shown[cluster], found
        return template, list(values)


def last_of(links: np.ndarray, cluster: int) -> int:
    """What a template, or label, is part of by now, where each has a link to another, or to itself."""
    while (into := int(links[cluster])) != cluster:
        cluster = into
    return cluster
