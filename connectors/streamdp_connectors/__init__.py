"""Sources and sinks that bring records to streamdp and carry its answers away.

A source gives events with positions that it can go on from; a sink takes answers, and knows on its own what
was written after the last snapshot. Each is found by a table of names or, from outside, by an entry point.
"""
