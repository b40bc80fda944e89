"""Partings by definition: which word begins them, where each record goes, and how unlike the parts are."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import lgamma, log
from statistics import median

LEAST, PART, WORDS, SWEEPS, LEAST_SHARE, UNLIKE = 32, 8, 2, 2, 0.1, 0.6

Bag = Mapping[int, int]


class Words:
    """log H of tokens under a Pitman-Yor process with one table for each word, by its closed form."""

    def __init__(self, base: Mapping[int, float], concentration: float, discount: float) -> None:
        self.base, self.b1, self.d = base, concentration, discount

    def log_h(self, bags: Sequence[Bag]) -> float:
        held: Counter[int] = Counter()
        for bag in bags:
            held.update(bag)
        total = lgamma(self.b1) - lgamma(self.b1 + held.total())
        for t, (w, n) in enumerate(held.items()):
            total += log(self.b1 + self.d * t) + log(self.base[w]) if w in self.base else 0.0
            total += lgamma(n - self.d) - lgamma(1.0 - self.d)
        return total

    def joint(self, sides: Sequence[Sequence[Bag]]) -> float:
        """Of clusters, with the part of an exchangeable prior of concentration 1."""
        return sum(self.log_h(side) + lgamma(len(side)) for side in sides if side)

    def loss(self, one: Sequence[Bag], other: Sequence[Bag]) -> float:
        """What two clusters lose as one."""
        return self.log_h(one) + self.log_h(other) - self.log_h([*one, *other])

    def telling(self, bags: Sequence[Bag]) -> list[int]:
        n, tokens, worth = len(bags), sum(len(bag) for bag in bags), {}
        having = Counter(w for bag in bags for w in bag)
        for w, k in having.items():
            if min(k, n - k) >= LEAST_SHARE * n and k > self.base[w] * tokens:
                worth[w] = log(k / (self.base[w] * tokens)) * k * (n - k)
        first = {w: i for i, w in enumerate(dict.fromkeys(w for bag in bags for w in bag))}
        return sorted(worth, key=lambda w: (-worth[w], first[w]))[:WORDS]

    def divided(self, bags: Sequence[Bag], side: list[int]) -> list[int]:
        """Each record where it fits better, so often."""
        for _ in range(SWEEPS):
            for r, bag in enumerate(bags):
                value = []
                for s in range(2):
                    others = [bags[q] for q in range(len(bags)) if q != r and side[q] == s]
                    value.append(self.log_h([*others, bag]) - self.log_h(others) + log(max(len(others), 1)))
                side[r] = 1 if value[1] > value[0] else 0
        return side

    def as_two(self, bags: Sequence[Bag]) -> list[int] | None:
        best, found = self.joint([bags]), None
        for w in self.telling(bags):
            side = self.divided(bags, [int(w in bag) for bag in bags])
            sides = [[b for b, s in zip(bags, side, strict=True) if s == k] for k in range(2)]
            if min(map(len, sides)) >= PART and self.joint(sides) > best:
                best, found = self.joint(sides), side
        return found

    def unlike(self, bags: Sequence[Bag], side: Sequence[int], strangers: Sequence[Sequence[Bag]]) -> float:
        sides = [[b for b, s in zip(bags, side, strict=True) if s == k] for k in range(2)]
        small, large = (sides[1], sides[0]) if len(sides[1]) < len(sides[0]) else (sides[0], sides[1])
        return self.loss(small, large) / median(self.loss(small, each) for each in strangers)
