"""From records to arrays, in event-time order.

A buffer puts them in order. An encoder makes word counts, categories or vectors of them, and learns what it
must know first (a vocabulary, scales) from the stream itself.
"""
