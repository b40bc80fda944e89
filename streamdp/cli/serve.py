"""``streamdp serve``: records in and answers out over HTTP, by way of a journal in the state's folder."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import ssl
from collections.abc import Container
from pathlib import Path
from typing import Any

import msgspec

from streamdp.cli.consume import run_to_end
from streamdp.cli.display import Display
from streamdp.cli.warm import prepare
from streamdp.errors import ConfigError, Exit, needing
from streamdp.records.stored import holds_nothing
from streamdp.run.alarm import Alarm
from streamdp.run.interrupt import LIMIT, Interrupt
from streamdp.run.messages import warn
from streamdp.run.observers import TOKEN, LivePage, Measured, Observers, token_of
from streamdp.run.reading import COLUMNS, format_of
from streamdp.settings import Settings
from streamdp.settings.alerts import Alerting
from streamdp.settings.assemble import automatic
from streamdp.settings.io_options import NOWHERE, Input, Outputs, Service, Serving
from streamdp.state.snapshot import snapshots
from streamdp.web import is_loopback


def _size(text: str | None) -> int:
    """Bytes that ``--keep-journal`` means, with k, M or G (powers of 1024). Raises ConfigError."""
    if text is None:
        return 0
    if (found := re.fullmatch(r"([1-9]\d{0,14})([kKmMgG]?)", text)) is None:
        raise ConfigError(f"--keep-journal: {text!r} is no size such as 500M or 2G", Exit.USAGE)
    return int(found[1]) << 10 * " kmg".index(found[2].lower() or " ")


def _token(at: Service) -> str | None:
    """The token that clients send; None for none. Raises StreamdpError."""
    token = token_of(at.token)
    if token is None and not is_loopback(at.host) and not at.tls_clients:
        raise ConfigError(
            f"--host {at.host} can be reached from other machines: say --token PATH, set {TOKEN}, or let "
            "clients show certificates (--tls-clients)",
            Exit.USAGE,
        )
    return token


def _tls(at: Service) -> dict[str, Any]:
    """What uvicorn takes of certificates. Raises ConfigError."""
    if at.tls_cert is None and at.tls_key is None and at.tls_clients is None:
        return {}
    if at.tls_cert is None or at.tls_key is None:
        raise ConfigError("TLS needs both --tls-cert and --tls-key", Exit.USAGE)
    found: dict[str, Any] = {"ssl_certfile": at.tls_cert, "ssl_keyfile": at.tls_key}
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(at.tls_cert, at.tls_key)
        if at.tls_clients is not None:
            context.load_verify_locations(at.tls_clients)
            found |= {"ssl_ca_certs": at.tls_clients, "ssl_cert_reqs": ssl.CERT_REQUIRED}
    except OSError as error:
        raise ConfigError(
            f"the certificates cannot be used: {error.strerror or error}", Exit.CONFIG
        ) from None
    return found


def _checked(outputs: Outputs, written: Container[str]) -> Outputs:
    """The outputs of a service. Raises ConfigError."""
    if outputs.state is None or outputs.store is None:
        raise ConfigError("say where records are kept: --state FOLDER and --store FILE", Exit.USAGE)
    if outputs.frozen or outputs.final_only:
        flag = "--frozen" if outputs.frozen else "--final-only"
        raise ConfigError(f"serve learns from records and answers them at once: leave {flag} out", Exit.USAGE)
    if not outputs.overwrite and not snapshots(Path(outputs.state)) and not _is_new(outputs.store):
        raise ConfigError(
            f"{outputs.store} exists, and {outputs.state} is new: name another --store, or the --state that "
            "goes on with it",
            Exit.CANNOT_CREATE,
        )
    return outputs if "output" in written else msgspec.structs.replace(outputs, output=NOWHERE)


def _is_new(store: str) -> bool:
    """Whether nothing is there, or a store that the start of a run has left empty."""
    return not os.path.isfile(store) or not os.path.getsize(store) or holds_nothing(store)


def _allow_files(wanted: int) -> None:
    """Allow this process so many open files, or as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        warn(f"only {allowed:,} files may be open at once: many connections need {wanted:,} (ulimit -Hn)")


def serve(
    settings: Settings, written: Container[str], outputs: Outputs, at: Service, alerting: Alerting
) -> int:
    """Serve until a signal comes. Returns the exit code."""
    outputs = _checked(outputs, written)
    token, tls, keep = _token(at), _tls(at), _size(at.keep_journal)
    if format_of(settings, None) in COLUMNS:
        raise ConfigError("a service has no header of columns: send JSON or text", Exit.CONFIG)
    assert outputs.state is not None
    with needing(ConfigError, "serve needs", "starlette", "uvicorn"):
        from streamdp.serve.api import Service as Answering
        from streamdp.serve.bodies import FILES, SERVICE
        from streamdp.serve.door import DoorWatch, ServiceRun
    _allow_files(FILES)
    doors: list[DoorWatch] = []
    made: list[Answering] = []

    def more(page: Any) -> Any:
        made.append(Answering(page, measured.server.answer, page.drop))
        return made[0].routes()

    serving = Serving(page=at.port, page_host=at.host, page_corrections=True)
    how: dict[str, Any] = {"limits": SERVICE, "tls": tls, "more": more, "token": token, "called": "service"}
    with contextlib.ExitStack() as opened, Interrupt(limit=LIMIT, resumable=True) as interrupt:
        measured = Measured(lambda: doors[0].hindrance() if doors else None)
        opened.callback(measured.close)
        live = LivePage(serving, "records over HTTP", automatic(settings), **how)
        opened.callback(live.close)
        interrupt.opened = False
        doors.append(DoorWatch(at.answer_within, keep, live, made[0]))
        measured.metrics.set("conflicts", lambda: {(): doors[0].conflicts()})
        alarm = Alarm(alerting.all, measured.metrics, live.page.site)
        watch = Observers(measured, doors[0], live, alarm)  # clients hear before pages do
        source = Input(file=os.path.join(outputs.state, "journal"))
        run = ServiceRun(source, settings, outputs, written=written, watch=watch, interrupt=interrupt)
        with Display():
            prepare(run.settings)  # else requests would wait for kernels at the first looks back
        return run_to_end(run)
