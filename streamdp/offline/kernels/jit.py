"""The decorators of the offline kernels."""

from pathlib import Path

from streamdp.jit import Kernels

_here = Path(__file__).parent
_kernels = Kernels([*_here.glob("*.py"), *(_here.parents[1] / "likelihoods").glob("bessel.py")])
kernel, sum_kernel, inlined, routine, entry = (
    _kernels.kernel,
    _kernels.sum_kernel,
    _kernels.inlined,
    _kernels.routine,
    _kernels.entry,
)
kernels_are_cached = _kernels.are_cached
