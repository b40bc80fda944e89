"""Docstrings as Markdown: roles become code, and the underscores of formulas stay underscores."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_AS_IT_IS = re.compile(r"(``.+?``|`[^`\n]+`|^ *>>> .*$|^\w+(?:, \w+)*$)", re.MULTILINE)
"""Code, and the names of parameters above their descriptions."""


class Docstrings(Extension):
    """Changes every docstring before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called with every module, class, function and attribute."""
        if obj.docstring is not None and "://" not in obj.docstring.value:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """A docstring as Markdown that shows the same characters."""
    parts = _AS_IT_IS.split(_ROLE.sub(lambda role: f"`{role[1].rpartition('.')[2]}`", text))
    parts[::2] = [part.replace("_", "\\_").replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)
