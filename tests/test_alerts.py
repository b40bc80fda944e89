"""Alerts: which events are told to whom, from the settings file to a receiver, whatever happens to a run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from alertmanager import Alertmanager
from commands import call, fail, succeed, wait_for, write_headlines
from ports import free_port
from receiver import Webhook, hang, killed_again_and_again
from serving import Served

from streamdp.alerts import rules
from streamdp.alerts.outbox import NAME, Notification, Outbox
from streamdp.alerts.rules import AlertRules
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.records import Answers, Record
from streamdp.settings import Settings
from streamdp.settings.alerts import Alert, alerts_of
from streamdp.settings.load import gather

LIVES = ["born", "split", "merged", "vanished", "closed", "retired", "titled", "renamed"]


def table(**keys: Any) -> str:
    """An alert of a settings file."""
    return "[[alert]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def log_lines(n: int, extra: dict[int, str] | None = None) -> bytes:
    """A log of two templates, a line every two seconds, and others behind some of them."""
    lines = []
    for i in range(n):
        moment = f"2024-05-01 {10 + i // 1800:02}:{i // 30 % 60:02}:{i % 30 * 2:02}"
        lines.append(f"{moment} INFO user {i % 17} logged in from 10.0.0.{i % 250}")
        if i % 3 == 0:
            lines.append(f"{moment} INFO cache refreshed in {i % 40} ms")
        if extra and i in extra:
            lines.append(f"{moment} {extra[i]}")
    return "".join(f"{line}\n" for line in lines).encode()


# ---------------------------------------------------------------- the settings file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[alert]\nname = 'a'", "an alert begins with [[alert]], in double brackets"),
        ("[[alert]]\nurl = 'http://h'", "alert 1: name is missing"),
        (table(name="a b", url="http://h"), "alert 1: name: "),
        (table(name="a"), "alert 1: say one of url, url_file, url_env"),
        (table(name="a", url="http://h", url_env="X"), "alert 1: say one of url, url_file, url_env"),
        (table(name="a", url="http://h", urll="secret"), "alert 1: urll: no such key, did you mean url?"),
        (table(name="a", url="file://secret/a"), "alert 1: url: an address begins with http:// or https://"),
        (table(name="a", url="file:secret/"), "names a host, or is file:PATH"),
        (table(name="a", url="file:secret", format="slack"), "alert 1: format: a file has lines of json"),
        (table(name="a", url="http://h", on=["lag"]), "alert 1: on: must be of born, split"),
        (table(name="a", url="http://h", stories=[-1]), "alert 1: stories: expected"),
        (table(name="a", url="ftp://secret"), "alert 1: url: an address begins with http:// or https://"),
        (table(name="a", url="http://"), "alert 1: url: an address begins with http:// or https://"),
        (table(name="a", url="http://h/a secret"), "alert 1: url: an address begins with"),
        (table(name="a", url="http://h:99999/secret"), "alert 1: url: an address begins with"),
        (table(name="a", url="http://me:secret@h"), "alert 1: url: an address holds no name and password"),
        (table(name="a", url="http://h", format="secret"), "format: must be of json, slack, alertmanager"),
        (table(name="a", url="http://h", on=["bron"]), "alert 1: on: must be of born, split"),
        (table(name="a", url="http://h", on=[]), "alert 1: on names no event"),
        (table(name="a", url="http://h", every="secret"), "alert 1: every: expected"),
        (table(name="a", url="http://h", template="("), "alert 1: template is no regular expression"),
        (table(name="a", url="http://h") * 2, "two alerts are called a: names are unique"),
        (table(name="a", url="http://h", token_env="A", token_file="b"), "say one of token_file, token_env"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "streamdp.toml").write_text(text)
    code, message = fail(tmp_path, "check")
    assert code == 78
    assert message.startswith("streamdp: streamdp.toml")
    assert said in message
    assert "secret" not in message


def test_every_command_accepts_a_file_with_alerts(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "storm over the coast"}\n{"text": "coast storm"}\n')
    succeed(tmp_path, "consume", "--file", "in.jsonl", "--state", "st", "--output", "out")
    url = "https://hooks.example/secret"
    (tmp_path / "streamdp.toml").write_text(table(name="chat", url=url, format="slack", words=["storm"]))
    for command in (
        ("check",),
        ("check", "in.jsonl"),
        ("fit", "in.jsonl", "--budget", "2", "--output", "fit"),
        ("fit", "st", "--budget", "1"),
        ("stories", "st"),
        ("state", "verify", "st"),
        ("correct", "st", "list"),
        ("consume", "--file", "in.jsonl", "--output", "other"),
    ):
        done = call(tmp_path, *command)
        assert done.returncode == 0, done.stderr
        assert b"secret" not in done.stdout + done.stderr
    assert b"nobody is told of alerts: that needs --state FOLDER" in done.stderr


def test_what_is_not_written_has_defaults_and_the_flag_adds_one(tmp_path: Path) -> None:
    (one,) = alerts_of([{"name": "a", "url": "http://h"}], "f")
    assert (one.format, one.on, one.every, one.words) == ("json", ("born", "surged", "silent"), 1.0, ())
    from streamdp.settings.alerts import Alerting

    (tmp_path / "f.toml").write_text(table(name="a", url="http://h"))
    chosen = gather((Alerting,), {"alert": "http://other"}, {}, str(tmp_path / "f.toml"))
    assert [(each.name, each.url) for each in Alerting(**chosen).all] == [
        ("alert", "http://other"),
        ("a", "http://h"),
    ]
    assert gather((Alerting,), {}, {"STREAMDP_ALERT": "http://v"}, None)["alert"] == "http://v"
    (tmp_path / "f.toml").write_text(table(name="alert", url="http://h"))
    chosen = gather((Alerting,), {"alert": "http://other"}, {}, str(tmp_path / "f.toml"))
    with pytest.raises(ConfigError, match="is called alert"):
        _ = Alerting(**chosen).all


def test_the_flag_needs_a_state_and_a_stream_that_learns(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "storm"}\n')
    code, message = fail(tmp_path, "consume", "--file", "in.jsonl", "--alert", "http://h/secret")
    assert (code, "--alert needs --state FOLDER" in message) == (64, True)
    run = ("consume", "--file", "in.jsonl", "--state", "st", "--alert")
    code, message = fail(tmp_path, *run, "http://h/secret", "--frozen")
    assert (code, "leave --frozen out" in message) == (64, True)
    code, message = fail(tmp_path, *run, "gopher://secret")
    assert (code, "secret" in message) == (78, False)
    assert not (tmp_path / "st").exists()


# ---------------------------------------------------------------- what is told


def chosen(
    settings: Settings, records: list[Any], *alerts: dict[str, Any], at: int = 100
) -> list[Notification]:
    """What alerts tell of records that come in batches."""
    engine = Engine(settings, with_events=True)
    made = [Alert(**{"name": f"a{i}", "url": "http://h", **keys}) for i, keys in enumerate(alerts)]
    chooser = AlertRules(made, settings, clock=lambda: 7.0)
    chooser.begin(engine)
    found = list[Notification]()
    for start_ in range(0, len(records), at):
        found += chooser.of_answers(engine.advance(records[start_ : start_ + at]))
    found += chooser.of_answers(engine.finish())
    return found


STORMS = ["storm over the coast", "coast storm hits", "late goal wins the match", "storm at the coast"] * 30


def test_events_are_told_by_kind_and_by_words() -> None:
    settings = Settings(beam=4)
    found = chosen(settings, STORMS, {"on": ["born"]}, {"on": ["born"], "words": ["GOAL", "quake"]}, {})
    first = [each for each in found if each.alert == "a0"]
    assert {each.title for each in first} == {"storm over the coast", "late goal wins match the"}
    assert [each.title for each in found if each.alert == "a1"] == ["late goal wins match the"]
    assert [each.key for each in found if each.alert == "a2"] == [each.key for each in first]
    assert all(each.at == 7.0 and each.size == 1 for each in first)


def test_an_event_says_which_record_has_caused_it() -> None:
    records = [Record(text, {"line": i}, id=f"n{i}") for i, text in enumerate(STORMS)]
    found = chosen(Settings(beam=4), records, {"on": LIVES})
    assert [each.record for each in found if each.seq is not None] == [f"n{each.seq}" for each in found]


def test_keys_are_those_of_events_however_records_are_batched() -> None:
    alerts = {"on": LIVES}
    keys = [[each.key for each in chosen(Settings(beam=4), STORMS, alerts, at=at)] for at in (1, 7, 1000)]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys[0])) == len(keys[0]) > 3


def test_templates_are_told_by_pattern_and_level() -> None:
    settings = Settings(format="log", likelihood="template", keep=("level",))
    lines = [
        Record(f"user {i} logged in", {"line": i}, time=60.0 * i, keep={"level": "INFO"}) for i in range(30)
    ]
    lines.append(Record("disk sda is full", {"line": 30}, time=1800.0, keep={"level": "ERROR"}))
    lines.append(Record("disk sdb is slow today", {"line": 31}, time=1801.0, keep={"level": "WARN"}))
    found = chosen(
        settings,
        lines,
        {"on": ["born"], "level": ["ERROR", "FATAL"]},
        {"on": ["born"], "template": "^disk .* (slow|gone)"},
        {"on": ["born"], "words": ["disk"]},
    )
    told = [(each.alert, each.title, each.level) for each in found]
    assert told == [
        ("a0", "disk sda is full", "ERROR"),
        ("a2", "disk sda is full", "ERROR"),
        ("a1", "disk sdb is slow today", "WARN"),
        ("a2", "disk sdb is slow today", "WARN"),
    ]


def test_a_long_level_is_cut() -> None:
    settings = Settings(format="log", likelihood="template", keep=("level",))
    lines = [Record("disk sda is full", {"line": 1}, time=1.0, keep={"level": "ERROR " * 20_000})]
    (told,) = chosen(settings, lines, {"on": ["born"], "words": ["disk"]}, {"on": ["born"], "level": ["X"]})
    assert told.level is not None
    assert (len(told.level), told.level[:11]) == (300, "ERROR ERROR")


def test_a_level_that_is_not_kept_cannot_be_chosen() -> None:
    with pytest.raises(ConfigError, match="level is of lines whose level is kept"):
        AlertRules([Alert(name="a", url="http://h", level=("ERROR",))], Settings())


def test_a_batch_without_events_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "answer_rows", None)
    assert AlertRules([Alert(name="a", url="http://h")], Settings()).of_answers(Answers([], [], [])) == []  # type: ignore[arg-type]


# ---------------------------------------------------------------- runs


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the end of a run wait for receivers that answer, however busy the machine is."""
    monkeypatch.setattr("streamdp.run.alarm.LAST", 120.0)


def events_of(path: Path) -> list[str]:
    """The keys of a file of events."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [f"{each['event']}:{each['cluster']}@{each['seq']}" for each in found]


@pytest.mark.usefixtures("patient")
def test_a_receiver_that_is_dead_stops_nothing_and_gets_all_once_it_lives(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 2000)
    port = free_port()
    (tmp_path / "streamdp.toml").write_text(table(name="ops", url=f"http://127.0.0.1:{port}/x", on=LIVES))
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "st")
    plain = succeed(tmp_path, *run[:3], "--output", "plain", "--config", "/dev/null")
    done = call(tmp_path, *run)
    assert (done.returncode, plain) == (0, b"")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "plain").read_bytes()
    wanted = events_of(tmp_path / "events")
    assert f"alert ops: {len(wanted):,} wait in st/{NAME}: the next run delivers them" in done.stderr.decode()
    with Webhook() as hook:
        (tmp_path / "streamdp.toml").write_text(table(name="ops", url=hook.url, on=LIVES, every=0))
        succeed(tmp_path, *run)
        assert hook.keys == wanted
        succeed(tmp_path, *run)
        assert hook.keys == wanted


def test_a_receiver_that_hangs_stops_nothing(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 1000)
    with Webhook(hang) as hook, Webhook() as other:
        (tmp_path / "streamdp.toml").write_text(
            table(name="stuck", url=hook.url, on=LIVES) + table(name="well", url=other.url, on=["born"])
        )
        succeed(tmp_path, "consume", "--file", "in.jsonl", "--output", "out", "--state", "st")
        assert other.keys
        assert hook.server.attempts
    counts = Outbox(tmp_path / "st", ["stuck", "well"]).counts()
    assert counts["stuck"].waiting > counts["well"].waiting == 0


@pytest.mark.usefixtures("patient")
def test_a_run_that_is_killed_again_and_again_tells_every_event(tmp_path: Path) -> None:
    """And in order; what was told twice has the same key."""
    write_headlines(tmp_path / "in.jsonl", 6000)
    common = ("consume", "--file", "in.jsonl", "--output")
    succeed(tmp_path, *common, "whole", "--events", "events", "--state", "whole-st")
    wanted = events_of(tmp_path / "events")
    with Webhook() as hook:
        (tmp_path / "streamdp.toml").write_text(
            table(name="ops", url=hook.url, on=LIVES, every=0) + table(name="other", url=hook.url)
        )
        killed_again_and_again(tmp_path, hook, *common, "out", "--state", "st", "--snapshot-every", "700")
        messages = [each for each in hook.server.taken if each["alert"] == "ops"]
    keys = [event["key"] for message in messages for event in message["events"]]
    assert list(dict.fromkeys(keys)) == wanted
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.usefixtures("patient")
def test_a_new_stream_in_the_same_folder_tells_anew(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "storm over the coast"}\n')
    with Webhook() as hook:
        run = ("consume", "--file", "in.jsonl", "--output", "out", "--state", "st", "--alert", hook.url)
        succeed(tmp_path, *run)
        for path in (tmp_path / "st").glob("*.sdp"):
            path.unlink()
        succeed(tmp_path, *run, "--overwrite")
        assert hook.keys == ["born:0@0", "born:0@0"]


def test_a_service_tells_of_a_template_while_it_runs_with_a_link_and_metrics(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-of-ours")
    (tmp_path / "token").chmod(0o600)
    with Webhook() as hook:
        (tmp_path / "streamdp.toml").write_text(
            'format = "log"\nkeep = ["level"]\n'
            + table(name="errors", url=hook.url, level=["ERROR"], token_file="token")
            + table(name="gone", url=f"http://127.0.0.1:{free_port()}/hidden-path")
        )
        made = Served(tmp_path)
        made.ask("POST", "/v1/records", log_lines(50), "text/plain")
        late = b"2024-05-01 11:00:00 ERROR disk sda is full\n" * 2
        made.ask("POST", "/v1/records", late + log_lines(3), "text/plain")
        wait_for(lambda: hook.keys)
        (event,) = hook.events
        label = event["story"]
        assert event["sentence"] == f"new template {label}: disk sda is full"
        assert event["link"] == f"http://127.0.0.1:{made.port}/#cluster/{label}"
        assert hook.server.attempts[0][1]["Authorization"] == "Bearer a-token-of-ours"
        wanted = [
            'alert_failures_total{alert="gone"}',
            'streamdp_alerts_delivered_total{alert="errors"} 1.0',
            'streamdp_alerts_waiting{alert="errors"} 0.0',
            'streamdp_alerts_dropped_total{alert="errors"} 0.0',
            'streamdp_events_total{event="born",of="template"} 3.0',
        ]
        wait_for(lambda: all(line in made.ask("GET", "/metrics")[1] for line in wanted))
        metrics = made.ask("GET", "/metrics")[1]
        assert made.stop() == 0
    said = made.said.decode()
    assert "alert gone: not delivered: Connection refused; it is tried again" in said
    assert "Traceback" not in said
    for secret in ("a-token-of-ours", "hidden-path", hook.url):
        assert secret not in said + metrics
        held = [
            path.name
            for path in tmp_path.rglob("*")
            if path.is_file() and secret.encode() in path.read_bytes()
        ]
        assert {*held} <= {"streamdp.toml", "token"}


# ---------------------------------------------------------------- a real Alertmanager


@pytest.mark.usefixtures("patient")
def test_an_alertmanager_shows_the_alert_of_a_new_template(tmp_path: Path) -> None:
    (tmp_path / "am").mkdir()
    with Alertmanager(tmp_path / "am") as manager:
        (tmp_path / "streamdp.toml").write_text(
            'format = "log"\nkeep = ["level"]\n'
            + table(name="NewError", url=manager.url, format="alertmanager", level=["ERROR"])
        )
        (tmp_path / "app.log").write_bytes(log_lines(300, {200: "ERROR disk sda is full"}))
        succeed(tmp_path, "consume", "--file", "app.log", "--output", "out", "--state", "st")
        wait_for(lambda: manager.alerts())
        (alert,) = manager.alerts()
        assert alert["labels"] == {
            "alertname": "NewError", "event": "born", "source": "streamdp", "story": "2", "level": "ERROR",
        }  # fmt: skip
        assert alert["annotations"]["summary"] == "new template 2: disk sda is full"
        assert alert["status"]["state"] == "active"
        assert time.time() - 600 < 1.0 * _seconds(alert["startsAt"]) < time.time() + 600


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
