"""A page in one file: no script, no font and no picture from elsewhere."""

from __future__ import annotations

from html import escape

STYLE = """
:root { color-scheme: light dark;
  --ink: #1c1e21; --paper: #fff; --line: #d5d9de; --quiet: #5a6069; --bar: #2f6fb5 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7e9ec; --paper: #16181b; --line: #383d44; --quiet: #a3abb5; --bar: #6aa9ee } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 0 auto; padding: 1rem }
table { border-collapse: collapse; width: 100% }
caption { text-align: left; color: var(--quiet); padding: .3rem 0 }
th, td { text-align: left; vertical-align: top;
  padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line) }
@media print { body { max-width: none; padding: 0 } a { color: inherit } section, tr { break-inside: avoid } }
"""


def document(title: str, body: str, style: str = "", language: str = "en") -> str:
    """A page of a title, and of a body that is HTML already."""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
