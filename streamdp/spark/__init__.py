"""The same engine inside Spark Structured Streaming.

There is one for each key, and its snapshot is in Spark's state.
"""

from streamdp.spark.clustering import cluster
from streamdp.spark.keeping import export_states, states

__all__ = ["cluster", "export_states", "states"]
