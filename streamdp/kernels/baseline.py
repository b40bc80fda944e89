"""For which CPUs kernels are compiled: a baseline that many share, not the one model at hand.

So compiled kernels can be shipped, and every machine of a baseline gives the same answers, byte by byte, as
long as its C library computes logarithms alike. NUMBA_CPU_NAME, where it is set, stands.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import llvmlite.binding
import numba

V2 = frozenset(["cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"])
V3 = V2 | frozenset(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"])

BASELINES = {"x86-64-v3": V3, "x86-64-v2": V2}
"""What a CPU must be able to, by the name of the baseline (levels of the x86-64 psABI); the best first."""


def baselines_of(machine: str, features: Mapping[str, bool]) -> list[str]:
    """The baselines that a CPU has, the best first; none for architectures without names for them.

    Parameters
    ----------
    machine
        The architecture, as ``platform.machine()`` says it.
    features
        What LLVM knows of the CPU.
    """
    if machine == "aarch64":
        return ["generic"]
    if machine not in ("x86_64", "AMD64"):
        return []
    able = {name for name, has in features.items() if has}
    return [name for name, needed in BASELINES.items() if needed <= able]


def settle() -> None:
    """Have numba compile for the best baseline; without effect once it has compiled something."""
    config: Any = numba.config
    if config.CPU_NAME is None and config.CPU_FEATURES is None:
        found = baselines_of(platform.machine(), dict(llvmlite.binding.get_host_cpu_features()))
        if found:
            config.CPU_NAME, config.CPU_FEATURES = found[0], ""
