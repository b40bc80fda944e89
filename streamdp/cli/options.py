"""Every setting as a command-line option, made from the settings themselves."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from streamdp.settings.load import load
from streamdp.settings.schema import Settings, setting_fields

PANELS = {
    "input": "Input",
    "text": "Text",
    "model": "Model",
    "search": "Search",
    "time": "Time",
    "engine": "State",
}


def with_settings(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add an option for every setting; ``command`` receives them as ``settings``, loaded and checked.

    The command must take keyword arguments ``settings`` and ``config`` (the path of a settings file).
    """
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "settings"]
    names = [field.name for field in setting_fields()]
    extra = []
    for field in setting_fields():
        default = "automatic" if field.default is None else field.default
        shown = ",".join(default) if isinstance(default, tuple) else str(default).lower()
        option = typer.Option(
            field.flag,
            help=f"{field.description}; {field.allowed}",
            rich_help_panel=PANELS[field.group],
            show_default=shown or "none",
            metavar="VALUE",
        )
        extra.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[str | None, option],
            )
        )

    def run(**arguments: Any) -> int | None:
        flags = {name: arguments.pop(name) for name in names}
        settings: Settings = load(flags, os.environ, arguments.get("config"))
        return command(settings=settings, **arguments)

    signature = inspect.Signature([p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + extra)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    return run
