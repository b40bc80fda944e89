"""The snapshots in a query's checkpoint, for all that reads snapshots."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession

from streamdp.errors import Exit, StreamdpError
from streamdp.spark.keeping import BODY, POSITION, unpacked
from streamdp.state.snapshot import StateFolder, unpack

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def states(spark: SparkSession, checkpoint: str | os.PathLike[str], operator: int = 0) -> DataFrame:
    """The states of a query: the columns of its key and ``snapshot``, packed with Zstandard.

    ``operator`` is the number of the stateful operator in the query, where it is not the only one.
    """
    read = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", BODY)
    found = read.load(str(checkpoint))
    mortal = "ttlExpirationMs" in found.select("value.*").columns  # a value, and when it ends
    return found.select("key.*", "value.value.snapshot" if mortal else "value.snapshot")


def export_states(
    spark: SparkSession, checkpoint: str | os.PathLike[str], folder: str | os.PathLike[str], operator: int = 0
) -> list[Path]:
    """Write the state of each key as the newest snapshot of a state folder, named after the key.

    ``streamdp show FOLDER/KEY`` reads them, as do ``refine`` and ``score``. Raises StreamdpError (73) for
    keys that can be no names of folders, and for folders that hold the snapshots of something else;
    SnapshotError where a folder cannot be written.
    """
    written = []
    for row in states(spark, checkpoint, operator).toLocalIterator():
        *key, stored = row
        name = "-".join(map(str, key))
        if not _PLAIN.fullmatch(name):
            raise StreamdpError(f"key {name!r} can be no folder's name", Exit.CANNOT_CREATE)
        header, body = unpack(unpacked(bytes(stored)), name)
        target = StateFolder(Path(folder) / name)
        try:
            held = target.newest(lambda _: None)
            if held is not None and POSITION not in held[0].positions:
                what = "holds the snapshots of another stream, which would be lost: name another folder"
                raise StreamdpError(f"{target.folder}: {what}", Exit.CANNOT_CREATE)
            written.append(target.write(msgspec.structs.replace(header, written=time.time()), body))
        finally:
            target.close()
    return written
