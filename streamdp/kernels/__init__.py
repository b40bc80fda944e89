"""Ground that all kernels share: how they are compiled and kept, and structures of flat arrays.

A state is a named tuple of arrays. Annotations declare what each holds and which sizes it follows; from them
arrays are made, made longer, stored and checked.
"""
