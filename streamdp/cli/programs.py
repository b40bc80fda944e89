"""``streamdp mcp``: a stream that programs ask, by the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

import os

from streamdp.cli.errors import speak_warnings
from streamdp.cli.serve import TOKEN
from streamdp.cli.watch import checked_token, token_in
from streamdp.errors import ConfigError, Exit


def serve_programs(where: str, token: str | None, *, corrects: bool) -> None:
    """Answer until the client closes stdin. Raises StreamdpError."""
    try:
        from streamdp.programs.server import Tools
    except ImportError:
        raise ConfigError("mcp needs more packages: pip install 'streamdp[mcp]'", Exit.UNAVAILABLE) from None
    from streamdp.programs.asked import CORRECTIONS, Asked, OfPath
    from streamdp.programs.service import OfService

    speak_warnings()
    asked: Asked
    if where.startswith(("http://", "https://")):
        known = token_in(token)
        if known is None and TOKEN in os.environ:
            known = checked_token(os.environ[TOKEN], TOKEN)
        asked = OfService(where, known)
    else:
        asked = OfPath(where)
    if corrects and CORRECTIONS not in asked.can:
        raise ConfigError(
            f"--allow-corrections: {where} takes none: name the folder of a state, or a service", Exit.USAGE
        )
    Tools(asked, corrects=corrects).server().run("stdio")
