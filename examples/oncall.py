"""Write service.log: ten generated hours of a service, which is deployed anew before the last of them."""

import random

draw = random.Random(7)
with open("service.log", "w") as file:
    for minute in range(600):
        deployed = minute >= 540
        lines = [
            f"INFO request {draw.randrange(9999)} answered with {draw.choice((200, 200, 404))}"
            for _ in range(draw.randrange(8, 14))
        ]
        lines += [f"WARN retry of upstream {draw.randrange(9)}"] * draw.randrange(4 if deployed else 2)
        if deployed and minute % 2:
            lines.append(f"ERROR pool {draw.randrange(4)} exhausted: giving up")
        if not deployed:
            lines.append(f"INFO heartbeat of node {draw.randrange(8)}")
        for second, line in zip(sorted(draw.sample(range(60), len(lines))), lines, strict=True):
            print(f"2026-01-05T{minute // 60:02}:{minute % 60:02}:{second:02} {line}", file=file)
