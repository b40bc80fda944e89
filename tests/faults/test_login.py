"""TLS and logins: what works, and what is said where the way to a broker is wrong."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.topics import contents, make_topic, produce
from commands import call, environment, fail, succeed
from secured import PASSWORD, USER, Secured, token
from streamdp_connectors.kafka import reach
from streamdp_connectors.kafka.config import KafkaConfigError, kafka_options

VALUES = [b'{"text": "storm over the coast"}', b'{"text": "coast storm warning"}', b"{broken"]


@pytest.fixture(scope="module")
def topic(other_cluster: Secured) -> str:
    topic = make_topic(other_cluster.bootstrap)
    produce(other_cluster.bootstrap, topic, ((0, value) for value in VALUES))
    return topic


def consume(topic: str, bootstrap: str, *more: str) -> list[str]:
    where = ["--topic", topic, "--bootstrap", bootstrap, "--until", "end"]
    return ["consume", *where, "--output", "out", "--state", "state", *more]


def properties(folder: Path, **lines: object) -> tuple[str, str]:
    (folder / "client.properties").write_text(
        "# of a client\n\n" + "".join(f"{k.replace('_', '.')}={v}\n" for k, v in lines.items())
    )
    return "--kafka-config", "client.properties"


def holds_the_secret(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        known = not path.is_file() or path.name in ("client.properties", "secret")
        if not known and PASSWORD.encode() in path.read_bytes():
            yield path


def test_tls(other_cluster: Secured, topic: str, tmp_path: Path) -> None:
    config = properties(tmp_path, security_protocol="SSL", ssl_ca_location=other_cluster.authority)
    succeed(tmp_path, *consume(topic, other_cluster.tls, *config))
    assert (tmp_path / "out").read_bytes().count(b'"revision":0') == 2


def test_plain_from_a_file_and_answers_to_topics(other_cluster: Secured, topic: str, tmp_path: Path) -> None:
    output, rejects = make_topic(other_cluster.bootstrap), make_topic(other_cluster.bootstrap)
    config = properties(
        tmp_path,
        bootstrap_servers=other_cluster.login,
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'PlainLoginModule required username="{USER}" password="{PASSWORD}";',
        ssl_truststore_type="PEM",
        ssl_truststore_location=other_cluster.authority,
    )
    where = ["--topic", topic, "--until", "end", "--state", "state"]
    topics = ["--output-topic", output, "--rejects-topic", rejects]
    done = call(tmp_path, "consume", *where, *topics, *config)
    assert done.returncode == 0, done.stderr
    assert len(contents(other_cluster.bootstrap, output)) >= 2
    assert [record.value for record in contents(other_cluster.bootstrap, rejects)] == [b"{broken"]
    assert PASSWORD.encode() not in done.stderr + done.stdout
    assert not list(holds_the_secret(tmp_path))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_from_the_environment(other_cluster: Secured, topic: str, tmp_path: Path, mechanism: str) -> None:
    login = {"kafka_sasl_username": USER, "kafka_sasl_password_file": "secret"}
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    if mechanism == "OAUTHBEARER":
        (tmp_path / "secret").write_text(token())
        login = {"kafka_sasl_token_file": "secret"}
    settings = {
        "kafka_security_protocol": "SASL_SSL",
        "kafka_sasl_mechanism": mechanism,
        "kafka_ssl_ca_location": str(other_cluster.authority),
        **login,
    }
    done = call(tmp_path, *consume(topic, other_cluster.login), **settings)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_bytes().count(b'"revision":0') == 2
    shown = call(tmp_path, "check", kafka_sasl_password=PASSWORD)
    assert shown.returncode == 0
    assert PASSWORD.encode() not in shown.stdout + shown.stderr
    assert not list(holds_the_secret(tmp_path))


def test_a_wrong_password(other_cluster: Secured, topic: str, tmp_path: Path) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        config = properties(
            tmp_path,
            security_protocol="SASL_SSL",
            sasl_mechanism=mechanism,
            sasl_username=USER,
            sasl_password="wrong-" + PASSWORD,
            ssl_ca_location=other_cluster.authority,
        )
        code, message = fail(tmp_path, *consume(topic, other_cluster.login, *config))
        assert code == 69
        assert f"{other_cluster.login} refuses the login (SASL {mechanism}, user {USER})" in message
        assert "check sasl.username and sasl.password" in message
        assert PASSWORD not in message


def test_tls_on_a_plain_port(other_cluster: Secured, topic: str, tmp_path: Path) -> None:
    config = properties(tmp_path, security_protocol="SSL", ssl_ca_location=other_cluster.authority)
    code, message = fail(tmp_path, *consume(topic, other_cluster.bootstrap, *config))
    assert code == 69
    assert f"{other_cluster.bootstrap} speaks no TLS" in message


def test_a_plain_client_on_a_tls_port(other_cluster: Secured, topic: str, tmp_path: Path) -> None:
    for port, name in ((other_cluster.tls, "SSL"),):
        code, message = fail(tmp_path, *consume(topic, port))
        assert code == 69
        assert f"{port} wants TLS" in message
        assert f"security.protocol={name}" in message


def test_a_certificate_that_nobody_vouches_for(other_cluster: Secured, topic: str, tmp_path: Path) -> None:
    code, message = fail(tmp_path, *consume(topic, other_cluster.tls), kafka_security_protocol="SSL")
    assert code == 69
    assert f"the certificate of {other_cluster.tls} is not trusted" in message
    assert "ssl.ca.location" in message


def test_a_host_that_cannot_be_resolved_and_a_port_where_nothing_listens(tmp_path: Path) -> None:
    code, message = fail(tmp_path, *consume("news", "nowhere.invalid:9092", "--give-up-after", "1"))
    assert code == 69
    assert "the host name nowhere.invalid cannot be resolved" in message
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        code, message = fail(tmp_path, *consume("news", where, "--give-up-after", "1"))
    assert code == 69
    assert f"nothing listens at {where}" in message


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("security.protocol=TLS", "security.protocol must be one of"),
        ("sasl.username=x", "a login is set, but security.protocol is PLAINTEXT: say SASL_SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism must be one of"),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN",
            "sasl.password (or sasl.password.file, or STREAMDP_KAFKA_SASL_PASSWORD)",
        ),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "needs sasl.token.file"),
        ("ssl.ca.location=pem", "TLS is set up, but security.protocol is PLAINTEXT"),
        ("security.protocol=SSL\nssl.ca.location=none", "there is no file none"),
        ("security.protocol=SSL\nssl.ca.location=pem", "pem holds no PEM certificate"),
        ("security.protocol=SSL\nssl.certificate.location=pem", "do not make a certificate and its key"),
        ("ssl.truststore.type=JKS", "line 1: only PEM is read"),
        ("sasl.password.file=none", "line 1: none: No such file or directory"),
        ("sasl.token.file=empty", "line 1: empty is empty"),
        ("group.id=x", "line 1: group.id cannot be set: say --group"),
        ("what.is.this=x", "line 1: there is no setting what.is.this"),
        ("request.timeout.ms=soon", "line 1: request.timeout.ms must be a number"),
        ("check.crcs=maybe", "line 1: check.crcs must be true or false"),
        ("no equals sign", "line 1: not of the form NAME=VALUE"),
    ],
)
def test_what_is_wrong_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pem").write_text("no certificate")
    (tmp_path / "empty").touch()
    (tmp_path / "file").write_text(lines)
    with pytest.raises(KafkaConfigError) as caught:
        kafka_options("file", {})
    assert words in caught.value.message
    assert caught.value.exit_code == 78


def test_what_a_file_and_the_environment_mean(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(
        "request.timeout.ms = 9000\ncheck.crcs=false\n! remark\nclient.id=a\\\n  b\n"
    )
    variables = {"STREAMDP_KAFKA_CLIENT_ID": "c", "STREAMDP_KAFKA_RACK": " ", "OTHER": "x"}
    options = kafka_options(str(tmp_path / "file"), variables)
    assert options == {"request_timeout_ms": 9000, "check_crcs": False, "client_id": "c"}
    with pytest.raises(
        KafkaConfigError, match="environment variable STREAMDP_KAFKA_X: there is no setting x"
    ):
        kafka_options(None, {"STREAMDP_KAFKA_X": "1"})
    with pytest.raises(KafkaConfigError, match="--kafka-config none: No such file"):
        kafka_options("none", {})


def test_a_file_is_for_topics(tmp_path: Path) -> None:
    code, message = fail(tmp_path, "consume", "--file", "x", "--kafka-config", "y")
    assert code == 64
    assert "--kafka-config is for topics" in message
    assert not [name for name in environment() if name.startswith("STREAMDP_KAFKA")]


@pytest.mark.parametrize(
    ("code", "why", "advice"),
    [
        (10, "certificate has expired", "renewed"),
        (9, "certificate is not yet valid", "clocks"),
        (62, "Hostname mismatch", "--bootstrap"),
        (19, "self-signed certificate in certificate chain", "ssl.ca.location"),
    ],
)
def test_advice_fits_what_is_wrong_with_a_certificate(
    monkeypatch: pytest.MonkeyPatch, code: int, why: str, advice: str
) -> None:
    def refuse(*_: object) -> socket.socket:
        error = ssl.SSLCertVerificationError()
        error.verify_code, error.verify_message = code, why
        raise error

    monkeypatch.setattr(reach, "_connect", refuse)
    trouble = reach._certificate("host", 9093, {})
    assert trouble is not None
    assert f"({why}): " in trouble.message
    assert advice in trouble.message
    assert ("ssl.ca.location" in trouble.message) is (code == 19)
