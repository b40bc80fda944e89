"""The numba kernels of the offline passes; nothing here is for users to call."""
