"""What an estimator inherits where River is not installed."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Self


class Clusterer:
    """Parameters by the names of ``__init__``, and new estimators with the same."""

    def _get_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def clone(self, new_params: dict[str, Any] | None = None) -> Self:
        """A new estimator with the same parameters, that has learned nothing."""
        return type(self)(**{**copy.deepcopy(self._get_params()), **(new_params or {})})

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        given = (f"{n}={v!r}" for n, v in self._get_params().items() if v != parameters[n].default)
        return f"{type(self).__name__}({', '.join(given)}) without River"
