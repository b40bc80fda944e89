"""Write news.csv: generated headlines of three days, each with the time at which it was published."""

import csv
from datetime import UTC, datetime

from streamdp.demo.stream import demo_stream

with open("news.csv", "w", newline="") as file:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(["headline", "published"])
    for item in demo_stream(4000, seed=7):
        table.writerow([item.text, datetime.fromtimestamp(item.time, UTC).isoformat(timespec="seconds")])
