"""River's TextClust with its paper's settings, for the benchmarks that stand beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from river.cluster import TextClust


def of_the_paper() -> TextClust:
    """Threshold by itself, fading by the number of texts."""
    from river.cluster import TextClust

    return TextClust(
        real_time_fading=False, fading_factor=0.01, tgap=200, auto_r=True, auto_merge=True, sigma=0.5
    )
