"""The page of a view: its address, its token, and what it bears of clients."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

from starlette.routing import Route

from streamdp.errors import Exit, StreamdpError
from streamdp.page.api import Api
from streamdp.page.guard import Allowance, Guard
from streamdp.page.hub import Hub, Questions
from streamdp.page.view import View
from streamdp.web import PAGE, Limits, is_loopback
from streamdp.web.server import Server, refusal

SCORES = 10.0, 4.0
"""Texts that are scored at once, and in a second in the long run."""

MADE = 120.0, 60.0
"""Answers that are worked out at once, and in a second; pages share those that are the same."""


class PageError(StreamdpError):
    """The page cannot be served."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.UNAVAILABLE)


class How(TypedDict, total=False):
    """What may be said of a page besides."""

    limits: Limits
    tls: Mapping[str, Any]
    more: Callable[[Api], Iterable[Route]]


class Page:
    """Serves a view from a daemon thread, until closed.

    Parameters
    ----------
    view
        What is shown.
    host, port
        Where; port 0 takes any free one, and ``port`` is the one taken.
    token
        What strangers must know where the address can be reached from other machines; None: one is made up,
        unless clients show a certificate.
    limits
        What it bears of clients.
    tls
        What uvicorn takes of certificates.
    more
        Makes further routes of the answers that a page gives.

    Raises PageError.
    """

    def __init__(
        self, view: View, host: str = "127.0.0.1", port: int = 0, token: str | None = None, **how: Unpack[How]
    ) -> None:
        self.view, self.questions, self.host = view, Questions(), host
        limits, self._tls = how.get("limits", PAGE), how.get("tls", {})
        open_to_all = not is_loopback(host) and "ssl_ca_certs" not in self._tls
        self.token = token or (secrets.token_urlsafe(24) if open_to_all else None)
        self._own_token = token is not None
        self.hub = Hub(secrets.token_hex(4), view.first_tick)
        try:
            self._server = Server(host, port, limits, self._tls)
        except (OSError, OverflowError) as error:
            raise PageError(refusal("the page", "", host, port, error)) from error
        self.connections, self.port = self._server.connections, self._server.port
        drop = self.connections.drop
        api = Api(view, self.hub, self.questions, drop, Allowance(*SCORES), Allowance(*MADE))
        app = Guard(api.app(how.get("more")), host, self.token, limits)
        self._server.start(app, "streamdp-page", self.hub.begin)

    @property
    def address(self) -> str:
        """What to open in a browser; without a token that the user has chosen, because it is printed."""
        named = f"[{self.host}]" if ":" in self.host else self.host
        shown = "" if self.token is None or self._own_token else f"?token={self.token}"
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{named}:{self.port}/{shown}"

    @property
    def site(self) -> str:
        """The address without any token."""
        return self.address.partition("?")[0]

    def close(self) -> None:
        """Stop serving and free the port; again is harmless."""
        self.hub.close()
        self._server.close()
