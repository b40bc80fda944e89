"""Ground that all kernels share: how they are compiled, and structures of flat arrays."""
