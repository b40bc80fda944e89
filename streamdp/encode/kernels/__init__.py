"""Kernels that look at the bytes of texts."""
