"""A generated stream of news with a known truth.

So there is something to see before anybody has brought data.
"""
