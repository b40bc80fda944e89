"""What clusters hold, and how records are scored against them.

A part of a record (words, categories, a vector) has a class of statistics here. Words are found by an
inverted index, so that only clusters which share one are looked at.
"""
