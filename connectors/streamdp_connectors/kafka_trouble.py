"""Why a broker cannot be reached: found out by knocking, told in one line with what to do."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

SECONDS = 2.0
"""How long one knock may take."""

_VERSIONS = b"\0\0\0\n\0\x12\0\0\0\0\0\1\xff\xff"
"""The request for the versions of the protocol, which every broker answers without a login."""


class Trouble(NamedTuple):
    """What is wrong and what to do; ``passing`` where it may be right a moment later, by itself."""

    message: str
    passing: bool


def servers(bootstrap: str) -> list[tuple[str, int]]:
    """Hosts and ports; the port is 9092 where none is named."""
    found = []
    for server in filter(None, (part.strip() for part in bootstrap.split(","))):
        host, colon, port = server.rpartition(":")
        numbered = bool(colon) and port.isdigit()
        found.append(((host if numbered else server).strip("[]"), int(port) if numbered else 9092))
    return found


def unreachable_server(bootstrap: str) -> Trouble | None:
    """What is wrong before a word of any protocol is said; None where one of the servers can be reached."""
    troubles = []
    for host, port in servers(bootstrap):
        trouble = _knock(host, port)
        if trouble is None:
            return None
        troubles.append(trouble)
    return troubles[0] if troubles else Trouble("--bootstrap names no broker: say host:port", passing=False)


def _knock(host: str, port: int) -> Trouble | None:
    try:
        with socket.create_connection((host, port), SECONDS):
            return None
    except (socket.gaierror, UnicodeError):
        return Trouble(f"the host name {host} cannot be resolved: check --bootstrap", passing=True)
    except ConnectionRefusedError:
        what = f"nothing listens at {host}:{port}"
        return Trouble(f"{what}: start the broker, or check the port in --bootstrap", passing=True)
    except (OSError, OverflowError) as error:
        why = "no answer" if isinstance(error, TimeoutError) else str(error)
        return Trouble(f"cannot connect to {host}:{port} ({why}): check --bootstrap", passing=True)


def wrong_protocol(bootstrap: str, options: Mapping[str, Any]) -> Trouble | None:
    """What is wrong with how a server that can be reached was spoken to; None where nothing is found."""
    protocol = str(options.get("security_protocol", "PLAINTEXT"))
    login = protocol.startswith("SASL")
    for host, port in servers(bootstrap):
        if _knock(host, port) is not None:
            continue
        trouble = None
        if not protocol.endswith("SSL"):
            if _speaks_tls(host, port):
                told = f"set security.protocol={'SASL_SSL' if login else 'SSL'} in --kafka-config"
                return Trouble(f"{host}:{port} wants TLS, and was spoken to without: {told}", passing=False)
        elif _speaks_plain(host, port):
            told = f"set security.protocol={'SASL_PLAINTEXT' if login else 'PLAINTEXT'}"
            what = f"{host}:{port} speaks no TLS: name its TLS port in --bootstrap, or {told}"
            return Trouble(what, passing=False)
        else:
            trouble = _certificate(host, port, options)
        if trouble is None and login:
            trouble = _login(host, port, options)
        if trouble is not None:
            return trouble
    return None


def _speaks_plain(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), SECONDS) as connection:
            connection.sendall(_VERSIONS)
            return connection.recv(8)[4:] == _VERSIONS[8:12]
    except OSError:
        return False


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is said: only whether TLS is spoken at all
    try:
        with (
            socket.create_connection((host, port), SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def _connect(host: str, port: int, options: Mapping[str, Any]) -> socket.socket:
    """A connection as the client makes it. Raises OSError."""
    connection = socket.create_connection((host, port), SECONDS)
    if not str(options.get("security_protocol")).endswith("SSL"):
        return connection
    context = ssl.create_default_context(cafile=options.get("ssl_cafile"))
    context.check_hostname = bool(options.get("ssl_check_hostname", True))
    if options.get("ssl_certfile"):
        password = options.get("ssl_password") or ""
        context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"), password)
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except OSError:
        connection.close()
        raise


def _certificate(host: str, port: int, options: Mapping[str, Any]) -> Trouble | None:
    """What is wrong with the certificate of a server that speaks TLS; None where nothing is."""
    try:
        _connect(host, port, options).close()
    except ssl.SSLCertVerificationError as error:
        what = f"the certificate of {host}:{port} is not trusted ({error.verify_message.rstrip('.')})"
        return Trouble(f"{what}: name its authority with ssl.ca.location", passing=False)
    except OSError:
        pass
    return None


def _login(host: str, port: int, options: Mapping[str, Any]) -> Trouble | None:
    """Whether a login is refused; the client loses the answer where the connection is closed at once."""
    from kafka.errors import KafkaError
    from kafka.net.sasl import get_sasl_mechanism

    name = options["sasl_mechanism"]
    user = options.get("sasl_plain_username")
    who = f"{host}:{port} refuses the login (SASL {name}" + (f", user {user})" if user else ")")
    what = "sasl.token.file" if name == "OAUTHBEARER" else "sasl.username and sasl.password"
    mechanism = get_sasl_mechanism(name)(host=host, **options)
    try:
        with _connect(host, port, options) as connection:
            if _ask(connection, 17, 1, struct.pack(">h", len(name)) + name.encode())[:2] != b"\0\0":
                return Trouble(f"{who}: it knows no such sasl.mechanism", passing=False)
            while not mechanism.is_done():
                token = mechanism.auth_bytes()
                answer = _ask(connection, 36, 0, struct.pack(">i", len(token)) + token)
                if answer[:2] != b"\0\0":
                    return Trouble(f"{who}: check {what}", passing=False)
                length = max(0, struct.unpack_from(">h", answer, 2)[0])  # of a message
                mechanism.receive(answer[4 + length + 4 :])
    except (OSError, struct.error, ValueError, KafkaError):
        pass
    return None


def _ask(connection: socket.socket, api: int, version: int, body: bytes) -> bytes:
    """Send a request of Kafka's protocol without a client id, and return what is in the answer."""
    request = struct.pack(">hhih", api, version, 1, -1) + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, min(size, 1 << 20))[4:]


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise ConnectionError("closed")
        found += more
    return found
