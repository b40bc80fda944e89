"""The decorators of the beam's kernels."""

from pathlib import Path

from streamdp.jit import Kernels

_kernels = Kernels(list(Path(__file__).parent.glob("*.py")))
kernel, entry = _kernels.kernel, _kernels.entry
kernels_are_cached = _kernels.are_cached
