"""What survives the end of a process.

Snapshots in a folder that one process claims; records that are retained; corrections by hand. All of it is
checked as it is read.
"""
