"""A live page: what a stream's clusters do now, kept in bounded memory and served over HTTP.

It takes rows of answers and events as sinks do, and shows them to browsers that ask. What is written down by
hand there goes the way of all corrections.
"""
