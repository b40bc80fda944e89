"""Starting numba without SciPy.

When numba begins to compile, or to load what was compiled, it imports SciPy where that is installed, to see
whether matrices can be multiplied: a third of a second at every start, for functions that no kernel calls.
"""

from __future__ import annotations

import importlib

from numba.np import linalg


def leave_blas_for_later() -> None:
    """Let numba look for a BLAS when one of its functions is compiled, as it does anyway, and not before."""
    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = look
