"""Which prior settings mean."""

from __future__ import annotations

from typing import Any

import pytest

from streamdp.errors import ConfigError
from streamdp.priors import (
    CRP,
    DistanceDependent,
    Exponential,
    FiniteMixture,
    PitmanYor,
    Prior,
    Uniform,
    Window,
)
from streamdp.settings import Settings
from streamdp.settings.assemble import build_prior


def built(sparse: bool = True, **given: Any) -> Prior:
    return build_prior(Settings(**given), sparse)


def test_settings_become_priors() -> None:
    assert built() == DistanceDependent(60.0, Exponential(400.0), "records", 1e-3)
    assert built(sparse=False) == DistanceDependent(1.0, Exponential(2000.0), "records", 1e-3)
    given = built(decay="window", decay_scale=9.0, distance="seconds", concentration=2.0, close_below=0.0)
    assert given == DistanceDependent(2.0, Window(9.0), "seconds", 0.0)
    assert built(prior="crp", concentration=2.0, retire_after=5) == CRP(2.0, retire_after=5)
    assert built(prior="pitman-yor", discount=0.5, max_clusters=7) == PitmanYor(1.0, 0.5, max_clusters=7)
    assert built(prior="uniform") == Uniform()
    assert built(prior="finite-mixture", components=3, concentration=2.0) == FiniteMixture(3, 2.0)
    assert built(prior="streamdp.priors:CRP") == CRP()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prior": "finite-mixture"}, "components must be given with finite-mixture"),
        ({"prior": "crp", "components": 3}, "components has no meaning with the crp prior"),
        ({"prior": "finite-mixture", "components": 3, "discount": 0.2}, "discount has no meaning"),
        ({"prior": "uniform", "decay": "window"}, "decay has no meaning with the uniform prior"),
        ({"distance": "seconds"}, "decay_scale must be given when distance is seconds"),
        ({"prior": "streamdp.priors:Window"}, "streamdp.priors:Window is no prior"),
        ({"prior": "streamdp.priors:Nothing"}, "cannot be imported"),
        ({"decay": "no.such.module:Decay", "decay_scale": 3.0}, "no.such.module:Decay cannot be imported"),
        ({"decay": "streamdp.priors:CRP", "decay_scale": 3.0}, "decay must be"),
        ({"decay": "streamdp.priors:Prior", "decay_scale": 3.0}, "takes no arguments"),
        ({"prior": "no.such.module:Prior"}, "no.such.module:Prior cannot be imported"),
    ],
)
def test_settings_that_mean_no_prior_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built(**given)
