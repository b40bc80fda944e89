"""Log records of OpenTelemetry for tests, as its collector writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from logs import lines

BEGIN = 1_767_571_200_000_000_000
"""Nanoseconds of 2026-01-05."""


def value(of: Any) -> dict[str, Any]:
    """A value of OTLP."""
    match of:
        case bool():
            return {"boolValue": of}
        case int():
            return {"intValue": str(of)}
        case float():
            return {"doubleValue": of}
        case str():
            return {"stringValue": of}
        case dict():
            return {"kvlistValue": {"values": attributes(of)}}
        case None:
            return {}
    return {"arrayValue": {"values": [value(each) for each in of]}}


def attributes(of: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes of OTLP."""
    return [{"key": key, "value": value(each)} for key, each in of.items()]


def record(body: Any, seconds: float | None = None, found: dict[str, Any] | None = None, **more: Any) -> Any:
    """A log record."""
    at = {} if seconds is None else {"timeUnixNano": str(BEGIN + int(seconds * 1e9))}
    return {**at, "body": value(body), "attributes": attributes(found or {}), **more}


def logs(records: Sequence[Any], scope: str = "shop.cart", **resource: Any) -> dict[str, Any]:
    """An object of records that one scope of a resource has written."""
    about = {"attributes": attributes({"service.name": "shop", **resource})}
    return {
        "resourceLogs": [
            {"resource": about, "scopeLogs": [{"scope": {"name": scope}, "logRecords": records}]}
        ]
    }


def written(path: Path, count: int, seed: int = 1, *, most: int = 9) -> list[int]:
    """A file of so many records, a few on each line; the template of each."""
    texts, kinds = lines(count)
    draw, done, shown = random.Random(seed), 0, []
    while done < count:
        some = texts[done : done + draw.randrange(1, most)]
        found = [record(text, done + i, {"n": done + i}, severityNumber=9) for i, text in enumerate(some)]
        shown.append(json.dumps(logs(found)) + "\n")
        done += len(some)
    path.write_text("".join(shown))
    return kinds
