"""Make JSON lines of mails, a feed, a chat's export or any other JSON.

``python examples/to_lines.py PATH > lines.jsonl``. PATH is a mailbox (.mbox), a mail (.eml), a feed (RSS,
Atom), JSON that is an array or stands over several lines, an export of Discord, or a folder of such files, as
an export of Slack is.
"""

import email.policy
import json
import mailbox
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from email.message import EmailMessage, Message
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def of_mails(mails: Iterable[Message]) -> Iterator[Record]:
    """Subject, body, date and id of each mail."""
    for mail in mails:
        read = email.message_from_bytes(mail.as_bytes(), _class=EmailMessage, policy=email.policy.default)
        part = read.get_body(("plain", "html"))
        body = "" if part is None else part.get_content()
        yield {"subject": read["subject"], "body": body, "date": read["date"], "id": read["message-id"]}


def of_feed(path: Path) -> Iterator[Record]:
    """What each item of RSS, or entry of Atom, holds in plain text."""
    for each in ElementTree.parse(path).iter():
        if each.tag.rpartition("}")[2] in ("item", "entry"):
            inner = {child.tag.rpartition("}")[2]: child for child in each}
            links = {"link": inner["link"].get("href")} if "link" in inner else {}
            yield links | {name: child.text for name, child in inner.items() if child.text}


def of_json(found: Any) -> Iterator[Record]:
    """Each object of an array, of the messages of a channel, or the object itself."""
    if isinstance(found, dict) and isinstance(found.get("messages"), list):
        found = found["messages"]
    yield from found if isinstance(found, list) else [found]


def records(path: Path) -> Iterator[Record]:
    """The records of a file, or of all files of a folder."""
    if path.is_dir():
        for each in sorted(path.rglob("*.*"), key=lambda each: each.name):  # days
            place = {"folder": each.parent.name}
            yield from (record | place for record in records(each) if each.is_file())
    elif path.suffix == ".mbox":
        yield from of_mails(mailbox.mbox(path))
    elif path.suffix == ".eml":
        yield from of_mails([email.message_from_bytes(path.read_bytes())])
    elif path.suffix == ".json":
        yield from of_json(json.loads(path.read_bytes()))
    else:
        yield from of_feed(path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("say which file or folder: python examples/to_lines.py PATH > lines.jsonl")
    for record in records(Path(sys.argv[1])):
        print(json.dumps(record, default=str))
