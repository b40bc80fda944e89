"""How a client logs in to Kafka: a file of properties, and the environment over it."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from streamdp.errors import Exit
from streamdp.safe_files import warn_of_readers
from streamdp_connectors.kafka.client import library
from streamdp_connectors.protocol import ConnectorError

ENVIRONMENT = "STREAMDP_KAFKA_"
"""How variables begin; ``sasl.password`` is STREAMDP_KAFKA_SASL_PASSWORD."""

NAMES = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
"""Properties of Kafka's Java clients and of librdkafka, and what kafka-python calls them."""

SPECIAL = (
    "bootstrap.servers",
    "sasl.jaas.config",
    "sasl.password.file",
    "sasl.token.file",
    "ssl.endpoint.identification.algorithm",
    "ssl.keystore.type",
    "ssl.truststore.type",
    "transactional.id.prefix",
)
"""Properties that are more than another name."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SECRETS = ("sasl.password", "ssl.key.password", "sasl.jaas.config")
"""Properties whose values are secrets; a file that has one should be the user's alone."""

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_OURS = {
    "group.id": "say --group",
    "auto.offset.reset": "say --from",
    "enable.auto.commit": "positions are kept in the state",
    "isolation.level": "only what was committed is read",
    "transactional.id": "it follows from the state; say how it begins with transactional.id.prefix",
    "acks": "answers are written once",
    "enable.idempotence": "answers are written once",
    "key.deserializer": "records are taken as bytes",
    "value.deserializer": "records are taken as bytes",
}


class KafkaConfigError(ConnectorError):
    """The settings of the Kafka client are wrong. No message holds a value that may be secret."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.CONFIG)


class Login(dict[str, Any]):
    """Settings of the client, which show no value where they are printed: a traceback may do so."""

    def __repr__(self) -> str:
        """Return the names alone."""
        return f"Login({', '.join(self)})"


def kafka_options(path: str | None, environ: Mapping[str, str]) -> Login:
    """Settings for kafka-python from a file of properties and the environment. Raises KafkaConfigError.

    The environment wins over the file. ``bootstrap_servers`` is among the settings if it was named.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, value, place in [] if path is None else _properties(path):
        if name in SECRETS and path is not None:
            warn_of_readers(path)
        found[name] = (value, place)
    for name, value, place in _variables(environ):
        found[name] = (value, place)
    options = Login()
    for name, (value, place) in found.items():
        if name in NAMES:
            options[NAMES[name]] = value
        elif name not in SPECIAL:
            options.update(_of_the_client(name, value, place))
    for name in SPECIAL:
        if name in found:
            _take_special(name, *found[name], options)
    _check(options)
    return options


def _properties(path: str) -> Iterator[tuple[str, str, str]]:
    """Name, value and place of every line that has one."""
    text = re.sub(r"\\\r?\n[ \t]*", "", _text(path, f"--kafka-config {path}"))
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, separator, value = stripped.partition("=")
        if not separator:
            raise KafkaConfigError(f"{path}, line {number}: not of the form NAME=VALUE")
        yield name.strip(), value.strip(), f"{path}, line {number}"


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for variable in sorted(environ):
        if variable.startswith(ENVIRONMENT) and environ[variable].strip():
            name = variable.removeprefix(ENVIRONMENT).lower().replace("_", ".")
            yield name, environ[variable].strip(), f"environment variable {variable}"


def _of_the_client(name: str, value: str, place: str) -> dict[str, Any]:
    """Any other setting of the client, converted to the type of its default."""
    if name in _OURS:
        raise KafkaConfigError(f"{place}: {name} cannot be set: {_OURS[name]}")
    kafka = library(ConnectorError)
    known = {**kafka.KafkaProducer.DEFAULT_CONFIG, **kafka.KafkaConsumer.DEFAULT_CONFIG}
    option = name.replace(".", "_").replace("-", "_")
    default = known.get(option, NotImplemented)
    if option in NAMES.values() or not isinstance(default, bool | int | float | str | None):
        raise KafkaConfigError(f"{place}: there is no setting {name}, or it cannot be set here")
    try:
        if isinstance(default, bool):
            return {option: {"true": True, "false": False}[value.lower()]}
        return {option: value if default is None else type(default)(value)}
    except (KeyError, ValueError):
        what = "true or false" if isinstance(default, bool) else "a number"
        raise KafkaConfigError(f"{place}: {name} must be {what}") from None


def _take_special(name: str, value: str, place: str, options: dict[str, Any]) -> None:
    match name:
        case "bootstrap.servers":
            options["bootstrap_servers"] = value
        case "sasl.jaas.config":
            for key in ("username", "password"):
                found = re.search(rf"\b{key}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"']+))", value)
                if found:
                    options.setdefault(f"sasl_plain_{key}", next(group for group in found.groups() if group))
        case "sasl.password.file":
            options["sasl_plain_password"] = _secret(value, place)
        case "sasl.token.file":
            _secret(value, place)
            options["sasl_oauth_token_provider"] = _token_file(value)
        case "ssl.endpoint.identification.algorithm":
            options["ssl_check_hostname"] = value.lower() == "https"
        case "transactional.id.prefix":
            options["transactional_id_prefix"] = None if value.lower() == "none" else value
        case _:
            if value.upper() != "PEM":
                raise KafkaConfigError(f"{place}: only PEM is read: convert it (keytool -exportcert -rfc)")


def _text(path: str, what: str) -> str:
    """What stands in a file; ``what`` begins the error."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise KafkaConfigError(f"{what}: {why}") from None


def _secret(path: str, place: str) -> str:
    warn_of_readers(path)
    found = _text(path, f"{place}: {path}").strip()
    if not found:
        raise KafkaConfigError(f"{place}: {path} is empty")
    return found


def _token_file(path: str) -> Any:
    """A provider that reads the token anew whenever the client logs in, because tokens are renewed."""
    library(ConnectorError)
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return _secret(path, "sasl.token.file")

    return TokenFile()


def _check(options: Mapping[str, Any]) -> None:
    """Raise KafkaConfigError if something is missing or contradicts itself."""
    protocol, mechanism = options.get("security_protocol", "PLAINTEXT"), options.get("sasl_mechanism")
    if protocol not in PROTOCOLS:
        raise KafkaConfigError(f"security.protocol must be one of {', '.join(PROTOCOLS)}")
    for name, option in NAMES.items():
        if option.endswith("file") and option in options and not os.path.isfile(options[option]):
            raise KafkaConfigError(f"{name}: there is no file {options[option]}")
    if not protocol.startswith("SASL"):
        if any(option.startswith("sasl") for option in options):
            tls = "SSL" if protocol == "SSL" else "SSL, or SASL_PLAINTEXT"
            raise KafkaConfigError(f"a login is set, but security.protocol is {protocol}: say SASL_{tls}")
    elif mechanism not in MECHANISMS:
        raise KafkaConfigError(f"sasl.mechanism must be one of {', '.join(MECHANISMS)}")
    elif mechanism == "OAUTHBEARER":
        if "sasl_oauth_token_provider" not in options:
            raise KafkaConfigError("sasl.mechanism OAUTHBEARER needs sasl.token.file, the file of the token")
    elif not {"sasl_plain_username", "sasl_plain_password"} <= set(options):
        raise KafkaConfigError(
            f"sasl.mechanism {mechanism} needs sasl.username and sasl.password (or sasl.password.file, or "
            f"{ENVIRONMENT}SASL_PASSWORD)"
        )
    if protocol.endswith("SSL"):
        _load(options)
    elif any(option.startswith("ssl") for option in options):
        raise KafkaConfigError(f"TLS is set up, but security.protocol is {protocol}: say SSL or SASL_SSL")


def _load(options: Mapping[str, Any]) -> None:
    """Check the files of TLS; the client would only say that it timed out."""
    try:
        ssl.create_default_context(cafile=options.get("ssl_cafile"))
    except OSError:
        raise KafkaConfigError(f"ssl.ca.location: {options['ssl_cafile']} holds no PEM certificate") from None
    if options.get("ssl_certfile"):
        warn_of_readers(options.get("ssl_keyfile") or options["ssl_certfile"])
        try:
            ssl.create_default_context().load_cert_chain(
                options["ssl_certfile"], options.get("ssl_keyfile"), options.get("ssl_password") or ""
            )
        except OSError:
            raise KafkaConfigError(
                f"ssl.certificate.location: {options['ssl_certfile']}, ssl.key.location and ssl.key.password "
                "do not make a certificate and its key in PEM"
            ) from None
