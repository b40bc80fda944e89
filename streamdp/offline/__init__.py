"""Search and samplers beside the stream: clusterings of a finite set, and refinements of a running stream.

A problem is records, a prior and a family. A chain moves records by samplers; a beam or A* solves it whole.
"""
