"""Whether a broker can be reached, and if not, why: one line that says what to do."""

from __future__ import annotations

import io
import logging
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streamdp.errors import Exit
from streamdp_connectors.protocol import SourceError

_log = logging.getLogger(__name__)

SECONDS = 2.0
"""How long one attempt to connect may take."""

ASK_EVERY = 1.0
"""Seconds of silence after which a broker is asked whether it is there."""

_QUIET = 3.0
"""Seconds without an answer after which a broker counts as lost; shorter silences are not reported."""

_VERSIONS = b"\0\0\0\n\0\x12\0\0\0\0\0\1\xff\xff"
"""A request for the versions of the protocol, which every broker answers without a login."""


_AUTHORITY = "name its authority with ssl.ca.location"
_OTHER_NAME = "call the broker in --bootstrap as the certificate does"
_REMEDIES = {
    9: "it is for later: check the clocks of this machine and of who issued it",
    10: "it has expired: have the broker's renewed",
    23: "it was revoked: have the broker's renewed",
    62: _OTHER_NAME,
    64: _OTHER_NAME,
}
"""What helps, by OpenSSL's number of what is wrong (``X509_V_ERR_...``)."""


class Trouble(NamedTuple):
    """What is wrong and what to do; ``passing`` if it may be right a moment later by itself."""

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
    """Why no server accepts a connection; None if one of them does."""
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
    """What is wrong with TLS or the login at a server that can be reached; None if nothing is found."""
    protocol = str(options.get("security_protocol", "PLAINTEXT"))
    login = protocol.startswith("SASL")
    for host, port in servers(bootstrap):
        if _knock(host, port) is not None:
            continue
        trouble = None
        if not protocol.endswith("SSL"):
            if _speaks_tls(host, port):
                how = f"set security.protocol={'SASL_SSL' if login else 'SSL'} in --kafka-config"
                return Trouble(f"{host}:{port} wants TLS, and was spoken to without: {how}", passing=False)
        elif _speaks_plain(host, port):
            how = f"set security.protocol={'SASL_PLAINTEXT' if login else 'PLAINTEXT'}"
            what = f"{host}:{port} speaks no TLS: name its TLS port in --bootstrap, or {how}"
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
    """What is wrong with the certificate of a server that speaks TLS; None if nothing is."""
    try:
        _connect(host, port, options).close()
    except ssl.SSLCertVerificationError as error:
        what = f"the certificate of {host}:{port} is not trusted ({error.verify_message.rstrip('.')})"
        return Trouble(f"{what}: {_REMEDIES.get(error.verify_code, _AUTHORITY)}", passing=False)
    except OSError:
        pass
    return None


def _login(host: str, port: int, options: Mapping[str, Any]) -> Trouble | None:
    """Whether a login is refused; the client loses the answer if the connection is closed at once."""
    from kafka.errors import KafkaError
    from kafka.net.sasl import get_sasl_mechanism

    name = options["sasl_mechanism"]
    user = options.get("sasl_plain_username")
    who = f"{host}:{port} refuses the login (SASL {name}" + (f", user {user})" if user else ")")
    what = "sasl.token.file" if name == "OAUTHBEARER" else "sasl.username and sasl.password"
    mechanism = get_sasl_mechanism(name)(host=host, **options)
    try:
        with _connect(host, port, options) as connection, connection.makefile("rwb") as stream:
            if _ask(stream, 17, 1, struct.pack(">h", len(name)) + name.encode())[:2] != b"\0\0":
                return Trouble(f"{who}: it knows no such sasl.mechanism", passing=False)
            while not mechanism.is_done():
                token = mechanism.auth_bytes()
                answer = _ask(stream, 36, 0, struct.pack(">i", len(token)) + token)
                if answer[:2] != b"\0\0":
                    return Trouble(f"{who}: check {what}", passing=False)
                length = max(0, struct.unpack_from(">h", answer, 2)[0])  # of a message
                mechanism.receive(answer[4 + length + 4 :])
    except (OSError, struct.error, ValueError, KafkaError):
        pass
    return None


def _ask(stream: io.BufferedRWPair, api: int, version: int, body: bytes) -> bytes:
    """Send a request of Kafka's protocol without a client id, and return what is in the answer."""
    request = struct.pack(">hhih", api, version, 1, -1) + body
    stream.write(struct.pack(">i", len(request)) + request)
    stream.flush()
    (size,) = struct.unpack(">i", stream.read(4))
    answer = stream.read(min(size, 1 << 20))
    if len(answer) < size:
        raise ConnectionError("closed")
    return answer[4:]


class Link:
    """Whether a broker answers; one line is logged when it is lost, and one when it is back.

    It is *up*, *quiet* for the first seconds without an answer, then *lost*. After ``give_up_after`` seconds
    without an answer (None: never) ``check`` raises SourceError (69). ``why`` finds out, in a few seconds,
    why it does not answer.
    """

    def __init__(
        self,
        bootstrap: str,
        give_up_after: float | None,
        why: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bootstrap, self._give_up_after, self._why, self._clock = bootstrap, give_up_after, why, clock
        self._heard = self._asked = clock()
        self._quiet: float | None = None  # since the first question without an answer
        self._lost = False

    @property
    def up(self) -> bool:
        """Whether the broker is not lost."""
        return not self._lost

    def answered(self) -> None:
        """The broker has answered something."""
        if self._lost and self._quiet is not None:
            away = _span(self._clock() - self._quiet)
            _log.warning("the Kafka broker at %s is back after %s", self._bootstrap, away)
        self._heard, self._quiet, self._lost = self._clock(), None, False

    def check(self, ask: Callable[[], bool]) -> None:
        """Find out by ``ask`` whether it is there, unless it answered or was asked a moment ago."""
        began = self._clock()
        if began - max(self._heard, self._asked) < ASK_EVERY:
            return
        if ask():
            self.answered()
        else:
            self._silent(began)
        self._asked = self._clock()

    def _silent(self, began: float) -> None:
        self._quiet = began if self._quiet is None else self._quiet
        away, limit = self._clock() - self._quiet, self._give_up_after
        broker = f"the Kafka broker at {self._bootstrap}"
        if not self._lost and away >= _QUIET:
            self._lost = True
            trying = "until it answers" if limit is None else f"for {limit:g} s in all"
            _log.warning("lost %s: %s; trying %s", broker, self._why(), trying)
        if limit is not None and away >= limit:
            what = f"{broker} has not answered for {_span(away)} (--give-up-after)"
            raise SourceError(f"{what}: start it, then this again", Exit.UNAVAILABLE)


def _span(seconds: float) -> str:
    """``12 s``, ``2:07`` or ``1:05:00``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}" if minutes else f"{rest} s"
