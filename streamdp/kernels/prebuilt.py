"""Which CPUs kernels are compiled for, and the compiled kernels that a wheel brings along.

Kernels are compiled for a baseline of CPUs that many share, not the one model at hand. So they can be
shipped, and every machine of a baseline gives the same answers, byte by byte, as long as its C library
computes logarithms alike. NUMBA_CPU_NAME, where it is set, stands.

A wheel has a set of them for each baseline, in a folder that names what the set is for. It serves where
Python's minor version and the baseline are the same, whatever numba is there; everything else is compiled.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

import llvmlite.binding

V2 = frozenset(["cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"])
V3 = V2 | frozenset(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"])

BASELINES = {"x86-64-v3": V3, "x86-64-v2": V2}
"""What a CPU must be able to, by the name of the baseline (levels of the x86-64 psABI); the best first."""

PREBUILT = Path(__file__).resolve().parents[1] / "prebuilt"
"""The sets that a wheel has brought along; there is no such folder in a clone."""


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


def baselines() -> list[str]:
    """The baselines that this CPU has, the best first."""
    return baselines_of(platform.machine(), dict(llvmlite.binding.get_host_cpu_features()))


@functools.cache
def cpu() -> tuple[str, str]:
    """The CPU that kernels are for, and its features, as LLVM names them."""
    if named := os.environ.get("NUMBA_CPU_NAME"):
        return named, os.environ.get("NUMBA_CPU_FEATURES", "")
    if found := baselines():
        return found[0], ""
    return llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()


def set_for(baseline: str) -> Path:
    """The folder of the set that this Python makes for a baseline, there or not."""
    return PREBUILT / f"{sys.implementation.cache_tag}_{baseline}"


def own_set() -> Path:
    """The folder of the set that serves here, there or not."""
    return set_for(cpu()[0])


@functools.cache
def mismatch() -> str:
    """What the wheel's sets are for, and this is not; empty where one serves, or where there are none."""
    found = sorted(path.name.split("_") for path in PREBUILT.glob("*_*"))
    here = own_set().name.split("_")
    if here in found:
        return ""
    parts = zip(here, map(dict.fromkeys, zip(*found, strict=True)), strict=False)
    return " and ".join(f"for {' or '.join(there)}, not {own}" for own, there in parts if own not in there)
