"""Of a wheel that brings compiled kernels along: it is for one platform and one version of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PREBUILT = "streamdp/prebuilt"


class KernelsHook(BuildHookInterface[Any]):
    """Marks wheels; where there are no compiled kernels, they are for every platform as before."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the platform in the name; the kernels are in by ``artifacts``."""
        if version == "standard" and any(Path(self.root, PREBUILT).glob("*/*/*.kernel")):
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
