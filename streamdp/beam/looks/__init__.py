"""Moves: whatever rearranges clusters of a running beam.

What may be better is proposed (records, whole clusters, parts of them, what a refinement or a person found),
weighed by the exact change of log p(z, x), and applied to the announced clustering.
"""
