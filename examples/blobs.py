"""Write blobs.jsonl: 5,000 points of fifty round blobs in a plane, in random order, each with its true blob.

python examples/blobs.py
"""

import json
import random

BLOBS, POINTS, SIDE, APART = 50, 5000, 75.0, 5.0

rng = random.Random(0)
centres: list[tuple[float, float]] = []
while len(centres) < BLOBS:
    x, y = rng.uniform(0.0, SIDE), rng.uniform(0.0, SIDE)
    if all((x - a) ** 2 + (y - b) ** 2 > APART**2 for a, b in centres):
        centres.append((x, y))

with open("blobs.jsonl", "w") as file:
    for _ in range(POINTS):
        blob = rng.randrange(BLOBS)
        vector = [round(rng.gauss(centre, 1.0), 2) for centre in centres[blob]]
        print(json.dumps({"vector": vector, "blob": blob}), file=file)
