"""A package with connectors: entries of a JSON array with numbers, and numbered lines in a table."""

from __future__ import annotations

import importlib
import json
import sqlite3
import time
from urllib.parse import urlsplit

from streamdp_connectors.protocol import SourceError

from streamdp.errors import Exit
from streamdp.records import Raw


class ShelfSource:
    place = ("shelf", "entry")  # what positions consist of: columns of a table, for --output answers.csv

    def __init__(self, request):  # a SourceRequest
        self.name, self.next = urlsplit(request.address).path, 0
        with open(self.name) as file:
            self.entries = json.load(file)

    @property
    def at_end(self):  # whether no more records will ever come
        return self.next == len(self.entries)

    def read(self, max_records, timeout):  # what is there, or nothing after so many seconds
        first, self.next = self.next, min(self.next + max_records, len(self.entries))
        return [self.raw(i) for i in range(first, self.next)]

    def raw(self, i):
        return Raw(json.dumps(self.entries[i]).encode(), {"shelf": self.name, "entry": i}, time.time())

    def positions(self):  # what seek needs to go on after the last record that was returned
        return {"shelf": self.name, "next": self.next}

    def seek(self, positions):
        if positions.get("shelf") != self.name:
            raise SourceError(f"the state continues {positions.get('shelf')}, not {self.name}", Exit.BAD_DATA)
        self.next = positions["next"]
        return True

    def close(self):
        pass


class ShelfSink:
    def __init__(self, request):  # a SinkRequest; what was written after its state comes again: take it back
        self.table = sqlite3.connect(urlsplit(request.address).path, check_same_thread=False)
        self.table.execute("CREATE TABLE IF NOT EXISTS lines (number INTEGER PRIMARY KEY, line)")
        self.number = request.left["number"] if request.left else 0
        self.table.execute("DELETE FROM lines WHERE number > ?", (self.number,))
        self.table.commit()

    def write(self, lines):  # whole lines of JSON, or of a table
        for line in lines.splitlines():
            self.number += 1
            self.table.execute("INSERT INTO lines VALUES (?, ?)", (self.number, line))

    def flush(self, sync):
        self.table.commit()

    def lasting(self):  # a function that waits until all so far is safe; for another thread
        return lambda: None

    def state(self):  # JSON, for the next SinkRequest
        return {"number": self.number}

    def close(self):
        self.table.commit()
        self.table.close()


class SlowShelf(ShelfSource):
    def read(self, max_records, timeout):
        time.sleep(0.02)
        return super().read(min(max_records, 10), timeout)


class Neither:
    def __init__(self, request):
        if "bad" in request.address:
            raise ValueError("no shelf is called so")


def later(request):
    importlib.import_module("lacking_module")
