"""What people are told of a cluster: a title, keywords, times, trend and records.

Stories are the same from a running engine, a state and a file of answers. Themes are cut from one tree over
them.
"""
