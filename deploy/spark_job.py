"""What ``spark-submit`` runs: ``streamdp spark`` with the arguments that follow (docs/spark.md)."""

import sys

from streamdp.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "spark")
    main()
