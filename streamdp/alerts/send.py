"""The way to a receiver: a thread for each alert, which sends what waits in the outbox, and tries again.

The stream never waits for it. A receiver that fails, hangs or answers rubbish delays only its own alert.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from streamdp._version import __version__
from streamdp.alerts.forms import as_lines, body_of, path_of
from streamdp.alerts.outbox import MOST, Notification, Outbox, write_whole
from streamdp.errors import ConfigError
from streamdp.safe_files import open_regular, warn_of_readers
from streamdp.settings.alerts import Alert, checked_url, file_of

_log = logging.getLogger("streamdp")

TOGETHER = 100
"""What one message tells, at most."""

FIRST, LONGEST = 1.0, 300.0
"""Seconds until the second attempt, and most between two; they double."""

SILENT, WHOLE = 10.0, 30.0
"""Seconds without a sign of a receiver, and for an attempt as a whole."""

READ = 64 << 10
"""Bytes of an answer that are read."""

TAIL = 64 << 20
"""Bytes at the end of a file in which lines are looked for that were not noted."""

REFUSED = (400, 413, 422)
"""Statuses by which a receiver says that it will never take a message."""

REFUSALS = 5
"""Times that a receiver may say so of one thing that it is told, before that is given up."""


class SendError(Exception):
    """A receiver did not take a message: why, without its address, and after how many seconds it may."""

    def __init__(self, why: str, *, never: bool = False, after: float = 0.0) -> None:
        super().__init__(why)
        self.never, self.after = never, after


class Receiver:
    """Where one alert is sent. What is shown of it holds neither path nor token.

    Raises ConfigError where its address or token cannot be had.
    """

    def __init__(self, alert: Alert, link: str | None = None) -> None:
        self.name, self.form, self.every = alert.name, alert.format, alert.every
        self._page = alert.link or link
        parts = urlsplit(_address(alert))
        self._secure, self._host = parts.scheme == "https", parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._path = path_of(alert.format, parts.path) + (f"?{parts.query}" if parts.query else "")
        token = _secret(alert.token_file, alert.token_env, f"alert {alert.name}: token")
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"streamdp/{__version__}",
            "Connection": "close",
        }
        if token is not None:
            bearer = alert.header.lower() == "authorization" and " " not in token
            self._headers[alert.header] = f"Bearer {token}" if bearer else token

    def __repr__(self) -> str:
        return f"Receiver({self.name!r} at {self._host})"

    def send(self, told: Sequence[Notification]) -> None:
        """Send a message. Raises SendError unless it was taken: redirections are not followed."""
        body = body_of(self.form, self.name, told, self._page, time.time())
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=SILENT)
        try:
            connection.connect()
            with _limited(connection.sock) as cut:
                connection.request("POST", self._path, body, self._headers)
                answer = connection.getresponse()
                if cut.is_set():
                    raise TimeoutError  # half a head would count as a whole one
                status, after = answer.status, answer.headers.get("Retry-After", "")
                with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                    answer.read(READ)  # whatever it says, the status counts
        except ssl.SSLCertVerificationError as error:
            raise SendError(f"its certificate cannot be trusted ({error.verify_message})") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SendError(_why(error)) from None
        finally:
            connection.close()
        if not 200 <= status < 300:
            seconds = float(after) if after.isdecimal() and len(after) < 6 else 0.0
            raise SendError(f"it answered {status}", never=status in REFUSED, after=seconds)


class FileReceiver:
    """A file that an alert is appended to: a line of JSON for each."""

    every = 0.0

    def __init__(self, alert: Alert, path: str, link: str | None = None) -> None:
        self.name, self.path, self._page = alert.name, path, alert.link or link

    def has(self, waiting: Sequence[Notification]) -> list[Notification]:
        """What of this was appended before a crash could be noted; half a line of it is cut off."""
        try:
            with open(open_regular(self.path, os.O_RDWR, follow=True), "r+b") as file:
                begin = max(os.fstat(file.fileno()).st_size - TAIL, 0)
                file.seek(begin)
                *whole, half = file.read().split(b"\n")
                lines = [as_lines([one], self._page)[:-1] for one in waiting]
                if half and any(line.startswith(half) for line in lines):
                    file.truncate(begin + sum(len(line) + 1 for line in whole))
        except OSError:
            return []  # it is not there yet; what else is wrong will be said when it is written
        there = set(whole)
        return [one for one, line in zip(waiting, lines, strict=True) if line in there]

    def send(self, told: Sequence[Notification]) -> None:
        """Append them, durably. Raises SendError."""
        try:
            file = open_regular(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, follow=True)
            try:
                write_whole(file, as_lines(told, self._page))
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise SendError(f"{self.path}: {error.strerror or type(error).__name__}") from None


def receiver_of(alert: Alert, link: str | None = None) -> Receiver | FileReceiver:
    """Where an alert is sent; ``link`` is the address of the page. Raises ConfigError."""
    path = file_of(_address(alert))
    return Receiver(alert, link) if path is None else FileReceiver(alert, path, link)


def _address(alert: Alert) -> str:
    place = f"alert {alert.name}"
    url = alert.url or _secret(alert.url_file, alert.url_env, f"{place}: address")
    return checked_url(url or "", f"{place}: the address")


class Sender:
    """The thread of one alert."""

    def __init__(self, receiver: Receiver | FileReceiver, outbox: Outbox) -> None:
        self.name, self._receiver, self._outbox = receiver.name, receiver, outbox
        if isinstance(receiver, FileReceiver) and (there := receiver.has(outbox.next(self.name, MOST))):
            outbox.delivered(self.name, there)
        self._most, self._refusals, self._wait = TOGETHER, 0, 0.0
        self._ends = threading.Event()
        self.failing = False
        """Whether the last attempt has failed."""
        self._thread = threading.Thread(target=self._run, name=f"streamdp-alert-{self.name}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send nothing more; the thread may be in the middle of an attempt, and is not waited for."""
        self._ends.set()
        with self._outbox.changed:
            self._outbox.changed.notify_all()

    def _run(self) -> None:
        while not self._ends.is_set():
            told = self._outbox.next(self.name, self._most)
            if not told:
                with self._outbox.changed:
                    if not self._outbox.next(self.name, 1) and not self._ends.is_set():
                        self._outbox.changed.wait()
                continue
            try:
                self._receiver.send(told)
            except SendError as error:
                self._failed(told, error)
            except Exception as error:  # a defect must not end the alerts
                self._failed(told, SendError(type(error).__name__))
            else:
                self._arrived(told)
                self._ends.wait(self._receiver.every)

    def _arrived(self, told: Sequence[Notification]) -> None:
        self._outbox.delivered(self.name, told)
        if self.failing:
            _log.warning("alert %s: the receiver takes messages again", self.name)
        self.failing, self._wait, self._most, self._refusals = False, 0.0, TOGETHER, 0

    def _failed(self, told: Sequence[Notification], error: SendError) -> None:
        self._outbox.failed(self.name)
        if not self.failing:
            _log.warning("alert %s: not delivered: %s; it is tried again", self.name, error)
        self.failing = True
        if error.never and len(told) > 1:
            self._most = len(told) // 2  # the others are no reason to wait for the one that is refused
        elif error.never:
            self._refusals += 1
            if self._refusals >= REFUSALS:
                self._outbox.give_up(self.name, told, f"the receiver refuses them ({error})")
                self._refusals, self._wait = 0, 0.0
                return
        self._wait = min(max(2 * self._wait, FIRST), LONGEST)
        self._ends.wait(min(max(self._wait, error.after), LONGEST))


@contextlib.contextmanager
def _limited(connected: socket.socket) -> Iterator[threading.Event]:
    """End an attempt that takes too long: whoever waits for the receiver finds the connection closed.

    What is yielded says whether that has happened.
    """
    late = threading.Event()

    def cut() -> None:
        late.set()
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    end = threading.Timer(WHOLE, cut)
    end.daemon = True
    end.start()
    try:
        yield late
    finally:
        end.cancel()


def _why(error: Exception) -> str:
    """What went wrong, without what the receiver has sent."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "it answered no HTTP" if isinstance(error, http.client.HTTPException) else type(error).__name__


def _secret(file: str | None, variable: str | None, what: str) -> str | None:
    """What a file or a variable holds; None where neither is named. Raises ConfigError."""
    if variable is not None:
        found = os.environ.get(variable, "").strip()
        if not found:
            raise ConfigError(f"{what}: the environment variable {variable} is not set")
        return _sound(found, what)
    if file is None:
        return None
    try:
        with open(open_regular(file, follow=True), encoding="utf-8") as opened:
            found = opened.read(10_000).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "not UTF-8"
        raise ConfigError(f"{what}: {file} cannot be read: {why}") from None
    warn_of_readers(file)
    return _sound(found, f"{what}: {file}")


def _sound(secret: str, what: str) -> str:
    if not secret or not secret.isascii() or not secret.isprintable():
        raise ConfigError(f"{what} is one line of printable characters, and nothing else")
    return secret
