"""Update themes: the stories of a theme stay together, and themes keep their numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from streamdp.story.statistics import Statistics
from streamdp.story.tree import tree_of


def themes_of(
    statistics: Statistics, wanted: int | None, before: Mapping[int, int], *, anew: bool = False
) -> dict[int, int]:
    """The number of the theme of each story, by label.

    ``wanted``: how many, None: stories are united for as long as the model gains by it. Those that had one
    number ``before`` stay together, unless more themes are wanted than that leaves, or all is to be made
    ``anew``: then numbers stay as far as themes have records in common.
    """
    known = {label: before[label] for label in statistics.labels if label in before}
    parts = len(set(known.values())) + len(statistics.labels) - len(known)
    together = {} if anew or (wanted is not None and parts < wanted) else known
    groups = defaultdict[int, list[int]](list)
    for label, group in tree_of(statistics, together).cut(wanted).items():
        groups[group].append(label)
    sizes = dict(zip(statistics.labels, statistics.sizes, strict=True))
    found = sorted(groups.values(), key=lambda own: (-sum(sizes[k] for k in own), own[0]))
    numbers = _numbers(found, sizes, known)
    return {label: numbers[i] for i, own in enumerate(found) for label in own}


def _numbers(parts: list[list[int]], sizes: Mapping[int, int], before: Mapping[int, int]) -> dict[int, int]:
    """A number for each theme: the one before with which it has most records in common.

    One that has none is numbered by the label of its largest story that is no number yet.
    """
    shared = Counter[tuple[int, int]]()
    for i, own in enumerate(parts):
        for label in own:
            if label in before:
                shared[i, before[label]] += sizes[label]
    numbers, taken = dict[int, int](), set[int]()
    for (i, number), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0][1], item[0][0])):
        if i not in numbers and number not in taken:
            numbers[i] = number
            taken.add(number)
    taken.update(before.values())
    for i, own in enumerate(parts):
        if i not in numbers:
            free = (k for k in sorted(own, key=lambda k: (-sizes[k], k)) if k not in taken)
            numbers[i] = next(free, max(taken, default=0) + 1)
            taken.add(numbers[i])
    return numbers
