"""Sources and sinks that are files, folders, pipes and the standard streams.

A file is read by lines or rows with their numbers, and followed as it grows and is rotated. A sink cuts off
what no snapshot covers, and goes on there.
"""
