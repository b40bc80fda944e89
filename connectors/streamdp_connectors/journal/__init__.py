"""A journal: records in the order in which they were accepted, as a source that can be read again.

What is acknowledged is on the disk. Many records are brought there at once.
"""
