"""Alerts on their way: receivers that fail, hang and lie delay their own alert, and nothing is lost."""

from __future__ import annotations

import itertools
import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import wait_for
from ports import free_port
from receiver import Handler, Webhook, counts, hang

from streamdp.alerts import forms, outbox, send
from streamdp.alerts.forms import body_of, path_of, sentence
from streamdp.alerts.outbox import Notification, Outbox
from streamdp.alerts.send import Receiver, Sender, SendError, receiver_of
from streamdp.errors import ConfigError
from streamdp.settings.alerts import Alert


def told(number: int, alert: str = "ops", **more: object) -> Notification:
    """Something to tell."""
    parts = {"event": "born", "story": number, "seq": number, "title": f"storm {number}", "at": 1.0}
    return Notification(alert=alert, key=f"born:{number}@{number}", **{**parts, **more})  # type: ignore[arg-type]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Outbox, Sender]]]:
    """Begins an alert that sends what waits in an outbox, with short waits."""
    monkeypatch.setattr(send, "FIRST", 0.02)
    monkeypatch.setattr(send, "LONGEST", 0.1)
    monkeypatch.setattr(send, "SILENT", 0.3)
    monkeypatch.setattr(send, "WHOLE", 0.6)
    made = list[Sender]()

    def begun(url: str, **more: object) -> tuple[Outbox, Sender]:
        alert = Alert(**{"name": "ops", "url": url, "every": 0.0, **more})  # type: ignore[arg-type]
        box = Outbox(tmp_path, ["ops"])
        made.append(Sender(receiver_of(alert), box))
        return box, made[-1]

    yield begun
    for sender in made:
        sender.end()


def test_what_waits_is_delivered_once_and_in_order(begin: Callable[..., tuple[Outbox, Sender]]) -> None:
    with Webhook() as hook:
        box, _ = begin(hook.url)
        for first in range(0, 300, 50):
            box.add(told(number) for number in range(first, first + 50))
        wait_for(lambda: counts(box).delivered == 300)
        assert hook.keys == [f"born:{number}@{number}" for number in range(300)]
        assert counts(box).waiting == 0
        assert hook.server.attempts[0][0] == "/hook"


@pytest.mark.parametrize("status", [301, 404, 429, 500, 503])
def test_a_receiver_that_fails_for_a_while_gets_everything_once_it_is_back(
    begin: Callable[..., tuple[Outbox, Sender]], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Webhook(lambda handler: handler.refuse(status, Location="file:///etc/passwd")) as hook:
        box, _ = begin(hook.url)
        box.add(told(number) for number in range(5))
        wait_for(lambda: counts(box).failures >= 3)
        assert hook.keys == []
        hook.server.behaviour = Handler.take
        wait_for(lambda: counts(box).delivered == 5)
        assert hook.keys == [f"born:{number}@{number}" for number in range(5)]
    said = [said for record in caplog.records if "alert ops" in (said := record.getMessage())]
    assert said[0] == f"alert ops: not delivered: it answered {status}; it is tried again"
    assert said[1:] == ["alert ops: the receiver takes messages again"]


def test_the_waits_between_attempts_double_and_are_bounded(
    begin: Callable[..., tuple[Outbox, Sender]],
) -> None:
    times = list[float]()

    def refuse(handler: Handler) -> None:
        times.append(time.monotonic())
        handler.refuse(503)

    with Webhook(refuse) as hook:
        box, sender = begin(hook.url)
        box.add([told(1)])
        wait_for(lambda: len(times) >= 6)
        gaps = [after - before for before, after in itertools.pairwise(times)]
        assert gaps[0] >= 0.02
        assert gaps[1] >= 0.04
        assert gaps[2] >= 0.08
        assert all(gap >= 0.1 for gap in gaps[3:])
        assert sender.failing


def test_retry_after_is_heeded(begin: Callable[..., tuple[Outbox, Sender]]) -> None:
    with Webhook(lambda handler: handler.refuse(429, Retry_After="7")) as hook:
        box, _ = begin(hook.url)
        send.LONGEST = 30.0
        box.add([told(1)])
        wait_for(lambda: len(hook.server.attempts) == 1)
        time.sleep(0.3)
        assert len(hook.server.attempts) == 1


LIES = {
    "rubbish in a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\xff\x00{{{{{{{", True),
    "a huge body": (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n" + b"x" * 1_000_000, True),
    "a body cut off": (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nx", True),
    "chunks that are none": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", True),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n", False),
    "nothing": (b"", False),
    "a status that is none": (b"HTTP/1.1 abc OK\r\n\r\n", False),
    "a line without an end": (b"HTTP/1.1 200 " + b"x" * 200_000, False),
    "headers without an end": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5000, False),
    "a redirection to a file": (b"HTTP/1.1 302 F\r\nLocation: file:///etc/passwd\r\n\r\n", False),
}


@pytest.mark.parametrize("lie", LIES)
def test_whatever_a_receiver_answers_the_alerts_go_on(
    begin: Callable[..., tuple[Outbox, Sender]], lie: str
) -> None:
    answer, taken = LIES[lie]
    with Webhook(lambda handler: handler.raw(answer)) as hook:
        box, _ = begin(hook.url)
        box.add([told(1)])
        wait_for(lambda: counts(box).delivered + counts(box).failures >= 1)
        assert counts(box).delivered == taken
        hook.server.behaviour = Handler.take
        box.add([told(2)])
        wait_for(lambda: counts(box).waiting == 0)
        assert hook.keys[-1] == "born:2@2"


def drip(handler: Handler) -> None:
    """A byte now and then: never silent for long, and never done."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(1200):
        handler.wfile.write(b"a")
        handler.wfile.flush()
        time.sleep(0.1)


@pytest.mark.parametrize("behaviour", [hang, drip], ids=["hangs", "drips"])
def test_a_receiver_that_never_ends_is_left(
    begin: Callable[..., tuple[Outbox, Sender]], behaviour: Callable[[Handler], None]
) -> None:
    with Webhook(behaviour) as hook:
        box, _ = begin(hook.url)
        began = time.monotonic()
        box.add([told(1)])  # the stream's thread
        assert time.monotonic() - began < 30.0  # the receiver takes longer
        wait_for(lambda: counts(box).failures >= 1)
        assert 0.2 < time.monotonic() - began < 50.0
        hook.server.behaviour = Handler.take
        wait_for(lambda: counts(box).delivered == 1)


def test_nobody_listens(
    begin: Callable[..., tuple[Outbox, Sender]], caplog: pytest.LogCaptureFixture
) -> None:
    box, _ = begin(f"http://127.0.0.1:{free_port()}/secret-path?token=secret")
    box.add([told(1)])
    wait_for(lambda: counts(box).failures >= 2)
    assert "Connection refused" in caplog.text
    assert "secret" not in caplog.text
    assert counts(box).waiting == 1


def test_a_certificate_that_nobody_vouches_for_is_refused(
    begin: Callable[..., tuple[Outbox, Sender]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import ssl
    import subprocess

    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout k.pem -out c.pem"
    subprocess.run(make.split(), cwd=tmp_path, check=True, capture_output=True)
    with Webhook() as hook:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
        hook.server.socket = context.wrap_socket(hook.server.socket, server_side=True)
        box, _ = begin(hook.url.replace("http:", "https:"))
        box.add([told(1)])
        wait_for(lambda: counts(box).failures >= 1)
        assert hook.keys == []
    assert "its certificate cannot be trusted" in caplog.text


def test_what_is_refused_for_good_is_given_up_and_the_others_are_not(
    begin: Callable[..., tuple[Outbox, Sender]], caplog: pytest.LogCaptureFixture
) -> None:
    def choose(handler: Handler) -> None:
        body = json.loads(handler.server.attempts[-1][2])
        handler.refuse(400) if any(e["story"] == 3 for e in body["events"]) else handler.take()

    with Webhook(choose) as hook:
        box, _ = begin(hook.url)
        box.add(told(number) for number in range(8))
        wait_for(lambda: counts(box).waiting == 0)
        assert hook.keys == [f"born:{number}@{number}" for number in range(8) if number != 3]
        assert counts(box).dropped == 1
        assert counts(box).delivered == 7
    assert "given up: the receiver refuses them (it answered 400)" in caplog.text


def test_messages_are_at_most_so_often(begin: Callable[..., tuple[Outbox, Sender]]) -> None:
    with Webhook() as hook:
        box, _ = begin(hook.url, every=3.0)
        box.add([told(0)])
        wait_for(lambda: counts(box).delivered == 1)
        for number in range(1, 6):
            box.add([told(number)])
        wait_for(lambda: counts(box).delivered == 6)
        assert len(hook.server.taken) == 2
        assert [len(message["events"]) for message in hook.server.taken] == [1, 5]


# ---------------------------------------------------------------- the outbox


def test_an_outbox_goes_on_where_it_was(tmp_path: Path) -> None:
    box = Outbox(tmp_path, ["ops", "chat"])
    box.add([told(1), told(2), told(1, "chat"), told(1)])
    box.delivered("ops", box.next("ops", 1))
    again = Outbox(tmp_path, ["ops", "chat"])
    assert [each.key for each in again.next("ops", 9)] == ["born:2@2"]
    assert [each.key for each in again.next("chat", 9)] == ["born:1@1"]
    again.add([told(1), told(2), told(1, "chat"), told(3)])  # the stream has gone back to a snapshot
    assert [each.key for each in again.next("ops", 9)] == ["born:2@2", "born:3@3"]
    again.forget_from(2)  # other records have these numbers now
    again.add([told(1), told(2)])
    assert [each.key for each in Outbox(tmp_path, ["ops"]).next("ops", 9)] == [
        "born:2@2", "born:3@3", "born:2@2",
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [1, 20])
def test_half_a_line_is_no_alert_and_spoils_no_other(tmp_path: Path, cut: int) -> None:
    box = Outbox(tmp_path, ["ops"])
    box.add([told(1), told(2)])
    data = box.path.read_bytes()
    box.path.write_bytes(data[:-cut])
    again = Outbox(tmp_path, ["ops"])
    again.add([told(2), told(3)])
    assert [each.key for each in Outbox(tmp_path, ["ops"]).next("ops", 9)] == [
        "born:1@1", "born:2@2", "born:3@3",
    ]  # fmt: skip


def test_lines_that_are_none_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    box = Outbox(tmp_path, ["ops"])
    box.add([told(1)])
    box.path.write_bytes(b'\xff\n{}\n{"alert": 7}\n' + b"[" * 9000 + b"\n" + box.path.read_bytes())
    assert [each.key for each in Outbox(tmp_path, ["ops"]).next("ops", 9)] == ["born:1@1"]
    assert "4 lines are no alerts, and are left out" in caplog.text


def test_an_outbox_is_bounded_and_says_what_it_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "MOST", 10)
    box = Outbox(tmp_path, ["ops"])
    for number in range(25):
        box.add([told(number)])
    assert [each.story for each in box.next("ops", 99)] == list(range(15, 25))
    assert counts(box).dropped == 15
    assert caplog.text.count("alert ops: the oldest are given up: 10 others wait") == 1
    assert [each.story for each in Outbox(tmp_path, ["ops"]).next("ops", 99)] == list(range(15, 25))


def test_the_file_does_not_grow_with_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "DEAD", 50)
    monkeypatch.setattr(outbox, "KNOWN", 20)
    box = Outbox(tmp_path, ["ops"])
    for number in range(2000):
        box.add([told(number)])
        box.delivered("ops", box.next("ops", 1))
    assert len(box.path.read_bytes()) < 20_000
    again = Outbox(tmp_path, ["ops"])
    again.add([told(1999)])
    assert counts(again).waiting == 0


def test_a_disk_that_is_full_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    box, real, full = Outbox(tmp_path, ["ops"]), outbox.os.write, [True]

    def write(file: int, data: bytes) -> int:
        if full[0]:
            real(file, data[:10])
            raise OSError(28, "No space left on device")
        return real(file, data)

    monkeypatch.setattr(outbox.os, "write", write)
    box.add([told(1)])
    box.add([told(2)])
    assert [each.story for each in box.next("ops", 9)] == [1, 2]
    full[0] = False
    box.sync()
    assert [each.story for each in Outbox(tmp_path, ["ops"]).next("ops", 9)] == [1, 2]
    assert caplog.text.count("cannot be written: No space left on device") == 1


def test_what_another_process_has_by_now_is_left_alone(tmp_path: Path) -> None:
    mine = [True]
    box = Outbox(tmp_path, ["ops"], lambda: mine[0])
    box.add([told(1)])
    mine[0] = False
    box.add([told(2)])
    box.delivered("ops", box.next("ops", 1))
    assert [each.story for each in Outbox(tmp_path, ["ops"]).next("ops", 9)] == [1]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "theirs").write_text("theirs\n")
    (tmp_path / "st").mkdir()
    (tmp_path / "st" / "alerts.jsonl").symlink_to(tmp_path / "theirs")
    box = Outbox(tmp_path / "st", ["ops"])
    box.add([told(1)])
    assert (tmp_path / "theirs").read_text() == "theirs\n"
    assert "it is a link" in caplog.text
    assert [each.story for each in box.next("ops", 9)] == [1]


# ---------------------------------------------------------------- formats


def test_json_says_all_that_is_known_and_not_the_name_twice() -> None:
    found = json.loads(body_of("json", "ops", [told(3, record="n3")], "http://page:1/x", 9.0))
    assert found == {
        "alert": "ops",
        "events": [
            {
                "key": "born:3@3",
                "event": "born",
                "at": 1.0,
                "story": 3,
                "title": "storm 3",
                "seq": 3,
                "record": "n3",
                "sentence": "new story 3: storm 3",
                "link": "http://page:1/x/#cluster/3",
            }
        ],
    }


def test_a_chat_reads_lines_and_no_markup_of_titles() -> None:
    some = [told(n, title="<!channel> & co" if n == 0 else "storm") for n in range(25)]
    lines = json.loads(body_of("slack", "ops", some, "http://page/", 9.0))["text"].splitlines()
    assert lines[0] == "*ops*"
    assert lines[1] == "new story 0: &lt;!channel&gt; &amp; co (<http://page/#cluster/0|page>)"
    assert lines[-1] == "and 5 more"
    assert len(lines) == 2 + forms.SHOWN


def test_an_alertmanager_gets_labels_without_titles() -> None:
    (one,) = json.loads(body_of("alertmanager", "ops", [told(3, level="ERROR")], "http://page", 61.0))
    assert one == {
        "labels": {
            "alertname": "ops", "event": "born", "source": "streamdp", "story": "3", "level": "ERROR",
        },
        "annotations": {
            "summary": "new story 3: storm 3", "key": "born:3@3", "page": "http://page/#cluster/3",
        },
        "startsAt": "1970-01-01T00:00:01.000Z",
        "endsAt": "1970-01-01T00:06:01.000Z",
        "generatorURL": "http://page/#cluster/3",
    }  # fmt: skip
    assert path_of("alertmanager", "") == path_of("alertmanager", "/api/v2/alerts") == "/api/v2/alerts"
    assert path_of("alertmanager", "/am/") == "/am/api/v2/alerts"
    assert path_of("json", "") == "/"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"event": "surged", "lines": 250, "usual": 12.5},
         "story 1 has surged: 250 lines, where 12.5 are usual: t"),
        ({"event": "silent", "template": True, "usual": 9.0, "lines": 0},
         "template 1 is silent: 0 lines, where 9.0 are usual: t"),
        ({"event": "merged", "other": 4}, "story 1 is part of 4 now: t"),
        ({"event": "closed", "size": 1200}, "story 1 has ended with 1,200 records: t"),
    ],
)  # fmt: skip
def test_sentences(more: dict[str, object], said: str) -> None:
    assert sentence(told(1, **{"title": "t", **more})) == said


# ---------------------------------------------------------------- addresses and tokens


def test_a_token_is_sent_and_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    (tmp_path / "token").chmod(0o600)
    monkeypatch.setenv("HOOK_TOKEN", "from-the-environment")
    with Webhook() as hook:
        (tmp_path / "url").write_text(hook.url)
        by_file = Alert(name="a", url_file=str(tmp_path / "url"), token_file=str(tmp_path / "token"))
        by_variable = Alert(name="b", url=hook.url, token_env="HOOK_TOKEN", header="X-Api-Key")
        for alert in (by_file, by_variable):
            Receiver(alert).send([told(1)])
            assert "from-" not in repr(Receiver(alert))
        sent = [headers for _, headers, _ in hook.server.attempts]
    assert sent[0]["Authorization"] == "Bearer from-a-file"
    assert sent[1]["X-Api-Key"] == "from-the-environment"
    assert "Authorization" not in sent[1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"url": "http://h", "token_env": "NO_SUCH_ONE"}, "NO_SUCH_ONE is not set"),
        ({"url": "http://h", "token_file": "no/such/file"}, "no/such/file cannot be read: No such file"),
        ({"url_env": "HOOK_URL"}, "an address begins with http:// or https://"),
        ({"url": "http://h", "token_env": "TWO_LINES"}, "one line of printable characters"),
    ],
)
def test_what_cannot_be_had_is_said_without_its_value(
    more: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_URL", "file://secret/path")
    monkeypatch.setenv("TWO_LINES", "secret\nsecret")
    with pytest.raises(ConfigError) as error:
        Receiver(Alert(name="ops", **more))  # type: ignore[arg-type]
    assert said in error.value.message
    assert "secret" not in error.value.message


def test_an_error_of_sending_names_no_address() -> None:
    receiver = Receiver(Alert(name="ops", url=f"http://localhost:{free_port()}/secret"))
    with pytest.raises(SendError) as error:
        receiver.send([told(1)])
    assert "secret" not in str(error.value)
    assert logging.getLogger("streamdp").name == "streamdp"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "gone" / "alerts.jsonl")
    with pytest.raises(SendError, match=re.escape(f"{path}: No such file or directory")):
        send.FileReceiver(Alert(name="desk"), path).send([])
