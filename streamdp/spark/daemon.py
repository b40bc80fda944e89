"""Spark's Python workers, with the engine imported before they are forked.

Spark starts workers by forking a daemon. With ``spark.python.daemon.module`` set to this module, what the
engine imports is imported once, before the first fork.
"""

from pyspark.daemon import manager

import streamdp.engine
import streamdp.spark.clustering  # noqa: F401 - to have been imported

if __name__ == "__main__":
    manager()
