"""A decay of one's own, with a long memory."""

from __future__ import annotations

import math
from typing import NamedTuple

from streamdp.priors.decays import Decay, decay_weight


class PowerLawTerms(NamedTuple):
    """What kernels read."""

    scale: float


class PowerLaw(Decay):
    """(1 + distance / scale)^-2."""

    def terms(self) -> PowerLawTerms:
        """What kernels read."""
        return PowerLawTerms(float(self.scale))

    @property
    def reach(self) -> float:
        """It never ends."""
        return math.inf


@decay_weight.of(PowerLawTerms)
def _power_law(decay: PowerLawTerms, distance: float) -> float:
    near = 1.0 + distance / decay.scale
    return 1.0 / (near * near)
